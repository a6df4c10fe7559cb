"""Scores in context: neighbours, and how far a message leans on the last turns."""

from __future__ import annotations

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, turns

from gatekeeper import ContextGatekeeper, Settings
from gatekeeper.report import Explanation


@given(turns, queries, st.sampled_from([1, 3, 400]), st.sampled_from([1, 2, 3, 40]), st.booleans(), st.data())
@settings(max_examples=150)
def test_scores_in_context_equal_the_twin(history, query: str, limit: int, window: int, joint: bool, data) -> None:
    chosen = Settings.thorough().replace(max_candidates=limit, neighbour_window=window, joint_sides=joint,
                                         weight_assistant=0.5, recency_window=data.draw(st.sampled_from([2, 12])))
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation(history, chosen)
    gate.add_turns(history)
    for turn in data.draw(st.sets(st.integers(0, len(history) - 1), max_size=2)) if history else ():
        gate.forget(turn)
        twin.forget(turn)
    assert [(c["turn_id"], c["score"]) for c in gate.explain(query)["candidates"]] == twin.in_context(query)


PETS = [("aa bb", ""), ("the vet of rex", ""), ("cc dd", ""), *[(f"ee{i} ff{i}", "") for i in range(19)]]


def in_context(query: str) -> Explanation:
    gate = ContextGatekeeper(10**6, settings=Settings.thorough())
    gate.add_turns(PETS)
    return gate.explain(query)


def test_turns_beside_a_turn_that_answers_count_in_thorough() -> None:
    explained = in_context("kafka vet?")
    assert [c["turn_id"] for c in explained["candidates"]] == [1, 2, 0, 3]  # the nearer, then the newer one
    best, beside, *_ = explained["candidates"]
    assert best["score"] == best["parts"]["user"] == 1.0
    assert beside["parts"]["neighbours"] == beside["score"] == pytest.approx(0.4)


def test_turns_count_by_recency_where_the_query_weighs_nothing() -> None:
    chosen = Settings.thorough().replace(ngram_weight=0.0)
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation([("缓存", ""), ("天气", "")], chosen)
    gate.add_turns([("缓存", ""), ("天气", "")])
    for query in ("缓存", "ok"):
        found = gate.explain(query)["candidates"]
        assert [(c["turn_id"], c["score"]) for c in found] == twin.in_context(query)
        assert [c["turn_id"] for c in found] == [1, 0]
        assert {c["lex_user"] for c in found} == {0.0}
    assert gate.explain("")["candidates"] == [] or gate.explain("")["anchors"]
    assert ContextGatekeeper(10**6, settings=chosen).explain("")["candidates"] == []


def test_a_message_that_asks_nothing_leans_on_the_last_turns_in_thorough() -> None:
    found = {c["turn_id"]: c["recency"] for c in in_context("kafka vet")["candidates"]}
    assert [found[turn] for turn in (21, 11, 1)] == [pytest.approx(11 / 12), pytest.approx(1 / 12), 0.0]
    assert sorted(found) == [0, 1, 2, 3, *range(11, 22)]


def test_a_question_leans_on_the_last_turns_as_far_as_these_hold_its_words() -> None:
    recency = {c["turn_id"]: c["recency"] for c in in_context("ee18 vet?")["candidates"]}
    assert recency[21] == pytest.approx(11 / 24)


def test_inflections_are_one_word_in_thorough() -> None:
    gate = ContextGatekeeper(10**6, settings=Settings.thorough())
    gate.add_turns([("we went hiking", ""), *[(f"xx{i}", "") for i in range(5)]])
    assert gate.explain("any hikes planned")["candidates"][0]["turn_id"] == 0
    gate.forget(0)
    gate.add_turn("hiked again", "")
    assert gate.explain("any hikes planned")["candidates"][0]["turn_id"] == 6


def test_an_explanation_scores_every_turn_in_context_also_those_below_the_best() -> None:
    few, all_of_them = (
        ContextGatekeeper(10**6, settings=Settings.thorough().replace(max_candidates=n)) for n in (2, 400))  # fmt: skip
    few.add_turns(PETS)
    all_of_them.add_turns(PETS)
    expected = {c["turn_id"]: c["score"] for c in all_of_them.explain("kafka vet?")["candidates"]}
    turns_of = {turn["turn_id"]: turn for turn in few.explain("kafka vet?")["turns"]}
    assert {turn: turns_of[turn]["score"] for turn in expected} == expected
    assert [turns_of[turn]["decision"] for turn in (1, 2, 0, 3, 4)] == [
        "chosen", "chosen", "below the best", "below the best", "no anchor"]


@pytest.mark.parametrize("chosen", [Settings.thorough(), Settings(weight_neighbours=0.4)])
def test_no_content_word_is_asked_of_turns_that_are_scored_in_context(chosen: Settings) -> None:
    gate = ContextGatekeeper(10**6, settings=chosen.replace(shared_mass=100.0))
    gate.add_turns([*PETS, ("git 区别 rebase", ""), ("digital 合并 问题", ""), ("redis ttl", ""), ("redis lru", "")])
    explained = gate.explain("git 合并 分支?")
    assert explained["gate"]["action"] == "switch"
    assert explained["content_words"] == []
    assert {22, 23} <= {candidate["turn_id"] for candidate in explained["candidates"]}
    assert "no content word" not in {turn["decision"] for turn in explained["turns"]}


@pytest.mark.parametrize(("query", "changes"), [("ok", {}), ("缓存", {"ngram_weight": 0.0})])
def test_a_query_that_weighs_nothing_chooses_nothing_by_coverage(query: str, changes: dict[str, float]) -> None:
    gate = ContextGatekeeper(4000, settings=Settings(weight_neighbours=0.4, **changes))
    gate.add_turns([("缓存", ""), ("天气", "")])
    explained = gate.explain(query)
    assert [(c["turn_id"], c["coverage"]) for c in explained["candidates"]] == [(1, 0.0), (0, 0.0)]
    assert explained["steps"] == []
