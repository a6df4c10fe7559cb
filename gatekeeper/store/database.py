"""The SQLite file: how it is made, opened, migrated and locked, and its errors by name."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gatekeeper.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreVersionError,
)
from gatekeeper.store.log_check import PAGE_BYTES, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

APPLICATION_ID = 0x67617465  # "gate": tells a session file from any other SQLite file
CHECKPOINT_PAGES = 256  # the log is copied into the file when it has 4 MB
WAIT_SECONDS = 30.0  # for a writer that another one keeps waiting

# Step k leads from schema version k to k + 1; a new file takes them all. A step that has been released never changes.
# Texts are BLOBs of UTF-8 in which lone surrogates are encoded too. A forgotten turn has NULL for both sides.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE session (
            id INTEGER PRIMARY KEY, user BLOB NOT NULL, name BLOB NOT NULL, edition INTEGER NOT NULL,
            n_writes INTEGER NOT NULL, n_turns INTEGER NOT NULL, token_budget INTEGER NOT NULL,
            settings BLOB NOT NULL, constraints BLOB NOT NULL, topics BLOB NOT NULL,
            created INTEGER NOT NULL, updated INTEGER NOT NULL, checksum INTEGER NOT NULL)""",
        """CREATE TABLE turn (
            session INTEGER NOT NULL, turn_id INTEGER NOT NULL, user BLOB, assistant BLOB, checksum INTEGER NOT NULL,
            PRIMARY KEY (session, turn_id)) WITHOUT ROWID""",
    ),
    (  # chat messages: of a turn those that it was made of, of a session those of no turn
        "ALTER TABLE turn ADD COLUMN messages BLOB",
        "ALTER TABLE session ADD COLUMN messages BLOB NOT NULL DEFAULT x''",
    ),
)

DAMAGE = ("malformed", "not a database", "encrypted", "unsupported file format", "no such table", "no such column",
          "corrupt")  # fmt: skip


