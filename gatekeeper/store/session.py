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
from gatekeeper.settings import Settings

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from gatekeeper.store.database import Database

    Turn = tuple[str, str] | None  # None: forgotten

COLUMNS = ("id, user, name, edition, n_writes, n_turns, token_budget, settings, constraints, topics, created, updated, "
           "checksum")  # fmt: skip


class Row(NamedTuple):
    """A session's own row.

    edition changes when a turn goes, n_writes with every write. topics: JSON [n, start, ...]: where the topics of the
    first n turns begin, stored when the text that decided them is forgotten. created, updated: seconds since 1970.
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

    def head(self) -> tuple[int, int]:
        """(edition, n_writes): as long as they stay, nothing else changes."""
        return self.edition, self.n_writes

    def checksum(self) -> int:
        """CRC-32 of all fields."""
        return crc32(repr(tuple(self)).encode())


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


def turn_checksum(session: int, turn_id: int, user: bytes | None, assistant: bytes | None) -> int:
    """CRC-32 of a turn's texts and of where they belong."""
    seed = crc32(b"%d %d %d" % (session, turn_id, -1 if user is None else len(user)))
    return crc32(assistant or b"", crc32(user or b"", seed))


def turn_row(session: int, turn_id: int, turn: Turn) -> tuple[Any, ...]:
    """A turn as it is stored."""
    user, assistant = (None, None) if turn is None else map(encode, turn)
    return session, turn_id, user, assistant, turn_checksum(session, turn_id, user, assistant)


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
        rows = connection.execute(
            "SELECT turn_id, user, assistant, checksum FROM turn WHERE session = ? AND turn_id >= ? AND turn_id < ? "
            "ORDER BY turn_id", (self.id, first, n_turns)).fetchall()
        turns: list[Turn] = []
        try:
            for turn_id, user, assistant, checksum in rows:
                if turn_id != first + len(turns):
                    break
                if turn_checksum(self.id, turn_id, user, assistant) != checksum:
                    raise self._corrupt(f"turn {turn_id} is not as it was written")
                turns.append(None if user is None or assistant is None else (decode(user), decode(assistant)))
        except (TypeError, UnicodeDecodeError):  # a damaged file gives values of any type
            raise self._corrupt(f"turn {first + len(turns)} is not as it was written") from None
        if len(turns) != n_turns - first:
            raise self._corrupt(f"turn {first + len(turns)} is missing")
        return turns

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

    def append_within(self, connection: sqlite3.Connection, turns: Sequence[Turn]) -> range:
        """`append` in a transaction of the caller."""
        row = self.row(connection)
        ids = range(row.n_turns, row.n_turns + len(turns))
        connection.executemany(
            "INSERT INTO turn (session, turn_id, user, assistant, checksum) VALUES (?, ?, ?, ?, ?)",
            (turn_row(self.id, turn_id, turn) for turn_id, turn in zip(ids, turns, strict=True)))
        self._save(connection, row._replace(n_turns=ids.stop))
        return ids

    def truncate(self, n_turns: int) -> tuple[Row, Row]:
        """Drop the turns from n_turns on. The rows before and after. Raises ArgumentValueError."""
        with self.database.writing() as connection:
            row = self.row(connection)
            if not 0 <= n_turns <= row.n_turns:
                raise ArgumentValueError(f"n_turns must be 0 to {row.n_turns}, got {n_turns}")
            connection.execute("DELETE FROM turn WHERE session = ? AND turn_id >= ?", (self.id, n_turns))
            n_frozen, *starts = json.loads(row.topics)
            topics = dump([min(n_frozen, n_turns), *(start for start in starts if start < n_turns)])
            return row, self._save(
                connection, row._replace(n_turns=n_turns, edition=new_edition(), topics=topics))

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
            connection.executemany(
                "UPDATE turn SET user = NULL, assistant = NULL, checksum = ?3 WHERE session = ?1 AND turn_id = ?2",
                [(self.id, turn_id, turn_checksum(self.id, turn_id, None, None)) for turn_id in turn_ids])
            return row, self._save(connection, row._replace(edition=new_edition(), topics=topics))

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
