"""Stems: English inflections."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gatekeeper
from gatekeeper import ContextGatekeeper, Settings, corpus
from gatekeeper.corpus import forms_of
from gatekeeper.stems import inflections, stem


@pytest.mark.parametrize("words", [
    ("hike", "hikes", "hiked", "hiking"), ("study", "studies", "studied"), ("plan", "plans", "planned", "planning"),
    ("class", "classes"), ("quick", "quickly"), ("cache", "caches", "cached", "caching"), ("party", "parties"),
    ("activity", "activities"), ("organize", "organizes", "organization"), ("deploy", "deployed", "deployment"),
])  # fmt: skip
def test_forms_of_a_word_have_one_stem_and_find_each_other(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1
    for word in words:
        assert {*words} - {word} <= {*inflections(word)}
        assert word not in inflections(word)


@pytest.mark.parametrize("word", ["ttl", "sing", "bus", "utf8", "惰性", "token_budget", "v1.2.3", "é"])
def test_what_is_no_inflection_stays(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize("text", ["utf8", "惰性", "token_budget", "v1.2.3", "é", "", "\ud800", "c++"])
def test_only_english_words_have_forms(text: str) -> None:
    assert inflections(text) == ()


def test_another_form_of_a_word_is_found_and_counts_as_the_word() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("how do I rebase a branch", "git rebase main"), ("what about merging", "git merge main")])
    explained = gate.explain("rebasing branches")
    assert [(anchor["text"], anchor["origin"]) for anchor in explained["anchors"]] == [
        ("rebasing", "query"), ("rebase", "stem"), ("branches", "query"), ("branch", "stem")]
    assert [gate.anchor_text(i) for i in explained["steps"][0]["covered_ids"]] == ["rebasing", "branches"]
    assert [block["turn_id"] for block in gate.select("rebasing branches")] == [0]
    assert ContextGatekeeper(4000, settings=Settings(stems=False)).select("rebasing") == []


def test_a_word_and_its_form_cover_no_more_than_the_word() -> None:
    gate = ContextGatekeeper(4000, settings=Settings(n_covers=1))
    gate.add_turns([("deploys fail", ""), ("deploy again", ""), ("deployed at last", "")])
    assert len(gate.select("deploy")) == 1


def test_a_form_passes_the_filter_after_a_switch() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("nginx restarts at night", "a cron job does it"), ("weather in Paris", "sunny")])
    explained = gate.explain("nginx restarting")
    assert explained["gate"]["action"] == "switch"
    assert [block["turn_id"] for block in gate.select("restarting")] == [0]


def test_a_word_that_no_turn_holds_has_its_forms_whatever_such_words_weigh() -> None:
    gate = ContextGatekeeper(4000, settings=Settings(unseen_weight=0.0))
    gate.add_turn("how do I rebase a branch", "")
    assert [block["turn_id"] for block in gate.select("rebasing")] == [0]


def test_a_listed_word_has_no_forms() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turn(" ".join(inflections("only")), "")
    assert [anchor["text"] for anchor in gate.explain("only")["anchors"]] == ["only"]


def test_a_word_of_any_length_has_its_forms_and_only_short_ones_are_remembered() -> None:
    long = "ab" * 500_000
    assert f"{long}s" in inflections(long)
    assert forms_of("hiking") is forms_of("hiking")
    assert forms_of(long[:200]) is not forms_of(long[:200])
    assert forms_of("utf8") is None


def test_forms_are_found_while_other_threads_have_them_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MOST_WORDS", 1)
    words = ["rebasing", "hikes", "studies", "planned"]
    expected = {word: [forms_of(word).text(i) for i in range(len(forms_of(word)))] for word in words}

    def ask(start: int) -> bool:
        asked = [words[(start + i) % 4] for i in range(3000)]
        found = [(word, forms_of(word)) for word in asked]
        return all([forms.text(i) for i in range(len(forms))] == expected[word] for word, forms in found)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)


def test_without_pystemmer_everything_works_and_nothing_is_stemmed() -> None:
    code = (
        "import sys\n"
        "sys.modules['Stemmer'] = None  # what an import of it then raises is an ImportError\n"
        "from gatekeeper import ContextGatekeeper, Settings\n"
        "from gatekeeper.stems import inflections, stem\n"
        "assert (stem('rebasing'), inflections('rebasing'), inflections('')) == ('rebasing', (), ())\n"
        "for chosen in (Settings.minimal(), Settings.thorough(), Settings(stems=False)):\n"
        "    gate = ContextGatekeeper(4000, settings=chosen)\n"
        "    gate.add_turns([('how do I rebase', 'git rebase main'), ('惰性删除', '过期键'), ('two', 'words')])\n"
        "    print([[turn['turn_id'] for turn in gate.select(query)]\n"
        "           for query in ('rebase main?', 'rebasing?', '惰性删除？')])\n"
    )
    folder = Path(gatekeeper.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[[0], [], [1]]", "[[0, 1, 2], [2, 1, 0], [1, 2, 0]]", "[[0], [], [1]]"]
