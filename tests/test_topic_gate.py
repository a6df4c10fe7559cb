"""Every branch of the topic gate."""

from __future__ import annotations

import re

import pytest
import reference
from conversations import LETTER
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, turns

from gatekeeper import ContextGatekeeper, GateDecision, Settings, gate_topic
from gatekeeper.topic_gate import DEICTIC_PATTERNS, FIRST_CHARACTERS, is_deictic, topic_masses

REDIS = [("redis ttl", "the ttl of redis"), ("redis eviction lru", "lru")]
TWO_TOPICS = [*REDIS, ("git rebase branch", "git"), ("git rebase conflict", "")]

CASES = [
    # query, history, (action, deictic, whether overlap is above 0.45, in between, below 0.20)
    ("redis ttl", REDIS, ("continue", False, "above")),
    ("kubernetes pods", REDIS, ("switch", False, "below")),
    ("redis kubernetes", REDIS, ("continue", False, "between")),
    ("redis kubernetes pods nodes ingress helm charts rollout", REDIS, ("switch", False, "below")),
    ("redis kubernetes pods", REDIS, ("switch", False, "below")),
    ("redis ttl", TWO_TOPICS, ("switch", False, "below")),
    ("rebase conflict", TWO_TOPICS, ("continue", False, "above")),
    ("anything new", [], ("switch", False, "below")),
    ("？！", REDIS, ("continue", False, "below")),
    ("the what of", REDIS, ("continue", False, "below")),
    ("这个 kubernetes 怎么部署集群", REDIS, ("continue", True, "below")),
    ("那 kubernetes pods", REDIS, ("continue", True, "below")),
    ("它 kubernetes pods", REDIS, ("continue", True, "below")),
    ("  \n继续 kubernetes pods", REDIS, ("continue", True, "below")),
    ("然后呢？", REDIS, ("continue", True, "below")),
    ("还有呢", REDIS, ("continue", True, "below")),
    ("What about kubernetes pods", REDIS, ("continue", True, "below")),
    ("that kubernetes pod", REDIS, ("continue", True, "below")),
    ("It runs on kubernetes pods", REDIS, ("continue", True, "below")),
    ("IT runs on kubernetes pods", REDIS, ("switch", False, "below")),
    ("Items kubernetes pods", REDIS, ("switch", False, "below")),
    ("kubernetes pods, that kind", REDIS, ("switch", False, "below")),
    ("go on", REDIS, ("continue", True, "below")),
    ("GO ON kubernetes pods", REDIS, ("continue", True, "below")),
]


@pytest.mark.parametrize(("query", "history", "expected"), CASES)
def test_the_gate_says_of_a_query_what_its_branch_says(query: str, history, expected) -> None:
    gate = ContextGatekeeper(4000, settings=LETTER)
    gate.add_turns(history)
    decision = gate.explain(query)["gate"]
    where = "above" if decision["overlap"] > 0.45 else "below" if decision["overlap"] < 0.2 else "between"
    assert (decision["action"], decision["deictic"], where) == expected


DEICTICS = (
    "这个", "那个", "它", "这", "那", "继续", "然后呢", "还有呢",
    "this", "that", "these", "those", "they", "them", "it", "its",
    "continue", "go on", "keep going", "carry on", "and then", "then what", "what about", "how about", "what else",
    "same here", "same for", "위 내용", "위 글", "위 질문", "위 방법",
    "그거", "그것", "그럼", "그러면", "그리고", "이거", "이것", "계속",
    "それ", "これ", "その", "この", "続け", "では",
)  # fmt: skip


def test_every_deictic_is_seen_by_its_first_character() -> None:
    assert all(is_deictic(text) and is_deictic(f"　{text.upper()} x") for text in DEICTICS if text not in ("it", "its"))
    assert is_deictic("it")
    assert is_deictic("Its")
    assert frozenset(text[0] for text in DEICTICS) == FIRST_CHARACTERS
    assert all(any(re.match(pattern, text) for text in DEICTICS) for pattern in DEICTIC_PATTERNS)


