"""Message formats: what one message says, whatever its format, and a copy of it with other texts.

Read without importing any framework, by keys or attributes: OpenAI chat messages (the canonical form; dicts or the
client's own objects) and Responses items, Anthropic content blocks, LangChain and LlamaIndex messages, ShareGPT.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence

from gatekeeper.errors import ArgumentTypeError, ArgumentValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SYSTEM, USER, ASSISTANT, TOOL, REASONING = "system", "user", "assistant", "tool", "reasoning"
ROLES = {
    "system": SYSTEM, "developer": SYSTEM,
    "user": USER, "human": USER,
    "assistant": ASSISTANT, "ai": ASSISTANT, "model": ASSISTANT, "gpt": ASSISTANT, "chatgpt": ASSISTANT,
    "bing": ASSISTANT, "bard": ASSISTANT, "function_call": ASSISTANT,
    "tool": TOOL, "function": TOOL, "observation": TOOL, "function_response": TOOL,
}  # fmt: skip
SLOTS = ("blocks", "content", "value", "output")  # where a message keeps its text, the first that it has
TEXT_PARTS = ("text", "input_text", "output_text")
CALL_PARTS = ("tool_use", "tool_call", "function_call")
HIDDEN_PARTS = ("thinking", "redacted_thinking", "reasoning", "refusal")  # sent back as they are, never searched
FREE_PARTS = ("cache",)
PINNED_AT = {"pinned", "metadata", "additional_kwargs"}
ANY_CALL = ""  # the id of calls and results in formats without ids


class View:
    """What selection needs to know of one message.

    texts: its text parts in order, which pruning may cut; own_text: those that are no result of a tool, as one;
    call_text: names and arguments of its calls, searched but never cut; hidden: text that is sent but not searched;
    calls, results: ids of the calls it makes and answers; n_opaque: images and other parts without text.
    is_item: each call is a message of its own (Responses items). id: the message's own id, if it has one.

    rewrite: makes a copy with other texts; strip: one without results, where a user's words may stand beside them.
    """

    __slots__ = ("_rewrite", "_strip", "call_text", "calls", "cost", "hidden", "id", "is_item", "is_plain", "message",
                 "n_opaque", "own_text", "results", "role", "stand_in", "texts")

    def __init__(self, message: Any, role: str, rewrite: Callable[[Any, Sequence[str]], Any],
                 strip: Callable[[Any], Any] | None = None) -> None:
        self.message = message
        self.role = role
        self.texts: list[str] = []
        self.own_text = ""
        self.call_text = ""
        self.hidden = ""
        self.calls: list[str] = []
        self.results: list[str] = []
        self.n_opaque = 0
        self.is_item = False
        self.is_plain = False  # a dict of role and one text: known again at a glance
        self.id: str | int | None = None
        self.cost = -1  # tokens of the whole message, once counted
        self.stand_in: View | None = None  # what is sent instead, where the message as it is cannot be
        self._rewrite = rewrite
        self._strip = strip

    @property
    def is_empty(self) -> bool:
        holds = self.calls or self.results or self.n_opaque or self.hidden or self.call_text
        return not (holds or any(map(str.strip, self.texts)))

    @property
    def shown(self) -> View:
        return self.stand_in or self

    def add_text(self, text: str, *, own: bool = True) -> None:
        self.texts.append(text)
        if own and text:
            self.own_text = f"{self.own_text}\n{text}" if self.own_text else text

    def add_fixed(self, text: str) -> None:
        """Add text that is the message's own and searched, but never cut."""
        self.call_text = f"{self.call_text}\n{text}" if self.call_text else text
        self.own_text = f"{self.own_text}\n{text}" if self.own_text else text

    def add_call(self, call_id: object, name: object, arguments: object) -> None:
        """Note a call; one that stands twice in a message, as a block and as a field, counts once."""
        known = call_id if isinstance(call_id, str) and call_id else ANY_CALL
        if known in self.calls and known != ANY_CALL:
            return
        self.calls.append(known)
        spelled = arguments if isinstance(arguments, str) else _json(arguments)
        line = f"{name if isinstance(name, str) else ''} {spelled}".strip()
        self.call_text = f"{self.call_text}\n{line}" if self.call_text else line

    def add_hidden(self, text: object) -> None:
        if isinstance(text, str) and text:
            self.hidden = f"{self.hidden}\n{text}" if self.hidden else text

    def fingerprint(self) -> tuple[object, ...]:
        """All that decides of this message; two messages with the same one are interchangeable."""
        return (self.role, self.texts, self.own_text, self.call_text, self.hidden, self.calls, self.results,
                self.n_opaque)  # fmt: skip

    def says(self, message: Any, read: Callable[[Any], View]) -> bool:
        """Whether a message, perhaps another object, says the same."""
        if self.is_plain and type(message) is dict and len(message) == 2:
            return bool(message.get("content") == self.texts[0] and message.get("role") == self.role)
        try:
            return read(message).fingerprint() == self.fingerprint()
        except (ArgumentTypeError, ArgumentValueError):  # it says nothing; who reads it for good names its place
            return False

    def renew(self, message: Any) -> None:
        """Take another object that says the same for the message."""
        self.message = message
        if self.stand_in:
            self.stand_in.message = self.without_results()

    def without_results(self) -> Any:
        """A copy of the message without its results; what the user says beside them stays."""
        return self._strip(self.message) if self._strip else self.message

    def with_texts(self, texts: Sequence[str]) -> Any:
        """A copy of the message with these texts in place of its own; parts whose text is "" are left out."""
        return self._rewrite(self.message, texts)


