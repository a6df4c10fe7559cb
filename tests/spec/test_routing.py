"""The routing table and every text that is rendered from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatekeeper.spec.asking import CONSERVATIVE_DEFAULTS, GAPS
from gatekeeper.spec.auditing import audit
from gatekeeper.spec.families import ATOMIC_CONTAINERS, OTHER_CONTAINERS
from gatekeeper.spec.rendering import render_context, render_triage
from gatekeeper.spec.routing import ROUTES, RULES, note_kind, render_block, render_note, resident_text, skill_text
from gatekeeper.spec.triaging import decide

L1, GAP, DEFAULTS, L3, CHAT = "改标题", "注册页加个按钮", "改 order.vue 的查询", "把库存模块重构拆分成独立服务", "你好"


@pytest.mark.parametrize("is_english", [True, False])
@pytest.mark.parametrize("text_of", [resident_text, skill_text])
def test_every_rule_and_every_route_stands_in_the_standing_texts(text_of, is_english: bool) -> None:  # type: ignore[no-untyped-def]
    text = text_of(is_english)
    for rule in RULES:
        assert rule.text.of(is_english) in text, rule.name
    for route in ROUTES.values():
        assert route.when.of(is_english) in text
        assert route.do.of(is_english) in text
        assert route.step in text


def test_the_rules_that_may_not_get_lost() -> None:
    assert [rule.name for rule in RULES] == [
        "recall-first",
        "ask-whitelist",
        "ask-before-tools",
        "fast-words",
        "todo",
        "large-files",
        "write-back",
        "redlines",
    ]


@pytest.mark.parametrize("is_english", [True, False])
def test_the_skill_holds_gaps_and_defaults(is_english: bool) -> None:
    text = skill_text(is_english)
    assert all(f"`{key}`: {gap.ask.of(is_english)}" in text for key, gap in GAPS.items())
    assert all(default.of(is_english) in text for default, _ in CONSERVATIVE_DEFAULTS)


def test_every_container_has_a_question_with_candidates() -> None:
    assert set(GAPS) == {*ATOMIC_CONTAINERS, *OTHER_CONTAINERS}
    for gap in GAPS.values():
        assert len(gap.candidates.zh.split(" / ")) == len(gap.candidates.en.split(" / ")) == 3


def test_every_text_is_within_its_budget() -> None:
    assert [row for row in audit() if not row.holds] == []


# --- the note of a turn


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (L1, "implement"),
        ("change the title", "implement"),
        (GAP, "confirm"),
        ("帮我弄一下那个页面", "confirm"),
        (DEFAULTS, None),
        (L3, None),
        (CHAT, None),
        ("", None),
    ],
)
def test_who_gets_a_note(text: str, kind: str | None) -> None:
    decision = decide(text)
    note = render_note(decision)
    assert note_kind(decision) == kind
    assert bool(note) == (kind is not None)
    assert not note or "spec_recall" in note


@pytest.mark.parametrize("text", [L1, GAP, DEFAULTS, L3, "加个按钮", "add a button", "重构订单服务"])
def test_note_and_recall_say_the_same(text: str) -> None:
    decision = decide(text)
    assert render_block(decision, text).startswith(f"[next_step: {decision.next_step.step}]")
    if note_kind(decision) == "confirm":
        ask = (
            render_block(decision, text).split("只问")[-1].split("。")[0]
            if not decision.classification.is_english
            else "label"
        )
        assert ask in render_note(decision)


# --- routing blocks


def test_blocks_say_what_is_missing_and_what_is_known() -> None:
    assert "按钮的文案和用途" in render_block(decide(GAP), GAP)
    assert "候选" in render_block(decide(GAP), GAP)
    assert "哪一个按钮" in render_block(decide("去掉按钮"), "去掉按钮")
    assert "文件 order.vue" in render_block(decide(DEFAULTS), DEFAULTS)
    assert "仅必填校验" in render_block(decide(DEFAULTS), DEFAULTS)
    switched = "在 a.vue 里给手机号做唯一校验，列表展示"
    assert "以原话为准" in render_block(decide(switched), switched)
    assert "spec_triage" in render_block(decide(L3), L3)


def test_a_block_is_in_the_language_of_the_request() -> None:
    assert "Before acting ask once" in render_block(decide("add a button"))
    assert "动手前只问一次" in render_block(decide("加个 button"))


# --- reports


@pytest.mark.parametrize(
    "text",
    [
        L1,
        GAP,
        DEFAULTS,
        L3,
        CHAT,
        "帮我弄一下那个页面",
        "别直接做，看 src/a.vue",
        "add a button",
        "refactor the order service",
        "",
    ],
)
def test_a_report_for_any_level(text: str) -> None:
    decision = decide(text)
    found = render_triage(decision, text)
    assert found.level == decision.classification.level
    assert bool(found.questions) == found.needs_clarify == (found.mode == "clarify")
    assert all(signal in found.report for signal in decision.classification.signals)
    assert all(question in found.report for question in found.questions)
    if found.questions:
        assert all(tool in found.report for tool in ("read", "grep", "glob", "bash", "ls"))


def test_a_gap_and_the_safety_valve_read_differently() -> None:
    assert "没有任何可动手的锚点" not in render_triage(decide(GAP), GAP).report
    assert "没有任何可动手的锚点" in render_triage(decide("帮我弄一下那个页面"), "").report


def test_an_l3_report_asks_even_when_nothing_is_missing() -> None:
    text = "重构 src/a/OrderService.java 所在的 java 项目模块，新增接口，不要动老接口，npm test 通过"
    found = render_triage(decide(text), text)
    assert (found.level, len(found.questions)) == (3, 2)


def test_context_without_a_hit_never_demands_a_write_back() -> None:
    text = render_context(decide(DEFAULTS), text=DEFAULTS)
    assert "无匹配模板" in text
    assert "spec_retro" not in text


# --- the documents


@pytest.mark.parametrize(("name", "is_english"), [("spec.md", True), ("spec.zh.md", False)])
def test_the_documents_hold_the_table(name: str, is_english: bool) -> None:
    text = (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")
    for route in ROUTES.values():
        start = f"| {route.when.of(is_english)} | `{route.step}` | {route.n_round_trips} | "
        assert [
            line
            for line in text.splitlines()
            if line.startswith(start) and line.endswith(f"{route.do.of(is_english)} |")
        ]
    assert all(f"- {default.of(is_english)}" in text for default, _ in CONSERVATIVE_DEFAULTS)
