"""BM25 over CSR and CSC, and the numbers behind it."""

from __future__ import annotations

import math
from array import array
from decimal import Decimal, localcontext

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_text import anchors
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from strategies import sides, turns

from gatekeeper import ArgumentValueError, ContextGatekeeper
from gatekeeper._core import bm25
from gatekeeper.sparse import score_matrix

positive = st.floats(min_value=1e-300, max_value=1e300)


@given(positive)
@settings(max_examples=200)
def test_log_is_within_two_ulp_and_equal_to_the_twin(x: float) -> None:
    assert bm25.log_of(x) == reference.natural_log(x)
    assert abs(bm25.log_of(x) - math.log(x)) <= 2 * math.ulp(math.log(x))


@given(st.floats(min_value=1.0, max_value=1e15) | st.integers(1, 10**12))
@settings(max_examples=200)
def test_cost_power_is_within_two_ulp_and_equal_to_the_twin(cost: float) -> None:
    assert bm25.cost_power(cost) == reference.cost_power(float(cost))
    with localcontext() as context:  # the float 0.8 is no 4/5: math.pow is off by more than 2 ulp here
        context.prec = 40
        exact = Decimal(cost) ** Decimal("0.8")
        assert abs(Decimal(bm25.cost_power(cost)) - exact) <= 2 * Decimal(math.ulp(float(exact)))


@given(st.lists(st.integers(0, 10**9), max_size=8), st.integers(0, 10**9))
@settings(max_examples=100)
def test_idf_equals_the_twin(df: list[int], n_blocks: int) -> None:
    assert list(bm25.idf_of(df, n_blocks)) == [reference.idf(count, n_blocks) for count in df]


@pytest.mark.parametrize("x", [0.0, -1.0, math.nan])
def test_numbers_without_a_logarithm_or_a_power_are_refused(x: float) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        bm25.log_of(x)
    with pytest.raises(ValueError, match="at least 1"):
        bm25.cost_power(x)


matrices = st.tuples(st.integers(1, 6), st.integers(1, 6), st.booleans()).flatmap(lambda shape: st.tuples(
    st.lists(st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=shape[1], max_size=shape[1]),
             min_size=shape[0], max_size=shape[0]),
    st.permutations(range(shape[1])).map(lambda order: order[: 1 + shape[0] % shape[1]]),
))  # fmt: skip


@given(matrices, st.sampled_from([0.0, 1.2]), st.sampled_from([0.0, 0.75]))
@settings(max_examples=100)
def test_csr_and_csc_of_both_index_types_score_as_the_twin_to_the_bit(made, k1: float, b: float) -> None:
    rows, terms = made
    dense = np.array(rows, float)
    n_rows = len(rows)
    weights = [reference.idf(int((dense[:, t] > 0).sum()), n_rows) for t in terms]
    average = float(dense.sum()) / n_rows
    expected = [
        reference.lex_sum([(w, row[t]) for w, t in zip(weights, terms, strict=True)], float(sum(row)), average, k1, b)
        / reference.total(weights)
        for row in dense.tolist()
    ]  # fmt: skip
    for layout in (csr_array, csc_array, csr_matrix):
        for index in (np.int32, np.int64):
            matrix = layout(dense)
            matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
            assert score_matrix(matrix, terms, k1=k1, b=b, average_length=average).tolist() == expected


@given(turns.filter(bool), sides)
@settings(max_examples=60)
def test_the_conversations_own_lex_is_that_of_its_scipy_matrices_to_the_bit(history, query: str) -> None:
    gate = ContextGatekeeper(10**6)
    gate.add_turns(history)
    vocabulary, matrix = gate._corpus.vocabulary, gate._corpus.matrix
    texts = dict.fromkeys(anchor for anchor, _ in anchors(query))
    ids = array("i", [i for i in map(vocabulary.id_of, texts) if i >= 0])
    weights = matrix.weigh(ids)[1]
    if not ids:
        return
    mass = reference.total(weights)
    found, _, *lex, _ = matrix.top(
        ids, weights, gate._corpus.formula, k=len(history))
    for side, name in enumerate(("user", "assistant")):
        for layout in ("csr", "csc"):
            sparse = gate.to_scipy(name, layout)
            assert (sparse.format, sparse.shape) == (layout, (len(history), len(vocabulary)))
            scores = score_matrix(
                sparse, ids, idf=weights, row_lengths=matrix.lengths(side), idf_mass=mass,
                average_length=matrix.total_tokens[side] / len(history))  # fmt: skip
            assert [scores[turn] for turn in found] == list(lex[side])
            assert not any(scores[turn] for turn in set(range(len(history))) - set(found))


def test_duplicates_are_summed_and_the_matrix_is_left_as_it_was() -> None:
    sparse = csr_array((np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert score_matrix(sparse, [0]).tolist() == score_matrix(csr_array([[2.0, 0.0]]), [0]).tolist()
    assert sparse.nnz == 2


def test_entries_of_zero_or_less_count_as_absent() -> None:
    expected = score_matrix(csr_array([[1.0, 0.0], [2.0, 1.0]]), [0, 1], row_lengths=[1, 3], average_length=2.0)
    sparse = csr_array((np.array([1.0, -4.0, 2.0, 1.0]), np.array([0, 1, 0, 1]), np.array([0, 2, 4])), shape=(2, 2))
    for same in (sparse, sparse.tocsc()):
        assert score_matrix(same, [0, 1], row_lengths=[1, 3], average_length=2.0).tolist() == expected.tolist()


def test_no_terms_and_no_rows_score_nothing() -> None:
    assert score_matrix(csr_array((3, 2)), []).tolist() == [0.0, 0.0, 0.0]
    assert score_matrix(csr_array((0, 2)), [1]).tolist() == []


@pytest.mark.parametrize(("indptr", "indices", "message"), [
    ([], [], "must begin with 0"),
    ([1, 1], [0], "must begin with 0"),
    ([0, 2], [0], "end within indices"),
    ([0, 2, 1, 2], [0, 1], "indptr falls at 2: 2 then 1"),
    ([0, 2], [0, 3], "index 3 at 1 is not within 0 to 2"),
    ([0, 1], [-1], "index -1 at 0"),
])  # fmt: skip
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_broken_index_is_named(index, indptr, indices, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bm25.check_indices(np.array(indptr, index), np.array(indices, index), 3)


def test_a_sound_index_passes() -> None:
    bm25.check_indices(np.array([0, 0, 2], np.int64), np.array([2, 0], np.int64), 3)
    bm25.check_indices(np.array([0], np.int32), np.array([], np.int32), 0)


@pytest.mark.parametrize(("matrix", "terms", "change"), [
    ([[1.0]], [0], {}),
    (coo_array([[1.0]]), [0], {}),
    (csr_array([[1.0]]), [1], {}),
    (csr_array([[1.0]]), [-1], {}),
    (csr_array([[1.0, 1.0]]), [0, 0], {}),
    (csr_array([[1.0]]), [[0]], {}),
    (csr_array([[1.0]]), [0], {"idf": [1.0, 2.0]}),
    (csr_array([[1.0]]), [0], {"row_lengths": []}),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(matrix, terms, change) -> None:
    with pytest.raises(ArgumentValueError):
        score_matrix(matrix, terms, **change)


def test_a_matrix_whose_index_points_outside_is_refused() -> None:
    for layout in (csr_array, csc_array):
        sparse = layout(np.ones((2, 2)))
        sparse.indices[1] = 7
        sparse.has_canonical_format = True
        with pytest.raises(ArgumentValueError, match="index 7"):
            score_matrix(sparse, [0])
