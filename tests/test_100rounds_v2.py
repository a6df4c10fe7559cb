"""The 100-turn experiment: four topics that alternate, five queries after them, and what must hold of the answers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from conversations import LETTER

from gatekeeper import ContextGatekeeper, Settings, estimate_tokens
from gatekeeper.cli import demo

BUDGET = 4000
TURNS, TOPICS = demo.load_turns(), demo.load_topics()
QUERIES = demo.QUERIES
HISTORY_TOKENS = sum(estimate_tokens(user) + estimate_tokens(assistant) for user, assistant in TURNS)


@pytest.fixture(scope="module")
def gate() -> ContextGatekeeper:
    """After turn 100."""
    gate = ContextGatekeeper(BUDGET)
    for user, assistant in TURNS:
        gate.add_turn(user, assistant)
    return gate


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return demo.measure(ContextGatekeeper(BUDGET))


# --- the conversation


def test_a_hundred_turns_of_four_topics_alternate() -> None:
    assert len(TURNS) == len(TOPICS) == 100
    assert Counter(TOPICS) == {"redis": 25, "asyncio": 25, "postgresql": 25, "git": 25}
    assert all(first != second for first, second in pairwise(TOPICS))
    assert len({user for user, _ in TURNS}) == 100


def test_it_does_not_fit_the_budget() -> None:
    assert HISTORY_TOKENS > 10 * BUDGET


def test_every_turn_opens_a_topic(gate: ContextGatekeeper) -> None:
    assert gate.explain("redis")["topic"] == {"first_turn": 99, "window": 1}


# --- after turn 100


def test_no_foreign_turn_in_any_answer(gate: ContextGatekeeper) -> None:
    for query, topic in QUERIES:
        chosen = gate.select(query)
        assert chosen
        assert [TOPICS[block["turn_id"]] for block in chosen] == [topic] * len(chosen), query


def test_the_five_alternating_queries_are_clean(figures: dict[str, Any]) -> None:
    assert [topic for _, topic in QUERIES] == ["postgresql", "git", "redis", "asyncio", "git"]
    assert figures["alternation_clean"] == figures["alternation_queries"] == 5
    assert figures["foreign_turns"] == 0


def test_all_git_anchors_are_covered(gate: ContextGatekeeper, figures: dict[str, Any]) -> None:
    for query, topic in QUERIES:
        held = {anchor["text"] for anchor in gate.explain(query)["anchors"]
                if anchor["df"] and anchor["origin"] != "stem"}
        covered = {gate.anchor_text(i) for block in gate.select(query) for i in block["covered_ids"]}
        if topic == "git":
            assert covered == held, query
    assert figures["git_coverage"] == 1.0


def test_977_of_1000_tokens_are_saved(gate: ContextGatekeeper, figures: dict[str, Any]) -> None:
    for query, _ in QUERIES:
        n_tokens = estimate_tokens(gate.build_prompt(query))
        assert n_tokens <= BUDGET
        assert 1 - n_tokens / HISTORY_TOKENS >= 0.977, query
    assert figures["tokens_saved_ratio_mean"] >= figures["tokens_saved_ratio"] >= 0.977


def test_the_window_is_recalled_in_full(gate: ContextGatekeeper, figures: dict[str, Any]) -> None:
    """Each of the last 20 turns of the topic is a candidate: by its name alone every one holds a content word."""
    for query, topic in QUERIES:
        if topic in ("git", "redis"):
            candidates = {candidate["turn_id"] for candidate in gate.explain(query)["candidates"]}
            assert {turn_id for turn_id in range(80, 100) if TOPICS[turn_id] == topic} <= candidates, query
    assert figures["window_recall"] == {"git": 1.0, "redis": 1.0}


def test_candidates_are_of_the_topic_too(gate: ContextGatekeeper) -> None:
    for query, topic in QUERIES:
        candidates = gate.explain(query)["candidates"]
        assert {TOPICS[candidate["turn_id"]] for candidate in candidates} == {topic}, query


def test_all_claims_of_the_demo_hold(figures: dict[str, Any]) -> None:
    assert [name for name, *_, holds in demo.claims(figures) if not holds] == []
    assert len(demo.claims(figures)) == 7


@pytest.mark.parametrize("key", [
    "foreign_turns", "git_coverage", "tokens_saved_ratio", "tokens_saved_ratio_mean", "alternation_clean",
])  # fmt: skip
def test_a_claim_can_fail(figures: dict[str, Any], key: str) -> None:
    worse = {**figures, key: 1 if key == "foreign_turns" else figures[key] * 0.9}
    assert [holds for *_, holds in demo.claims(worse)].count(False) == 1
    assert not all(holds for *_, holds in demo.claims({**figures, "window_recall": {"git": 1.0, "redis": 0.5}}))


def test_an_answer_that_is_not_given_is_not_clean() -> None:
    figures = demo.measure(ContextGatekeeper(50))
    assert figures["alternation_clean"] == figures["git_coverage"] == 0


def test_asking_changes_nothing(gate: ContextGatekeeper) -> None:
    first = [gate.explain(query) for query, _ in QUERIES]
    assert [gate.explain(query) for query, _ in reversed(QUERIES)] == first[::-1]


@pytest.mark.parametrize("n_turns", [40, 60, 80])
def test_it_holds_on_the_way_too(n_turns: int) -> None:
    gate = ContextGatekeeper(BUDGET)
    gate.add_turns(TURNS[:n_turns])
    for query, topic in QUERIES:
        assert {TOPICS[block["turn_id"]] for block in gate.select(query)} == {topic}, query


def test_thorough_keeps_the_budget_and_begins_with_the_topic() -> None:
    gate = ContextGatekeeper(BUDGET, settings=Settings.thorough())
    gate.add_turns(TURNS)
    for query, topic in QUERIES:
        chosen = gate.select(query)
        assert TOPICS[chosen[0]["turn_id"]] == topic, query  # what room is left goes to turns that may be foreign
        assert estimate_tokens(gate.build_prompt(query)) <= BUDGET
        assert len(chosen) > 1


# --- the gate's branches


def small(*turns: tuple[str, str]) -> ContextGatekeeper:
    gate = ContextGatekeeper(BUDGET)
    gate.add_turns(turns)
    return gate


@pytest.mark.parametrize(("query", "action", "low", "high"), [
    ("redis ttl lock", "continue", 0.45, 1.0),  # the topic holds most
    ("asyncio cancel", "switch", 0.0, 0.0),  # it holds nothing
    ("redis asyncio cancel", "continue", 0.20, 0.45),  # in between
    ("这个 asyncio cancel", "continue", 0.0, 0.0),  # forced by the deictic
    ("，。", "continue", 0.0, 0.0),  # no anchors at all
])  # fmt: skip
def test_every_branch_of_the_gate(query: str, action: str, low: float, high: float) -> None:
    literal = ContextGatekeeper(BUDGET, settings=LETTER)
    literal.add_turn("redis ttl lock", "")
    decided = literal.explain(query)["gate"]
    assert decided["action"] == action
    assert low <= decided["overlap"] <= high


def test_a_continue_forced_by_a_deictic_stays_with_the_topic(gate: ContextGatekeeper) -> None:
    """Without it the query would leave for Redis; the words of the topic's last turn come with it."""
    assert gate.explain("Redis惰性删除区别")["gate"]["action"] == "switch"
    explained = gate.explain("那 Redis 惰性删除呢")
    assert explained["gate"]["deictic"] is True
    assert explained["gate"]["action"] == "continue"
    assert explained["gate"]["overlap"] < 0.20
    assert explained["content_words"] == []
    assert "inherited" in {anchor["origin"] for anchor in explained["anchors"]}


