"""What concerns session files as a whole: list the sessions, export, import, forget one, and recover a damaged file."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from gatekeeper.chat_file import ChatReader
from gatekeeper.constraints import Constraints
from gatekeeper.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ChatFileError,
    GatekeeperError,
    StoreCorruptError,
)
from gatekeeper.messages.formats import messages_of, read_all, read_message
from gatekeeper.messages.log import trace_of
from gatekeeper.messages.storing import dump_messages, load_messages
from gatekeeper.messages.turns import join_turn
from gatekeeper.settings import Settings
from gatekeeper.store.gate import DEFAULT_BUDGET, open_database, open_session
from gatekeeper.store.session import (
    COLUMNS,
    Row,
    Session,
    decode,
    dump,
    dump_constraints,
    dump_loose,
    encode,
    load_constraints,
    load_loose,
    new_row,
    session_id,
    settings_of,
)
from gatekeeper.tokens import estimate_tokens

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from gatekeeper.messages.formats import View
    from gatekeeper.store.session import Turn

    Path = str | os.PathLike[str]

FORMAT = 1  # of an export
FORGOTTEN = ', "forgotten": true}'  # how the line of a forgotten turn ends


def list_sessions(path: Path, *, user: str | None = "default") -> list[dict[str, Any]]:
    """The sessions of one user, or with None of all, by user and name.

    Each is {"session", "user", "n_turns", "created", "updated"}, times in seconds since 1970. Raises StoreError.
    """
    database = open_database(path)
    try:
        rows = []
        for *fields, checksum in database.fetch(f"SELECT {COLUMNS} FROM session"):
            row = Row(*fields)
            if row.checksum() != checksum:
                raise StoreCorruptError(database.path, "is damaged (the row of a session is not as it was written); "
                                                       "'gatekeeper session recover' saves what can be saved")
            rows.append(row)
    finally:
        database.close()
    return [
        {"session": decode(row.name), "user": decode(row.user), "n_turns": row.n_turns, "created": row.created,
         "updated": row.updated}
        for row in sorted(rows, key=lambda row: (row.user, row.name)) if user is None or row.user == encode(user)
    ]  # fmt: skip


def require_session(path: Path, *, session: str = "default", user: str = "default") -> None:
    """Raise SessionNotFoundError, or another StoreError, unless the session is there."""
    database = open_database(path)
    try:
        with database.reading() as connection:
            Session(database, user, session).row(connection)
    finally:
        database.close()


def read_session(path: Path, *, session: str = "default", user: str = "default") -> tuple[dict[str, Any], list[Turn]]:
    """What a session holds: its header (see `export_session`) and its turns, None for a forgotten one.

    Raises SessionNotFoundError and other kinds of StoreError.
    """
    return _read_session(path, session, user)[:2]


def _read_session(path: Path, session: str, user: str) -> tuple[dict[str, Any], list[Turn], dict[int, bytes]]:
    """`read_session`, and the messages of the turns that have any, by turn id."""
    database = open_database(path)
    try:
        stored = Session(database, user, session)
        with database.reading() as connection:
            row = stored.row(connection)
            turns, messages = stored.turns_and_messages(connection, 0, row.n_turns)
        header = {
            "format": FORMAT, "session": session, "user": user, "token_budget": row.token_budget,
            "settings": settings_of(database.path, row).as_dict(), "constraints": json.loads(row.constraints),
            "topics": json.loads(row.topics), "created": row.created, "updated": row.updated,
        }  # fmt: skip
        if row.messages:
            header["messages"] = json.loads(decode(row.messages))
        return header, turns, messages
    finally:
        database.close()


def export_session(path: Path, *, session: str = "default", user: str = "default") -> Iterator[str]:
    """A session as JSON lines, each with its line break: a header, then {"user", "assistant"} for each turn.

    A turn that was made of messages has them under "messages". The header is a system message that holds the
    constraints, so that an export is a chat file too; what only `import_session` needs stands under its key
    "gatekeeper". Raises as `read_session`.
    """
    header, turns, messages = _read_session(path, session, user)
    constraints = load_constraints(dump(header["constraints"]))
    yield json_line({"role": "system", "content": constraints.render(), "gatekeeper": header})
    for turn_id, turn in enumerate(turns):
        user_text, assistant_text = turn or ("", "")
        record: dict[str, Any] = {"user": user_text, "assistant": assistant_text}
        if turn_id in messages:
            record["messages"] = json.loads(decode(messages[turn_id]))
        line = json_line(record)
        yield line if turn else line.replace("}\n", FORGOTTEN + "\n")


def json_line(value: Any) -> str:
    """A value as JSON on one line, readable unless it holds lone surrogates."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value)
    return text + "\n"


class _Lines:
    """The lines of a chat file as ChatReader takes them; notes the header and what else than texts a line holds."""

    def __init__(self, stream: Iterable[bytes]) -> None:
        self._lines = iter(stream)
        self._line = b""
        first = next(self._lines, b"")
        self._lines = chain([first], self._lines) if first else self._lines
        self.header = header_of(first)

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self._line = line
            yield line

    def taken(self, turn: tuple[str, str]) -> tuple[Turn, list[Any] | None]:
        """A turn that the reader has given, None if the line at hand says that it is forgotten; and its messages."""
        if self._line.rstrip().endswith(FORGOTTEN.encode()) and not any(turn):
            return None, None
        if b'"messages"' not in self._line:
            return turn, None
        try:
            record = json.loads(self._line)
        except ValueError:  # a line of a JSON list
            return turn, None
        is_same = isinstance(record, dict) and (record.get("user"), record.get("assistant")) == turn
        return turn, record.get("messages") if is_same else None


