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


def fault_of_log(path: str, reader: sqlite3.Connection) -> str:
    """What is wrong with the log that lies beside a session file; "" when nothing is, or nothing can be told.

    reader: a connection of mode=ro that has not read yet: SQLite copies and removes a log when the last connection that
    may write is closed, and a damaged one must stay. Changes no byte.
    """
    try:
        if os.path.getsize(path + "-wal") <= WAL_HEADER:
            return ""
        log = read_log(path)
        reader.execute("SELECT 1 FROM sqlite_master").fetchone()  # SQLite now decides what it takes
        taken = taken_of(path)
    except OSError:  # there is no log, or it goes just now
        return ""
    return "" if taken is None else judge(log, *taken, path)


def judge(log: Log, salt: bytes, n_taken: int, path: str) -> str:
    """The fault, if more of a log was written than the first n_taken frames, those of this salt that SQLite takes."""
    if not log.salt and log.frames and n_taken == 0 and log.n_writes(0, log.frames[0][0]) > 1:
        return "its head is not as it was written"
    if not log.salt or salt != log.salt:  # another process has begun it anew
        return ""
    n_left = log.n_writes(n_taken, salt)
    if n_left == 1:
        import logging

        logging.getLogger("gatekeeper").warning(
            "%s-wal: the last write is not whole: it was never acknowledged, or is damaged; it is left out", path)
    return f"its frame {n_taken + 1} is not as it was written" if n_left > 1 else ""


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