def test_a_bare_deictic_answers_from_the_topic(gate: ContextGatekeeper) -> None:
    chosen = gate.select("然后呢？")
    assert [TOPICS[block["turn_id"]] for block in chosen] == ["git"] * len(chosen)
    assert 99 in [block["turn_id"] for block in chosen]


# --- the content-word filter


def test_at_a_switch_a_turn_without_a_content_word_is_out() -> None:
    """Turn 1 shares the 2-grams 删除 and 策略 with the query, but no word of it."""
    gate = small(("Redis 惰性删除策略", "访问时检查"), ("备份文件的删除策略", "保留七天"), *[("今天天气", "晴")] * 3)
    explained = gate.explain("惰性删除 策略")
    decisions = [turn["decision"] for turn in explained["turns"]]
    assert explained["gate"]["action"] == "switch"
    assert explained["content_words"] == ["惰性删除"]
    assert decisions == ["chosen", "no content word", "no anchor", "no anchor", "no anchor"]


def test_the_same_turn_is_a_candidate_when_the_query_goes_on() -> None:
    gate = small(("Redis 惰性删除策略", "访问时检查"), ("备份文件的删除策略", "保留七天"), *[("今天天气", "晴")] * 3)
    explained = gate.explain("这个惰性删除 策略")
    assert {0, 1} <= {candidate["turn_id"] for candidate in explained["candidates"]}


def test_short_names_are_content_words_but_not_inside_others(gate: ContextGatekeeper) -> None:
    assert small(("digital legit", ""), ("sql", "")).select("git") == []
    assert gate.explain("TTL 续期")["content_words"] == ["ttl"]
    assert {TOPICS[block["turn_id"]] for block in gate.select("TTL 续期")} == {"redis"}


# --- the budget


def test_an_exhausted_budget_takes_what_fits_and_says_so() -> None:
    query = "Redis惰性删除区别"
    for budget in (29, 100, 250, 332, 400):
        gate = ContextGatekeeper(budget)
        gate.add_turns(TURNS)
        explained = gate.explain(query)
        assert estimate_tokens(gate.build_prompt(query)) <= budget
        assert all(step["budget_left"] >= 0 for step in explained["steps"])
        decisions = {turn["decision"] for turn in explained["turns"]}
        assert "no room" in decisions or "chosen" in decisions
        assert {TOPICS[block["turn_id"]] for block in gate.select(query)} <= {"redis"}


def test_no_budget_for_any_turn_selects_nothing(caplog: pytest.LogCaptureFixture) -> None:
    gate = ContextGatekeeper(20)
    gate.add_turns(TURNS[:4])
    assert "the budget is 20: it is kept" in caplog.text
    assert gate.select("Redis惰性删除区别") == []
    assert gate.build_prompt("Redis惰性删除区别") == "[query] Redis惰性删除区别"
    assert "nothing is selected" in caplog.text
