"""The scanner and the term table against their plain twins."""

from __future__ import annotations

from array import array

import pytest
import reference_text
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cjk_texts, identifiers, texts

from gatekeeper import lexicon
from gatekeeper._core.vocabulary import Lexicon, Vocabulary
from gatekeeper.anchor import FROM_PHRASE, FROM_WORD, IS_NGRAM, LEXICON

CLASSES = {"o": {0}, "s": {1}, "q": {2}, "l": {3}, "u": {4}, "d": {5}, "_": {6}, "m": {7}, "c": {8, 9, 10}}


def found(text: str) -> list[tuple[str, int]]:
    vocabulary = Vocabulary(LEXICON, keeps_origins=True)
    vocabulary.add((text,))
    return [(vocabulary.text(i), start)
            for i, start in zip(vocabulary.token_ids(), vocabulary.token_starts(), strict=True)]


def test_every_character_folds_to_one_character_and_has_the_class_of_the_algorithm() -> None:
    everything = "".join(map(chr, [*range(0x24000), *range(0x24000, 0x110000, 101), 0x2FFFF, 0x3FFFF, 0x40000]))
    assert LEXICON.fold(everything) == reference_text.fold(everything)
    kernel = LEXICON.classes_of(everything)
    expected = [CLASSES[reference_text.class_of(c)] for c in everything]
    wrong = [hex(ord(c)) for c, k, allowed in zip(everything, kernel, expected, strict=True) if k not in allowed]
    assert not wrong


@given(texts)
@settings(max_examples=120)
def test_fold_keeps_every_offset(text: str) -> None:
    assert LEXICON.fold(text) == reference_text.fold(text)
    assert len(LEXICON.fold(text)) == len(text)


@given(texts)
@settings(max_examples=500)
def test_anchors_of_any_text_are_those_of_the_algorithm(text: str) -> None:
    assert found(text) == reference_text.anchors(text)


@given(identifiers)
@settings(max_examples=300)
def test_anchors_of_identifiers_versions_and_names_with_signs_are_those_of_the_algorithm(text: str) -> None:
    assert found(text) == reference_text.anchors(text)


@given(cjk_texts)
@settings(max_examples=300)
def test_ngrams_of_lexicon_entries_run_together_are_those_of_the_algorithm(text: str) -> None:
    assert found(text) == reference_text.anchors(text)


quotations = st.lists(
    st.sampled_from(["'", '"', "`", "a", "B", " ", "字", "\n", "“", "”", "＂", "’", "x" * 30]), max_size=16
).map("".join)


@given(quotations)
@settings(max_examples=300)
def test_quoted_phrases_open_and_close_as_in_the_algorithm(text: str) -> None:
    assert found(text) == reference_text.anchors(text)


@pytest.mark.parametrize(("text", "expected"), [
    ("Redis惰性删除", ["redis", "惰性", "惰性删", "性删", "性删除", "删除"]),
    ("token_budget", ["token_budget", "token", "budget"]),
    ("getUserName HTTPServer", ["getusername", "get", "user", "name", "httpserver", "http", "server"]),
    ("asyncio.gather", ["asyncio.gather", "asyncio", "gather"]),
    ("happens-before-x", ["happens-before-x", "happens"]),
    ("v1.2.3 3.11 v2", ["v1.2.3", "v1", "3.11", "v2"]),
    ("1.2.3-rc1", ["1.2.3-rc1", "1.2.3", "rc1"]),
    ("R C++ c# F# .NET x.net a I A", ["r", "c++", "c#", "f#", ".net", "x.net", "net"]),
    ("DON'T O'Brien R's", ["brien"]),
    ("不可用的缓存", ["不可", "不可用", "可用", "缓存"]),
    ("什么是緩存", ["缓存"]),
    ("the what of", []),
    ("“lazy\u3000 Free”", ["lazy free", "lazy", "free"]),
    ("say ＂lazy free＂", ["say", "lazy free", "lazy", "free"]),
    ("“…”", []),
    ("“" + "x" * 64 + "”", ["x" * 64]),
    ("“" + "x " * 33 + "”", []),
    ("한국어", ["한국", "한국어", "국어"]),
    ("हिन्दी", ["हिन्दी"]),
    ("ＲＥＤＩＳ", ["redis"]),
    ("a" * 255, ["a" * 255]),
    ("a" * 256, []),
])  # fmt: skip
def test_anchors_of_a_text(text: str, expected: list[str]) -> None:
    anchors = [anchor for anchor, _ in found(text)]
    assert list(dict.fromkeys(anchors)) == expected
    assert found(text) == reference_text.anchors(text)


