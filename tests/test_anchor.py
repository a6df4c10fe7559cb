"""Anchors of a text, and those of a query in a conversation, against the twin."""

from __future__ import annotations

import pytest
import reference
import reference_text
from hypothesis import given, settings
from strategies import cjk_texts, queries, texts, turns

from gatekeeper import ContextGatekeeper, extract_anchors
from gatekeeper.anchor import Query, collapse, fold
from gatekeeper.block import spelled_id, text_of_spelled_id


@given(texts)
@settings(max_examples=150)
def test_extract_anchors_gives_each_anchor_once_in_order_or_the_first_twenty_characters(text: str) -> None:
    expected = list(dict.fromkeys(anchor for anchor, _ in reference_text.anchors(text)))
    fallback = reference_text.fold(text.strip()[:20])
    assert list(extract_anchors(text)) == (expected or [fallback] * bool(fallback))
    assert set(extract_anchors(text).values()) <= {1.0}


@given(texts)
@settings(max_examples=120)
def test_fold_and_collapse_equal_the_twin(text: str) -> None:
    assert fold(text) == reference_text.fold(text)
    assert collapse(text) == reference_text.collapse(text)


@given(texts | cjk_texts)
@settings(max_examples=200)
def test_windows_and_heads_are_those_of_the_segments(text: str) -> None:
    query = Query(text)
    name = query.vocabulary.text
    segments = [segment for segment in reference_text.segments(text) if len(segment) >= 4]
    windows = [segment[i : i + 4] for segment in segments for i in range(len(segment) - 3)]
    assert [name(first) + name(last)[-1] for first, last in query.cjk_windows()] == windows
    assert [name(i) for i in query.head_bigrams()] == [segment[:2] for segment in segments]


@given(turns, queries)
@settings(max_examples=120)
def test_anchors_of_a_query_have_the_df_and_idf_of_the_twin(history, query: str) -> None:
    gate, twin = ContextGatekeeper(10**6), reference.Conversation(history)
    gate.add_turns(history)
    own = {anchor.text for anchor in twin.own_anchors(query)}
    found = [(a["text"], a["df"], a["idf"], a["searched"], a["origin"]) for a in gate.explain(query)["anchors"]]
    assert found == [
        (a.text, a.df, a.idf, a.is_searched, "stem" if a.form_of else "query" if a.text in own else "inherited")
        for a in twin.anchors(query)
    ]  # fmt: skip


@given(turns)
@settings(max_examples=100)
def test_idf_of_an_anchor_is_exact_for_the_conversation_as_it_stands(history) -> None:
    gate, twin = ContextGatekeeper(10**6), reference.Conversation(history)
    gate.add_turns(history)
    for text in ("redis", "REDIS", "缓存", "緩存", "lazy  Free", "absent", "", " "):
        assert gate.idf(text) == twin.term(reference_text.collapse(text)).idf
    assert extract_anchors("Redis 緩存", idf=gate.idf) == {text: gate.idf(text) for text in ("redis", "缓存")}


def test_a_phrase_matches_blocks_that_hold_it_unquoted_across_line_breaks() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("about the lazy\n  Free thing", ""), ("lazy evaluation is free", ""), ("lazy freedom", "")])
    phrase = gate.explain("“Lazy free”")["anchors"][0]
    assert (phrase["text"], phrase["df"], phrase["searched"]) == ("lazy free", 1, True)


def test_the_first_twenty_characters_of_a_query_without_anchors_are_searched_for() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("为什么？！ really", "yes"), ("other", "thing")])
    assert [turn["turn_id"] for turn in gate.select("  ？！")] == [0]
    assert next(anchor["text"] for anchor in gate.explain("…" * 30)["anchors"]) == "…" * 20


@given(texts)
@settings(max_examples=100)
def test_an_id_that_spells_its_text_gives_it_back(text: str) -> None:
    assert spelled_id(text) >= 1 << 32
    assert text_of_spelled_id(spelled_id(text)) == text


@pytest.mark.parametrize("text", [None, b"redis", 3])
def test_a_text_that_is_no_str_is_refused(text) -> None:
    with pytest.raises(TypeError, match="text must be a str"):
        extract_anchors(text)
