"""Stable constraints: what holds for the whole session and heads every prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping

from gatekeeper.errors import ArgumentTypeError, ArgumentValueError, require_text
from gatekeeper.prompt import escape

FORBIDDEN = "forbidden"
_FIRST = ("language", "style", FORBIDDEN)


class Constraints(MutableMapping[str, str]):
    """A mapping of one value a key, the last one set wins; `forbidden` is a list that `forbid` adds to.

    `language` and `style` come first in the prompt, then `forbidden`, then free entries in the order in which they were
    first set. Values and keys are str; a key holds no line break and no colon.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._forbidden: list[str] = []

    @property
    def language(self) -> str | None:
        """The language to answer in, or None."""
        return self._values.get("language")

    @language.setter
    def language(self, value: str | None) -> None:
        self._set_or_drop("language", value)

    @property
    def style(self) -> str | None:
        """The style to answer in, or None."""
        return self._values.get("style")

    @style.setter
    def style(self, value: str | None) -> None:
        self._set_or_drop("style", value)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """What must not be done, in the order in which it was forbidden."""
        return tuple(self._forbidden)

    @forbidden.setter
    def forbidden(self, items: Iterable[str]) -> None:
        if isinstance(items, str):
            raise ArgumentTypeError(f"forbidden must be an iterable of str, got one str: {items!r:.80}")
        checked = list(items)
        for item in checked:
            require_text("an item of forbidden", item)
        self._forbidden = list(dict.fromkeys(checked))

    def forbid(self, item: str) -> None:
        """Add an entry to `forbidden` unless it is there."""
        require_text("item", item)
        if item not in self._forbidden:
            self._forbidden.append(item)

    def allow(self, item: str) -> None:
        """Take an entry out of `forbidden`. KeyError if it is not there."""
        if item not in self._forbidden:
            raise KeyError(item)
        self._forbidden.remove(item)

    def _set_or_drop(self, key: str, value: str | None) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self[key] = value

    def __getitem__(self, key: str) -> str:
        if key == FORBIDDEN and self._forbidden:
            return "; ".join(self._forbidden)
        return self._values[key]

    def __setitem__(self, key: str, value: str) -> None:
        require_text("key", key)
        require_text(f"constraint {key!r}", value)
        if key == FORBIDDEN:
            raise ArgumentValueError("forbidden is a list: use constraints.forbid(item)")
        if not key.strip() or ":" in key or key.splitlines() != [key]:
            raise ArgumentValueError(f"a key has no line break and no colon and is not blank, got {key!r}")
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        if key == FORBIDDEN and self._forbidden:
            self._forbidden.clear()
        else:
            del self._values[key]

    def __iter__(self) -> Iterator[str]:
        for key in _FIRST:
            if key in self._values or (key == FORBIDDEN and self._forbidden):
                yield key
        yield from (key for key in self._values if key not in _FIRST)

    def __len__(self) -> int:
        return len(self._values) + bool(self._forbidden)

    def __repr__(self) -> str:
        return f"Constraints({dict(self)!r})"

    def render(self) -> str:
        """The head of the prompt, "" without constraints: the same bytes while nothing changes."""
        if not self:
            return ""
        lines = [f"{escape(key)}: {escape(value)}\n" for key, value in self.items() if key != FORBIDDEN]
        forbidden = [f"forbidden: {escape(item)}\n" for item in self._forbidden]
        n_first = sum(key in self._values for key in ("language", "style"))
        return "[constraints]\n" + "".join(lines[:n_first] + forbidden + lines[n_first:])
