"""Fingerprints: how near every row of a sparse term matrix is to a query, in one pass over the query's columns."""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t

from cpython cimport array

import array

cdef array.array INTS = array.array("i")
cdef array.array LONGS = array.array("q")
cdef array.array DOUBLES = array.array("d")


def score_rows(
    const int64_t[::1] indptr not None, const int32_t[::1] rows not None, const double[::1] weights not None,
    const double[::1] norms not None, const int64_t[::1] terms not None, const double[::1] query not None,
    const double[::1] counted not None, const int32_t[::1] points not None, double query_norm, double counted_mass,
    double cosine_share, double coverage_share, double[::1] scores not None, int32_t[::1] evidence not None
):
    """Write cosine_share * cosine + coverage_share * coverage of every row into scores, its points into evidence.

    A CSC matrix of positive weights: indptr[n_terms + 1], rows[nnz], weights[nnz]; norms[n_rows], the lengths of
    the rows. The query: terms[n] columns without repetition, query[n] their weights, counted[n] the weights that
    coverage counts (0 for those it does not), points[n] that a row gets for sharing the term. A row of length 0
    scores 0. Precondition: `check_indices` has passed. O(n_rows + nnz of the columns), float64[n_rows], int32[n_rows].
    """
    cdef Py_ssize_t t, i
    cdef int32_t row
    cdef double dot_part, overlap_part, weight
    cdef double coverage_scale = coverage_share / counted_mass if counted_mass > 0.0 else 0.0
    if terms.shape[0] != query.shape[0] or terms.shape[0] != counted.shape[0] or terms.shape[0] != points.shape[0]:
        raise ValueError("terms, query, counted and points must have one length")
    if scores.shape[0] != norms.shape[0] or evidence.shape[0] != norms.shape[0]:
        raise ValueError("norms, scores and evidence must have one length")
    with nogil:
        scores[:] = 0.0
        evidence[:] = 0
        if query_norm > 0.0:
            for t in range(terms.shape[0]):
                dot_part = cosine_share * query[t] / query_norm
                for i in range(indptr[terms[t]], indptr[terms[t] + 1]):
                    row = rows[i]
                    weight = weights[i]
                    overlap_part = coverage_scale * min(counted[t], weight)
                    scores[row] += dot_part * weight / norms[row] + overlap_part
                    evidence[row] += points[t]


def rows_from(const double[::1] scores not None, double least):
    """The rows that score `least` or more, ascending: int32. O(n_rows)."""
    cdef Py_ssize_t i
    cdef int32_t n_found = 0
    for i in range(scores.shape[0]):
        n_found += scores[i] >= least
    cdef array.array found = array.clone(INTS, n_found, zero=False)
    cdef int32_t[::1] places = found
    n_found = 0
    for i in range(scores.shape[0]):
        if scores[i] >= least:
            places[n_found] = <int32_t> i
            n_found += 1
    return found


def columns_of(
    const int64_t[::1] indptr not None, const int32_t[::1] terms not None, const double[::1] weights not None,
    int64_t n_terms
):
    """A CSR matrix by columns, and the length of each row: (indptr, rows, weights, norms).

    indptr[n_rows + 1], terms[nnz] of 0 to n_terms - 1, weights[nnz]. Returns int64[n_terms + 1], int32[nnz],
    float64[nnz], float64[n_rows]; rows ascend within a column. Raises ValueError for a term out of range or an
    indptr that does not ascend from 0 to nnz. O(nnz + n_terms).
    """
    cdef Py_ssize_t n_rows = indptr.shape[0] - 1, nnz = terms.shape[0], row, i
    cdef int64_t place
    cdef double squares
    if n_rows < 0 or n_terms < 0 or indptr[0] != 0 or indptr[n_rows] != nnz or weights.shape[0] != nnz:
        raise ValueError("indptr must ascend from 0 to the number of terms and weights")
    for row in range(n_rows):
        if indptr[row + 1] < indptr[row]:
            raise ValueError(f"indptr falls at {row + 1}")
    cdef array.array starts_array = array.clone(LONGS, n_terms + 1, zero=True)
    cdef array.array rows_array = array.clone(INTS, nnz, zero=False)
    cdef array.array weights_array = array.clone(DOUBLES, nnz, zero=False)
    cdef array.array norms_array = array.clone(DOUBLES, n_rows, zero=False)
    cdef int64_t[::1] starts = starts_array
    cdef int32_t[::1] rows_out = rows_array
    cdef double[::1] weights_out = weights_array
    cdef double[::1] norms = norms_array
    for i in range(nnz):
        if not 0 <= terms[i] < n_terms:
            raise ValueError(f"term {terms[i]} at {i} is not within 0 to {n_terms - 1}")
        starts[terms[i] + 1] += 1
    for i in range(n_terms):
        starts[i + 1] += starts[i]
    for row in range(n_rows):
        squares = 0.0
        for i in range(indptr[row], indptr[row + 1]):
            place = starts[terms[i]]
            starts[terms[i]] += 1
            rows_out[place] = <int32_t> row
            weights_out[place] = weights[i]
            squares += weights[i] * weights[i]
        norms[row] = sqrt(squares)
    for i in range(n_terms, 0, -1):  # each start stands where its column ends, which is where the next begins
        starts[i] = starts[i - 1]
    starts[0] = 0
    return starts_array, rows_array, weights_array, norms_array
