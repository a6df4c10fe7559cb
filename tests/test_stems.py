"""Stems: English inflections."""

from __future__ import annotations

import pytest

from gatekeeper.stems import Stems

stem = Stems().stem


@pytest.mark.parametrize("words", [
    ("hike", "hikes", "hiked", "hiking"), ("study", "studies", "studied"), ("plan", "plans", "planned", "planning"),
    ("class", "classes"), ("quick", "quickly"), ("cache", "caches", "cached", "caching"), ("party", "parties"),
])  # fmt: skip
def test_inflections_have_one_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize("word", ["ttl", "sing", "bus", "utf8", "惰性", "token_budget", "v1.2.3", "é"])
def test_what_is_no_inflection_stays(word: str) -> None:
    assert stem(word) == word