@given(turns, queries, st.sampled_from([1, 2, 3, 8]), st.data())
@settings(max_examples=120)
def test_gate_and_topics_equal_the_twin_to_the_bit(history, query: str, window: int, data) -> None:
    chosen = Settings(topic_window=window, overlap_continue=data.draw(st.sampled_from([0.2, 0.45, 0.9])),
                      new_ratio_switch=data.draw(st.sampled_from([0.1, 0.7])))  # fmt: skip
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation(settings=chosen)
    for turn in history:
        gate.add_turn(*turn)
        twin.add_turn(*turn)
        if data.draw(st.integers(0, 5)) == 0:
            forgotten = data.draw(st.integers(0, len(gate) - 1))
            gate.forget(forgotten)
            twin.forget(forgotten)
    assert gate._corpus.topic_starts == twin.topic_starts
    decision = gate.explain(query)["gate"]
    assert (*list(decision.values())[:4], tuple(decision["new_anchors"])) == twin.gate_query(query)


@given(turns, queries)
@settings(max_examples=100)
def test_turns_added_in_bulk_or_one_by_one_have_the_same_topics_and_answers(history, query: str) -> None:
    bulk, single = ContextGatekeeper(500), ContextGatekeeper(500)
    assert list(bulk.add_turns(history)) == [single.add_turn(*turn) for turn in history]
    assert bulk._corpus.topic_starts == single._corpus.topic_starts
    before = bulk.explain(query)
    assert before == single.explain(query)
    assert bulk.build_prompt(query) == single.build_prompt(query)
    assert bulk.explain(query) == before


@given(turns, turns, queries, st.data())
@settings(max_examples=80)
def test_truncate_leaves_the_conversation_as_if_later_turns_had_never_been(history, later, query: str, data) -> None:
    gate, fresh = ContextGatekeeper(500), ContextGatekeeper(500)
    gate.add_turns(history)
    kept = data.draw(st.integers(0, len(history)))
    gate.truncate(kept)
    gate.add_turns(later)
    fresh.add_turns(history[:kept])
    fresh.add_turns(later)
    assert gate.explain(query) == fresh.explain(query)


@pytest.mark.parametrize(("held", "lacking", "action"), [
    (0.45, 0.55, "continue"),
    (0.4500000000000001, 0.5499999999999999, "continue"),
    (0.25, 0.75, "continue"),
    (0.2, 0.8, "continue"),
    (0.1999999999999999, 0.8000000000000001, "switch"),
    (0.0, 1.0, "switch"),
    (1.0, 0.0, "continue"),
])  # fmt: skip
def test_the_default_thresholds_are_open_at_their_edges(held: float, lacking: float, action: str) -> None:
    decision = gate_topic("q", {"old": held, "new": lacking}, {"old"})
    assert (decision.action, decision.overlap, decision.new_ratio) == (action, held, lacking)


@pytest.mark.parametrize(("overlap_continue", "overlap_switch", "new_ratio_switch", "action"), [
    (0.5, 0.5, 0.25, "continue"),  # neither above nor below
    (0.49, 0.49, 0.0, "continue"),
    (0.6, 0.51, 0.5, "continue"),  # new_ratio is not above its threshold
    (0.6, 0.51, 0.49, "switch"),
    (0.6, 0.5, 0.0, "continue"),
])  # fmt: skip
def test_each_threshold_decides_alone(
    overlap_continue: float, overlap_switch: float, new_ratio_switch: float, action: str
) -> None:
    chosen = Settings(
        overlap_continue=overlap_continue, overlap_switch=overlap_switch, new_ratio_switch=new_ratio_switch)
    assert gate_topic("q", {"old": 1.0, "new": 1.0}, {"old"}, settings=chosen).action == action


