"""Explanations: all numbers, and the verdict in a sentence."""

from __future__ import annotations

from libraries import template

from gatekeeper.spec.bench import bench_library
from gatekeeper.spec.explaining import explain, explain_scalars
from gatekeeper.spec.settings import SpecSettings

LIBRARY = bench_library()


def test_all_templates_are_explained_hits_first() -> None:
    found = explain('夏令时切换那天时区对不上 {"zone": "x", "shift": 1}', LIBRARY)
    assert len(found) == len(LIBRARY)
    first = found[0]
    assert (first.template_id, first.verdict) == ("tpl-bench00001", "hit")
    assert first.prepared.fields == ("zone", "shift")
    assert first.prepared.removed["json"] == 1
    assert set(first.score.shared) == set(first.query) & set(first.template)
    assert "夏令" in first.line


def test_one_template_and_why_not() -> None:
    [found] = explain("夏令时那天对不上", LIBRARY, template_id="tpl-bench00006")
    assert found.verdict == "below threshold"
    assert "< 0.15" in found.line
    [found] = explain("表单的校验提示换个说法", LIBRARY, template_id="tpl-bench00006")
    assert found.verdict == "no topic evidence"
    assert "校验" in found.line
    assert explain("夏令时那天对不上", LIBRARY, template_id="tpl-none") == []


def test_a_skipped_text_says_so() -> None:
    found = explain("夏令时", LIBRARY)
    assert {one.verdict for one in found} == {"skipped: too short"}
    assert found[0].line == "skipped: too short: 3 effective characters"


def test_the_threshold_is_that_of_the_settings() -> None:
    assert (
        explain("夏令时那天对不上", LIBRARY, settings=SpecSettings(match_threshold=0.9))[0].verdict == "below threshold"
    )


def test_scalars() -> None:
    assert explain_scalars(0.15, ["x"], 0.15).startswith("hit")
    assert "topic" in explain_scalars(0.5, [], 0.15)
    assert explain_scalars(0.1, ["x"], 0.15).startswith("below")


def test_tags_of_one_meaning_are_named() -> None:
    made = template("表单加开关字段", tags=("vue", "a-switch"))
    (found,) = explain("会员页面增加一个是否冻结的开关", [made])
    assert found.line.endswith("; tags 开关 = a-switch")
