"""Recall: candidates with all parts of their scores, the filter after a switch, what finds nothing."""

from __future__ import annotations

import pytest
import reference
from conversations import LETTER
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cjk_texts, queries, texts, turns

from gatekeeper import ContextGatekeeper, Settings
from gatekeeper.anchor import Query
from gatekeeper.recall import content_words


def recalled(history, query: str, **changes) -> list[int]:
    gate = ContextGatekeeper(10**6, settings=Settings(**changes))
    gate.add_turns(history)
    return [candidate["turn_id"] for candidate in gate.explain(query)["candidates"]]


@given(turns, queries, st.sampled_from([1, 3, 20]), st.data())
@settings(max_examples=150)
def test_candidates_and_all_parts_of_their_scores_equal_the_twin(history, query: str, limit: int, data) -> None:
    chosen = Settings(max_candidates=limit)
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation(history, chosen)
    gate.add_turns(history)
    for turn in data.draw(st.sets(st.integers(0, len(history) - 1), max_size=2)) if history else ():
        gate.forget(turn)
        twin.forget(turn)
    found = [(c["turn_id"], c["score"], (c["lex_user"], c["lex_assistant"]), c["exact"], c["recency"])
             for c in gate.explain(query)["candidates"]]  # fmt: skip
    assert found == [(c.turn, c.score, c.lex, c.exact, c.recency) for c in twin.candidates(query)]


@given(st.lists(st.tuples(cjk_texts, cjk_texts), max_size=5), cjk_texts)
@settings(max_examples=120)
def test_candidates_of_lexicon_words_run_together_equal_the_twin(history, query: str) -> None:
    gate, twin = ContextGatekeeper(10**6), reference.Conversation(history)
    gate.add_turns(history)
    found = [(c["turn_id"], c["score"]) for c in gate.explain(query)["candidates"]]
    assert found == [(c.turn, c.score) for c in twin.candidates(query)]


@given(texts | cjk_texts)
@settings(max_examples=150)
def test_content_words_equal_the_twin(text: str) -> None:
    words, windows = reference.Conversation().content_words(text)
    assert list(content_words(Query(text))) == [*words, *windows]


@pytest.mark.parametrize(("query", "expected"), [
    ("git 的 ttl 是什么", ("git", "ttl")),
    ("v1.2.3 1.2.3 1.2 2024", ("v1.2.3", "v1", "1.2.3")),
    ("惰性删除区别", ("惰性删除",)),
    ("惰性删除策略", ("惰性删除", "性删除策", "删除策略")),
    ("缓存", ()),
    ("“lazy free”", ("lazy", "free")),
    ("「向量库」怎么选", ()),
    ("R 和 C++", ("r", "c++")),
    ("which one of the", ("one",)),
])  # fmt: skip
def test_content_words_of_a_query(query: str, expected: tuple[str, ...]) -> None:
    assert content_words(Query(query)) == expected


FOREIGN = [("redis ttl", ""), ("redis lru", "")]


@pytest.mark.parametrize(("history", "query", "expected"), [
    # after a switch only blocks with a content word
    ([("git 区别 rebase", ""), ("digital 合并 问题", ""), *FOREIGN], "git 合并 分支", [0]),
    # a window of a CJK term, as a substring of a segment
    ([("过期键的惰性删除", ""), ("惰性求值与删除操作", ""), *FOREIGN], "惰性删除策略", [0]),
    # both 3-grams of a window, but the window nowhere
    ([("惰性删的性删除", ""), ("惰性删除", ""), *FOREIGN], "惰性删除", [1]),
    # nobody holds a content word: the head of a term
    ([("退货要多久", ""), ("期限到了", ""), *FOREIGN], "退货期限", [0]),
    # nobody holds either
    ([("期限到了", ""), *FOREIGN], "退货期限", []),
    # no content word in the query: no filter
    ([("退货要多久", ""), *FOREIGN], "退货", [0]),
    ([("向量库很多", ""), *FOREIGN], "「向量库」怎么选", [0]),
])  # fmt: skip
def test_after_a_switch_only_blocks_with_a_content_word_count(history, query: str, expected: list[int]) -> None:
    gate = ContextGatekeeper(10**6, settings=LETTER)
    gate.add_turns(history)
    explained = gate.explain(query)
    assert explained["gate"]["action"] == "switch"
    assert [candidate["turn_id"] for candidate in explained["candidates"]] == expected
    assert [c.turn for c in reference.Conversation(history, LETTER).candidates(query)] == expected


def test_without_a_switch_no_content_word_is_asked_for() -> None:
    assert recalled([("git 分支", ""), ("git 缓存", "")], "rebase 分支", topic_window=2) == [0]


def test_a_block_without_the_word_is_passed_over_for_the_next_best() -> None:
    history = [("惰性删除", ""), *[("惰性删的性删除", "惰性删的性删除")] * 4, *[("redis ttl", "")] * 10]
    assert recalled(history, "惰性删除", max_candidates=1) == [0]


def test_nothing_is_recalled_from_nothing() -> None:
    assert recalled([], "redis") == []
    assert recalled([("的", "redis")], "") == []


def test_a_query_that_says_nothing_recalls_what_the_last_turn_spoke_of() -> None:
    for query in ("", " \n ", "？！", "然后呢？", "为什么", "how?"):
        assert recalled([("redis", "")], query) == [0]


def test_listed_words_that_ask_nothing_recall_nothing() -> None:
    for query in ("ok the", "介绍", "好吧"):
        assert recalled([("redis 介绍 ok the", "好吧")], query) == []


def test_a_query_that_names_something_new_inherits_nothing() -> None:
    assert recalled([("redis", "lru"), ("redis ttl", "")], "kafka") == []
