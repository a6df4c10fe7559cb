"""Fingerprints: tokens, weights, order, caps, tags and category."""

from __future__ import annotations

import pytest
import reference_spec
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.model import Fingerprint, Template
from gatekeeper.spec.tokenizing import (
    damp_generic,
    infer_category,
    infer_tags,
    is_gram,
    query_fingerprint,
    split_identifier,
    template_fingerprint,
    tokenize,
)


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        (
            "修改 src/main/java/OrderController.java",
            "src/main/java/ordercontroller.java 4 ordercontroller.java 4 controller 3 order 2 修改 3",
        ),
        ("看 b\\src\\views\\stock\\index.vue:12", "b/src/views/stock/index.vue 4 index.vue 1 stock 3"),
        ("main.js", "main.js 1"),
        ("看 http://a.com/x/y.js", "http - https -"),
        ("user_name", "user_name 2 user 2 name 2"),
        ("isMainAdmin", "ismainadmin 2 main 2 admin 2"),
        ("HTTPServer", "httpserver 2 http 2 server 2"),
        ("element-plus", "element-plus 3 plus 2"),
        ("ＡＰＩ　网关 redis", "api 2 redis 3 网关 1"),
        ("订单列表分页", "订单 1 列表 3 分页 3 单列 -"),
        ("不可用", "不可 3 可用 3"),
        ("不允许操作的时段", "允许 3 操作 1 时段 1 的时 - 作的 -"),
        ("这个代码", "这个 - 代码 -"),
        ("a b", "a -"),
        ("占用文件", "占用 1"),
    ],
)
def test_weights(text: str, weights: str) -> None:
    found = tokenize(text).weights
    parts = weights.split()
    for token, weight in zip(parts[::2], parts[1::2], strict=True):
        assert found.get(token) == (None if weight == "-" else float(weight)), token


def test_paths_are_marked() -> None:
    assert tokenize("改 a/stock/b.ts 的 csv").paths == {"a/stock/b.ts", "b.ts", "a", "stock"}


STOP = word_list("stops").of("stop-characters")


@given(st.text(alphabet="夜班巡检跨零点工时的了是", max_size=12))
def test_two_grams_equal_the_twin(text: str) -> None:
    assert list(tokenize(text).weights) == list(dict.fromkeys(reference_spec.grams_of(text, STOP)))


@given(st.text())
def test_any_text_has_tokens(text: str) -> None:
    found = tokenize(text)
    assert all(token and 1 <= weight <= 4 for token, weight in found.weights.items())
    assert found.paths <= found.weights.keys()


@pytest.mark.parametrize("unit", ["夜班", "a", "aB", "a_", "/a", "a.js ", "列表", "\ud800", "「", "-"])
def test_a_megabyte_has_tokens(unit: str) -> None:
    assert isinstance(tokenize(unit * (1_000_000 // len(unit))), Fingerprint)


def test_a_query_keeps_strong_tokens_and_sixteen_grams_in_order() -> None:
    text = (
        "夜班巡检计划跨零点之后工时统计少算一天负责人头像丢失导致首页看板汇总数字对不上后台账单"
        + "redis 分页 src/a/order.vue"
    )
    found = query_fingerprint(text)
    everything = tokenize(text).weights
    grams = [token for token, weight in everything.items() if is_gram(token, weight)]
    assert [token for token, weight in found.weights.items() if is_gram(token, weight)] == grams[:16]
    assert all(token in found.weights for token, weight in everything.items() if weight >= 2)


TEMPLATE = Template(
    "tpl-0000000000",
    "订单导出",
    tags=("excel",),
    trigger="用户说「下载对账单」时，通常来自财务",
    approach=(
        "流式生成文件",
        "夜班巡检计划跨零点之后工时统计少算一天并且负责人头像丢失导致首页看板汇总数字对不上后台账单",
    ),
)


def test_a_template_holds_its_tiers_in_order_within_the_cap() -> None:
    found = list(template_fingerprint(TEMPLATE).weights)
    assert len(found) == 40
    places = [found.index(token) for token in ("下载", "对账", "订单", "excel", "通常", "流式")]
    assert places == sorted(places)
    assert list(template_fingerprint(TEMPLATE, topic_only=True).weights) == ["订单", "导出", "excel"]


@given(st.integers(1, 60))
def test_the_cap_holds(cap: int) -> None:
    assert len(template_fingerprint(TEMPLATE, cap=cap).weights) <= cap


def test_a_generic_base_name_of_an_old_fingerprint_weighs_one() -> None:
    old = Fingerprint({"index.vue": 4, "order.vue": 4})
    assert damp_generic(old).weights == {"index.vue": 1, "order.vue": 4}
    assert old.weights["index.vue"] == 4
    assert damp_generic(Fingerprint({"a": 2})).weights == {"a": 2}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("isMainAdmin", "is main admin"),
        ("HTTPServer2", "http server"),
        ("a-switch", "switch"),
        ("user_ID", "user id"),
        ("x", ""),
    ],
)
def test_identifiers_fall_into_parts(name: str, parts: str) -> None:
    assert split_identifier(name) == parts.split()


def test_tags() -> None:
    assert infer_tags("a-switch 表单")[:2] == ("a-switch", "表单")
    assert set(infer_tags("改 src/views/storeKeeper/index.vue")) == {"storekeeper"}
    assert infer_tags("") == ()
    assert len(infer_tags("vue react redis kafka mysql excel csv pdf docker")) == 8


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("登录接口报错", "bugfix"),
        ("按钮无法点击", "bugfix"),
        ("接口增加异常处理", "feature"),
        ("重构列表", "refactor"),
        ("表单样式", "frontend"),
        ("导出 excel", "feature"),
        ("嗯", ""),
    ],
)
def test_category(text: str, category: str) -> None:
    assert infer_category(text) == category
