"""The context of a recall: order, what fast track leaves out, clipping; and the distilled prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.distilling import distill
from gatekeeper.spec.model import BELOW_THRESHOLD, HIT, Match, Priors, Score, Template
from gatekeeper.spec.rendering import render_context
from gatekeeper.spec.triaging import decide

TEMPLATE = Template(
    "tpl-0123456789",
    "订单导出",
    "feature/export",
    clarify=("导出哪些列？",),
    approach=("先走 spec_triage 体检", "后端流式生成"),
    redlines=("不改公共封装",),
    acceptance=("一万行不超时",),
)
SCORE = Score(0.5, 0.5, 0.5, ("导出",), ("导出",))


def match(verdict: str = HIT) -> Match:
    return Match(TEMPLATE, SCORE, Priors(), 0.5, verdict)


def test_order() -> None:
    text = render_context(decide("改 order.vue 的查询"), [match()], ["不动接口"])
    places = [
        text.index(word)
        for word in (
            "next_step",
            "不动接口",
            "订单导出",
            "导出哪些列？",
            "后端流式生成",
            "不改公共封装",
            "- [ ] 一万行不超时",
            "以用户原话为准",
        )
    ]
    assert places == sorted(places)
    assert "0.50, tpl-0123456789" in text


def test_fast_track_leaves_out_questions_and_process_lines_and_says_so() -> None:
    text = render_context(decide("改标题"), [match()])
    assert "导出哪些列？" not in text
    assert "spec_triage" not in text
    assert "已省略" in text
    assert "1. 后端流式生成" in text
    assert "不改公共封装" in text


def test_no_more_than_asked_for() -> None:
    assert render_context(decide("改标题"), [match()] * 5, max_templates=2).count("## ") == 2
    assert "## " not in render_context(decide("改标题"), [match(BELOW_THRESHOLD)])
    text = render_context(decide("改标题"), [], [f"规则 {i}" for i in range(25)])
    assert text.count("- 规则") == 20
    assert "另有 5 条" in text


@given(st.integers(500, 2000), st.integers(0, 30), st.integers(0, 5), st.integers(1, 400))
def test_clipping(max_chars: int, n_redlines: int, n_hits: int, length: int) -> None:
    redlines = [f"{'长' * length}{i}" for i in range(n_redlines)]
    text = render_context(decide("改 a.vue 的查询"), [match()] * n_hits, redlines, max_chars=max_chars, max_templates=5)
    whole = render_context(decide("改 a.vue 的查询"), [match()] * n_hits, redlines, max_chars=10**6, max_templates=5)
    assert len(text) <= max_chars
    assert text == whole or text.endswith("…（已截断）")
    shown = redlines[:20]
    if sum(map(len, shown)) + 400 < max_chars:  # they fit: none is cut
        assert all(f"- {redline}\n" in text for redline in shown)
        lines = text.splitlines()[:-1]
        assert all(line in whole.splitlines() for line in lines)


def test_distill() -> None:
    found = distill(
        "重构订单",
        clarifications=["保留老接口"],
        files=["a.py"],
        constraints=["不改表"],
        stack="java",
        acceptance=["测试通过"],
    )
    assert not found.missing_constraints
    places = [
        found.text.index(word)
        for word in ("重构订单", "java", "- 保留老接口", "- a.py", "- 不改表", "- [ ] 测试通过", "停下来问")
    ]
    assert places == sorted(places)
    assert distill("x", constraints=["  "]).missing_constraints
    assert "No hard constraint" in distill("refactor it").text


@pytest.mark.parametrize("strict", [True, False])
def test_missing_constraints(strict: bool) -> None:
    found = distill("重构订单", strict=strict)
    assert found.missing_constraints == strict
    assert ("⚠" in found.text) == strict
