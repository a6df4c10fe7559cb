"""Recall: scores, the filter after a switch, phrases unquoted."""

from __future__ import annotations

import pytest
import reference
from conversations import LETTER
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_text import anchors
from strategies import cjk_texts, queries, texts, turns

from gatekeeper import ArgumentValueError, ContextGatekeeper, Settings
from gatekeeper.anchor import Query
from gatekeeper.report import Explanation
from gatekeeper.sparse import content_words


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


@given(turns, queries, st.floats(1.0, 500.0))
@settings(max_examples=150)
def test_coverage_equals_the_twin(history, query: str, length: float) -> None:
    chosen = Settings(coverage_length=length)
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation(history, chosen)
    gate.add_turns(history)
    found = {c["turn_id"]: c["coverage"] for c in gate.explain(query)["candidates"]}
    anchors_of_query = twin.anchors(query)
    assert found == {turn: twin.coverage(turn, anchors_of_query) for turn in found}


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


@pytest.mark.parametrize(("text", "df"), [
    ("about lazy free memory", 1), ("lazy\n\tFree", 1), ("“LAZY FREE”", 1),
    ("lazy, free", 0), ("lazyfree", 0), ("free lazy", 0),
])  # fmt: skip
def test_a_quoted_phrase_matches_unquoted(text: str, df: int) -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turn("x y z", text)
    phrase = next(anchor for anchor in gate.explain('"lazy free"')["anchors"] if anchor["text"] == "lazy free")
    assert phrase["df"] == df


def test_a_phrase_counts_where_it_is_made_of_whole_words_only() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("concat dogma", ""), ("cat dog", ""), ("concat dogma. cat, dog.", "")])
    decision = gate.explain('"cat dog"')
    assert decision["anchors"][0]["df"] == 2


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


LONG = [("redis 惰性删除", "lazy deletion"), *[(f"词{i} other{i} words{i}", f"nothing{i}") for i in range(30)]]


def test_a_block_that_holds_too_little_of_the_query_is_out() -> None:
    query = "redis kafka zookeeper pulsar rabbit"
    gate = ContextGatekeeper(10**6)
    gate.add_turns(LONG)
    explained = gate.explain(query)
    assert gate.select(query) == []
    assert explained["turns"][0]["decision"] == "holds too little"
    gate = ContextGatekeeper(10**6, settings=Settings(min_coverage=0.0))
    gate.add_turns(LONG)
    assert [block["turn_id"] for block in gate.select(query)] == [0]


def test_a_short_conversation_asks_for_less() -> None:
    assert ids([LONG[0], *LONG[-2:]], "redis kafka zookeeper pulsar") == [0]


PETS = [("aa bb", ""), ("the vet of rex", ""), ("cc dd", ""), *[(f"ee{i} ff{i}", "") for i in range(19)]]


def in_context(query: str) -> Explanation:
    gate = ContextGatekeeper(10**6, settings=Settings.thorough())
    gate.add_turns(PETS)
    return gate.explain(query)


def test_turns_beside_a_turn_that_answers_count_in_thorough() -> None:
    explained = in_context("kafka vets?")
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
    found = {c["turn_id"]: c["recency"] for c in in_context("kafka vets")["candidates"]}
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


@given(turns.filter(bool))
@settings(max_examples=60)
def test_the_scipy_matrices_hold_the_counts(history) -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns(history)
    for side, name in enumerate(("user", "assistant")):
        dense = gate.to_scipy(name).toarray()
        assert (dense == gate.to_scipy(name, "csc").toarray()).all()
        for turn, row in enumerate(dense):
            found = [anchor for anchor, _ in anchors(history[turn][side])]
            held = {gate.anchor_text(i): n for i, n in enumerate(row) if n}
            assert held == {text: found.count(text) for text in found}


def test_another_side_or_layout_is_refused() -> None:
    for arguments in (("system", "csr"), ("user", "coo")):
        with pytest.raises(ArgumentValueError, match="side must be"):
            ContextGatekeeper(10).to_scipy(*arguments)


def ids(turns: list[tuple[str, str]], query: str) -> list[int]:
    gate = ContextGatekeeper(4000, settings=Settings(n_covers=1))
    gate.add_turns(turns)
    return [block["turn_id"] for block in gate.select(query)]


def test_a_word_that_nearly_every_turn_holds_still_finds_its_turns() -> None:
    turns = [("订单号一", "a"), ("订单号二", "b"), ("订单号三", "c"), ("天气", "晴")]
    assert ids(turns, "订单号") == [2]
    assert ids([("缓存", ""), ("缓存", "")], "缓存") == [1]
    assert 3 not in ids([("缓存穿透", ""), ("缓存雪崩", ""), ("缓存击穿", ""), ("天气预报", "")], "“缓存”")


def test_a_quoted_title_is_found_where_its_words_are_cut_otherwise() -> None:
    assert ids([("我想买活着这本书", "好"), ("天气", "晴"), ("午饭", "面")], "《活着》多少钱") == [0]


def test_names_keep_their_signs_before_a_number() -> None:
    turns = [("这个库支持 C++20 吗", "好"), ("天气", "晴"), ("模块用 C 写", "好")]
    assert ids(turns, "C++") == [0]
    assert ids(turns, "C 写哪个") == [2]
