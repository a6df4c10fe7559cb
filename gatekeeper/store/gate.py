"""A ContextGatekeeper over a session on disk: what it holds in memory is a copy, brought up to date at each call."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from gatekeeper.block import Block
from gatekeeper.constraints import Constraints
from gatekeeper.errors import (
    ArgumentTypeError,
    StoreError,
    StoreSettingsError,
    TurnError,
    require_whole_number,
)
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.messages.formats import messages_of
from gatekeeper.settings import Settings
from gatekeeper.store.database import Database, create
from gatekeeper.store.messages import NOTHING, SessionMessages, n_equal
from gatekeeper.store.session import Session, load_constraints, new_row, settings_of, spread

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any

    from scipy.sparse import csc_array, csr_array

    from gatekeeper.block import Selection
    from gatekeeper.messages.selection import FittedMessages
    from gatekeeper.store.session import Row, Turn

DEFAULT_BUDGET = 4000
# Only a query needs these. All others decide how a turn is indexed and gated when it is added.
QUERY_SETTINGS = frozenset((
    "weight_user", "weight_assistant", "weight_exact", "weight_recency", "k1", "b", "recency_window", "max_candidates",
    "max_sentences", "coverage_stop", "whole_blocks", "image_tokens", "min_coverage", "min_coverage_of_best",
    "topic_coverage_ratio", "coverage_length", "weight_neighbours", "neighbour_window", "content_filter", "joint_sides",
    "stems", "squared_idf", "whole_side_tokens", "n_covers",
))  # fmt: skip


def open_session(path: str | os.PathLike[str], name: str, user: str, token_budget: int | None,
                 settings: Settings | None, count_tokens: Callable[[str], int]) -> SessionGatekeeper:
    """`gatekeeper.open`."""
    ContextGatekeeper(DEFAULT_BUDGET if token_budget is None else token_budget, settings=settings,
                      count_tokens=count_tokens)  # refuse bad arguments before a file is made
    new = new_row(user, name, token_budget or DEFAULT_BUDGET, settings or Settings())
    database = open_database(path, make=True)
    try:
        session = Session(database, user, name)
        with database.reading() as connection:
            row = session.find(connection)
        row = row or session.make(new)
        stored = settings_of(database.path, row)
        check_settings(database.path, stored, settings)
        return SessionGatekeeper(session, token_budget or row.token_budget, settings or stored, count_tokens)
    except BaseException:
        database.close()
        raise


def open_database(path: str | os.PathLike[str], *, make: bool = False) -> Database:
    """Open a session file; with `make` a new one unless it exists. Raises StoreError."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"path must be a str or a path, got {type(path).__name__}: {path!r:.80}")
    full = os.path.abspath(os.fsdecode(path))
    if "\0" in full:
        raise StoreError(repr(full), "is no file name: it holds a NUL")
    if os.path.isdir(full):
        raise StoreError(full, "is a folder, not a session file")
    if not os.path.exists(full):
        if not make:
            raise StoreError(full, "does not exist")
        if not os.path.isdir(os.path.dirname(full)):
            raise StoreError(full, "cannot be made: its folder does not exist")
        create(full)
    return Database(full)


def check_settings(path: str, stored: Settings, given: Settings | None) -> None:
    """Refuse settings that would index or gate the stored turns otherwise."""
    if given is None:
        return
    mine, theirs = stored.as_dict(), given.as_dict()
    wrong = [name for name in mine if name not in QUERY_SETTINGS and mine[name] != theirs[name]]
    if wrong:
        raise StoreSettingsError(path, "the session was made with " + ", ".join(
            f"{name}={mine[name]!r}, not {theirs[name]!r}" for name in wrong)
            + ": leave settings out, or export it and import it into a new session with these")


class SessionConstraints(Constraints):
    """Constraints of which every change is on disk when it returns, made to what is stored at that time."""

    def __init__(self, gate: SessionGatekeeper) -> None:
        super().__init__()
        self._gate = gate

    def take(self, stored: Constraints) -> None:
        """Be as what is stored."""
        self._values, self._forbidden = stored._values, stored._forbidden

    def _change(self, change: Callable[[Constraints], object]) -> None:
        stored = self._gate.session.change_constraints(change)
        with self._gate._lock:
            self.take(stored)

    def __setitem__(self, key: str, value: str) -> None:
        self._change(lambda stored: stored.__setitem__(key, value))

    def __delitem__(self, key: str) -> None:
        self._change(lambda stored: stored.__delitem__(key))

    def forbid(self, item: str) -> None:
        """Add an entry to `forbidden` unless it is there."""
        self._change(lambda stored: stored.forbid(item))

    def allow(self, item: str) -> None:
        """Take an entry out of `forbidden`. KeyError if it is not there."""
        self._change(lambda stored: stored.allow(item))

    @property
    def forbidden(self) -> tuple[str, ...]:
        """What must not be done, in the order in which it was forbidden."""
        return tuple(self._forbidden)

    @forbidden.setter
    def forbidden(self, items: Iterable[str]) -> None:
        self._change(lambda stored: setattr(stored, "forbidden", items))

    def _set_or_drop(self, key: str, value: str | None) -> None:
        self._change(lambda stored: stored._set_or_drop(key, value))


