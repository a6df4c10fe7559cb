"""The term matrix against counts made anew from the twin's anchors."""

from __future__ import annotations

import itertools
from array import array

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_text import anchors, is_ngram, sentence_ends
from strategies import sides, turns

from gatekeeper._core.term_matrix import Formula, TermMatrix
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import LEXICON

WEIGHTS = {"weight_user": 1.5, "weight_assistant": 0.7, "weight_exact": 1.0, "weight_recency": 0.2,
           "recency_window": 5, "k1": 1.2, "b": 0.75}  # fmt: skip
N_AGES = 3


def built(history, *, one_by_one: bool = False) -> TermMatrix:
    matrix = TermMatrix(Vocabulary(LEXICON))
    add(matrix, history, one_by_one=one_by_one)
    return matrix


def add(matrix: TermMatrix, history, *, one_by_one: bool = False) -> list[float]:
    masses: list[float] = []
    for batch in [[turn] for turn in history] if one_by_one else [history]:
        matrix.vocabulary.add(tuple(text for turn in batch for text in turn))
        masses += matrix.append(n_ages=N_AGES, ngram_floor=1.5)
    return masses


def names(matrix: TermMatrix) -> list[str]:
    return [matrix.vocabulary.text(i) for i in range(len(matrix.vocabulary))]


def ids_of(matrix: TermMatrix, texts) -> array:
    return array("i", [matrix.vocabulary.id_of(text) for text in texts])


def counts(matrix: TermMatrix) -> list[dict[tuple[int, str], float]]:
    """For both sides: (turn, anchor) to tf, as the matrix stores it."""
    result = []
    for side in (0, 1):
        indptr, held_by, tf = matrix.csc(side)
        result.append({(held_by[i], matrix.vocabulary.text(term)): tf[i]
                       for term in range(len(indptr) - 1) for i in range(indptr[term], indptr[term + 1])})
    return result


def snapshot(matrix: TermMatrix):
    """Everything that a matrix answers, ids included."""
    ids = array("i", range(len(matrix.vocabulary)))
    rows = [(matrix.side_terms(turn, side), matrix.lengths(side)) for turn in range(matrix.n_turns) for side in (0, 1)]
    sizes = len(ids), matrix.n_turns, matrix.n_blocks, matrix.total_tokens
    return sizes, matrix.weigh(ids), matrix.csc(0), matrix.csc(1), rows


@given(turns)
@settings(max_examples=80)
def test_counts_and_lengths_are_those_of_the_texts(history) -> None:
    matrix = built(history)
    for side in (0, 1):
        expected: dict[tuple[int, str], float] = {}
        for turn, texts in enumerate(history):
            for anchor, _ in anchors(texts[side]):
                expected[turn, anchor] = expected.get((turn, anchor), 0.0) + 1.0
        assert counts(matrix)[side] == expected
        assert list(matrix.lengths(side)) == [len(anchors(texts[side])) for texts in history]
        for turn, texts in enumerate(history):
            assert tuple(matrix.sentence_ends(turn, side)) == sentence_ends(texts[side])
            distinct = dict.fromkeys(anchor for anchor, _ in anchors(texts[side]))
            assert [matrix.vocabulary.text(i) for i in matrix.side_terms(turn, side)] == list(distinct)
    assert matrix.total_tokens == tuple(sum(matrix.lengths(side)) for side in (0, 1))


@given(turns)
@settings(max_examples=80)
def test_masses_by_age_are_summed_before_the_turn_joins_and_the_same_in_bulk(history) -> None:
    twin = reference.Conversation()
    expected: list[float] = []
    for user, assistant in history:
        masses = [0.0] * (N_AGES + 1)
        found = [twin.term(text) for text in dict.fromkeys(anchor for anchor, _ in anchors(user))]
        for anchor in twin.above_floor(found):
            age = len(twin.turns) - anchor.last_turn if anchor.df else 0
            masses[age if age <= N_AGES else 0] += anchor.idf
        expected += masses
        twin.add_turn(user, assistant)
    bulk, single = TermMatrix(Vocabulary(LEXICON)), TermMatrix(Vocabulary(LEXICON))
    assert add(bulk, history) == expected
    assert add(single, history, one_by_one=True) == expected
    assert snapshot(bulk) == snapshot(single)


