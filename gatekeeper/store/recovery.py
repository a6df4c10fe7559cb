"""Save what a damaged session file still holds: rows read page by page, without SQLite, each held to its checksum.

The file format is that of https://www.sqlite.org/fileformat2.html. Every B-tree page tells its own cells, so a row is
found however much of the tree above it is broken; where a page's own header is broken its bytes are searched.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gatekeeper.errors import StoreError
from gatekeeper.settings import Settings
from gatekeeper.store.database import OPEN, Database, create, named_errors
from gatekeeper.store.gate import DEFAULT_BUDGET
from gatekeeper.store.log_check import FRAME_HEADER, PAGE_BYTES, WAL_HEADER, checksum_fits
from gatekeeper.store.session import Row, Session, decode, new_edition, new_row, session_id, turn_checksum

if TYPE_CHECKING:
    from typing import BinaryIO

    from gatekeeper.store.session import Turn

TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x0A, 0x02
CELLS_AT = {TABLE_LEAF: 8, INDEX_LEAF: 8, INDEX_INTERIOR: 12}  # where the cell pointers begin, by kind of page
N_TURN_FIELDS, N_SESSION_FIELDS = (5, 6), (13, 14)  # rows of schema version 1 have no messages
# the head of a turn's record: its length, a session id of 8 bytes, a turn id
TURN_HEAD = re.compile(rb"[\x06-\x23]\x06[\x01-\x06\x08\x09]", re.DOTALL)
INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


class Unreadable(Exception):
    """These bytes are no record."""


class Found(NamedTuple):
    """What was found in a file: sessions by id, and for each id its turns, and the messages of some, by turn id."""

    rows: dict[int, Row]
    turns: dict[int, dict[int, Turn]]
    messages: dict[int, dict[int, bytes]]


class Pages:
    """The pages of a file as its log leaves them. Numbers run from 1."""

    def __init__(self, file: BinaryIO, log: BinaryIO | None) -> None:
        self._file = file
        self._log = log
        self._frames: dict[int, int] = {}  # page number: where its last committed copy lies in the log
        self.n_pages = -(-os.fstat(file.fileno()).st_size // PAGE_BYTES)
        if log is not None:
            self._read_log(log)

    def _read_log(self, log: BinaryIO) -> None:
        head = log.read(WAL_HEADER)
        salt = head[16:24] if checksum_fits(head) else log.read(16)[8:]  # that of the first frame
        log.seek(WAL_HEADER)
        at, waiting = WAL_HEADER, {}
        while len(head := log.read(FRAME_HEADER)) == FRAME_HEADER:
            if head[8:16] == salt:
                waiting[int.from_bytes(head[:4], "big")] = at + FRAME_HEADER
                n_pages = int.from_bytes(head[4:8], "big")
                if n_pages:  # a commit
                    self._frames.update(waiting)
                    self.n_pages = max(self.n_pages, n_pages)
                    waiting = {}
            at += FRAME_HEADER + PAGE_BYTES
            log.seek(at)

    def __getitem__(self, number: int) -> bytes:
        if not 1 <= number <= self.n_pages:
            raise Unreadable
        stream, at = self._file, (number - 1) * PAGE_BYTES
        if self._log is not None and number in self._frames:
            stream, at = self._log, self._frames[number]
        stream.seek(at)
        return stream.read(PAGE_BYTES).ljust(PAGE_BYTES, b"\0")


class Scan:
    """One pass over the pages. Rows that a page's cells give come first; searched ones only fill gaps."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.found = Found({}, {}, {})
        self._overflow: set[int] = set()  # pages that belong to a row that was read
        self._broken: list[int] = []

    def run(self) -> Found:
        """All rows that are as they were written."""
        for number in range(1, self.pages.n_pages + 1):
            self._read_cells(number)
        for number in self._broken:
            if number not in self._overflow:
                self._search(number)
        return self.found

    def _read_cells(self, number: int) -> None:
        page = self.pages[number]
        head = 100 if number == 1 else 0
        kind = page[head]
        if kind not in CELLS_AT:
            self._broken.append(number)
            return
        at = head + CELLS_AT[kind]
        n_cells = int.from_bytes(page[head + 3 : head + 5], "big")
        is_whole = True
        for pointer in range(at, min(at + 2 * n_cells, PAGE_BYTES - 1), 2):
            try:
                self._read_cell(page, int.from_bytes(page[pointer : pointer + 2], "big"), kind)
            except (Unreadable, IndexError):
                is_whole = False
        if not is_whole or at + 2 * n_cells > PAGE_BYTES:
            self._broken.append(number)

    def _read_cell(self, page: bytes, at: int, kind: int) -> None:
        if kind == INDEX_INTERIOR:
            at += 4
        n_bytes, at = varint(page, at)
        rowid = 0
        if kind == TABLE_LEAF:
            rowid, at = varint(page, at)
        self._take(*self._record(page, at, n_bytes, kind), rowid)

    def _search(self, number: int) -> None:
        """Look for turns wherever a record's head may stand. What is found must still fit its checksum."""
        page = self.pages[number]
        for match in TURN_HEAD.finditer(page):
            try:
                n_bytes = record_bytes(page, match.start())
                self._take(*self._record(page, match.start(), n_bytes, INDEX_LEAF), 0)
            except (Unreadable, IndexError):
                continue

    def _record(self, page: bytes, at: int, n_bytes: int, kind: int) -> tuple[list[Any], set[int]]:
        """The values of a record and the pages on which it goes on."""
        n_local = local_bytes(n_bytes, kind)
        payload = bytearray(page[at : at + n_local])
        used: set[int] = set()
        if n_local < n_bytes:
            number = int.from_bytes(page[at + n_local : at + n_local + 4], "big")
            while len(payload) < n_bytes:
                if number in used:
                    raise Unreadable
                used.add(number)
                page = self.pages[number]
                payload += page[4 : 4 + n_bytes - len(payload)]
                number = int.from_bytes(page[:4], "big")
        return values_of(bytes(payload)), used

    def _take(self, values: list[Any], used: set[int], rowid: int) -> None:
        """Keep a record if it is a turn or a session as it was written."""
        if len(values) in N_TURN_FIELDS:
            session, turn_id, user, assistant, checksum, messages = (*values, None)[:6]
            if not self._is_turn(values) or turn_checksum(session, turn_id, user, assistant, messages) != checksum:
                raise Unreadable
            turn = None if user is None else (decode(user), decode(assistant))
            if turn_id not in self.found.turns.setdefault(session, {}):
                self.found.turns[session][turn_id] = turn
                if messages is not None:
                    self.found.messages.setdefault(session, {})[turn_id] = messages
        elif len(values) in N_SESSION_FIELDS:
            _, *fields, checksum = values[:13]
            row = Row(signed(rowid, 8), *fields, *values[13:])
            if row.checksum() != checksum or session_id(decode(row.user), decode(row.name)) != row.id:
                raise Unreadable
            self.found.rows.setdefault(row.id, row)
        self._overflow |= used

    @staticmethod
    def _is_turn(values: list[Any]) -> bool:
        session, turn_id, user, assistant, _, messages = (*values, None)[:6]
        has_texts = isinstance(user, bytes) and isinstance(assistant, bytes)
        if not (messages is None or (has_texts and isinstance(messages, bytes))):
            return False
        return (isinstance(session, int) and isinstance(turn_id, int) and turn_id >= 0
                and (has_texts or user is assistant is None))


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer and where it ends: 7 bits a byte, 8 of the ninth."""
    value = 0
    for i in range(8):
        value = value << 7 | data[at + i] & 0x7F
        if data[at + i] < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + 8], at + 9


def signed(value: int, n_bytes: int) -> int:
    """A number whose highest bit is its sign."""
    return value - (1 << 8 * n_bytes) if value >> (8 * n_bytes - 1) else value


def local_bytes(n_bytes: int, kind: int) -> int:
    """How much of a record of n_bytes lies in its own page."""
    most = PAGE_BYTES - 35 if kind == TABLE_LEAF else (PAGE_BYTES - 12) * 64 // 255 - 23
    if n_bytes <= most:
        return n_bytes
    least = (PAGE_BYTES - 12) * 32 // 255 - 23
    n_local = least + (n_bytes - least) % (PAGE_BYTES - 4)
    return n_local if n_local <= most else least


def serial_types(data: bytes, at: int) -> tuple[list[int], int]:
    """The types of a record's values, and where the values begin."""
    n_head, next_type = varint(data, at)
    types = []
    while next_type < at + n_head:
        kind, next_type = varint(data, next_type)
        types.append(kind)
        if len(types) > max(N_SESSION_FIELDS):
            raise Unreadable
    return types, at + n_head


