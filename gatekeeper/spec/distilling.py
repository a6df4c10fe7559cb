"""The implementation prompt of `spec_distill`: fixed text, the same for the same arguments."""

from __future__ import annotations

import re

from gatekeeper.spec.asking import Text
from gatekeeper.spec.model import Distilled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CJK = re.compile(r"[\u3400-\u9fff]")
_RULES = (
    Text("只在预期范围内改动，不顺手改别处。", "Stay in the expected range; change nothing by the way."),
    Text("每次改动后对照硬约束自查。", "After each change check yourself against the hard constraints."),
    Text("如实报告每一条验收结果，没验的说没验。", "Report each acceptance item honestly; say what was not checked."),
    Text("还有歧义就停下来问。", "Stop and ask where something is still ambiguous."),
)
_WARNING = Text(
    "⚠ 没有给出任何硬约束：动手前请确认哪些不能动。",
    "⚠ No hard constraint was given: settle what must not change before the first edit.",
)


def distill(
    requirement: str,
    *,
    clarifications: Iterable[str] = (),
    files: Iterable[str] = (),
    constraints: Iterable[str] = (),
    stack: str = "",
    acceptance: Iterable[str] = (),
    strict: bool = True,
) -> Distilled:
    """Goal, stack, clarified items, range, constraints, acceptance and four working rules.

    strict: no constraint is reported, and warned of in the text.
    """
    is_english = not _CJK.search(requirement)
    hard = _items(constraints)
    parts = [
        (Text("目标", "Goal"), _items([requirement]), ""),
        (Text("技术栈", "Stack"), _items([stack]), ""),
        (Text("已澄清", "Clarified"), _items(clarifications), "- "),
        (Text("预期改动范围", "Expected range"), _items(files), "- "),
        (Text("硬约束", "Hard constraints"), hard, "- "),
        (Text("验收", "Acceptance"), _items(acceptance), "- [ ] "),
        (Text("工作规则", "Working rules"), [rule.of(is_english) for rule in _RULES], "- "),
    ]
    lines: list[str] = []
    is_missing = strict and not hard
    for heading, items, mark in parts:
        if heading.en == "Hard constraints" and is_missing:
            lines += [f"## {heading.of(is_english)}", _WARNING.of(is_english), ""]
        elif items:
            lines += [f"## {heading.of(is_english)}", *(mark + item for item in items), ""]
    return Distilled("\n".join(lines).rstrip() + "\n", is_missing)


def _items(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]