@given(turns, st.data())
@settings(max_examples=80)
def test_weigh_gives_df_idf_and_last_turn_also_after_forgetting(history, data) -> None:
    matrix, twin = built(history), reference.Conversation(history)
    for turn in data.draw(st.sets(st.integers(0, len(history) - 1))) if history else ():
        matrix.forget(turn)
        twin.forget(turn)
    texts = [*dict.fromkeys(anchor for turn in history for text in turn for anchor, _ in anchors(text)), "absent"]
    expected = [twin.term(text) for text in texts]
    df, idf, last = matrix.weigh(ids_of(matrix, texts))
    assert list(df) == [anchor.df for anchor in expected]
    assert list(idf) == [anchor.idf for anchor in expected]
    assert list(last) == [anchor.last_turn for anchor in expected]
    assert all(matrix.idf(n) == reference.idf(n, twin.n_blocks) for n in range(5))


@given(turns, sides, st.data())
@settings(max_examples=120)
def test_the_best_blocks_have_the_scores_of_the_twin_to_the_bit(history, query, data) -> None:
    matrix = built(history)
    chosen = data.draw(st.fixed_dictionaries({
        "k1": st.sampled_from([0.0, 0.5, 1.2]), "b": st.sampled_from([0.0, 0.75, 1.0]),
        "recency_window": st.sampled_from([1, 3, 100])}))  # fmt: skip
    twin = reference.Conversation(history, reference.Settings(**chosen))
    for turn in data.draw(st.sets(st.integers(0, len(history) - 1), max_size=2)) if history else ():
        matrix.forget(turn)
        twin.forget(turn)
    found = [twin.term(text) for text in dict.fromkeys(anchor for anchor, _ in anchors(query))]
    extra = [[(turn, 1 + turn % 2, turn % 3) for turn in range(len(history)) if twin.turns[turn] and turn % 2]]
    searched = reference.Anchor("searched", {turn: (u, a) for turn, u, a in extra[0]}, twin.n_blocks, True)
    ids = ids_of(matrix, [anchor.text for anchor in found])
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(found)))
        found.insert(at, searched)
        ids.insert(at, -2)
    if not found:
        return
    weights = array("d", [anchor.idf for anchor in found])
    allowed = data.draw(st.none() | st.sets(st.integers(0, 10)).map(sorted))
    k = data.draw(st.integers(0, 12))
    expected = [c for c in twin.scored(found) if allowed is None or c.turn in allowed][:k]
    best = matrix.top(ids, weights, Formula(**{**WEIGHTS, **chosen}), k=k, extra_postings=extra,
                      allowed=None if allowed is None else array("i", allowed))  # fmt: skip
    assert list(zip(*best, strict=True)) == [(c.turn, c.score, *c.lex, int(c.exact)) for c in expected]
    for candidate in expected:
        tf_user, tf_assistant, *parts = matrix.parts(
            candidate.turn, ids, weights, k1=chosen["k1"], b=chosen["b"], extra_postings=extra)  # fmt: skip
        expected_tf = [anchor.tf.get(candidate.turn, (0, 0)) for anchor in found]
        assert list(zip(tf_user, tf_assistant, strict=True)) == expected_tf
        assert tuple(reference.total(part) / reference.total(weights) for part in parts) == candidate.lex


