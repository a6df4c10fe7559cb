"""Templates from files, as arguments of `spec_retro`, so that they pass the same checks."""

from __future__ import annotations

from json import loads

from gatekeeper.errors import LibraryError
from gatekeeper.spec.markdown import read_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

FIELDS = ("name", "category", "tags", "trigger", "clarify", "approach", "redlines", "prompt", "acceptance")


def read_seeds(path: Path) -> list[dict[str, Any]]:
    """The templates of a file: one in Markdown, or JSON lines, or one JSON list or object.

    Raises LibraryError that names the file and the line, or OSError.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LibraryError(f"{path}: not UTF-8 at byte {error.start}") from None
    if path.suffix.lower() == ".md":
        return [_from_markdown(path, text)]
    return list(_from_json(path, text))


def _from_markdown(path: Path, text: str) -> dict[str, Any]:
    try:
        template = read_template(text).template
    except ValueError as error:
        raise LibraryError(f"{path}: {error}") from None
    values = {name: getattr(template, name) for name in FIELDS}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _from_json(path: Path, text: str) -> Iterator[dict[str, Any]]:
    try:
        whole = loads(text)
    except (ValueError, RecursionError):
        whole = None
    if whole is not None:
        for number, value in enumerate(whole if isinstance(whole, list) else [whole], 1):
            yield _checked(value, f"{path}, item {number}")
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{path}:{number}"
            try:
                value = loads(line)
            except (ValueError, RecursionError) as error:
                raise LibraryError(f"{place}: {error}") from None
            yield _checked(value, place)


def _checked(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LibraryError(f"{place}: expected a JSON object")
    return value
