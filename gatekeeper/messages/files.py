"""Files of conversations in ShareGPT's form: one JSON list of records, or one record a line."""

from __future__ import annotations

from gatekeeper.errors import ChatFileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Any


def read_sharegpt(path: str | os.PathLike[str]) -> Iterator[list[dict[str, Any]]]:
    """The messages {"from", "value"} of each conversation, in order, ready for `fit_messages` or `add_messages`.

    Lines are read as they are asked for, a list at once. Raises ChatFileError that names the file and the record.
    """
    import json
    from itertools import chain

    try:
        with open(path, encoding="utf-8-sig") as stream:
            first = stream.read(1)
            while first.isspace():
                first = stream.read(1)
            is_list = first == "["
            lines = chain([first + (stream.read() if is_list else stream.readline())], stream)
            records = (json.loads(line) for line in lines if line.strip())
            for number, record in enumerate(next(records) if is_list else records, 1):
                yield _conversation(path, number, record)
    except OSError as error:
        raise ChatFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise error if isinstance(error, ChatFileError) else ChatFileError(f"{path}: expected JSON: {error}") from None


def _conversation(path: str | os.PathLike[str], number: int, record: Any) -> list[dict[str, Any]]:
    messages = record.get("conversations") if isinstance(record, dict) else None
    if not isinstance(messages, list) or not all(isinstance(m, dict) and "from" in m for m in messages):
        raise ChatFileError(f'{path}: record {number}: expected {{"conversations": [{{"from", "value"}}, ...]}}')
    return messages
