"""The log of a session file that a crash has left: whether SQLite takes all of it, or stops at damage in its midst.

SQLite reads a log (`FILE-wal`) up to the first frame that does not fit its checksum and takes what follows for the rest
of a write that was never acknowledged. After damage that is an older conversation. Each write is on disk before the
next one begins, so that a crash can tear at most one: where SQLite leaves out two, it is damage. Formats:
https://www.sqlite.org/walformat.html, https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3

WAL_HEADER, FRAME_HEADER, PAGE_BYTES = 32, 24, 16384
MAGIC = (0x377F0682, 0x377F0683)  # the last bit: checksums over big-endian words


class Log(NamedTuple):
    """The heads of a log: its salt, b"" where its own head is damaged; of each frame (salt, if it ends a write)."""

    salt: bytes
    frames: list[tuple[bytes, bool]]

    def n_writes(self, first: int, salt: bytes) -> int:
        """Writes that end behind the first frames."""
        return sum(is_end and of_frame == salt for of_frame, is_end in self.frames[first:])


def left_out(path: str, reader: sqlite3.Connection) -> tuple[int, str]:
    """How many writes of a session file's log SQLite leaves out, and what of the log is damaged; (0, "") for none.

    reader: a connection of mode=ro that has not read yet, or is asked again: SQLite copies and removes a log when the
    last connection that may write is closed, and a damaged one must stay. Changes no byte. A write that is under way
    counts, so ask again while no one can write.
    """
    try:
        if os.path.getsize(path + "-wal") <= WAL_HEADER:
            return 0, ""
        log = read_log(path)
        reader.execute("SELECT 1 FROM sqlite_master").fetchone()  # SQLite now decides what it takes
        taken = taken_of(path)
    except OSError:  # there is no log, or it goes just now
        return 0, ""
    if taken is None:
        return 0, ""
    salt, n_taken = taken
    if not log.salt:
        return (log.n_writes(0, log.frames[0][0]) if log.frames and n_taken == 0 else 0), "its head"
    if salt != log.salt:  # another process has begun it anew
        return 0, ""
    return log.n_writes(n_taken, salt), f"its frame {n_taken + 1}"


def read_log(path: str) -> Log:
    """The heads of a file's log. Raises OSError."""
    with open(path + "-wal", "rb", buffering=0) as file:
        head = file.read(WAL_HEADER)
        n_bytes = int.from_bytes(head[8:12], "big")
        is_whole = int.from_bytes(head[:4], "big") in MAGIC and checksum_fits(head)
        if not is_whole:
            n_bytes = PAGE_BYTES
        frames = []
        while len(frame := file.read(FRAME_HEADER)) == FRAME_HEADER:
            frames.append((frame[8:16], frame[4:8] != b"\0\0\0\0"))
            file.seek(n_bytes, os.SEEK_CUR)
    return Log(head[16:24] if is_whole else b"", frames)


def checksum_fits(head: bytes) -> bool:
    """Whether the head of a log is as it was written."""
    if len(head) < WAL_HEADER:
        return False
    order = "big" if head[3] & 1 else "little"
    words = [int.from_bytes(head[i : i + 4], order) for i in range(0, 24, 4)]  # type: ignore[arg-type]
    first = second = 0
    for i in range(0, 6, 2):
        first = first + words[i] + second & 0xFFFFFFFF
        second = second + words[i + 1] + first & 0xFFFFFFFF
    return head[24:32] == first.to_bytes(4, "big") + second.to_bytes(4, "big")


def taken_of(path: str) -> tuple[bytes, int] | None:
    """(salt, frames) of the log that readers take, as the index of the log says; None where it cannot be read.

    The index (`FILE-shm`) is read through the descriptor that SQLite has open: to open and close a file would drop the
    locks that this process holds on it.
    """
    place = os.stat(path + "-shm")
    for name in os.listdir("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:  # the descriptor of the listing itself
            continue
        if (status.st_dev, status.st_ino) == (place.st_dev, place.st_ino):
            head = os.pread(int(name), 96, 0)
            is_whole = len(head) == 96 and head[:48] == head[48:]  # else a writer is just at it
            return (head[32:40], int.from_bytes(head[16:20], sys.byteorder)) if is_whole else None
    return None
