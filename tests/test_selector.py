"""The minimum cover against the twin, and the budget."""

from __future__ import annotations

import math

import pytest
import reference
import reference_filling
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, sides, texts, turns

from gatekeeper import ContextGatekeeper, Settings, estimate_tokens
from gatekeeper.block import Candidate
from gatekeeper.selector import cover_minimum


def words(text: str) -> int:
    return len(text.split())


def lumpy(text: str) -> int:
    """A counter that does not add up: two texts joined may count more than apart."""
    return len(text) + (len(text) // 40) ** 2


@given(turns, queries, st.sampled_from([30, 120, 300, 10**6]), st.sampled_from([0.3, 0.85, 1.0]),
       st.sampled_from([estimate_tokens, words, lumpy]))  # fmt: skip
@settings(max_examples=150)
def test_the_cover_takes_the_steps_of_the_twin(history, query: str, budget: int, stop: float, count) -> None:
    chosen = Settings(coverage_stop=stop)
    gate, twin = ContextGatekeeper(budget, settings=chosen, count_tokens=count), reference.Conversation(history, chosen)
    gate.add_turns(history)
    found = [(step["turn_id"], step["gain"], [gate.anchor_text(i) for i in step["covered_ids"]])
             for step in gate.explain(query)["steps"]]  # fmt: skip
    assert found == twin.cover(query, budget, count)
    assert [turn["turn_id"] for turn in gate.select(query)] == [turn for turn, _, _ in found]


long_sides = st.lists(sides, max_size=5).map("".join)


@given(st.lists(st.tuples(long_sides, long_sides), max_size=14), queries, st.data())
@settings(max_examples=200)
def test_thorough_fills_the_budget_as_the_twin_does(history, query: str, data) -> None:
    budget = data.draw(st.sampled_from([20, 60, 120, 300, 700, 2000]))
    count = data.draw(st.sampled_from([estimate_tokens, words, lumpy]))
    most, max_sentences = data.draw(st.sampled_from([3, 20, 60, 250])), data.draw(st.sampled_from([1, 3]))
    chosen = Settings.thorough().replace(whole_side_tokens=most, max_sentences=max_sentences)
    gate, twin = ContextGatekeeper(budget, settings=chosen, count_tokens=count), reference.Conversation(history, chosen)
    gate.add_turns(history)
    for turn in data.draw(st.sets(st.integers(0, len(history) - 1), max_size=2)) if history else ():
        gate.forget(turn)
        twin.forget(turn)
    sent, covered, taken_back = reference_filling.filled(twin, query, budget, count)
    explained = gate.explain(query)
    assert [(turn["turn_id"], turn["user"], turn["assistant"]) for turn in gate.select(query)] == sent
    assert [{gate.anchor_text(i) for i in step["covered_ids"]} for step in explained["steps"]] == covered
    assert {turn["turn_id"] for turn in explained["turns"] if turn["decision"] == "taken back"} == taken_back


def test_a_long_answer_to_a_blank_question_goes_in_by_its_sentences() -> None:
    gate = ContextGatekeeper(4000, settings=Settings.thorough())
    gate.add_turns([(" \n", "Redis is fast. " * 200), ("other", "thing")])
    turn = gate.select("redis?")[0]
    assert turn["turn_id"] == 0
    assert turn["assistant"].startswith("Redis is fast.")


def test_what_is_restored_ends_a_row_of_sentences_that_do_not_fit() -> None:
    large = "filler " * 60 + "end. "
    history = [
        (f"{large}redis alpha. {large}{large}redis beta. {large}{large}redis. {large}", large),  # seven misses
        ("redis alpha. " + "short " * 12 + "end.", ""),  # goes in whole
        (f"{large}redis. Three words more. {large}", ""),  # one miss, then one that fits
    ]
    chosen = Settings.thorough().replace(whole_side_tokens=10, weight_neighbours=0.0, weight_recency=0.0, b=0.0)
    gate = ContextGatekeeper(50, settings=chosen, count_tokens=words)
    gate.add_turns(history)
    assert [turn["user"] for turn in gate.select("redis alpha beta")] == [
        "redis alpha. redis beta. redis.", history[1][0], "redis. Three words more."]


@pytest.mark.parametrize(("n_large", "expected"), [(7, [0]), (8, [])])
def test_after_eight_blocks_in_a_row_that_do_not_fit_no_other_is_looked_at(n_large: int, expected: list[int]) -> None:
    chosen = Settings.thorough().replace(weight_neighbours=0.0, weight_recency=0.0, b=0.0)
    gate = ContextGatekeeper(20, settings=chosen, count_tokens=words)
    gate.add_turns([("redis", ""), *[("redis redis " + "filler " * 30, "")] * n_large])
    assert [turn["turn_id"] for turn in gate.select("redis")] == expected


def test_restoring_looks_at_few_of_many_sentences() -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    text = "".join(f"a{i} b. redis! " for i in range(1000))
    gate = ContextGatekeeper(len(text) // 2, settings=Settings.thorough(), count_tokens=count)
    gate.add_turn(text, "")
    [turn] = gate.select("redis")
    assert len(text) // 2 - 100 < len(turn["user"]) <= len(text) // 2
    assert len(counted) < 60


@given(turns, queries, st.integers(1, 400), st.booleans(), st.sampled_from([estimate_tokens, words, lumpy]))
@settings(max_examples=120)
def test_the_prompt_never_exceeds_the_budget_unless_the_query_alone_does(
    history, query: str, budget: int, is_thorough: bool, count
) -> None:
    chosen = Settings.thorough() if is_thorough else Settings.minimal()
    gate = ContextGatekeeper(budget, settings=chosen, count_tokens=count)
    gate.add_turns(history)
    gate.constraints.language = "中文"
    prompt = gate.build_prompt(query)
    bare = gate.constraints.render() + f"[query] {query}"
    assert count(prompt) <= budget or (prompt == bare and not gate.select(query))
    assert prompt.startswith(gate.constraints.render())
    assert prompt.endswith(f"[query] {query}")


@given(st.lists(st.tuples(texts, texts), max_size=4), texts, st.integers(1, 600), st.booleans())
@settings(max_examples=100)
def test_the_budget_holds_for_texts_of_every_script(history, query: str, budget: int, is_thorough: bool) -> None:
    gate = ContextGatekeeper(budget, settings=Settings.thorough() if is_thorough else None)
    gate.add_turns(history)
    assert estimate_tokens(gate.build_prompt(query)) <= max(budget, estimate_tokens(f"[query] {query}"))


@given(turns, queries)
@settings(max_examples=80)
def test_thorough_with_room_for_all_sends_whole_blocks(history, query: str) -> None:
    gate = ContextGatekeeper(10**6, settings=Settings.thorough())
    gate.add_turns(history)
    for turn in gate.select(query):
        assert (turn["user"], turn["assistant"]) == tuple(text.strip() for text in history[turn["turn_id"]])


def test_thorough_restores_the_sentences_nearest_to_a_kept_one_first() -> None:
    text = "Far away one. Near before. Redis here. Near behind. Far away two."
    gate = ContextGatekeeper(95, settings=Settings.thorough().replace(whole_side_tokens=50))
    gate.add_turn(text, "")
    (turn,) = gate.select("redis")
    assert "Redis here." in turn["user"]
    assert turn["user"] != "Redis here."
    assert turn["user"] in text
    assert "Far" not in turn["user"]


def candidate(turn: int, covers: int, cost: int, score: float = 1.0) -> Candidate:
    made = Candidate(turn, score, 0.0, 0.0, 0.0, 0.0)
    made.covers, made.cost, made.user = covers, cost, "text"
    return made


def chosen_turns(candidates, idf, budget=1000, stop=0.85) -> list[int]:
    return [step.candidate.turn_id for step in cover_minimum(candidates, idf, budget, stop).steps]


@pytest.mark.parametrize(("candidates", "expected"), [
    ([candidate(0, 0b01, 10), candidate(1, 0b11, 10)], [1]),
    ([candidate(0, 0b11, 100), candidate(1, 0b11, 10)], [1]),
    ([candidate(0, 0b01, 10, 1.0), candidate(1, 0b01, 10, 2.0)], [1]),
    ([candidate(0, 0b01, 10), candidate(1, 0b01, 10)], [1]),
    ([candidate(0, 0b01, 10), candidate(1, 0b10, 10)], [1, 0]),
    ([candidate(0, 0b01, 2000), candidate(1, 0b10, 10)], [1]),
    ([candidate(0, 0, 1)], []),
    ([], []),
])  # fmt: skip
def test_gain_then_score_then_newer_turn_decide(candidates, expected: list[int]) -> None:
    assert chosen_turns(candidates, [1.0, 1.0]) == expected


def test_the_cover_stops_at_its_share_of_the_coverable_mass() -> None:
    candidates = [candidate(0, 0b01, 10), candidate(1, 0b10, 10)]
    assert chosen_turns(candidates, [17.0, 3.0]) == [0]
    assert chosen_turns(candidates, [16.9, 3.1]) == [0, 1]
    assert chosen_turns(candidates, [17.0, 3.0], stop=1.0) == [0, 1]
    assert chosen_turns(candidates, [17.0, 3.0], stop=0.0) == []


def test_an_empty_block_is_skipped_and_the_reasons_are_told() -> None:
    empty = candidate(0, 0b1, 1)
    empty.user = ""
    others = [candidate(1, 0b1, 10), candidate(2, 0b1, 20), candidate(3, 0b110, 2000), candidate(4, 0b1000, 900)]
    cover = cover_minimum([empty, *others], [5.0, 1.0, 1.0, 0.1], 1000, 1.0)
    assert [step.candidate.turn_id for step in cover.steps] == [1, 4]
    assert cover.reasons == {0: "empty after pruning", 2: "covers nothing new", 3: "no room"}
    assert cover_minimum(others[:1] + others[3:], [5.0, 1.0, 1.0, 0.1], 1000, 0.85).reasons == {4: "coverage reached"}
    assert math.isclose(cover.steps[0].gain, 5.0 / 10**0.8)