@given(st.lists(texts, max_size=5))
@settings(max_examples=100)
def test_ids_are_dense_in_order_of_first_occurrence_and_the_same_text_by_text(parts: list[str]) -> None:
    at_once, one_by_one = Vocabulary(LEXICON), Vocabulary(LEXICON)
    at_once.add(tuple(parts))
    ids = list(at_once.token_ids())
    stream: list[int] = []
    for text in parts:
        one_by_one.add((text,))
        stream += one_by_one.token_ids()
    assert stream == ids
    assert list(dict.fromkeys(ids)) == list(range(len(at_once)))
    names = [at_once.text(i) for i in range(len(at_once))]
    assert names == list(dict.fromkeys(anchor for text in parts for anchor, _ in reference_text.anchors(text)))
    assert [at_once.id_of(name) for name in names] == list(range(len(names)))


@given(texts)
@settings(max_examples=120)
def test_origins_say_word_phrase_and_ngram(text: str) -> None:
    vocabulary = Vocabulary(LEXICON, keeps_origins=True)
    vocabulary.add((text,))
    tokens = reference_text.tokens(text)
    for i, origin in enumerate(vocabulary.origins()):
        anchor = vocabulary.text(i)
        flags = {FROM_PHRASE if is_phrase else FROM_WORD for found, _, is_phrase in tokens if found == anchor}
        assert origin == sum(flags) + (IS_NGRAM if reference_text.is_ngram(anchor) else 0)
        assert vocabulary.is_ngram(i) == reference_text.is_ngram(anchor)


def test_origins_without_keeping_them_tell_only_the_ngrams() -> None:
    vocabulary = Vocabulary(LEXICON)
    vocabulary.add(("redis 缓存",))
    assert list(vocabulary.origins()) == [0, IS_NGRAM]
    assert not vocabulary.token_starts()


@given(texts, texts)
@settings(max_examples=120)
def test_find_gives_the_id_here_of_every_term_there(here: str, there: str) -> None:
    known, asked = Vocabulary(LEXICON), Vocabulary(LEXICON)
    known.add((here,))
    asked.add((there,))
    assert list(known.find(asked)) == [known.id_of(asked.text(i)) for i in range(len(asked))]


def test_removed_terms_are_found_nowhere_and_their_ids_are_not_given_again() -> None:
    first, second = Vocabulary(LEXICON), Vocabulary(LEXICON)
    for vocabulary in (first, second):
        vocabulary.add(("alpha 缓存 averyverylongword",))
        for i in range(3):
            vocabulary.remove(i)
    assert list(first.find(second)) == [-1, -1, -1]
    assert [first.id_of(name) for name in ("alpha", "缓存", "averyverylongword")] == [-1, -1, -1]
    with pytest.raises(IndexError):
        first.text(0)
    first.remove(0)
    first.remove(99)
    first.add(("alpha",))
    assert list(first.token_ids()) == [3]


def test_truncate_gives_the_ids_behind_it_again() -> None:
    vocabulary = Vocabulary(LEXICON)
    vocabulary.add(("alpha beta averyverylongword 缓存",))
    vocabulary.truncate(1)
    assert (len(vocabulary), vocabulary.id_of("beta"), vocabulary.id_of("averyverylongword")) == (1, -1, -1)
    vocabulary.add(("缓存 beta alpha",))
    assert list(vocabulary.token_ids()) == [1, 2, 0]
    for n_terms in (-1, 4):
        with pytest.raises(ValueError, match="n_terms must be 0 to 3"):
            vocabulary.truncate(n_terms)


