"""Front matter of a Markdown file: read in every form met so far, written so that JSON and YAML read the same.

Scalars are written as JSON, which is YAML too; a block that holds nothing else is read by the JSON parser alone, any
other by a YAML library without guessed types, and one that is no YAML at all line by line.
"""

from __future__ import annotations

import re
from json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?\Z")
_JSON = re.compile(r'["\[]|\d+\s*\Z')  # a bare word may mean another thing in JSON than in YAML
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # JSON may hold them, YAML may not
_SURROGATE = re.compile("[\ud800-\udfff]")
_ITEM = re.compile(r"\s*[-*+•](?:\s+|\Z)")


def read_front_matter(text: str, problems: list[str] | None = None) -> dict[str, Any]:
    """The values of a front matter: texts, and lists of texts; numbers only where the writer is ours.

    problems: takes what is wrong with it, though it could be read.
    """
    problems = [] if problems is None else problems
    members = []
    for line in text.split("\n"):
        found = _KEY.match(line)
        if found and found[2] and _JSON.match(found[2]):
            members.append(f'"{found[1]}": {found[2]}')
        elif line.strip():
            return _read_yaml(text, problems)
    try:
        values = loads("{" + ",".join(members) + "}")
    except (ValueError, RecursionError):
        return _read_yaml(text, problems)
    if len(values) != len(members) or not all(map(_is_plain, values.values())):
        return _read_yaml(text, problems)
    return values  # type: ignore[no-any-return]


def _is_plain(value: object) -> bool:
    """A text, a number, or a list of texts."""
    return all(isinstance(item, str) for item in value) if isinstance(value, list) else not isinstance(value, dict)


def _read_yaml(text: str, problems: list[str]) -> dict[str, Any]:
    """Front matter by a YAML library; by lines where it is none, which home-made writers are known for."""
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # builds texts, lists and mappings only: nothing is run
    try:
        values = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return _read_lines(text, problems)
    if not isinstance(values, dict):
        return _read_lines(text, problems)
    return {str(key): value for key, value in values.items()}


def _read_lines(text: str, problems: list[str]) -> dict[str, Any]:
    """What a home-made writer wrote: a key and a value a line, or items below a key. Another line is a problem."""
    values: dict[str, Any] = {}
    key = ""
    for number, line in enumerate(text.split("\n"), 1):
        found = _KEY.match(line.rstrip())
        if found:
            key = found[1]
            values[key] = _read_value(found[2] or "")
        elif key and _ITEM.match(line):
            above = values[key] if isinstance(values[key], list) else []
            values[key] = [*above, _unquoted(_ITEM.sub("", line, count=1).strip())]
        is_torn = _is_torn(found[2] or "") if found else line.strip() and not (key and _ITEM.match(line))
        if is_torn and not problems:  # the first place says enough
            problems.append(f"the front matter is broken at line {number}: {line.strip():.40}")
    return values


def _is_torn(value: str) -> bool:
    """Whether a value opens a list or a quote that it does not close."""
    return (value[:1] == "[") != (value[-1:] == "]") or (value[:1] in ("'", '"') and value[-1] != value[0])


def _read_value(text: str) -> str | list[str]:
    if text.startswith("[") and text.endswith("]"):
        parts = re.findall(r"""\s*("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^,]+)\s*(?:,|\Z)""", text[1:-1])
        return [_unquoted(part.strip()) for part in parts if part.strip()]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return str(loads(text))
        except ValueError:
            return text[1:-1]
    return text[1:-1].replace("''", "'") if len(text) >= 2 and text[0] == text[-1] == "'" else text


def scalar_lines(values: Mapping[str, Any]) -> list[str]:
    """One line a key, its value as JSON that YAML takes too."""
    return [f"{key}: {_UNPRINTABLE.sub(_escaped, dumps(whole_value(value), ensure_ascii=False))}"
            for key, value in values.items()]  # fmt: skip


def whole_value(value: Any) -> Any:
    if isinstance(value, list):
        return [whole_value(item) for item in value]
    return whole_text(value) if isinstance(value, str) else value


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def whole_text(text: str) -> str:
    """A text that UTF-8 can hold: surrogate pairs joined, lone ones replaced, without zero bytes."""
    if not text.isascii() and _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd") if "\0" in text else text
