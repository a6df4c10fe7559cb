"""What a library keeps beside its Markdown files: usage counts and the compiled cache, in one SQLite file.

It lies in `.state/` below the root, which git is told to ignore. Without it, or when it is broken, everything works,
but uses are not counted and every process reads the files anew.
"""

from __future__ import annotations

import os
import sqlite3
import time
from threading import Lock

from gatekeeper.spec.files import make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gatekeeper.spec.files import Signature

STATE_FOLDER = ".state"
BUSY_SECONDS = 5.0
RETRY_SECONDS = 0.01
_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (key TEXT PRIMARY KEY, hits INTEGER NOT NULL, last_used TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS compiled (key TEXT PRIMARY KEY, version TEXT NOT NULL, mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL, inode INTEGER NOT NULL, entry TEXT NOT NULL) WITHOUT ROWID;
"""
_COUNT = ("INSERT INTO usage VALUES (?, 1, ?) ON CONFLICT (key) DO UPDATE SET hits = hits + 1, "
          "last_used = max(last_used, excluded.last_used)")  # fmt: skip
MAX_INODE = 2**63  # SQLite's integers are signed


class State:
    """The SQLite file of one library; threads share it. Keys are paths relative to the root, without suffix.

    problem: why it cannot be used, "" while it can.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.problem = ""
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()
        self._usage: dict[str, tuple[int, str]] = {}
        self._usage_version = -1

    def usage(self) -> dict[str, tuple[int, str]]:
        """Uses and the last one (ISO 8601), by key. Read again only when another process has counted."""
        with self._lock:
            try:
                connection = self._open()
                if connection is not None:
                    (version,) = connection.execute("PRAGMA data_version").fetchone()
                    if version != self._usage_version:
                        rows = connection.execute("SELECT key, hits, last_used FROM usage")
                        self._usage = {key: (hits, last) for key, hits, last in rows}
                        self._usage_version = version
            except sqlite3.Error as error:
                self._fail(error)
            return self._usage

    def count(self, keys: Iterable[str], now: str) -> None:
        """Count one use each. Processes that count at once lose none."""
        with self._lock:
            try:
                connection = self._open()
                if connection is None:
                    return
                keys = list(keys)
                with connection:
                    connection.executemany(_COUNT, [(key, now) for key in keys])
                    for key in keys:  # data_version tells of other connections only
                        query = "SELECT hits, last_used FROM usage WHERE key = ?"
                        self._usage[key] = connection.execute(query, (key,)).fetchone()
            except sqlite3.Error as error:
                self._fail(error)

    def compiled(self, version: str) -> dict[str, tuple[Signature, str]]:
        """What was compiled by this version: signature and entry, by key."""
        with self._lock:
            try:
                connection = self._open()
                if connection is None:
                    return {}
                rows = connection.execute("SELECT key, mtime_ns, size, inode, entry FROM compiled WHERE version = ?",
                                          (version,))  # fmt: skip
                return {key: ((mtime_ns, size, inode), entry) for key, mtime_ns, size, inode, entry in rows}
            except sqlite3.Error as error:
                self._fail(error)
                return {}

    def store_compiled(self, version: str, entries: Mapping[str, tuple[Signature, str]], gone: Iterable[str]) -> None:
        """Add and replace entries, drop those of files that are gone."""
        rows = [(key, version, *signature, entry) for key, (signature, entry) in entries.items()
                if signature[2] < MAX_INODE]  # fmt: skip
        with self._lock:
            try:
                connection = self._open()
                if connection is None:
                    return
                with connection:
                    connection.executemany("DELETE FROM compiled WHERE key = ?", [(key,) for key in gone])
                    connection.executemany("INSERT OR REPLACE INTO compiled VALUES (?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.Error as error:
                self._fail(error)

    def close(self) -> None:
        """Let the file go; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection | None:
        """The connection, made on first use; None without a library, or when it cannot be made."""
        if self._connection is not None or self.problem or not os.path.isdir(self.root):
            return self._connection
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection, self._usage_version = _connected(self.root), -1
                return self._connection
            except (sqlite3.Error, OSError) as error:
                # the change to WAL does not wait for others by itself
                if not _is_locked(error) or time.monotonic() > end:
                    self._fail(error)
                    return None
                time.sleep(RETRY_SECONDS)

    def _fail(self, error: Exception) -> None:
        """A lock that others hold too long is waited for again next time; anything else ends the use of the file."""
        if _is_locked(error):
            return
        self.problem = f"{STATE_FOLDER}/state.db: {error}: uses are not counted"
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _connected(root: str) -> sqlite3.Connection:
    """A connection to the file of a library, which is made where it is missing. Raises sqlite3.Error or OSError."""
    path = os.path.join(state_folder(root), "state.db")
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = OFF")  # nothing to lose while it is made
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SCHEMA)
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def state_folder(root: str) -> str:
    """The folder of what belongs to this machine alone, made where it is missing; git is told to ignore it."""
    folder = make_folder(root, STATE_FOLDER)
    ignore = os.path.join(folder, ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w", encoding="utf-8") as file:
            file.write("*\n")
    return folder
