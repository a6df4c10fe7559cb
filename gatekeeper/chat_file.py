"""Chat files: JSON lines, or one JSON list, of {"user", "assistant"} turns or {"role", "content"} messages.

ShareGPT's {"from", "value"} messages are read too, alone or as the "conversations" of one record.
"""

from __future__ import annotations

import codecs
import json

from gatekeeper.errors import ChatFileError
from gatekeeper.messages.formats import ROLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

SYSTEM_ROLES = ("system", "developer")
TOOL_ROLES = ("tool", "function")
TEXT_PARTS = ("text", "input_text", "output_text")
_RECORD = '{"user", "assistant"} or {"role", "content"}'


class _Problem(Exception):
    """What a record should have been and what it is: the tail of `FILE:LINE: expected ..., got ...`."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")


class ChatReader:
    """The turns of one chat file, read as they are asked for, once.

    stream: the file, opened in binary; name: what messages call it. strict: a broken line is an error, not a warning.
    on_warning: takes each warning as one line; without it they are logged.

    JSON lines are read one by one, a JSON list at once. A user message with all that follows it up to the next one is
    one turn; system and tool messages are none. n_bytes, n_turns, n_system, n_tool, n_broken count what was read.
    """

    def __init__(self, stream: BinaryIO, name: str, *, strict: bool = False,
                 on_warning: Callable[[str], None] | None = None) -> None:
        self.name = name
        self.n_bytes = self.n_turns = self.n_system = self.n_tool = self.n_broken = 0
        self._stream = stream
        self._strict = strict
        self._warn = on_warning or _log
        self._n_records = 0  # of ShareGPT
        self._user: str | None = None  # of the turn that is still open
        self._replies: list[str] = []

    def turns(self) -> Iterator[tuple[str, str]]:
        """Yield (user, assistant).

        Raises ChatFileError for a file that cannot be read, is not UTF-8, is a broken list or holds not one good
        record; under strict for the first broken one.
        """
        for place, record in self._records():
            try:
                yield from self._accept(record)
            except _Problem as problem:
                self._report(place, problem)
                yield from self._close()  # it may have been a question: what follows is no answer to the one before
        yield from self._close()
        if self.n_broken and not self.n_turns + self.n_system + self.n_tool:
            raise ChatFileError(f"{self.name}: expected {_RECORD} as JSON lines or as one JSON list, found none")

    def _report(self, place: str, problem: _Problem) -> None:
        self.n_broken += 1
        message = f"{self.name}:{place}: {problem}"
        if self._strict:
            raise ChatFileError(message)
        self._warn(message)

    # --- from bytes to records

    def _records(self) -> Iterator[tuple[str, Any]]:
        """Each record with its place in the file; a line that is no JSON gives the problem in its place."""
        is_first = True
        lines = self._lines()
        for number, line in lines:
            if not line.strip():
                continue
            if is_first and line.lstrip().startswith("["):
                yield from self._items(number, line + "".join(text for _, text in lines))
                return
            is_first = False
            yield str(number), _parsed(line.rstrip())

    def _items(self, first_line: int, text: str) -> Iterator[tuple[str, Any]]:
        try:
            items = json.loads(text)
        except json.JSONDecodeError as error:
            line = first_line + error.lineno - 1
            raise ChatFileError(f"{self.name}:{line}: expected a JSON list, got {_fault(error)}") from None
        except (ValueError, RecursionError) as error:
            raise ChatFileError(f"{self.name}: expected a JSON list, got {error}") from None
        for number, item in enumerate(items, 1):
            yield f"item {number}", item

    def _lines(self) -> Iterator[tuple[int, str]]:
        number = 0
        try:
            for number, line in enumerate(self._stream, 1):
                self.n_bytes += len(line)
                yield number, (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise ChatFileError(f"{self.name}:{number}: expected UTF-8 text, got the byte 0x{byte:02x}") from None
        except OSError as error:
            raise ChatFileError(f"{self.name}: cannot be read: {error.strerror or error}") from None

    # --- from records to turns

    def _accept(self, record: Any) -> Iterator[tuple[str, str]]:
        """Take one record and yield the turns that it completes."""
        if isinstance(record, _Problem):
            raise record
        if not isinstance(record, dict):
            raise _Problem(_RECORD, _described(record))
        if "user" in record and "assistant" in record:
            turn = _text(record, "user"), _text(record, "assistant")
            yield from self._close()
            self.n_turns += 1
            yield turn
        elif "role" in record:
            yield from self._message(record)
        elif "from" in record:
            yield from self._message(_from_sharegpt(record))
        elif isinstance(record.get("conversations"), list):
            self._n_records += 1
            if self._n_records > 1:
                raise _Problem("one conversation a file", "another one")
            for message in record["conversations"]:
                yield from self._accept(message)
        else:
            raise _Problem(_RECORD, _described(record))

    def _message(self, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
        role = record["role"]
        if role in SYSTEM_ROLES:
            self.n_system += 1
        elif role in TOOL_ROLES:
            self.n_tool += 1
        elif role == "user":
            user = _content(record)
            yield from self._close()
            self._user = user
        elif role == "assistant":
            reply = _content(record)
            if reply:
                self._replies.append(reply)
        else:
            raise _Problem("role user, assistant, system, developer or tool", _described(role))

    def _close(self) -> Iterator[tuple[str, str]]:
        """Yield the turn that is open, if any; an assistant's text without a question is one too."""
        if self._user is not None or self._replies:
            turn = self._user or "", "\n".join(self._replies)
            self._user, self._replies = None, []
            self.n_turns += 1
            yield turn