def read_message(message: Any) -> View:
    """The view of a message in any of the formats. Raises ArgumentTypeError or ArgumentValueError for another."""
    role, name = _role(message)
    view = View(message, role, _rewritten, _stripped)
    view.id = id_of(message)
    slot = _slot(message)
    if role == TOOL:
        view.results.append(_result_id(message, name))
    _read_parts(view, field(message, slot) if slot else None, own=role != TOOL)
    if role == ASSISTANT:
        _read_calls(view, message)
    elif role == REASONING:
        view.is_item = True
        for key in ("summary", "content"):
            for part in field(message, key) or ():
                view.add_hidden(field(part, "text"))
        view.add_hidden(field(message, "encrypted_content"))
    if type(message) is dict and len(message) == 2 and message.get("role") == role:
        view.is_plain = isinstance(message.get("content"), str)
    return view


def id_of(message: Any) -> str | int | None:
    """The message's own id, if it has one."""
    found = field(message, "id")
    return found if isinstance(found, (str, int)) else None


def messages_of(messages: Any) -> list[Any]:
    """The messages of a list, or of a ShareGPT record {"conversations": [...]}. Raises ArgumentTypeError otherwise."""
    if isinstance(messages, Mapping) and isinstance(messages.get("conversations"), list):
        return list(messages["conversations"])
    if isinstance(messages, (str, bytes, Mapping)) or not hasattr(messages, "__iter__"):
        raise ArgumentTypeError(f"messages must be a list of messages, got {type(messages).__name__}: {messages!r:.80}")
    return list(messages)


def read_all(messages: Sequence[Any], read: Callable[[Any], View], first: int = 0) -> Iterator[View]:
    """The view of each message; an error names its place in the list, counted from `first`."""
    for position, message in enumerate(messages, first):
        try:
            yield read(message)
        except (ArgumentTypeError, ArgumentValueError) as error:
            raise type(error)(f"messages[{position}]: {error}") from None


def is_marked(message: Any) -> bool:
    """Whether a message says itself that it is pinned: `pinned` as key or attribute, or in its extra fields."""
    if type(message) is dict and not message.keys() & PINNED_AT:
        return False
    places = (message, field(message, "metadata"), field(message, "additional_kwargs"))
    return any(field(place, "pinned") is True for place in places if place is not None)


def field(holder: Any, name: str) -> Any:
    """A key of a mapping or an attribute of an object; None without it."""
    if type(holder) is dict:  # at once: to ask for a Mapping takes its time
        return holder.get(name)
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


# --- reading


def _role(message: Any) -> tuple[str, str]:
    """The role that counts here, and what the message calls it."""
    named = field(message, "role") or field(message, "from") or field(message, "type")
    name = getattr(named, "value", named)
    if not isinstance(name, str):
        raise ArgumentTypeError(f"expected a message with a role, got {type(message).__name__}: {message!r:.80}")
    kind = name.lower().removesuffix("messagechunk")
    role = ROLES.get(kind)
    if role is None:
        role = _role_of_item(message, kind)
    if role is None:
        raise ArgumentValueError(f"a role is one of {', '.join(ROLES)}, got {name!r:.80}")
    return role, kind


def _role_of_item(message: Any, kind: str) -> str | None:
    """Responses items have a type: reasoning, calls, their outputs, and what the provider ran by itself."""
    if kind == REASONING:
        return REASONING
    if kind.endswith("_output") and isinstance(field(message, "call_id"), str):
        return TOOL
    is_item = "_" in kind and field(message, "role") is None and field(message, "from") is None
    return ASSISTANT if is_item else None


def _slot(message: Any) -> str:
    for slot in SLOTS:
        if slot in message if isinstance(message, Mapping) else hasattr(message, slot):
            return slot
    return ""


def _result_id(message: Any, name: str) -> str:
    extra = field(message, "additional_kwargs")
    for found in (field(message, "tool_call_id"), field(message, "call_id"), extra and field(extra, "tool_call_id")):
        if isinstance(found, str) and found:
            return found
    return f"function:{field(message, 'name')}" if name == "function" else ANY_CALL


