"""Fingerprints as a term matrix: the kernel against its slow twin."""

from __future__ import annotations

import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper._core.fingerprint import columns_of, rows_from, score_rows

Matrix = list[dict[int, float]]
N_TERMS = 6
weights = st.integers(1, 4).map(float) | st.floats(0.1, 50.0)
matrices = st.lists(st.dictionaries(st.integers(0, N_TERMS - 1), weights, max_size=N_TERMS), max_size=8)


def arrays_of(matrix: Matrix) -> tuple[array[int], array[int], array[float], array[float]]:
    indptr, terms, values = array("q", [0]), array("i"), array("d")
    for row in matrix:
        terms.extend(row)
        values.extend(row.values())
        indptr.append(len(terms))
    return columns_of(indptr, terms, values, N_TERMS)


def lexical(query: dict[int, float], row: dict[int, float], uncounted: set[int]) -> float:
    """The plain formula."""
    length = math.sqrt(sum(w * w for w in query.values())) * math.sqrt(sum(w * w for w in row.values()))
    mass = sum(weight for term, weight in query.items() if term not in uncounted)
    if not length:
        return 0.0
    dot = sum(weight * row[term] for term, weight in query.items() if term in row)
    overlap = sum(min(weight, row[term]) for term, weight in query.items() if term in row and term not in uncounted)
    return 0.6 * dot / length + (0.4 * overlap / mass if mass else 0.0)


@given(matrices, st.dictionaries(st.integers(0, N_TERMS - 1), weights), st.sets(st.integers(0, N_TERMS - 1)))
def test_scores_equal_the_plain_formula(matrix: Matrix, query: dict[int, float], uncounted: set[int]) -> None:
    indptr, rows, values, norms = arrays_of(matrix)
    scores, evidence = array("d", [9.0]) * len(matrix), array("i", [9]) * len(matrix)
    counted = {term: 0.0 if term in uncounted else weight for term, weight in query.items()}
    score_rows(
        indptr,
        rows,
        values,
        norms,
        array("q", query),
        array("d", query.values()),
        array("d", counted.values()),
        array("i", [10**term for term in query]),
        math.sqrt(sum(w * w for w in query.values())),
        sum(counted.values()),
        0.6,
        0.4,
        scores,
        evidence,
    )
    for row, score, points in zip(matrix, scores, evidence, strict=True):
        assert math.isclose(score, lexical(query, row, uncounted), rel_tol=1e-12, abs_tol=1e-15)
        assert points == sum(10**term for term in query if term in row)


@given(matrices)
def test_columns_hold_each_entry_once_and_in_order(matrix: Matrix) -> None:
    indptr, rows, values, norms = arrays_of(matrix)
    assert list(indptr) == [sum(term < n for row in matrix for term in row) for n in range(N_TERMS + 1)]
    for term in range(N_TERMS):
        column = [(i, row[term]) for i, row in enumerate(matrix) if term in row]
        part = slice(indptr[term], indptr[term + 1])
        assert list(zip(rows[part], values[part], strict=True)) == column
    assert all(
        math.isclose(n, math.sqrt(sum(w * w for w in row.values()))) for n, row in zip(norms, matrix, strict=True)
    )


@given(st.lists(st.floats(0.0, 1.0)), st.floats(0.0, 1.0))
def test_rows_from_includes_the_line(scores: list[float], least: float) -> None:
    assert list(rows_from(array("d", scores), least)) == [i for i, score in enumerate(scores) if score >= least]


def test_numpy_arrays_are_taken_too() -> None:
    assert list(rows_from(np.array([0.1, 0.15, 0.2]), 0.15)) == [1, 2]


def test_an_empty_matrix_has_no_rows() -> None:
    indptr, rows, values, norms = arrays_of([])
    assert (list(indptr), len(rows), len(values), len(norms)) == ([0] * (N_TERMS + 1), 0, 0, 0)


@pytest.mark.parametrize("term", [-1, N_TERMS, 2**31 - 1])
def test_a_term_out_of_range_is_refused(term: int) -> None:
    with pytest.raises(ValueError, match="is not within"):
        columns_of(array("q", [0, 1]), array("i", [term]), array("d", [1.0]), N_TERMS)


@pytest.mark.parametrize("indptr", [[], [1], [0, 2], [0, 2, 1]])
def test_a_broken_indptr_is_refused(indptr: list[int]) -> None:
    with pytest.raises(ValueError, match="indptr"):
        columns_of(array("q", indptr), array("i", [0]), array("d", [1.0]), N_TERMS)


def test_lengths_that_differ_are_refused() -> None:
    one, none = array("d", [1.0]), array("d")
    matrix = (array("q", [0, 1]), array("i", [0]), one, one)
    with pytest.raises(ValueError, match="one length"):
        score_rows(*matrix, array("q", [0]), none, one, array("i", [1]), 1.0, 1.0, 0.6, 0.4, one, array("i", [0]))
    with pytest.raises(ValueError, match="one length"):
        score_rows(*matrix, array("q", [0]), one, one, array("i", [1]), 1.0, 1.0, 0.6, 0.4, none, array("i", [0]))