def read_chat_file(path: str | os.PathLike[str], *, strict: bool = False,
                   on_warning: Callable[[str], None] | None = None) -> list[tuple[str, str]]:
    """The turns (user, assistant) of a chat file, ready for `add_turns`. Arguments and errors as in ChatReader."""
    with open_chat_file(path) as stream:
        return list(ChatReader(stream, str(path), strict=strict, on_warning=on_warning).turns())


def open_chat_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a chat file for ChatReader. Raises ChatFileError that names it."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise ChatFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ChatFileError(f"{path!r}: cannot be read: {error}") from None


def _from_sharegpt(record: dict[str, Any]) -> dict[str, Any]:
    """A ShareGPT message as one with a role; what is no text in it (calls) says nothing."""
    role = ROLES.get(record["from"]) if isinstance(record["from"], str) else None
    content = "" if record["from"] == "function_call" else record.get("value")
    return {"role": role or record["from"], "content": content}


def _parsed(line: str) -> Any:
    """The line as JSON, or the problem that it has."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        return _Problem("a JSON object", _fault(error))
    except (ValueError, RecursionError) as error:
        return _Problem("a JSON object", str(error))


def _fault(error: json.JSONDecodeError) -> str:
    return f"invalid JSON at column {error.colno} ({error.msg})"


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise _Problem(f'a string as "{key}"', _described(value))
    return value


def _content(record: dict[str, Any]) -> str:
    """The text of a message: a string, null, or parts, of which those without text (images) say nothing."""
    if "content" not in record and "tool_calls" not in record:
        raise _Problem('a message with "content"', _described(record))
    content = record.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise _Problem('a string, null or a list of parts as "content"', _described(content))
    return "\n".join([text for text in map(_part, content) if text])


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise _Problem('a part {"type": "text", "text": ...} in "content"', _described(part))
    return _text(part, "text") if part["type"] in TEXT_PARTS else ""


def _described(value: Any) -> str:
    """A JSON value in a few words, on one line."""
    if isinstance(value, dict):
        keys = json.dumps(sorted(value)[:6], ensure_ascii=False)
        return f"an object with the keys {keys[1:-1]:.80}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"{json.dumps(value, ensure_ascii=False):.80}"


def _log(message: str) -> None:
    import logging

    logging.getLogger("gatekeeper").warning("%s", message)
