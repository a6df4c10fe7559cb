"""Spec recall: grading a text, and recall over a cached library."""

from __future__ import annotations

import pytest

from gatekeeper.spec import SpecSettings, TemplateIndex, classify, decide, prepare, query_fingerprint
from gatekeeper.spec.bench import synthetic_library

TEXT = "把登录页的提示文案改成「验证码已过期」，按钮颜色跟着改"


def test_classify(benchmark):
    benchmark(classify, TEXT)


def test_decide(benchmark):
    benchmark(decide, TEXT)


@pytest.mark.parametrize("n_templates", [300, 10_000])
def test_recall(benchmark, n_templates):
    """From raw text to the two best templates."""
    templates = synthetic_library(n_templates)
    index, settings = TemplateIndex(templates), SpecSettings()
    request = templates[0].trigger

    def recall():
        query = query_fingerprint(prepare(request).text)
        return index.recall(query, threshold=settings.match_threshold, max_templates=settings.max_inject_templates)

    assert benchmark(recall)


def test_build_index(benchmark):
    """What a library of 300 pays once after each change."""
    templates = synthetic_library(300)
    assert len(benchmark(TemplateIndex, templates)) == 300