class SessionGatekeeper(ContextGatekeeper):
    """A `ContextGatekeeper` that lives in a session file; `gatekeeper.open` makes it.

    Every method of `ContextGatekeeper` is there. Each begins with what the file holds then, and what it writes is on
    disk when it returns. The ids of anchors hold until a turn is forgotten or dropped. Close it, or use it in a `with`.
    """

    def __init__(self, session: Session, token_budget: int, settings: Settings,
                 count_tokens: Callable[[str], int]) -> None:
        self.session = session
        self._constraints: SessionConstraints | None = None
        super().__init__(token_budget, settings=settings, count_tokens=count_tokens)
        self._constraints = SessionConstraints(self)
        self._messages = SessionMessages(session)
        self._message_log = self._messages.log
        session.database.outer_lock = self._lock
        self._constraints_head = self._index_head = NOTHING  # of the session, when each was brought up to date

    # --- up to date

    @property
    def constraints(self) -> Constraints:
        """The stable constraints, as they are stored now; every change is stored at once."""
        assert self._constraints is not None
        with self._lock:
            if self.session.head() != self._constraints_head:
                with self.session.database.reading() as connection:
                    row = self.session.row(connection)
                self._constraints.take(load_constraints(row.constraints))
                self._constraints_head = row.head()
            return self._constraints

    @constraints.setter
    def constraints(self, value: Constraints) -> None:
        if self._constraints is not None:
            raise AttributeError("the constraints of a session cannot be replaced: change their entries")

    def _catch_up(self) -> None:
        """Index what the file holds and the index does not; anew from the first turn on that went or changed."""
        if self.session.head() == self._index_head:
            return
        with self.session.database.reading() as connection:
            row = self.session.row(connection)
            first, turns = self._unindexed(connection, row)
        self._take(row, first, turns)

    def _catch_up_within(self, connection: sqlite3.Connection) -> Row:
        """Bring index and messages up to date with what one state of the file holds; the session's row in it."""
        row = self.session.row(connection)
        if row.head() != self._index_head:
            self._take(row, *self._unindexed(connection, row))
        self._messages.catch_up(connection, row)
        return row

    def _unindexed(self, connection: sqlite3.Connection, row: Row) -> tuple[int, list[Turn]]:
        """How many of the index's turns are those of the file, and the turns behind them."""
        known = self._corpus.texts
        if row.edition == self._index_head[0]:
            return len(known), self.session.turns(connection, len(known), row.n_turns)
        turns = self.session.turns(connection, 0, row.n_turns)
        first = n_equal(known, turns)
        return first, turns[first:]

    def _take(self, row: Row, first: int, turns: list[Turn]) -> None:
        """Index turns in the place of those from `first` on."""
        self._index_head = NOTHING
        if first < len(self._corpus.texts):
            self._corpus.truncate(first)
            self._counts.clear()
        n_frozen, *starts = json.loads(row.topics)
        n_left = max(n_frozen - first, 0)
        self._index(turns[:n_left])
        if n_frozen:
            self._corpus.topic_starts[:n_frozen] = spread(starts, n_frozen)
        self._index(turns[n_left:])
        self._index_head = row.head()

    def _index(self, turns: Sequence[tuple[str, str] | None]) -> None:
        """Append turns to the index; a forgotten one leaves before the next one comes."""
        waiting = []
        for turn in turns:
            waiting.append(turn or ("", ""))
            if turn is None:
                self._corpus.append(waiting)
                self._corpus.forget(len(self._corpus.texts) - 1)
                waiting = []
        if waiting:
            self._corpus.append(waiting)

    # --- growing and shrinking

    def _append(self, turns: list[tuple[str, str]]) -> range:
        """To the file; the index takes it from there."""
        over_budget = self._over_budget(turns)
        turn_ids = self.session.append(turns)
        self._warn_of(turn_ids, over_budget)
        return turn_ids

    def forget(self, turn_id: int) -> None:
        """Remove one turn's text, anchors and counts for good, from the bytes of the file too. Ids stay.

        Writes the file anew, O(file). Raises TurnError for a turn that was never added; StoreBusyError when a reader
        kept the log from being emptied: the turn is then out of the conversation, its bytes not yet out of the file.
        """
        require_whole_number("turn_id", turn_id)
        self.forget_turns([turn_id])

    def forget_turns(self, turn_ids: Sequence[int]) -> None:
        """`forget` several turns: all or none, and the file is written anew once."""
        with self._lock:  # before that of the file: `add_messages` takes both in this order
            before, after = self.session.forget(turn_ids, self._topic_starts)
            if self._index_head == before.head():
                for turn_id in turn_ids:
                    self._corpus.forget(turn_id)
                self._index_head = after.head()
            self._counts.clear()
            self._messages.forget(turn_ids, before, after)
        self.session.database.purge()

    def _topic_starts(self) -> list[int]:
        with self._lock:
            self._catch_up()
            return self._corpus.topic_starts

    def truncate(self, n_turns: int) -> None:
        """Drop the turns from n_turns on, topic included: the conversation is as if they had never been added.

        Raises ArgumentValueError unless 0 <= n_turns <= len(self). Only `forget` sees to the bytes of the file.
        """
        require_whole_number("n_turns", n_turns)
        before, after = self.session.truncate(n_turns)
        with self._lock:
            if self._index_head[0] == before.edition:
                self._corpus.truncate(min(n_turns, len(self._corpus.texts)))
                self._index_head = after.edition, -1
            self._counts.clear()
            self._messages.truncate(n_turns, before, after)

    # --- chat messages

    def add_messages(self, messages: Any) -> None:
        """Add chat messages, as in memory; they are on disk, all of them or none, when this returns.

        A file keeps them as JSON: a dict comes back as an equal dict, an object of a framework as an OpenAI message.
        Raises ArgumentTypeError for a message that has no JSON form.
        """
        messages = messages_of(messages)  # it may be read twice
        with self._lock:
            with self.session.database.reading() as connection:  # what takes long keeps no writer waiting
                self._catch_up_within(connection)
            state = self._messages.log.state(self)
            try:
                with self.session.database.writing() as connection:
                    before = self._catch_up_within(connection)
                    state = self._messages.log.state(self)
                    texts = list(self._corpus.texts)
                    self._messages.log.add(self, messages, durable=False)
                    after = self._messages.save(connection, before, self._corpus, texts)
                    over_budget = self._over_budget_from(texts)
            except BaseException:
                self._messages.log.restore(self, state)
                self._index_head = self._messages.head = NOTHING  # look again at what the file holds
                raise
            self._messages.settle(after)
            self._index_head = after.head()
        for turn_id, n_tokens in over_budget:
            self._warn_of(range(turn_id, turn_id + 1), [(0, n_tokens)])

    def _over_budget_from(self, texts: Sequence[Turn]) -> list[tuple[int, int]]:
        """(turn id, tokens) of the turns that alone exceed the budget and were not among these."""
        first = n_equal(texts, self._corpus.texts)
        new = [(i, turn) for i, turn in enumerate(self._corpus.texts[first:], first)
               if turn and (i >= len(texts) or texts[i] != turn)]
        return [(new[i][0], n_tokens) for i, n_tokens in self._over_budget([turn for _, turn in new])]

    def select_messages(self, messages_or_query: Any, **options: Any) -> FittedMessages:
        """`ContextGatekeeper.select_messages`, of the messages and turns that the file holds now."""
        with self._lock:
            with self.session.database.reading() as connection:
                self._catch_up_within(connection)
            return super().select_messages(messages_or_query, **options)

    # --- choosing and reading

    def _decide(self, query: str) -> Selection:
        with self._lock:
            self._catch_up()
            return super()._decide(query)

    def __len__(self) -> int:
        """Turns added so far, forgotten ones included."""
        with self.session.database.reading() as connection:
            return self.session.row(connection).n_turns

    def block(self, turn_id: int) -> Block:
        """A turn as it came in; both texts are empty once it is forgotten. Raises TurnError for no such turn."""
        with self.session.database.reading() as connection:
            n_turns = self.session.row(connection).n_turns
            if not isinstance(turn_id, int) or not 0 <= turn_id < n_turns:
                raise TurnError(f"no turn {turn_id!r}; there are {n_turns}, from 0")
            [turn] = self.session.turns(connection, turn_id, turn_id + 1)
        return Block(turn_id, *(turn or ("", "")))

    def idf(self, anchor: str) -> float:
        """idf = ln((N + 1) / (df + 1)) + 1 of an anchor for the conversation as it stands."""
        with self._lock:
            self._catch_up()
            return super().idf(anchor)

    def to_scipy(self, side: str = "user", layout: str = "csr") -> csr_array | csc_array:
        """One side ("user" or "assistant") as a scipy.sparse matrix turns x anchors of counts, CSR or CSC."""
        with self._lock:
            self._catch_up()
            return super().to_scipy(side, layout)

    def close(self) -> None:
        """Close the file; may be called again. Nothing is lost without it."""
        self.session.database.close()

    def __enter__(self) -> SessionGatekeeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return (f"SessionGatekeeper({self.session.path!r}, session={self.session.name!r}, user={self.session.user!r}, "
                f"token_budget={self.token_budget})")