@pytest.mark.parametrize("n_turns", [1, 1023, 1024, 1025, 2600])
def test_scores_of_long_conversations_ties_to_the_newer_turn(n_turns: int) -> None:
    history = [("alpha" if i % 2 else "beta alpha", "gamma " * (i % 3)) for i in range(n_turns)]
    matrix = built(history)
    ids = ids_of(matrix, ["alpha", "gamma"])
    weights = matrix.weigh(ids)[1]
    formula = Formula(**{**WEIGHTS, "weight_recency": 0.0})
    found, scores, *_ = matrix.top(ids, None, formula, k=10**6)
    assert sorted(found) == list(range(n_turns))
    order = sorted(zip(scores, found, strict=True), reverse=True)
    assert list(zip(scores, found, strict=True)) == order
    for k in (1, 20, n_turns - 1):
        assert list(matrix.top(ids, weights, formula, k=k)[0]) == list(found)[:k]
    tail = array("i", range(n_turns - n_turns // 3, n_turns))
    assert list(matrix.top(ids, weights, formula, k=10**6, allowed=tail)[0]) == [t for t in found if t in set(tail)]


def test_a_count_stops_at_65535() -> None:
    matrix = built([("alpha " * 70_000, "alpha " * 65_535)])
    assert counts(matrix) == [{(0, "alpha"): 65_535.0}, {(0, "alpha"): 65_535.0}]
    assert list(matrix.lengths(0)) == [70_000]


some_terms = st.lists(st.sampled_from(["redis", "缓存", "惰性", "two", "words", "absent", "git"]), max_size=3)


@given(turns, st.lists(some_terms, max_size=3))
@settings(max_examples=80)
def test_turns_with_hold_every_term_of_at_least_one_group(history, groups) -> None:
    matrix = built(history)
    held = [{anchor for text in turn for anchor, _ in anchors(text)} for turn in history]
    ends = array("i", itertools.accumulate(map(len, groups)))
    terms = ids_of(matrix, [text for group in groups for text in group])
    expected = [i for i, there in enumerate(held) if any(group and there.issuperset(group) for group in groups)]
    assert list(matrix.turns_with(terms, ends)) == expected
    flat = {text for group in groups for text in group}
    holders = [i for i in range(len(history)) if matrix.holds_any(i, terms)]
    assert holders == [i for i, there in enumerate(held) if there & flat]


@pytest.mark.parametrize("n_terms", [63, 64, 65, 129, 200])
def test_best_sentences_with_more_query_terms_than_a_machine_word_has_bits(n_terms: int) -> None:
    texts = [f"term{i}" for i in range(n_terms)]
    last = f"x y. term{n_terms - 1} term0!"
    matrix = built([(". ".join(texts), " ".join(reversed(texts))), ("nothing", last)])
    weights = array("d", [1.0 / (i + 1) for i in range(n_terms)])
    span_counts, starts, ends, cover_counts, covers = matrix.best_sentences(
        array("i", [1, 0]), ids_of(matrix, texts), weights, max_sentences=n_terms)
    assert list(span_counts) == [0, 2, n_terms, 1]
    assert list(zip(starts, ends, strict=True))[:2] == [(0, 5), (5, len(last))]
    assert list(cover_counts) == [2, n_terms]
    assert list(covers) == [0, n_terms - 1, *range(n_terms)]


@given(turns, turns, st.booleans(), st.data())
@settings(max_examples=80)
def test_truncate_then_append_again_equals_a_fresh_build_ids_included(history, later, one_by_one, data) -> None:
    matrix = built(history, one_by_one=one_by_one)
    kept = data.draw(st.integers(0, len(history)))
    matrix.truncate(kept)
    assert snapshot(matrix) == snapshot(built(history[:kept]))
    masses = add(matrix, later)
    fresh = built(history[:kept])
    assert masses == add(fresh, later)
    assert snapshot(matrix) == snapshot(fresh)
    assert names(matrix) == names(fresh)


@given(turns.filter(bool), turns, st.data())
@settings(max_examples=80)
def test_forget_takes_out_text_and_counts_and_leaves_the_place(history, later, data) -> None:
    matrix, twin = built(history), reference.Conversation(history)
    for turn in data.draw(st.lists(st.integers(0, len(history) - 1), min_size=1, max_size=4)):
        matrix.forget(turn)
        twin.forget(turn)
        assert not matrix.side_terms(turn, 0)
        with pytest.raises(IndexError):
            matrix.sentence_ends(turn, 0)
    add(matrix, later)
    for turn in later:
        twin.add_turn(*turn)
    assert (matrix.n_turns, matrix.n_blocks) == (len(twin.turns), twin.n_blocks)
    alive = {anchor for pair in twin.sides for side in pair for anchor in side}
    gone = {anchor for turn in history for text in turn for anchor, _ in anchors(text)} - alive
    assert all(matrix.vocabulary.id_of(text) == -1 for text in gone)
    for side in (0, 1):
        expected = {(turn, text): float(pair[side].count(text))
                    for turn, pair in enumerate(twin.sides) for text in pair[side]}  # fmt: skip
        assert counts(matrix)[side] == expected
        assert list(matrix.lengths(side)) == [len(pair[side]) for pair in twin.sides]


def test_postings_survive_growing_and_shrinking_through_every_size() -> None:
    n_turns = 5000
    matrix = built([("alpha", "beta" if i % 3 else "") for i in range(n_turns)])
    alive = list(range(n_turns))
    ids = ids_of(matrix, ["alpha", "beta"])
    for gone in [*range(0, n_turns, 2), *range(1, n_turns - 8, 4), *range(3, n_turns - 8, 4)]:
        matrix.forget(gone)
    alive = list(range(n_turns - 8, n_turns))[1::2]
    expected = [turn for turn in alive if turn % 3]
    assert list(matrix.weigh(ids)[0]) == [len(alive), len(expected)]
    assert list(matrix.turns_with(ids, array("i", [1]))) == alive
    assert list(matrix.turns_with(ids, array("i", [2]))) == expected
    add(matrix, [("alpha beta", "")] * 3)
    assert list(matrix.turns_with(ids, array("i", [2]))) == [*expected, n_turns, n_turns + 1, n_turns + 2]


def test_what_does_not_exist_is_named_in_the_error() -> None:
    matrix = built([("alpha", "beta")])
    one, weight = array("i", [0]), array("d", [1.0])
    for broken in (lambda: matrix.forget(1), lambda: matrix.forget(-1),
                   lambda: matrix.truncate(2), lambda: matrix.truncate(-1),
                   lambda: matrix.sentence_ends(1, 0), lambda: matrix.parts(1, one, weight, k1=1.2, b=0.75),
                   lambda: matrix.best_sentences(array("i", [1]), one, weight, max_sentences=1)):  # fmt: skip
        with pytest.raises(IndexError):
            broken()
    with pytest.raises(ValueError, match="differ in length"):
        matrix.top(one, array("d"), Formula(**WEIGHTS), k=1)
    with pytest.raises(ValueError, match="group_ends must ascend"):
        matrix.turns_with(one, array("i", [2]))
    matrix.vocabulary.add(("only one side",))
    with pytest.raises(ValueError, match="even number"):
        matrix.append(n_ages=1, ngram_floor=1.5)


def test_ngrams_of_the_floor_are_left_out_of_the_masses_and_words_are_not() -> None:
    matrix = TermMatrix(Vocabulary(LEXICON))
    add(matrix, [("缓存 redis", "")] * 30)
    masses = add(matrix, [("缓存 redis", "")])
    assert is_ngram("缓存")
    assert masses == [0.0, reference.idf(30, 30), 0.0, 0.0]


def test_extra_postings_must_be_of_existing_turns_in_order() -> None:
    matrix = TermMatrix(Vocabulary(LEXICON))
    add(matrix, [("redis", ""), ("git", "")])
    searched, weight = array("i", [-2]), array("d", [1.0])
    for postings in ([(2, 1, 0)], [(-1, 1, 0)], [(1, 1, 0), (0, 1, 0)], [(0, 1, 0), (0, 1, 0)]):
        with pytest.raises(ValueError, match="existing turns, ascending"):
            matrix.top(searched, weight, Formula(**WEIGHTS), k=1, extra_postings=[postings])
    with pytest.raises(ValueError, match="extra postings that are not there"):
        matrix.top(array("i", [-3]), weight, Formula(**WEIGHTS), k=1, extra_postings=[[(0, 1, 0)]])
    for call in (lambda: matrix.parts(0, searched, array("d"), k1=1.2, b=0.75, extra_postings=[[]]),
                 lambda: matrix.best_sentences(array("i", [0]), searched, array("d"), max_sentences=1)):  # fmt: skip
        with pytest.raises(ValueError, match="differ in length"):
            call()


def test_sides_ages_and_groups_out_of_range_are_refused() -> None:
    matrix = TermMatrix(Vocabulary(LEXICON))
    add(matrix, [("redis", "git")])
    for call in (lambda: matrix.side_terms(0, 2), lambda: matrix.sentence_ends(0, -1), lambda: matrix.csc(9),
                 lambda: matrix.lengths(2)):  # fmt: skip
        with pytest.raises(ValueError, match="side must be 0"):
            call()
    for ends in ([0, 5, 1], [-1, 1], [1, 0]):
        with pytest.raises(ValueError, match="group_ends must ascend"):
            matrix.turns_with(array("i", [0]), array("i", ends))
    matrix.vocabulary.add(("a", "b"))
    with pytest.raises(ValueError, match="n_ages"):
        matrix.append(n_ages=-5, ngram_floor=1.5)


def test_held_names_a_word_once_by_its_first_form() -> None:
    matrix = built([("rebases git", "rebase"), ("cache", "git git"), ("nothing", "")])
    ids = array("i", [*ids_of(matrix, ["absent", "rebase", "rebases", "git"]), -2])
    groups = array("i", [0, 0, 0, 3, 4])
    asked = array("i", [1, 0, 2])
    extra = [[(0, 1, 0), (2, 0, 1)]]
    counts_of, held = matrix.held(asked, ids, extra_postings=extra, groups=groups)
    assert (list(counts_of), list(held)) == ([1, 3, 1], [3, 0, 3, 4, 4])
    counts_of, held = matrix.held(asked, ids, extra_postings=extra)
    assert (list(counts_of), list(held)) == ([1, 4, 1], [3, 1, 2, 3, 4, 4])
    assert [list(part) for part in matrix.held(array("i"), ids, extra_postings=extra)] == [[], []]


def test_coverage_is_the_better_side_of_each_word_and_at_most_its_idf() -> None:
    matrix = built([("rebase", "git"), ("rebases rebases rebase rebases", "one two three four"), ("nothing", "")])
    ids, weights = ids_of(matrix, ["rebase", "rebases", "git"]), array("d", [2.0, 2.0, 5.0])
    groups = array("i", [0, 0, 2])
    whole = matrix.coverage(array("i", [0, 1, 2]), ids, weights, k1=1.2, b=0.75, length=1e9, groups=groups)
    assert list(whole) == [7.0, 2.0, 0.0]
    short = matrix.coverage(array("i", [1]), ids, weights, k1=1.2, b=0.75, length=1.0, groups=groups)
    assert short[0] == pytest.approx(2.0 * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 4)))
    assert list(matrix.coverage(array("i", [0]), ids, weights, k1=0.0, b=1.0, length=1e-9, groups=groups)) == [7.0]


