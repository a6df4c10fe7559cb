"""The four dimensions, the anchors, and the routing table."""

from __future__ import annotations

import pytest

from gatekeeper.spec.routing import ROUTES
from gatekeeper.spec.triaging import decide, next_step, triage


@pytest.mark.parametrize(
    ("text", "step", "reason"),
    [
        ("把库存模块重构拆分成独立服务", "triage", "l3"),
        ("改标题", "implement", "fast"),
        ("加个按钮", "confirm", "gap"),
        ("帮我弄一下那个页面", "confirm", "unactionable"),
        ("新建一个看板页面", "confirm", "unactionable"),
        ("改 order.vue 的查询", "implement", "defaults"),
        ("别直接做，先看看 src/a.vue", "confirm", "asked"),
        ("你好", "none", "chat"),
        ("新增备注字段", "implement", "defaults"),
        ("新建订单列表页面", "implement", "defaults"),
        ("订单加导出", "implement", "defaults"),
        ("提示「余额不足」", "implement", "defaults"),
    ],
)
def test_the_first_row_that_holds(text: str, step: str, reason: str) -> None:
    found = next_step(text)
    assert (found.step, found.reason) == (step, reason)
    assert found == ROUTES[reason].next_step(reason)


def test_who_may_ask() -> None:
    assert {reason for reason, route in ROUTES.items() if route.may_ask} == {"l3", "gap", "unactionable", "asked"}
    assert {route.step for route in ROUTES.values() if route.may_ask} == {"confirm", "triage"}


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ("在 src/a/OrderService.java 修改超时，不要动接口，npm test 通过", "covered covered covered covered"),
        ("把库存模块重构拆分成独立服务", "missing missing missing partial"),
        ("看 src/a.py", "missing partial missing partial"),
        ("用户反馈 latest javascript", "missing missing missing missing"),
        ("使用说明", "missing missing missing missing"),
        ("用 redis 存", "missing partial missing missing"),
    ],
)
def test_dimensions(text: str, statuses: str) -> None:
    assert list(triage(text).dimensions.values()) == statuses.split()


def test_unactionable_needs_all_three() -> None:
    assert triage("弄一下页面").unactionable
    assert not triage("弄一下页面，就是运营同事平时最常看的那一个").unactionable
    assert not triage("弄一下 a.vue").unactionable


@pytest.mark.parametrize("text", ["改标题", "加个按钮", "帮我弄一下那个页面", "重构订单服务", "别直接做，看 src/a.vue"])
def test_who_is_to_be_asked_needs_clarifying(text: str) -> None:
    decision = decide(text)
    assert decision.triage.needs_clarify == decision.next_step.may_ask
    assert not (decision.triage.ready and decision.triage.needs_clarify)
