"""One session in a session file: its rows, read and written in whole transactions."""

from __future__ import annotations

import json
import os
import time
from binascii import crc32
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from gatekeeper.constraints import Constraints
from gatekeeper.errors import (
    ArgumentValueError,
    GatekeeperError,
    SessionNotFoundError,
    StoreCorruptError,
    StoreVersionError,
    TurnError,
    require_text,
)
from gatekeeper.messages.log import trace_of
from gatekeeper.messages.storing import load_messages
from gatekeeper.settings import Settings

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gatekeeper.store.database import Database

    Turn = tuple[str, str] | None  # None: forgotten
    Loose = list[tuple[int | None, int, dict[str, Any]]]

COLUMNS = ("id, user, name, edition, n_writes, n_turns, token_budget, settings, constraints, topics, created, updated, "
           "messages, checksum")  # fmt: skip


class Row(NamedTuple):
    """A session's own row.

    edition changes when a turn goes, n_writes with every write. topics: JSON [n, start, ...]: where the topics of the
    first n turns begin, stored when the text that decided them is forgotten. created, updated: seconds since 1970.
    messages: see `dump_loose`.
    """

    id: int
    user: bytes
    name: bytes
    edition: int
    n_writes: int
    n_turns: int
    token_budget: int
    settings: bytes
    constraints: bytes
    topics: bytes
    created: int
    updated: int
    messages: bytes = b""

    def head(self) -> tuple[int, int]:
        """(edition, n_writes): as long as they stay, nothing else changes."""
        return self.edition, self.n_writes

    def checksum(self) -> int:
        """CRC-32 of all fields; without messages that which the row had before a row could have any."""
        return crc32(repr(tuple(self) if self.messages else tuple(self)[:-1]).encode())


def encode(text: str) -> bytes:
    """UTF-8, of lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """The text of `encode`."""
    return data.decode("utf-8", "surrogatepass")


def dump(value: Any) -> bytes:
    """A JSON value on one line."""
    return json.dumps(value).encode()


def session_id(user: str, name: str) -> int:
    """The key of a session: 64 bits of a hash of user and name. Each lookup compares both as well."""
    require_name("user", user)
    require_name("session", name)
    return int.from_bytes(blake2b(encode(f"{len(user)}:{user}{name}"), digest_size=8).digest(), "big", signed=True)


def require_name(argument: str, value: str) -> None:
    """Raise ArgumentTypeError or ArgumentValueError unless value names something."""
    require_text(argument, value)
    if not value.strip():
        raise ArgumentValueError(f"{argument} must not be blank, got {value!r}")


def new_edition() -> int:
    """A number that no session had before."""
    return int.from_bytes(os.urandom(7), "big")


def new_row(user: str, name: str, token_budget: int, settings: Settings) -> Row:
    """The row of a session without a turn."""
    now = int(time.time())
    return Row(session_id(user, name), encode(user), encode(name), new_edition(), 0, 0, token_budget,
               dump(settings.as_dict()), dump_constraints(Constraints()), dump([0]), now, now)


def settings_of(path: str, row: Row) -> Settings:
    """The settings that a session was made with."""
    try:
        return Settings(**json.loads(row.settings))
    except GatekeeperError as error:
        raise StoreVersionError(path, f"holds settings that this version does not know: {error}") from error


def dump_constraints(constraints: Constraints) -> bytes:
    """Constraints as they are stored."""
    return dump({"values": constraints._values, "forbidden": constraints._forbidden})


def load_constraints(data: bytes) -> Constraints:
    """Constraints as they were stored."""
    stored, constraints = json.loads(data), Constraints()
    constraints._values, constraints._forbidden = stored["values"], stored["forbidden"]
    return constraints


def dump_loose(loose: Loose, forgotten: Iterable[str]) -> bytes:
    """The messages that stand in no turn, and the traces of those that were forgotten; b"" without either.

    A loose message is (turn_id, i, message): it stands before message i of that turn; None: behind the last one.
    """
    traces = sorted(forgotten)
    if not loose and not traces:
        return b""
    return encode(json.dumps({"loose": loose, "forgotten": traces}, ensure_ascii=False))


def load_loose(data: bytes) -> tuple[Loose, set[str]]:
    """What `dump_loose` took."""
    if not data:
        return [], set()
    stored = json.loads(decode(data))
    return [(turn_id, i, message) for turn_id, i, message in stored["loose"]], set(stored["forgotten"])


def spread(starts: Sequence[int], n_turns: int) -> list[int]:
    """For each of n_turns turns the last start up to it."""
    topic_starts: list[int] = []
    for start, end in zip(starts, [*starts[1:], n_turns], strict=True):
        topic_starts += [start] * (end - start)
    return topic_starts


def turn_checksum(session: int, turn_id: int, user: bytes | None, assistant: bytes | None,
                  messages: bytes | None = None) -> int:
    """CRC-32 of a turn's texts and messages and of where they belong."""
    seed = crc32(b"%d %d %d" % (session, turn_id, -1 if user is None else len(user)))
    checksum = crc32(assistant or b"", crc32(user or b"", seed))
    return checksum if messages is None else crc32(messages, crc32(b"%d" % len(messages), checksum))


