"""Sentence bounds against their plain twin."""

from __future__ import annotations

import pytest
import reference_text
from hypothesis import given, settings
from strategies import layouts, texts

from gatekeeper._core.vocabulary import sentence_ends
from gatekeeper.pruning import split_sentences


@given(layouts)
@settings(max_examples=600)
def test_bounds_of_layouts_are_those_of_the_algorithm(text: str) -> None:
    assert tuple(sentence_ends(text)) == reference_text.sentence_ends(text)


@given(texts)
@settings(max_examples=300)
def test_bounds_of_any_text_are_those_of_the_algorithm(text: str) -> None:
    assert tuple(sentence_ends(text)) == reference_text.sentence_ends(text)


@given(layouts)
@settings(max_examples=200)
def test_bounds_partition_the_text_and_only_a_blank_text_has_a_blank_sentence(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences)
    assert not text.strip(" \t\r\n") or all(sentence.strip(" \t\r\n") for sentence in sentences)


@given(texts)
@settings(max_examples=100)
def test_the_same_bounds_for_texts_of_one_two_and_four_bytes_a_character(text: str) -> None:
    ascii_only = text.encode("ascii", "ignore").decode()
    expected = list(sentence_ends(ascii_only))
    for wide in ("字", "\U0001f469"):
        longer = list(sentence_ends(ascii_only + wide))
        assert [end for end in longer if end < len(ascii_only)] == [end for end in expected if end < len(ascii_only)]


@pytest.mark.parametrize("sentences", [
    [],
    ["  \n "],
    ["One. ", "Two! ", "Three?"],
    ["一。", "二！？", "三；", "四"],
    ["He said “go!” ", "Then left."],
    ["Version 3.11 is out. ", "Use v1.2.3."],
    ["See https://a.b/c?d=1!e. ", "Then go."],
    ["Run `a. b! c` now. ", "Ok."],
    ["An `unclosed span. ", "Next."],
    ["1. first\n", "2. second\n"],
    ["Line\r\n\r\n", "    indented. ", "More\n"],
    ["Before\n", "```py\na. b!\n\nc\n```\n\n", "After. ", "End"],
    ["~~~ text ```\nx!\n```\n~~~\n", "y"],
    ["```\nnever closed. still! in it"],
    ["```a``` inline. ", "x"],
    ["\n\n  Head. ", "Tail.  \n \n"],
])  # fmt: skip
def test_sentences_of_a_text(sentences: list[str]) -> None:
    text = "".join(sentences)
    assert split_sentences(text) == sentences
    assert reference_text.sentences(text) == sentences
