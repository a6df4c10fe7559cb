"""The log of a session file that a crash has left: whether SQLite takes all of it, or stops at damage in its midst.

SQLite reads a log (`FILE-wal`) up to the first frame that does not fit its checksum and takes what follows for the rest
of a write that was never acknowledged. After damage that is an older conversation. Each write is on disk before the
next one begins, so that a crash can tear at most one: where SQLite leaves out two that were made one upon the other, it
is damage. Formats:
https://www.sqlite.org/walformat.html, https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import sys
from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3
    from typing import BinaryIO

WAL_HEADER, FRAME_HEADER = 32, 24  # bytes
PAGE_BYTES = 16384  # of a session file: a turn of up to 4 KB stays in its page, a session is read in one sweep
MAGIC = (0x377F0682, 0x377F0683)  # the last bit: checksums over big-endian words


class Log(NamedTuple):
    """The heads of a log: its own; its salt, b"" where its own is damaged; of each frame (salt, if it ends a write)."""

    head: bytes
    salt: bytes
    frames: list[tuple[bytes, bool]]


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
        return (n_writes(path, log, 0, log.frames[0][0]) if log.frames and n_taken == 0 else 0), "its head"
    if salt != log.salt:  # another process has begun it anew
        return 0, ""
    return n_writes(path, log, n_taken, salt), f"its frame {n_taken + 1}"


def n_writes(path: str, log: Log, first: int, salt: bytes) -> int:
    """Writes behind the first frames of a log that were made one upon the other, at most 2 of them.

    Each frame's checksum goes on from that of the frame before. Where it does not, an aborted write shows what an older
    aborted one has left behind it: those are no damage.
    """
    ends = [place for place, frame in enumerate(log.frames) if frame == (salt, True) and place >= first]
    if len(ends) < 2:
        return len(ends)
    n_linked = 0
    with open(path + "-wal", "rb") as file:
        for place in range(first, ends[-1] + 1):
            if n_linked and not is_linked(file, log.head, place):
                n_linked = 0
            n_linked += place in ends
            if n_linked > 1:
                return n_linked
    return 1


def is_linked(file: BinaryIO, log_head: bytes, place: int) -> bool:
    """Whether the checksum of a frame goes on from the one before it."""
    file.seek(WAL_HEADER + (place - 1) * (FRAME_HEADER + PAGE_BYTES))
    before = file.read(FRAME_HEADER + PAGE_BYTES)[16:24]
    frame = file.read(FRAME_HEADER + PAGE_BYTES)
    return checksum(frame[:8] + frame[FRAME_HEADER:], word_order(log_head), before) == frame[16:24]


def word_order(log_head: bytes) -> str:
    """The order of bytes in the words that the checksums of a log run over."""
    magic = int.from_bytes(log_head[:4], "big")
    return sys.byteorder if magic not in MAGIC else "big" if magic & 1 else "little"


def checksum(data: bytes, order: str, start: bytes = bytes(8)) -> bytes:
    """The checksum of a log's head or frame, from that of what stands before it."""
    words = array("I", data[: len(data) // 8 * 8])
    if order != sys.byteorder:
        words.byteswap()
    first, second = int.from_bytes(start[:4], "big"), int.from_bytes(start[4:], "big")
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = first + one + second & 0xFFFFFFFF
        second = second + other + first & 0xFFFFFFFF
    return first.to_bytes(4, "big") + second.to_bytes(4, "big")


def read_log(path: str) -> Log:
    """The heads of a file's log. Raises OSError."""
    with open(path + "-wal", "rb", buffering=0) as file:
        head = file.read(WAL_HEADER)
        frames = []
        while len(frame := file.read(FRAME_HEADER)) == FRAME_HEADER:
            frames.append((frame[8:16], frame[4:8] != b"\0\0\0\0"))
            file.seek(PAGE_BYTES, os.SEEK_CUR)
    return Log(head, head[16:24] if checksum_fits(head) else b"", frames)


def checksum_fits(head: bytes) -> bool:
    """Whether the head of a log is as it was written."""
    is_log = len(head) == WAL_HEADER and int.from_bytes(head[:4], "big") in MAGIC
    return is_log and checksum(head[:24], word_order(head)) == head[24:]


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