def test_the_context_of_turns_without_any_mass_is_their_recency() -> None:
    matrix = built([("alpha", ""), ("beta", "")])
    ids, nothing = ids_of(matrix, ["alpha"]), array("d", [0.0])
    found, scores, user, assistant, neighbours, best = matrix.top_in_context(
        ids, nothing, Formula(**WEIGHTS), k=9, weight_neighbours=0.4, neighbour_window=1000, recency_share=1.0)
    assert (list(found), best) == ([1, 0], 1.0)
    assert list(scores) == pytest.approx([0.2 * 0.8, 0.2 * 0.6])
    assert [*user, *assistant, *neighbours] == [0.0] * 6


def test_what_a_turn_is_about_holds_and_stands_beside_names_what_is_wrong() -> None:
    matrix = built([("alpha", "beta"), ("alpha", "")])
    matrix.forget(1)
    one, weight, asked = array("i", [0]), array("d", [1.0]), array("i", [0])
    context = {"k": 1, "weight_neighbours": 0.4, "neighbour_window": 2, "recency_share": 1.0}
    of_coverage = {"k1": 1.2, "b": 0.75, "length": 50.0}
    for turn in (-1, 1, 2):
        for call in (lambda t=turn: matrix.held(array("i", [0, t]), one),
                     lambda t=turn: matrix.coverage(array("i", [0, t]), one, weight, **of_coverage)):  # fmt: skip
            with pytest.raises(IndexError, match="no turn"):
                call()
    for call in (lambda: matrix.coverage(asked, one, array("d"), **of_coverage),
                 lambda: matrix.coverage(asked, one, weight, **of_coverage, groups=array("i")),
                 lambda: matrix.held(asked, one, groups=array("i", [0, 0])),
                 lambda: matrix.top(one, weight, Formula(**WEIGHTS), k=1, groups=array("i")),
                 lambda: matrix.top_in_context(one, weight, Formula(**WEIGHTS), **context, groups=array("i")),
                 lambda: matrix.top_in_context(one, array("d"), Formula(**WEIGHTS), **context)):  # fmt: skip
        with pytest.raises(ValueError, match="differ in length"):
            call()
    with pytest.raises(ValueError, match="neighbour_window must be at least 0, got -1"):
        matrix.top_in_context(one, weight, Formula(**WEIGHTS), **{**context, "neighbour_window": -1})
    with pytest.raises(ValueError, match="extra postings that are not there"):
        matrix.held(asked, array("i", [-2]))
    with pytest.raises(ValueError, match="existing turns, ascending"):
        matrix.coverage(asked, array("i", [-2]), weight, **of_coverage, extra_postings=[[(2, 1, 0)]])
    for call in (lambda: matrix.held(None, one), lambda: matrix.coverage(asked, None, weight, **of_coverage),
                 lambda: matrix.top_in_context(one, None, Formula(**WEIGHTS), **context)):  # fmt: skip
        with pytest.raises(TypeError, match="is expected, got None"):
            call()
