"""What a spec-recall case may assert, and the templates that it describes."""

from __future__ import annotations

from typing import Any

from gatekeeper.spec.model import Template

Given = dict[str, Any]


def expect(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def same(name: str, got: Any, wanted: Any) -> None:
    is_near = isinstance(wanted, float) and isinstance(got, (int, float)) and abs(got - wanted) <= 0.001
    expect(is_near or got == wanted, f"{name}: got {got!r}, expected {wanted!r}")


def known(wanted: Given, *words: str) -> None:
    """An assertion that this runner does not know is a failure, never a pass."""
    unknown = sorted(set(wanted) - set(words) - WORDS)
    expect(not unknown, f"unknown assertions {unknown}")


WORDS = {"contains", "not_contains", "contains_any", "absent"}


def check_words(name: str, text: Any, wanted: Given) -> None:
    """The assertions that hold for a text and for a set of tokens."""
    for word in wanted.get("contains", ()):
        expect(word in text, f"{name} lacks {word!r}: {text!r:.300}")
    for word in (*wanted.get("not_contains", ()), *wanted.get("absent", ())):
        expect(word not in text, f"{name} has {word!r}: {text!r:.300}")
    if "contains_any" in wanted:
        expect(any(word in text for word in wanted["contains_any"]), f"{name} has none of {wanted['contains_any']}")


def made_template(given: Given, **more: Any) -> Template:
    approach = given.get("approach", given.get("body", ""))
    return Template(
        given.get("id", "tpl-0000000000"),
        given.get("name", ""),
        given.get("category", "uncategorized"),
        given.get("scope", "global"),
        tuple(given.get("tags", ())),
        given.get("trigger", ""),
        tuple(given.get("clarify", ())),
        tuple(approach.split("\n") if isinstance(approach, str) else approach),
        tuple(given.get("redlines", ())),
        given.get("prompt", ""),
        tuple(given.get("acceptance", ())),
        **more,
    )