def turn_row(session: int, turn_id: int, turn: Turn, messages: bytes | None = None) -> tuple[Any, ...]:
    """A turn as it is stored."""
    user, assistant = (None, None) if turn is None else map(encode, turn)
    return session, turn_id, user, assistant, turn_checksum(session, turn_id, user, assistant, messages), messages


class Session:
    """One session of one user in a session file. Every method is one transaction, or part of the caller's."""

    def __init__(self, database: Database, user: str, name: str) -> None:
        self.database = database
        self.path = database.path
        self.user = user
        self.name = name
        self.id = session_id(user, name)

    # --- reading

    def head(self) -> tuple[int, int]:
        """(edition, n_writes) as they are now. Raises SessionNotFoundError."""
        found = self.database.fetch("SELECT edition, n_writes FROM session WHERE id = ?", (self.id,))
        if not found:
            raise self._missing()
        edition, n_writes = found[0]
        return edition, n_writes

    def find(self, connection: sqlite3.Connection) -> Row | None:
        """The session's row, or None. Raises StoreCorruptError if it is not as it was written."""
        found = connection.execute(f"SELECT {COLUMNS} FROM session WHERE id = ?", (self.id,)).fetchone()
        if found is None:
            # its turns lie in another tree of the file: both must be gone
            if connection.execute("SELECT 1 FROM turn WHERE session = ? LIMIT 1", (self.id,)).fetchone():
                raise self._corrupt("turns of a session are there, the session is not")
            return None
        row = Row(*found[:-1])
        if row.checksum() != found[-1] or (row.user, row.name) != (encode(self.user), encode(self.name)):
            raise self._corrupt("the row of a session is not as it was written")
        return row

    def row(self, connection: sqlite3.Connection) -> Row:
        """The session's row. Raises SessionNotFoundError."""
        row = self.find(connection)
        if row is None:
            raise self._missing()
        return row

    def turns(self, connection: sqlite3.Connection, first: int, n_turns: int) -> list[Turn]:
        """The turns from `first` to n_turns - 1. Raises StoreCorruptError unless all are as they were written."""
        return self.turns_and_messages(connection, first, n_turns)[0]

    def turns_and_messages(self, connection: sqlite3.Connection, first: int,
                           n_turns: int) -> tuple[list[Turn], dict[int, bytes]]:
        """`turns`, and the messages of those that have any, by turn id."""
        rows = connection.execute(
            "SELECT turn_id, user, assistant, checksum, messages FROM turn WHERE session = ? AND turn_id >= ? "
            "AND turn_id < ? ORDER BY turn_id", (self.id, first, n_turns)).fetchall()
        turns: list[Turn] = []
        messages: dict[int, bytes] = {}
        try:
            for turn_id, user, assistant, checksum, of_turn in rows:
                if turn_id != first + len(turns):
                    break
                if turn_checksum(self.id, turn_id, user, assistant, of_turn) != checksum:
                    raise self._corrupt(f"turn {turn_id} is not as it was written")
                turns.append(None if user is None or assistant is None else (
                    user.decode("utf-8", "surrogatepass"), assistant.decode("utf-8", "surrogatepass")))
                if of_turn is not None:
                    messages[turn_id] = of_turn
        except (TypeError, AttributeError, UnicodeDecodeError):  # a damaged file gives values of any type
            raise self._corrupt(f"turn {first + len(turns)} is not as it was written") from None
        if len(turns) != n_turns - first:
            raise self._corrupt(f"turn {first + len(turns)} is missing")
        return turns, messages

    def _corrupt(self, what: str) -> StoreCorruptError:
        return StoreCorruptError(
            self.path, f"is damaged ({what}); 'gatekeeper session recover' saves what can be saved")

    def _missing(self) -> SessionNotFoundError:
        return SessionNotFoundError(self.path, f"holds no session {self.name!r} of user {self.user!r}")

    # --- writing

    def make(self, row: Row) -> Row:
        """Store a session without a turn unless it is there; the row that then is."""
        with self.database.writing() as connection:
            return self.make_within(connection, row)

    def make_within(self, connection: sqlite3.Connection, row: Row) -> Row:
        """`make` in a transaction of the caller."""
        return self.find(connection) or self._save(connection, row)

    def append(self, turns: Sequence[Turn]) -> range:
        """Store turns behind the last one; their ids."""
        with self.database.writing() as connection:
            return self.append_within(connection, turns)

    def append_within(self, connection: sqlite3.Connection, turns: Sequence[Turn],
                      messages: Mapping[int, bytes] | None = None) -> range:
        """`append` in a transaction of the caller. messages: those of a turn, by its place in `turns`."""
        row = self.row(connection)
        ids = range(row.n_turns, row.n_turns + len(turns))
        of_turns = messages or {}
        self._put(connection, ((turn_id, turn, of_turns.get(place))
                               for place, (turn_id, turn) in enumerate(zip(ids, turns, strict=True))))
        self._save(connection, row._replace(n_turns=ids.stop))
        return ids

    def replace_within(self, connection: sqlite3.Connection, row: Row,
                       turns: Iterable[tuple[int, Turn, bytes | None]]) -> Row:
        """Store turns (id, texts, messages) in the place of those with their ids, and the session's row; the row.

        Turns from row.n_turns on go.
        """
        connection.execute("DELETE FROM turn WHERE session = ? AND turn_id >= ?", (self.id, row.n_turns))
        self._put(connection, turns)
        return self._save(connection, row)

    def _put(self, connection: sqlite3.Connection, turns: Iterable[tuple[int, Turn, bytes | None]]) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO turn (session, turn_id, user, assistant, checksum, messages) "
            "VALUES (?, ?, ?, ?, ?, ?)", (turn_row(self.id, *turn) for turn in turns))

    def truncate(self, n_turns: int) -> tuple[Row, Row]:
        """Drop the turns from n_turns on. The rows before and after. Raises ArgumentValueError."""
        with self.database.writing() as connection:
            row = self.row(connection)
            if not 0 <= n_turns <= row.n_turns:
                raise ArgumentValueError(f"n_turns must be 0 to {row.n_turns}, got {n_turns}")
            messages = self._loose_up_to(connection, row, n_turns)
            connection.execute("DELETE FROM turn WHERE session = ? AND turn_id >= ?", (self.id, n_turns))
            n_frozen, *starts = json.loads(row.topics)
            topics = dump([min(n_frozen, n_turns), *(start for start in starts if start < n_turns)])
            return row, self._save(
                connection, row._replace(n_turns=n_turns, edition=new_edition(), topics=topics, messages=messages))

    def _loose_up_to(self, connection: sqlite3.Connection, row: Row, n_turns: int) -> bytes:
        """The row's messages without those behind the first message that goes with the turns from n_turns on."""
        if not row.messages:
            return b""
        [first] = connection.execute("SELECT MIN(turn_id) FROM turn WHERE session = ? AND turn_id >= ? "
                                     "AND messages IS NOT NULL", (self.id, n_turns)).fetchone()
        loose, forgotten = load_loose(row.messages)
        if first is not None:
            loose = [item for item in loose if item[0] is not None and (item[0], item[1]) <= (first, 0)]
        return dump_loose(loose, forgotten)

    def forget(self, turn_ids: Sequence[int], topic_starts: Callable[[], Sequence[int]]) -> tuple[Row, Row]:
        """Remove the text of turns. topic_starts: for each turn of now, the first turn of its topic.

        The rows before and after. Raises TurnError for a turn that was never added. `Database.purge` makes sure of
        the bytes.
        """
        with self.database.writing() as connection:
            row = self.row(connection)
            for turn_id in turn_ids:
                if not 0 <= turn_id < row.n_turns:
                    raise TurnError(f"turn_id must be 0 to {row.n_turns - 1}, got {turn_id}" if row.n_turns
                                    else f"there is no turn yet, got turn_id {turn_id}")
            topics = dump([row.n_turns, *sorted(set(topic_starts()))])
            loose, forgotten = load_loose(row.messages)
            for turn_id in turn_ids:
                [messages] = self.turns_and_messages(connection, turn_id, turn_id + 1)[1].values() or [b"[]"]
                forgotten.update(trace_of(view.id) for view in load_messages(messages) if view.id is not None)
            self._put(connection, ((turn_id, None, None) for turn_id in turn_ids))
            return row, self._save(connection, row._replace(
                edition=new_edition(), topics=topics, messages=dump_loose(loose, forgotten)))

    def change_constraints(self, change: Callable[[Constraints], object]) -> Constraints:
        """Change the constraints as they are stored now; what they are then."""
        with self.database.writing() as connection:
            row = self.row(connection)
            constraints = load_constraints(row.constraints)
            change(constraints)
            self._save(connection, row._replace(constraints=dump_constraints(constraints)))
            return constraints

    def remove(self) -> None:
        """Remove the session with all that is known of it. `Database.purge` makes sure of the bytes."""
        with self.database.writing() as connection:
            self.row(connection)
            connection.execute("DELETE FROM turn WHERE session = ?", (self.id,))
            connection.execute("DELETE FROM session WHERE id = ?", (self.id,))

    def _save(self, connection: sqlite3.Connection, row: Row) -> Row:
        saved = row._replace(n_writes=row.n_writes + 1, updated=int(time.time()))
        values = ", ".join("?" * (len(saved) + 1))
        connection.execute(f"INSERT OR REPLACE INTO session ({COLUMNS}) VALUES ({values})", (*saved, saved.checksum()))
        return saved
