"""Sparse scores and coverage: phrases unquoted, matrices for scipy."""

from __future__ import annotations

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_text import anchors
from strategies import queries, turns

from gatekeeper import ArgumentValueError, ContextGatekeeper, Settings


@given(turns, queries, st.floats(1.0, 500.0))
@settings(max_examples=150)
def test_coverage_equals_the_twin(history, query: str, length: float) -> None:
    chosen = Settings(coverage_length=length)
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation(history, chosen)
    gate.add_turns(history)
    found = {c["turn_id"]: c["coverage"] for c in gate.explain(query)["candidates"]}
    anchors_of_query = twin.anchors(query)
    assert found == {turn: twin.coverage(turn, anchors_of_query) for turn in found}


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