@pytest.mark.parametrize("text", ["", "absent", "缺席", "缺", "缺席缺席", "absent and long", "\ud800", "\x00"])
def test_a_text_that_is_no_term_has_no_id(text: str) -> None:
    vocabulary = Vocabulary(LEXICON)
    assert vocabulary.id_of(text) == -1
    vocabulary.add(("alpha 缓存 averyverylongword",))
    assert vocabulary.id_of(text) == -1


def test_ids_stay_right_while_the_table_splits_and_after_half_of_it_is_gone() -> None:
    names = [f"w{i}" for i in range(30_000)] + [f"longerthaneight{i}" for i in range(30_000)]
    vocabulary = Vocabulary(LEXICON)
    vocabulary.add((" ".join(names),))
    assert list(vocabulary.token_ids()) == list(range(60_000))
    assert [vocabulary.id_of(name) for name in names] == list(range(60_000))
    assert [vocabulary.text(i) for i in range(60_000)] == names
    for i in range(0, 60_000, 2):
        vocabulary.remove(i)
    assert [vocabulary.id_of(name) for name in names] == [i if i % 2 else -1 for i in range(60_000)]
    vocabulary.truncate(20_000)
    assert [vocabulary.id_of(name) for name in names] == [i if i % 2 and i < 20_000 else -1 for i in range(60_000)]
    vocabulary.add((" ".join(names[40_000:]),))
    assert list(vocabulary.token_ids()) == list(range(20_000, 40_000))


def test_words_over_eight_characters_with_one_beginning_are_told_apart() -> None:
    names = ["x" * n for n in range(2, 256)] + ["ж" * n for n in range(2, 256)]
    vocabulary = Vocabulary(LEXICON)
    vocabulary.add((" ".join(names),))
    assert [vocabulary.text(i) for i in vocabulary.token_ids()] == names


def test_a_text_that_is_read_without_the_lock_gives_the_same_anchors() -> None:
    text = "Redis惰性删除 token_budget v1.2.3 “lazy free” https://a.b/c. " * 60 + "\U0001f469 "
    assert found(text) == reference_text.anchors(text)


@pytest.mark.parametrize(("change", "message"), [
    ({"simplified": "x"}, "differ in length"),
    ({"breaking": ("长得太过分了",)}, "2 to 4 characters"),
    ({"protected": ("长",)}, "2 to 4 characters"),
    ({"protected": ("𠀀𠀁",)}, "2 to 4 characters"),
])  # fmt: skip
def test_a_lexicon_names_the_entry_that_does_not_fit(change: dict[str, object], message: str) -> None:
    lists = {"traditional": "", "simplified": "", "stop_words": (), "marks": (), "function_characters": "",
             "breaking": (), "protected": ()}
    with pytest.raises(ValueError, match=message):
        Lexicon(**{**lists, **change})


def test_an_own_lexicon_decides_what_breaks_and_what_is_protected() -> None:
    own = Lexicon(traditional="緩", simplified="缓", stop_words=("foo",), marks=lexicon.mark_ranges(),
                  function_characters="甲", breaking=("乙乙",), protected=("甲丙",))
    vocabulary = Vocabulary(own)
    vocabulary.add(("foo bar 子甲丑 子甲丙 子乙乙丑寅 緩",))
    assert [vocabulary.text(i) for i in range(len(vocabulary))] == [
        "bar", "子", "丑", "子甲", "子甲丙", "甲丙", "丑寅", "缓"]
    assert array("i", vocabulary.token_ids()).tolist() == [0, 1, 2, 3, 4, 5, 1, 6, 7]


def test_the_table_stays_right_while_turns_come_and_go_many_times() -> None:
    vocabulary = Vocabulary(LEXICON)
    vocabulary.add(("kept anchor",))
    for i in range(300):
        vocabulary.add((" ".join(f"passing{i}x{k} p{i}q{k}" for k in range(200)),))
        assert len(vocabulary) == 402
        vocabulary.truncate(2)
    assert [vocabulary.id_of("kept"), vocabulary.id_of("anchor"), vocabulary.id_of("passing7x7")] == [0, 1, -1]