class Database:
    """One open session file. Reads take one connection, writes another: a read never waits for a write.

    path: of a file that exists; see `create`. Its methods may be called from several threads, and in a process
    forked from this one.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.read_lock = threading.RLock()
        self.write_lock = threading.RLock()
        self.outer_lock: Any = None  # what its user holds around it: a fork waits for that, too
        self.is_closed = False
        self._connections: dict[str, sqlite3.Connection] = {}
        with _forking:
            OPEN.add(self)
        try:
            with self.write_lock, self.read_lock, named_errors(path):
                self._place = place_of(path)
                if os.path.getsize(path) < PAGE_BYTES:  # SQLite would take it for a new file
                    raise StoreCorruptError(path, f"is shorter than any session file: {os.path.getsize(path)} bytes")
                self._check_log()
                self._check_version()
        except BaseException:
            self.close()
            raise

    def _check_log(self) -> None:
        """Refuse a file whose log SQLite would take in part alone: that is an older conversation."""
        if not (os.path.exists(self.path + "-wal") and os.path.isdir("/dev/fd")):
            return
        reader = sqlite3.connect(uri_of(self.path, "ro"), uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            n_writes, place = left_out(self.path, reader)
            if n_writes:  # one may be under way
                n_writes, place = self._left_out_at_rest(reader)
        except sqlite3.DatabaseError:  # of the file itself: `connect` says what it is
            return
        finally:
            reader.close()
        name = f"{os.path.basename(self.path)}-wal"
        if n_writes > 1:
            raise StoreCorruptError(self.path, f"has a damaged log, {name} ({place} is not as it was written); "
                                               "'gatekeeper session recover' saves what can be saved")
        if n_writes:
            import logging

            logging.getLogger("gatekeeper").warning(
                "%s: the last write in %s is not whole (%s): it was never acknowledged, or is damaged; it is left out",
                self.path, name, place)

    def _left_out_at_rest(self, reader: sqlite3.Connection) -> tuple[int, str]:
        """`left_out` while no one can write; (0, "") when someone does: the file is in use, and was looked through."""
        writer = sqlite3.connect(uri_of(self.path, "rw"), uri=True, timeout=0.0, isolation_level=None)
        try:
            writer.execute("BEGIN IMMEDIATE")
            found = left_out(self.path, reader)
            writer.execute("ROLLBACK")
            return found
        except sqlite3.OperationalError:
            return 0, ""
        finally:
            writer.close()  # before the reader, which keeps the log from being copied

    def _check_version(self) -> None:
        """Refuse a newer file, migrate an older one."""
        connection = self._connection("reader")
        if version_of(connection) < len(STEPS):
            with self.writing() as writer:
                take_steps(writer)
        if version_of(connection) > len(STEPS):
            raise StoreVersionError(
                self.path, f"has schema version {version_of(connection)}, this version reads up to {len(STEPS)}")

    def _connection(self, kind: str) -> sqlite3.Connection:
        if self.is_closed:
            raise StoreError(self.path, "is closed")
        if place_of(self.path) != self._place:  # what is written to a file without a name is lost
            raise StoreError(self.path, "was moved, removed or replaced since it was opened: open it again")
        if kind not in self._connections:
            self._connections[kind] = connect(self.path)
        return self._connections[kind]

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one statement, as the file stands now."""
        with self.read_lock, named_errors(self.path):
            return self._connection("reader").execute(sql, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Several reads of one state of the file."""
        with self.read_lock, named_errors(self.path):
            yield from transaction(self._connection("reader"), "BEGIN", "ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: on disk when it ends, undone when it fails. Waits for other writers, at most 30 s."""
        with self.write_lock, named_errors(self.path):
            yield from transaction(self._connection("writer"), "BEGIN IMMEDIATE", "COMMIT")

    def purge(self) -> None:
        """Write the file anew without what was deleted, and empty its log. O(file); readers go on meanwhile.

        Raises StoreBusyError when a reader keeps the log from being emptied: what was deleted is then still in it.
        """
        with self.write_lock, named_errors(self.path):
            connection = self._connection("writer")
            connection.execute("VACUUM")
            [is_busy, *_] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreBusyError(self.path, "is forgotten, but its bytes are still in the log, which another process "
                                            "reads: forget again")

    def close(self) -> None:
        """Close the file; may be called again."""
        with self.write_lock, self.read_lock:
            self.is_closed = True
            self.drop_connections()

    def drop_connections(self) -> None:
        """Close the connections; the next use makes new ones."""
        while self._connections:
            self._connections.popitem()[1].close()

    def __del__(self) -> None:
        for connection in vars(self).get("_connections", {}).values():
            connection.close()


def transaction(connection: sqlite3.Connection, begin: str, end: str) -> Iterator[sqlite3.Connection]:
    """Yield the connection between two statements; undo what a failure left half done."""
    connection.execute(begin)
    try:
        yield connection
        connection.execute(end)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def place_of(path: str) -> tuple[int, int]:
    """Which file a path names now: (device, inode), both 0 without one."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_dev, status.st_ino


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def take_steps(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date; to be called in a write transaction."""
    for step in STEPS[version_of(connection):]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version={max(version_of(connection), len(STEPS))}")


def uri_of(path: str, mode: str) -> str:
    """A file as SQLite's URI of it."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    if sys.platform == "win32":
        quoted = "/" + quoted.replace("\\", "/")
    return f"file:{quoted}?mode={mode}"


def connect(path: str) -> sqlite3.Connection:
    """A connection to a file that exists, with all that makes it durable and forgetful."""
    connection = sqlite3.connect(
        uri_of(path, "rw"), uri=True, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        [application_id] = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise StoreCorruptError(path, "is not a session file")
        [mode] = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise StoreError(path, f"lies where SQLite can keep no write-ahead log (journal mode {mode})")
        for setting in ("synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON", "secure_delete=ON",
                        "temp_store=MEMORY", "cell_size_check=ON", f"wal_autocheckpoint={CHECKPOINT_PAGES}"):
            connection.execute(f"PRAGMA {setting}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def create(path: str) -> None:
    """Make a session file without a session, unless there is a file. It appears whole or not at all."""
    scratch = f"{path}.new-{os.urandom(8).hex()}"
    with _forking, named_errors(path):
        try:
            connection = sqlite3.connect(scratch, isolation_level=None)
            try:
                for setting in (f"page_size={PAGE_BYTES}", f"application_id={APPLICATION_ID}", "journal_mode=WAL",
                                "synchronous=FULL"):
                    connection.execute(f"PRAGMA {setting}").fetchall()
                for ready in transaction(connection, "BEGIN IMMEDIATE", "COMMIT"):
                    take_steps(ready)
            finally:
                connection.close()
            put_in_place(scratch, path)
        finally:
            for name in (scratch, scratch + "-wal", scratch + "-shm"):
                if os.path.exists(name):
                    os.unlink(name)


def put_in_place(scratch: str, path: str) -> None:
    """Give a finished file its name; if another process was first, its file stays."""
    try:
        os.link(scratch, path)
    except FileExistsError:
        return
    except OSError:  # no hard links there
        if not os.path.exists(path):
            os.rename(scratch, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Turn what SQLite and the system raise into errors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise typed(path, error) from error
    except OSError as error:
        raise StoreError(path, f"cannot be used: {error.strerror or error}") from error


def typed(path: str, error: sqlite3.Error) -> StoreError:
    """The error of this library for one of SQLite's."""
    message = str(error)
    if "locked" in message or "busy" in message:
        return StoreBusyError(path, f"is locked by another process for more than {WAIT_SECONDS:.0f} s")
    is_operational = isinstance(error, (sqlite3.OperationalError, sqlite3.ProgrammingError))
    if not is_operational or any(sign in message for sign in DAMAGE):
        return StoreCorruptError(path, f"is damaged ({message}); 'gatekeeper session recover' saves what can be saved")
    return StoreError(path, f"cannot be used: {message}")


# --- forking: a child must not share its parent's connections, and must not be made in the midst of one's work

OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_forking = threading.Lock()
_held: list[tuple[Database, list[Any]]] = []  # each with the locks that are held of it


def _before_fork() -> None:
    _forking.acquire()
    for database in OPEN:
        locks = [database.write_lock, database.read_lock]
        if database.outer_lock is not None:
            locks.insert(0, database.outer_lock)
        for lock in locks:
            lock.acquire()
        _held.append((database, locks))


def _after_fork_in_parent() -> None:
    while _held:
        for lock in reversed(_held.pop()[1]):
            lock.release()
    _forking.release()


def _after_fork_in_child() -> None:
    for database, _ in _held:
        database.drop_connections()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