def _read_parts(view: View, content: Any, *, own: bool) -> None:
    if isinstance(content, str):
        view.add_text(content, own=own)
    elif isinstance(content, (list, tuple)):
        for part in content:
            _read_part(view, part, own=own)
    elif content is not None:
        _read_part(view, content, own=own)


def _read_part(view: View, part: Any, *, own: bool) -> None:
    kind = _kind(part)
    if kind == "str":
        view.add_text(part, own=own)
    elif kind in TEXT_PARTS:
        view.add_text(_part_text(part), own=own)
    elif kind == "tool_result":
        found = field(part, "tool_use_id")
        view.results.append(found if isinstance(found, str) else ANY_CALL)
        _read_parts(view, field(part, "content"), own=False)
    elif kind in CALL_PARTS:
        _read_call(view, part)
    elif kind in HIDDEN_PARTS:
        for key in ("thinking", "data", "reasoning", "refusal", "text", "content", "signature"):
            view.add_hidden(field(part, key))
    elif kind == "document" and _document_text(part) is not None:
        view.add_hidden(_document_text(part))
    elif kind not in FREE_PARTS:
        view.n_opaque += 1


def _kind(part: Any) -> str:
    kind = "str" if isinstance(part, str) else field(part, "type") or field(part, "block_type")
    if not isinstance(kind, str):
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            return "text"
        raise ArgumentTypeError(f"expected a content part with a type, got {type(part).__name__}: {part!r:.80}")
    return kind


def _part_text(part: Any) -> str:
    text = field(part, "text")
    return text if isinstance(text, str) else ""


def _document_text(part: Any) -> str | None:
    source = field(part, "source")
    text = field(source, "data") if source is not None and field(source, "type") == "text" else None
    return text if isinstance(text, str) else None


def _read_calls(view: View, message: Any) -> None:
    """The calls that stand beside the content, in each format's place."""
    extra = field(message, "additional_kwargs")
    for holder in (message, extra) if extra else (message,):
        for name in ("tool_calls", "invalid_tool_calls"):
            for call in field(holder, name) or ():
                _read_call(view, call)
        function = field(holder, "function_call")
        if function and not view.calls:
            view.add_call(f"function:{field(function, 'name')}", field(function, "name"), field(function, "arguments"))
    kind = field(message, "type")
    if isinstance(field(message, "call_id"), str):
        view.is_item = True
        _read_call(view, message)
    elif isinstance(kind, str) and "_" in kind and field(message, "role") is None:
        view.is_item = True
        view.n_opaque += 1
    if field(message, "from") == "function_call" or "<tool_call>" in (field(message, "value") or ""):
        view.add_call(ANY_CALL, "", "")


def _read_call(view: View, call: Any) -> None:
    body = field(call, "function") or field(call, "custom") or call
    call_id = field(call, "call_id") or field(call, "tool_call_id") or field(call, "id")
    arguments = next((found for key in ("arguments", "args", "input", "tool_kwargs", "action")
                      if (found := field(body, key)) is not None), "")
    view.add_call(call_id, field(body, "name") or field(body, "tool_name"), arguments)


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


# --- copying


def _rewritten(message: Any, texts: Sequence[str]) -> Any:
    slot = _slot(message)
    return _changed(message, slot, _with_texts(field(message, slot), iter(texts)))


def _with_texts(content: Any, texts: Iterator[str]) -> Any:
    """The content with its text parts replaced in order, without those whose text is ""."""
    if isinstance(content, str):
        return next(texts)
    if not isinstance(content, (list, tuple)):
        return content
    parts = []
    for part in content:
        kind = _kind(part)
        if kind == "str" or kind in TEXT_PARTS:
            text = next(texts)
            if text:
                parts.append(_with_text(part, text))
        elif kind == "tool_result":
            parts.append(_changed(part, "content", _with_texts(field(part, "content"), texts)))
        else:
            parts.append(part)
    return parts


def _with_text(part: Any, text: str) -> Any:
    if isinstance(part, str) or text == field(part, "text"):
        return text if isinstance(part, str) else part
    changed = _changed(part, "text", text)
    return _changed(changed, "annotations", []) if field(part, "annotations") else changed  # their offsets are stale


def _changed(holder: Any, name: str, value: Any) -> Any:
    """A copy with one key or attribute changed."""
    if isinstance(holder, Mapping):
        return {**holder, name: value}
    if hasattr(holder, "model_copy"):
        return holder.model_copy(update={name: value})
    changed = copy.copy(holder)
    setattr(changed, name, value)
    return changed


def _stripped(message: Any) -> Any:
    slot = _slot(message)
    return _changed(message, slot, [part for part in field(message, slot) if _kind(part) != "tool_result"])
