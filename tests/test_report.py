"""What explain returns: every number adds up exactly, every turn is accounted for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from conversations import gate_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import queries, turns

from gatekeeper import Settings, block
from gatekeeper.anchor import collapse

KEYS = {
    "query", "reason", "settings", "n_turns", "n_blocks", "topic", "gate", "anchors", "idf_mass", "content_words",
    "candidates", "steps", "coverable_mass", "covered_mass", "coverage", "tokens", "prompt", "turns",
}  # fmt: skip
DECISIONS = {
    block.CHOSEN, block.FORGOTTEN, block.NO_ANCHOR, block.NO_CONTENT_WORD, block.BELOW_TOP, block.TOO_LITTLE,
    block.EMPTY, block.NOTHING_NEW, block.COVERED, block.NO_ROOM, block.TAKEN_BACK,
}  # fmt: skip
PLAIN = (str, int, float, bool, type(None))

presets = st.sampled_from((Settings.minimal(), Settings.thorough(), Settings(max_candidates=2, max_sentences=1)))
budgets = st.sampled_from((60, 200, 4000))


def total(values: Iterable[float]) -> float:
    """The sum from left to right; the built-in one compensates from Python 3.12 on."""
    result = 0.0
    for value in values:
        result += value
    return result


def assert_plain(value: Any) -> None:
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            assert_plain(item)
    else:
        assert type(value) in PLAIN


@given(turns, queries, presets, budgets)
def test_every_number_adds_up(history: list[tuple[str, str]], query: str, preset: Settings, budget: int) -> None:
    explained = gate_of(history, budget, settings=preset).explain(query)
    assert explained["idf_mass"] == total(anchor["weight"] for anchor in explained["anchors"])
    for candidate in explained["candidates"]:
        parts = candidate["parts"]
        assert candidate["score"] == (
            parts["user"] + parts["assistant"] + parts["exact"] + parts["recency"] + parts["neighbours"])
        for side, weight in (("user", preset.weight_user), ("assistant", preset.weight_assistant)):
            lex = total(term[side] for term in candidate["terms"]) / explained["idf_mass"]
            assert candidate[f"lex_{side}"] == lex
            assert parts[side] == weight * lex / candidate["best"]
        assert parts["exact"] == preset.weight_exact * candidate["exact"]
        assert parts["recency"] == preset.weight_recency * candidate["recency"]


@given(turns, queries, presets, budgets)
def test_steps_add_up(history: list[tuple[str, str]], query: str, preset: Settings, budget: int) -> None:
    explained = gate_of(history, budget, settings=preset).explain(query)
    idf = {anchor["id"]: anchor["weight"] for anchor in explained["anchors"]}
    costs = {candidate["turn_id"]: candidate["cost"] for candidate in explained["candidates"]}
    left, covered = budget - explained["tokens"]["constraints_and_query"], set()
    for step in explained["steps"]:
        assert covered.isdisjoint(step["covered_ids"])
        covered.update(step["covered_ids"])
        left -= step["cost"]
        assert step["cost"] == costs[step["turn_id"]]
        assert step["budget_left"] == left
        assert step["covered_mass"] == total(idf[i] for i in idf if i in covered)
        assert step["coverage"] == step["covered_mass"] / explained["coverable_mass"]
    if explained["steps"]:
        assert (explained["covered_mass"], explained["coverage"]) == (step["covered_mass"], step["coverage"])
    else:
        assert explained["covered_mass"] == explained["coverage"] == 0.0


@given(turns, queries, presets, budgets, st.sets(st.integers(0, 7)))
def test_every_turn_is_accounted_for(
    history: list[tuple[str, str]], query: str, preset: Settings, budget: int, forgotten: set[int]
) -> None:
    gate = gate_of(history, budget, settings=preset)
    gone = {turn_id for turn_id in forgotten if turn_id < len(gate)}
    for turn_id in gone:
        gate.forget(turn_id)
    explained = gate.explain(query)
    decisions = {turn["turn_id"]: turn["decision"] for turn in explained["turns"]}
    candidates = {candidate["turn_id"]: candidate for candidate in explained["candidates"]}
    assert list(decisions) == list(range(len(gate)))
    assert set(decisions.values()) <= DECISIONS
    assert {turn_id for turn_id, decision in decisions.items() if decision == block.FORGOTTEN} == gone
    assert {turn_id for turn_id, decision in decisions.items() if decision == block.CHOSEN} == {
        step["turn_id"] for step in explained["steps"]}  # fmt: skip
    for turn in explained["turns"]:
        candidate = candidates.get(turn["turn_id"])
        assert turn["cost"] == (candidate["cost"] if candidate else None)
        if candidate:
            assert turn["score"] == candidate["score"]
        elif turn["decision"] in (block.NO_ANCHOR, block.FORGOTTEN):
            assert turn["score"] == 0.0
    assert (explained["n_turns"], explained["n_blocks"]) == (len(gate), len(gate) - len(gone))


@given(turns, queries, presets, budgets)
def test_select_is_a_view_of_it(history: list[tuple[str, str]], query: str, preset: Settings, budget: int) -> None:
    gate = gate_of(history, budget, settings=preset)
    explained = gate.explain(query)
    candidates = {candidate["turn_id"]: candidate for candidate in explained["candidates"]}
    assert gate.select(query) == [
        {
            **{key: candidates[step["turn_id"]][key] for key in ("turn_id", "user", "assistant", "score")},
            "covered_ids": step["covered_ids"],
        }
        for step in explained["steps"]
    ]


@given(turns, queries)
def test_it_is_plain_data(history: list[tuple[str, str]], query: str) -> None:
    explained = gate_of(history).explain(query)
    assert set(explained) == KEYS
    assert_plain(explained)
    assert json.loads(json.dumps(explained)) == explained


@given(turns, queries)
def test_each_anchor_has_its_name(history: list[tuple[str, str]], query: str) -> None:
    gate = gate_of(history)
    for anchor in gate.explain(query)["anchors"]:
        if anchor["df"] or anchor["searched"]:
            assert gate.anchor_text(anchor["id"]) == anchor["text"]
    for chosen in gate.select(query):
        assert all(gate.anchor_text(i) for i in chosen["covered_ids"])


@given(turns, queries, presets)
def test_kept_and_hits_are_places_in_the_whole_text(
    history: list[tuple[str, str]], query: str, preset: Settings
) -> None:
    explained = gate_of(history, settings=preset).explain(query)
    names = {anchor["id"]: anchor["text"] for anchor in explained["anchors"]}
    for candidate in explained["candidates"]:
        assert (candidate["text"]["user"], candidate["text"]["assistant"]) == history[candidate["turn_id"]]
        for side in ("user", "assistant"):
            text, hits = candidate["text"][side], candidate["hits"][side]
            assert "".join(text[start:end] for start, end in candidate["kept"][side]).strip() == candidate[side]
            assert hits == sorted(hits)
            assert all(collapse(text[start:end]) == collapse(names[i]) for start, end, i in hits)
            counts = Counter(i for *_, i in hits)
            times = {term["id"]: term[f"tf_{side}"] for term in candidate["terms"] if term[f"tf_{side}"]}
            assert set(counts) == set(times)
            assert all(counts[i] <= times[i] for i in times)


def test_a_hit_is_where_the_anchor_stands() -> None:
    gate = gate_of([("Use Redis, redis_ttl", "「惰性 删除」和 ＴＴＬ")])
    [candidate] = gate.explain("redis ttl 「惰性 删除」")["candidates"]
    shown = {side: [candidate["text"][side][start:end] for start, end, _ in candidate["hits"][side]]
             for side in ("user", "assistant")}  # fmt: skip
    assert shown == {"user": ["Redis", "redis", "ttl"], "assistant": ["惰性", "惰性 删除", "删除", "ＴＴＬ"]}


def test_a_phrase_is_a_hit_only_where_it_scores() -> None:
    history = [("lazy  free and lazyfree", ""), ("free lazy", "")]
    explained = gate_of(history).explain('"lazy free"')
    [phrase] = [anchor["id"] for anchor in explained["anchors"] if anchor["searched"]]
    assert [[hit for hit in candidate["hits"]["user"] if hit[2] == phrase] for candidate in explained["candidates"]
            if candidate["turn_id"] == 0] == [[[0, 10, phrase]]]  # fmt: skip
    assert all(hit[2] != phrase for candidate in explained["candidates"] if candidate["turn_id"] == 1
               for hit in candidate["hits"]["user"])  # fmt: skip


def test_each_turn_has_its_topic_and_its_head() -> None:
    gate = gate_of([("redis ttl " * 20, "a"), ("it " + "x" * 20, "b"), ("git rebase merge", "c"), ("", "d")])
    gate.forget(1)
    turns = gate.explain("git")["turns"]
    assert [turn["topic"] for turn in turns] == [0, 0, 2, 2]
    assert [turn["head"] for turn in turns] == [("redis ttl " * 20)[:80], "", "git rebase merge", ""]


@pytest.mark.parametrize(("query", "action", "reason"), [
    ("redis ttl", "continue", "overlap is above overlap_continue"),
    ("that git rebase", "continue", "the query points back"),
    ("git rebase merge", "switch", "overlap is below overlap_switch and new_ratio above new_ratio_switch"),
    ("？", "continue", "the query has no anchors"),
    ("redis git rebase merge", "continue", "the ratios are between the thresholds"),
])  # fmt: skip
def test_the_gate_names_its_rule(query: str, action: str, reason: str) -> None:
    gate = gate_of([("redis ttl", "")]).explain(query)["gate"]
    assert (gate["action"], gate["reason"]) == (action, reason)


@given(turns, queries)
def test_the_rule_of_the_gate_is_the_one_that_holds(history: list[tuple[str, str]], query: str) -> None:
    gate = gate_of(history).explain(query)["gate"]
    assert gate["deictic"] == (gate["reason"] == "the query points back")
    assert (gate["action"] == "switch") == gate["reason"].startswith("overlap is below")
    if gate["reason"] == "the ratios are between the thresholds":
        assert gate["overlap"] <= 0.45
        assert gate["overlap"] >= 0.2 or gate["new_ratio"] <= 0.7


# --- decisions and reasons


def decisions_of(history: list[tuple[str, str]], query: str, budget: int = 4000, **settings: Any) -> list[str]:
    explained = gate_of(history, budget, settings=Settings(**{"n_covers": 1, **settings})).explain(query)
    return [turn["decision"] for turn in explained["turns"]]


def test_no_anchor_and_chosen() -> None:
    assert decisions_of([("redis", ""), ("git", "")], "redis") == ["chosen", "no anchor"]


def test_no_content_word() -> None:
    history = [("缓存删除", "惰性"), ("redis", ""), ("git", "")]
    assert decisions_of(history, "redis 惰性") == ["no content word", "chosen", "no anchor"]


def test_below_the_best() -> None:
    decisions = decisions_of([("redis", "")] * 3, "redis", max_candidates=1)
    assert decisions == ["below the best", "below the best", "chosen"]


def test_covers_nothing_new() -> None:
    assert decisions_of([("redis", ""), ("redis", "")], "redis") == ["covers nothing new", "chosen"]


def test_coverage_reached() -> None:
    history = [("redis alpha beta gamma delta epsilon zeta eta", ""), ("theta", "")]
    query = "redis alpha beta gamma delta epsilon zeta eta theta"
    assert decisions_of(history, query) == ["chosen", "coverage reached"]
    assert decisions_of(history, query, coverage_stop=1.0) == ["chosen", "chosen"]


def test_no_room() -> None:
    assert decisions_of([("redis " + "x" * 200, "")], "redis", 60) == ["no room"]


def test_taken_back() -> None:
    gate = gate_of([("redis", "")], 40, count_tokens=lambda text: len(text) + 20 * text.count("\n["))
    assert [turn["decision"] for turn in gate.explain("redis")["turns"]] == ["taken back"]
    assert gate.select("redis") == []


@pytest.mark.parametrize(("history", "query", "reason"), [
    ([], "x", "no history"),
    ([("redis", "")], "redis", "1 of 1 candidates chosen"),
    ([("redis", "")], "git", "no turn is a candidate"),
    ([("redis", "")], "go on", "anchors inherited from the topic's last turn: 1 of 1 candidates chosen"),
    ([("redis", "")], "？！", "query has no content terms: "),
    ([("redis", "")], "q" * 3000, "constraints and query alone exceed the budget"),
])  # fmt: skip
def test_the_reason_is_one_sentence(history: list[tuple[str, str]], query: str, reason: str) -> None:
    assert gate_of(history).explain(query)["reason"].startswith(reason)


def test_inherited_anchors_are_marked() -> None:
    explained = gate_of([("redis ttl", "")]).explain("go on")
    assert [(anchor["text"], anchor["origin"]) for anchor in explained["anchors"]] == [
        ("go", "query"), ("redis", "inherited"), ("ttl", "inherited")]  # fmt: skip
    assert explained["gate"]["deictic"] is True
