"""The chat messages of a session: what the file holds of them, and the log in memory that is brought up to date."""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import TYPE_CHECKING

from gatekeeper.messages.formats import read_message
from gatekeeper.messages.log import MessageLog, n_common
from gatekeeper.messages.storing import dump_messages, load_messages, plain_message
from gatekeeper.messages.turns import NOT_INDEXED
from gatekeeper.store.session import dump, dump_loose, load_loose, new_edition, spread

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from gatekeeper.corpus import Corpus
    from gatekeeper.messages.formats import View
    from gatekeeper.messages.turns import Turn as MessageTurn
    from gatekeeper.store.session import Row, Session, Turn

NOTHING = (-1, -1)  # the head of no session


class SessionMessages:
    """The message log of one session. Objects that came in stay those that go out, as long as the file agrees.

    head: of the session, when the log was last brought up to date.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.log = MessageLog()
        self.head = NOTHING
        self._n_turns = 0  # of the session that were looked at
        self._stored: list[MessageTurn] = []  # the turns whose messages the file holds
        self._loose: tuple[bytes, list[View]] = b"", []  # those in no turn: as stored, and read

    # --- reading

    def catch_up(self, connection: sqlite3.Connection, row: Row) -> None:
        """Take what the file holds and the log does not."""
        if row.head() == self.head:
            return
        is_grown = row.edition == self.head[0]
        first = self._n_turns if is_grown else 0
        _, messages = self.session.turns_and_messages(connection, first, row.n_turns)
        self.head, self._n_turns = row.head(), row.n_turns
        if is_grown and not messages and row.messages == self._loose[0]:
            return
        kept = self.log.of_turns()
        of_turns = {turn_id: views for turn_id, views in kept.items() if turn_id < first}
        for turn_id, data in messages.items():
            of_turns[turn_id] = _same(kept.get(turn_id, []), load_messages(data))
        loose, forgotten = load_loose(row.messages)
        views = _same(self._loose[1], [read_message(message) for _, _, message in loose])
        self.log.load(of_turns, [(turn_id, i, view) for (turn_id, i, _), view in zip(loose, views, strict=True)])
        self.log.forgotten = forgotten
        self._loose = row.messages, views
        self._note()

    def _note(self) -> None:
        self._stored = list(self.log.turns)

    # --- writing

    def save(self, connection: sqlite3.Connection, row: Row, corpus: Corpus, before: Sequence[Turn]) -> Row:
        """Store what a change of the log has made of the session; its row then. `settle` when it is on disk.

        before: the texts of the index before the change, which were those of the file.
        """
        texts = corpus.texts
        first = n_equal(before, texts)
        n_same = n_common(self._stored, self.log.turns)
        stored = {turn.turn_id: turn.views for turn in self._stored[n_same:]}
        changed = {turn.turn_id for turn in self.log.turns[n_same:]
                   if turn.turn_id != NOT_INDEXED and stored.get(turn.turn_id) != turn.views}
        changed.update(range(first, len(texts)))
        loose = self.log.loose()
        messages = dump_loose([(turn_id, i, plain_message(view)) for turn_id, i, view in loose], self.log.forgotten)
        n_frozen, *starts = json.loads(row.topics)
        has_moved = n_frozen > 0 and corpus.topic_starts[:n_frozen] != spread(starts, n_frozen)
        if not changed and not has_moved and len(texts) == len(before) and messages == row.messages:
            return row
        if has_moved:
            row = row._replace(topics=dump([len(texts), *sorted(set(corpus.topic_starts))]))
        if has_moved or first < row.n_turns or min(changed, default=first) < row.n_turns:
            row = row._replace(edition=new_edition())
        views = self.log.of_turns(bisect_left(self.log.turns, min(changed, default=0), key=_turn_id))
        rows = ((turn_id, texts[turn_id], dump_messages(views[turn_id]) if turn_id in views else None)
                for turn_id in sorted(changed))
        return self.session.replace_within(connection, row._replace(n_turns=len(texts), messages=messages), rows)

    def settle(self, row: Row) -> None:
        """What `save` stored is on disk."""
        self.head, self._n_turns = row.head(), row.n_turns
        self._loose = row.messages, [view for _, _, view in self.log.loose()]
        self._note()

    def forget(self, turn_ids: Sequence[int], before: Row, after: Row) -> None:
        """Follow the session, which has forgotten turns."""
        if self.head == before.head():
            for turn_id in turn_ids:
                self.log.forget(turn_id)
            self.settle(after)

    def truncate(self, n_turns: int, before: Row, after: Row) -> None:
        """Follow the session, which has dropped the turns from n_turns on."""
        if self.head == before.head():
            self.log.truncate(n_turns)
            self.settle(after)


def _turn_id(turn: MessageTurn) -> int:
    return turn.turn_id


def n_equal(some: Sequence[Turn], others: Sequence[Turn]) -> int:
    """How many of the first turns have equal texts."""
    first = n_common(some, others)
    pairs = enumerate(zip(some[first:], others[first:], strict=False), first)
    return next((place for place, (old, new) in pairs if old != new), min(len(some), len(others)))


def _same(known: list[View], read: list[View]) -> list[View]:
    """The views read; known ones where they say the same: their objects came in by this gatekeeper."""
    same = [old if old.id == new.id and old.fingerprint() == new.fingerprint() else new
            for old, new in zip(known, read, strict=False)]
    return same + read[len(same):]
