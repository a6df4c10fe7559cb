"""Matching: the formula, evidence, priors, order; and that the index gives what the plain ranking gives."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import reference_spec
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.index import TemplateIndex
from gatekeeper.spec.matching import (
    common_tokens,
    evidence_points,
    is_topic,
    popularity,
    rank,
    rank_score,
    recency,
    same_category,
    score,
    tag_key,
    tag_overlap,
    verdict_of,
)
from gatekeeper.spec.model import HIT, NO_TOPIC_EVIDENCE, Fingerprint, Priors, Query, Template, Usage
from gatekeeper.spec.settings import SpecSettings

TOKENS = (
    "跨天",
    "时长",
    "列表",
    "新增",
    "不可",
    "校验",
    "redis",
    "src/a.vue",
    "index.vue",
    "情页",
    "示文",
    "订单",
    "csv",
)
fingerprints = st.dictionaries(st.sampled_from(TOKENS), st.integers(1, 4).map(float), max_size=8)
queries = fingerprints.map(
    lambda weights: Query(weights, frozenset({"src/a.vue", "index.vue"}) & weights.keys(), ("vue",), "bugfix")
)
templates = st.lists(
    st.builds(
        lambda weights, category, tags: Template(
            "", "x", category, tags=tags, fingerprint=Fingerprint(weights), repo="r"
        ),
        fingerprints,
        st.sampled_from(["bugfix/a", "feature"]),
        st.sampled_from([(), ("vue",), ("vue", "csv")]),
    ),
    max_size=14,
).map(lambda made: [replace(template, id=f"tpl-{i:010}") for i, template in enumerate(made)])


@given(queries, fingerprints)
def test_lexical_equals_the_twin(query: Query, weights: dict[str, float]) -> None:
    weights = {token: min(weight, 1.0) if token == "index.vue" else weight for token, weight in weights.items()}
    found = score(query, Fingerprint(weights))
    assert math.isclose(found.lexical, reference_spec.lexical(query.weights, weights, query.paths), abs_tol=1e-12)
    assert 0.0 <= found.lexical <= 1.0 + 1e-12
    assert {*found.topic_evidence, *found.ignored} == set(found.shared)


@given(queries, templates, st.sampled_from([0.0, 0.15, 0.4]), st.integers(1, 20), st.sampled_from(["", "r"]))
def test_the_index_gives_the_head_of_the_plain_ranking(
    query: Query, made: list[Template], threshold: float, n: int, repo: str
) -> None:
    usage = {template.id: Usage(3, 10.0) for template in made[::2]}
    plain = rank(query, made, settings=SpecSettings(match_threshold=threshold), repo=repo, usage=usage)
    index = TemplateIndex(made)
    fast = index.recall(query, threshold=threshold, max_templates=n, repo=repo, usage=usage)
    hits = [match for match in plain if match.hit]
    # a score of 0 is no row of the kernel's, and no evidence either
    assert [match.template.id for match in fast] == [match.template.id for match in hits][:n]
    scores, _ = index.scores(query)
    by_id = {match.template.id: match.score.lexical for match in plain}
    assert all(
        math.isclose(value, by_id[template.id], abs_tol=1e-9)
        for value, template in zip(scores, index.templates, strict=True)
    )


@pytest.mark.parametrize(
    "token", ["跨天", "订单", "组件库", "excel", "redis", "订单列表", "分页", "导出", "src/a/order.vue"]
)
def test_topics(token: str) -> None:
    assert is_topic(token)


@pytest.mark.parametrize(
    "token",
    [
        "列表",
        "新增",
        "接口",
        "详情",
        "情页",
        "示文",
        "卡片",
        "显示",
        "index.vue",
        "文案",
        "提示",
        "提交",
        "管理",
        "form",
        "时间",
    ],
)
def test_no_topics(token: str) -> None:
    assert not is_topic(token)


def verdict(lexical: float, *tokens: str) -> str:
    return verdict_of(
        lexical,
        sum(
            evidence_points(token, 1.0 if len(token) == 2 and token not in ("不可", "校验", "导出") else 3.0)
            for token in tokens
        ),
        0.15,
    )


def test_evidence_and_the_line() -> None:
    assert verdict(0.15, "ebusy") == HIT
    assert verdict(0.1499, "ebusy") == "below threshold"
    assert verdict(0.4, "redis") == verdict(0.4, "导出") == NO_TOPIC_EVIDENCE
    assert verdict(0.2, "redis", "excel") == verdict(0.5, "redis") == HIT
    assert verdict(0.9, "列表", "新增") == NO_TOPIC_EVIDENCE
    assert verdict(0.2, "跨天") == NO_TOPIC_EVIDENCE  # one 2-gram at a low score
    assert verdict(0.25, "跨天") == HIT
    assert verdict(0.2, "跨天", "时长") == HIT
    assert verdict(0.4, "不可") == NO_TOPIC_EVIDENCE  # goes with any topic
    assert verdict(0.4, "不可", "按钮") == HIT
    assert verdict(0.5, "不可") == HIT


def test_a_token_of_many_templates_is_no_evidence_from_eight_on() -> None:
    one, other = Fingerprint({"跨天": 1}), Fingerprint({"时长": 1})
    assert common_tokens([one] * 4 + [other] * 3) == frozenset()
    assert common_tokens([one] * 4 + [other] * 4) == {"跨天", "时长"}
    assert common_tokens([one] * 4 + [other] * 6) == {"时长"}


def test_priors_order_hits_but_make_none() -> None:
    assert rank_score(0.28, Priors(1, 1, 1, 1, 1)) == pytest.approx(0.352)
    assert rank_score(0.28, Priors(1, 1, 1, 1, 1)) > rank_score(0.30, Priors())
    assert [recency(days) for days in (0, 90, 3650, None, float("nan"), -5)] == [1.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert recency(45) == pytest.approx(0.7071, abs=1e-4)
    assert [popularity(hits) for hits in (0, 1, 3, 1000, -1)] == [0.0, 0.2, 0.4, 1.0, 0.0]
    assert same_category("feature/api", "feature/pagination")
    assert not same_category("", "")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("a-switch", "开关"),
        ("el-switch", "switch"),
        ("分页", "pagination"),
        ("element-plus", "ElementPlus"),
        ("vue3", "vue"),
        ("van-dialog", "弹窗"),
        ("a-date-picker", "日期"),
        ("下拉框", "select"),
        ("modal", "对话框"),
        ("校验", "validation"),
        ("权限", "auth"),
        ("n-table", "表格"),
    ],
)
def test_tags_of_one_meaning(a: str, b: str) -> None:
    assert tag_key(a) == tag_key(b)


def test_tags_of_different_meaning() -> None:
    assert tag_key("a-b-test") == "a-b-test"
    assert tag_key("switch") != tag_key("select")
    assert tag_overlap(["vue", "开关", "x"], ["vue3", "a-switch"]) == 1.0
    assert tag_overlap([], []) == 0.0