def test_a_decision_lists_the_new_anchors_and_compares_by_value() -> None:
    decision = gate_topic("this", {"a": 1.0, "b": 3.0, "c": 4.0}, ["a"])
    assert decision == GateDecision("continue", 0.125, 0.875, True, ("b", "c"))
    assert hash(decision) == hash(gate_topic("this", {"a": 1.0, "b": 3.0, "c": 4.0}, ["a"]))
    assert decision != gate_topic("q", {"a": 1.0, "b": 3.0, "c": 4.0}, ["a"])
    assert gate_topic("", {}, ()) == GateDecision("continue", 0.0, 0.0, False, ())


@pytest.mark.parametrize("text", [
    "这个呢", "那个", "它", "这样", "那么", "继续", "然后呢", "还有呢", " \u3000这", "this", "That one", "these",
    "those", "they", "them", "its",
    "continue", "Go on", "keep going", "carry on", "And then", "then what", "how about it", "what else", "same here",
    "위 내용", "그것은", "계속",
    "それは", "これ", "続けて",
])  # fmt: skip
def test_deictics_point_back(text: str) -> None:
    assert is_deictic(text)
    assert gate_topic(text, {"new": 1.0}, ()).action == "continue"


@pytest.mark.parametrize("text", [
    "", "thistle", "thatch", "item", "IT", "continued fractions", "and theology", "请继续", "是这个", "然后", "redis",
])  # fmt: skip
def test_what_does_not_stand_at_the_head_or_is_a_longer_word_is_no_deictic(text: str) -> None:
    assert not is_deictic(text)


def test_a_topic_is_spoken_for_by_its_last_turns_only() -> None:
    gate = ContextGatekeeper(4000, settings=LETTER.replace(topic_window=2))
    gate.add_turns([("redis cluster", ""), ("redis sentinel", ""), ("redis ttl", ""), ("redis lru", "")])
    assert gate._corpus.topic_starts == [0, 0, 0, 0]
    assert gate.explain("cluster")["gate"]["action"] == "switch"
    assert gate.explain("ttl")["gate"]["action"] == "continue"


def test_masses_of_ages_within_the_window_are_held_and_all_others_lacking() -> None:
    assert topic_masses([1.0, 2.0, 4.0, 8.0], 2) == (6.0, 9.0)
    assert topic_masses([1.0, 2.0], 0) == (0.0, 3.0)


def test_a_query_that_points_back_inherits_the_anchors_of_the_last_turn_that_has_any() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("redis ttl", "x"), ("git rebase", ""), ("然后呢？", "more of rebase")])
    found = [(a["text"], a["origin"]) for a in gate.explain("它呢")["anchors"]]
    assert found == [("它呢", "query"), ("git", "inherited"), ("rebase", "inherited")]
    assert [a["text"] for a in gate.explain("kubernetes")["anchors"]] == ["kubernetes"]


def test_a_turn_that_points_back_itself_hands_on_what_stands_before_it() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("lunch", "noodles"), ("redis 的惰性删除", "访问时检查"), ("继续", "还有定期删除"), ("go on", "")])
    for query in ("继续", "go on", "然后呢"):
        inherited = [a["text"] for a in gate.explain(query)["anchors"] if a["origin"] == "inherited"]
        assert {"redis", "惰性", "惰性删"} <= set(inherited)
        assert "lunch" not in inherited
        assert 1 in [block["turn_id"] for block in gate.select(query)]


@pytest.mark.parametrize(
    "query", ["這個超時設多少", "繼續", "還有呢", "然後呢", "ｉｔ works?", "it怎么配置", "continue一下", "THIS one?"]
)
def test_deictics_are_found_in_every_form_of_writing(query: str) -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("支付模块的重试队列在哪", "在 worker"), ("多久重跑一次", "十分钟")])
    decision = gate.explain(query)["gate"]
    assert (decision["action"], decision["deictic"]) == ("continue", True)


@pytest.mark.parametrize("query", ["IT 部门在哪", "itinerary for Oslo", "theme colours", "continued fractions"])
def test_words_that_begin_like_a_deictic_are_none(query: str) -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turn("redis ttl", "ok")
    assert not gate.explain(query)["gate"]["deictic"]