def header_of(line: bytes) -> dict[str, Any]:
    """The header of an export if the line is one, else {}."""
    if b'"gatekeeper"' not in line:
        return {}
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    header = record.get("gatekeeper") if isinstance(record, dict) else None
    return header if isinstance(header, dict) else {}


def import_session(path: Path, stream: Iterable[bytes], *, name: str = "<stream>", session: str = "default",
                   user: str = "default", token_budget: int | None = None, settings: Settings | None = None,
                   strict: bool = False, on_warning: Callable[[str], None] | None = None) -> range:
    """Append the turns of a chat file, or of an export, to a session: all of them or, on an error, none.

    stream: lines of bytes; name: what messages call it. A session that does not exist is made, with the header's
    constraints, budget and settings where none are given; one that exists keeps its own. strict, on_warning: as in
    `ChatReader`: without strict a broken line is named and the rest is used. Returns the new ids.

    Raises ChatFileError, StoreError, and ArgumentValueError for arguments that do not fit.
    """
    session_id(user, session)  # refuse bad names before anything is read
    lines = _Lines(stream)
    reader = ChatReader(cast("BinaryIO", lines), name, strict=strict, on_warning=on_warning)
    taken = [lines.taken(turn) for turn in reader.turns()]
    turns: list[Turn] = [turn for turn, _ in taken]
    messages = {place: checked(name, place, turn, of_turn)
                for place, (turn, of_turn) in enumerate(taken) if turn is not None and of_turn is not None}
    # where a line is missing the topics of the header fit no more
    new = new_row_from(lines.header, name, session, user, token_budget, settings, 0 if reader.n_broken else len(turns))
    database = open_database(path, make=True)
    try:
        stored = Session(database, user, session)
        with database.writing() as connection:
            row = stored.make_within(connection, new)
            if row.n_turns:
                messages = without_known(stored, connection, row, messages)
            return stored.append_within(connection, turns, {place: dump_messages(v) for place, v in messages.items()})
    finally:
        database.close()


def checked(name: str, place: int, turn: tuple[str, str], messages: Any) -> list[View]:
    """The messages of a turn of an export. Raises ChatFileError unless they are those that it was made of."""
    try:
        views = list(read_all(messages_of(messages), read_message))
        if views and join_turn(views, read_message).texts() == turn:
            return views
        fault = "they say something else than the turn"
    except (ArgumentTypeError, ArgumentValueError) as error:
        fault = str(error)
    raise ChatFileError(f"{name}: turn {place + 1}: expected the messages of the turn: {fault}")


def without_known(session: Session, connection: sqlite3.Connection, row: Row,
                  messages: dict[int, list[View]]) -> dict[int, list[View]]:
    """The messages of the turns of which no message is known to the session: the others come in as texts."""
    known = load_loose(row.messages)[1]
    for of_turn in session.turns_and_messages(connection, 0, row.n_turns)[1].values():
        known.update(trace_of(view.id) for view in load_messages(of_turn) if view.id is not None)
    return {place: views for place, views in messages.items()
            if not any(view.id is not None and trace_of(view.id) in known for view in views)}


def new_row_from(header: dict[str, Any], name: str, session: str, user: str, token_budget: int | None,
                 settings: Settings | None, n_turns: int) -> Row:
    """The row of a new session as a header describes it. Raises ChatFileError for a header that does not fit."""
    try:
        if header and header.get("format") != FORMAT:
            raise ChatFileError(f"{name}: an export of format {FORMAT} is accepted, got {header.get('format')!r:.20}")
        constraints = Constraints()
        stored = header.get("constraints", {})
        constraints.update(stored.get("values", {}))
        constraints.forbidden = stored.get("forbidden", [])
        n_frozen, *starts = header.get("topics", [0])
        fits = n_frozen <= n_turns and starts == sorted(set(starts)) and (starts[:1] == [0]) == (n_frozen > 0)
        row = new_row(user, session, token_budget or int(header.get("token_budget", DEFAULT_BUDGET)),
                      settings or Settings(**header.get("settings", {})))
        loose, forgotten = load_loose(dump(header["messages"]) if "messages" in header else b"")
        list(read_all([message for _, _, message in loose], read_message))
        row = row._replace(messages=dump_loose(loose, forgotten))
    except (GatekeeperError, TypeError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, ChatFileError):
            raise
        raise ChatFileError(f"{name}: the header is not that of an export: {error}") from error
    return row._replace(constraints=dump_constraints(constraints), topics=dump([n_frozen, *starts] if fits else [0]))


def forget_session(path: Path, *, session: str = "default", user: str = "default",
                   turn_ids: Sequence[int] | None = None) -> None:
    """Remove some turns of a session, or with None the whole session, from the bytes of the file. O(file).

    Raises SessionNotFoundError, TurnError for a turn that was never added, and StoreError.
    """
    require_session(path, session=session, user=user)
    if turn_ids is not None:
        with open_session(path, session, user, None, None, estimate_tokens) as gate:
            gate.forget_turns(turn_ids)
        return
    database = open_database(path)
    try:
        Session(database, user, session).remove()
        database.purge()
    finally:
        database.close()
