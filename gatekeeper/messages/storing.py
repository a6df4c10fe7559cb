"""Messages as plain data, for files: dicts as they are, objects of a framework in the canonical form of OpenAI."""

from __future__ import annotations

from gatekeeper.errors import ArgumentTypeError
from gatekeeper.messages.formats import (
    CALL_PARTS,
    REASONING,
    TEXT_PARTS,
    View,
    _json,
    _kind,
    _part_text,
    _read_call,
    _read_calls,
    _slot,
    field,
    is_marked,
    read_message,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def dump_messages(views: Sequence[View]) -> bytes:
    """Messages as one JSON list, UTF-8, lone surrogates encoded too. Raises ArgumentTypeError; see `plain_message`."""
    import json

    return json.dumps([plain_message(view) for view in views], ensure_ascii=False).encode("utf-8", "surrogatepass")


def load_messages(data: bytes) -> list[View]:
    """The views of what `dump_messages` gave."""
    import json

    return [read_message(message) for message in json.loads(data.decode("utf-8", "surrogatepass"))]


def plain_message(view: View) -> dict[str, Any]:
    """A message as JSON data that says the same. Raises ArgumentTypeError when there is none, as for raw bytes."""
    import json

    message = view.message
    error: object = "it says something else as JSON"
    for form in _forms(message, view):
        try:
            found = json.loads(json.dumps(form, default=_plain))
            if read_message(found).fingerprint() == view.fingerprint():
                return dict(found)
        except (TypeError, ValueError, RecursionError) as fault:
            error = fault
    raise ArgumentTypeError(f"a message cannot be stored: {error}; got {type(message).__name__}: {message!r:.80}")


def _forms(message: Any, view: View) -> Iterator[Any]:
    """What may stand for a message, the best first."""
    if isinstance(message, dict):
        yield message
        return
    is_native = isinstance(field(message, "role"), str) and field(message, "blocks") is None  # of OpenAI, Anthropic
    can_dump = hasattr(message, "model_dump")
    if can_dump and (is_native or view.role == REASONING or view.is_item):
        yield _plain(message)
    yield canonical(message, view)
    if can_dump:
        yield _plain(message)


def _plain(value: Any) -> Any:
    """JSON data for an object of a framework, of Pydantic or a mapping."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if hasattr(value, "keys"):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def canonical(message: Any, view: View) -> dict[str, Any]:
    """An object as an OpenAI chat message."""
    found: dict[str, Any] = {"role": view.role, "content": _content(field(message, _slot(message)))}
    calls = _Calls()
    content = field(message, _slot(message))
    for part in content if isinstance(content, (list, tuple)) else ():
        if _kind(part) in CALL_PARTS:
            _read_call(calls, part)  # type: ignore[arg-type]  # it takes the calls alone
    if view.role == "assistant":
        _read_calls(calls, message)  # type: ignore[arg-type]  # likewise
    if calls.found:
        found["tool_calls"] = calls.found
    if view.role == "tool" and view.results != [""]:
        found["tool_call_id"] = view.results[0]
    for key in ("id", "name"):
        if isinstance(field(message, key), (str, int)):
            found[key] = field(message, key)
    if is_marked(message):
        found["pinned"] = True
    return found


def _content(content: Any) -> Any:
    """Content in OpenAI's form: a string where it is one text; calls stand beside it."""
    if not isinstance(content, (list, tuple)):
        return content
    parts = []
    for part in content:
        kind = _kind(part)
        if kind == "str" or kind in TEXT_PARTS:
            parts.append({"type": "text", "text": part if isinstance(part, str) else _part_text(part)})
        elif kind not in CALL_PARTS:
            parts.append(_image(part) or part)
    if all(isinstance(part, dict) and part.get("type") == "text" for part in parts) and len(parts) < 2:
        return parts[0]["text"] if parts else None
    return parts


def _image(part: Any) -> dict[str, Any] | None:
    """An image block of LlamaIndex as OpenAI's part; None for another part."""
    if field(part, "block_type") != "image":
        return None
    plain = _plain(part)
    data = f"data:{plain.get('image_mimetype') or 'image/png'};base64,{plain.get('image', '')}"
    return {"type": "image_url", "image_url": {"url": plain.get("url") or data}}


class _Calls:
    """What `formats` finds of calls, in OpenAI's form; takes the place of a view there."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.found: list[dict[str, Any]] = []
        self.is_item = False
        self.n_opaque = 0

    def add_call(self, call_id: object, name: object, arguments: object) -> None:
        known = call_id if isinstance(call_id, str) else ""
        if known and known in self.calls:
            return
        self.calls.append(known)
        spelled = arguments if isinstance(arguments, str) else _json(arguments)
        function = {"name": name if isinstance(name, str) else "", "arguments": spelled}
        self.found.append({"id": known, "type": "function", "function": function})
