"""The benches that come with recall, and calibration."""

from __future__ import annotations

from gatekeeper.spec.bench import (
    bench_cap,
    bench_library,
    bench_requests,
    synthetic_library,
    time_classify,
    time_recall,
)
from gatekeeper.spec.calibrating import calibrate, errors_at, requests_of
from gatekeeper.spec.tokens import estimate_tokens


def test_sixteen_requests_and_ten_of_every_day() -> None:
    sixteen, everyday = bench_requests()
    assert [found for found in sixteen + everyday if not found.is_right] == []
    assert (len([found for found in sixteen if found.expected]), len(sixteen), len(everyday)) == (12, 16, 10)


def test_the_customary_cap_recalls_every_template_by_both_kinds() -> None:
    figures = bench_cap()[-1]
    assert (figures.cap, figures.n_self, figures.n_body, figures.n_false) == (40, 7, 7, 0)
    assert figures.top_unrelated < 0.15


def test_timings_are_numbers() -> None:
    assert time_recall(20, n_requests=2) > 0
    assert time_classify() > 0
    assert synthetic_library(3) == synthetic_library(3)


def test_calibration_stands_between_own_and_other() -> None:
    found = calibrate(bench_library())
    assert found.most_other < found.proposed <= found.least_own
    assert (found.n_missed, found.n_false) == (0, 0)
    assert sum(found.histogram(own=True)) + sum(found.histogram(own=False)) == len(found.pairs)
    assert errors_at(found.pairs, 1.01)[0] == sum(pair.is_own for pair in found.pairs)


def test_calibration_asks_in_short_phrases_too() -> None:
    assert requests_of(bench_library()[0])[:2] == ["海外门店的时刻差一小时", "夏令时切换那天对不上"]
    empty = calibrate([])
    assert (empty.pairs, empty.proposed) == ([], 0.15)


def test_token_estimate() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("改 index，ok。") == 1 + 1 + 1 + 0.25 * 8
    assert estimate_tokens("「」（）！") == 5