def value_bytes(kind: int) -> int:
    """Bytes of a value of a serial type."""
    if kind >= 12:
        return (kind - 12) // 2
    if kind in (8, 9):
        return 0
    if kind < len(INTEGER_BYTES):
        return INTEGER_BYTES[kind]
    raise Unreadable


def record_bytes(page: bytes, at: int) -> int:
    """Bytes of the record whose head begins at `at`."""
    types, values_at = serial_types(page, at)
    if len(types) not in N_TURN_FIELDS:
        raise Unreadable
    return values_at - at + sum(map(value_bytes, types))


def values_of(payload: bytes) -> list[Any]:
    """The values of a record: int, bytes or None."""
    types, at = serial_types(payload, 0)
    values: list[Any] = []
    for kind in types:
        data = payload[at : at + value_bytes(kind)]
        at += len(data)
        if len(data) < value_bytes(kind):
            raise Unreadable
        if kind >= 12:
            values.append(data)
        elif kind == 0:
            values.append(None)
        else:
            values.append(kind - 8 if kind >= 8 else int.from_bytes(data, "big", signed=True))
    return values


def recover(damaged: str | os.PathLike[str], into: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Save what a damaged session file still holds into a new file; the damaged one is only read.

    A turn that is lost stays as a forgotten one, so that ids go on. A session whose own row is lost is named by its id,
    as a session of the user "recovered". Returns for each session {"session", "user", "n_turns", "n_saved",
    "lost_turns"}: n_saved counts forgotten turns too. Raises StoreError when `damaged` cannot be read, is open in this
    process, or `into` exists.
    """
    source, target = os.path.abspath(os.fsdecode(damaged)), os.path.abspath(os.fsdecode(into))
    if any(database.path == source for database in OPEN if not database.is_closed):
        raise StoreError(source, "is open in this process: close it first")
    if os.path.exists(target):
        raise StoreError(target, "exists: what is recovered goes into a new file")
    found = read_damaged(source)
    create(target)
    database = Database(target)
    try:
        return [save(database, number, found) for number in sorted(found.rows.keys() | found.turns.keys())]
    finally:
        database.close()


def read_damaged(path: str) -> Found:
    """All that is readable in a file and its log."""
    with named_errors(path), open(path, "rb") as file:
        if not os.path.exists(path + "-wal"):
            return Scan(Pages(file, None)).run()
        with open(path + "-wal", "rb") as log:
            return Scan(Pages(file, log)).run()


def save(database: Database, number: int, found: Found) -> dict[str, Any]:
    """Write one session into the new file."""
    turns = found.turns.get(number, {})
    row = found.rows.get(number)
    if row is None:
        name, user = f"session {number & (1 << 64) - 1:016x}", "recovered"
        row = new_row(user, name, DEFAULT_BUDGET, Settings())._replace(n_turns=max(turns, default=-1) + 1)
    name, user = decode(row.name), decode(row.user)
    session = Session(database, user, name)
    lost = [turn_id for turn_id in range(row.n_turns) if turn_id not in turns]
    with database.writing() as connection:
        session.make_within(connection, row._replace(id=session.id, n_turns=0, edition=new_edition()))
        session.append_within(connection, [turns.get(turn_id) for turn_id in range(row.n_turns)],
                              found.messages.get(number))
    return {"session": name, "user": user, "n_turns": row.n_turns, "n_saved": row.n_turns - len(lost),
            "lost_turns": lost}
