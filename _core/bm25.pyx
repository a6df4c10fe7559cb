"""BM25 over any CSR or CSC arrays: one score a row, with the inline formula of the term matrix."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cpython cimport array

from _core.csr cimport (
    LengthNorm,
    fifth_root,
    index_t,
    inverse_document_frequency,
    length_norm,
    natural_log,
    saturated,
)

import array

cdef array.array DOUBLES = array.array("d")


def check_indices(const index_t[::1] indptr not None, const index_t[::1] indices not None, int64_t n_minor):
    """Raise ValueError unless indptr ascends from 0 to nnz and every index is 0 to n_minor - 1. O(nnz)."""
    cdef Py_ssize_t i, n = indptr.shape[0]
    if n == 0 or indptr[0] != 0 or indptr[n - 1] > indices.shape[0]:
        raise ValueError("indptr must begin with 0 and end within indices")
    for i in range(n - 1):
        if indptr[i + 1] < indptr[i]:
            raise ValueError(f"indptr falls at {i + 1}: {indptr[i]} then {indptr[i + 1]}")
    for i in range(indptr[n - 1]):
        if not 0 <= indices[i] < n_minor:
            raise ValueError(f"index {indices[i]} at {i} is not within 0 to {n_minor - 1}")


def score_csc(
    const index_t[::1] indptr not None, const index_t[::1] indices not None, const double[::1] tf not None,
    const double[::1] row_lengths not None, const int64_t[::1] terms not None, const double[::1] idf not None,
    double idf_mass, double average_length, double k1, double b, double[::1] scores not None
):
    """Write lex of every row of a CSC matrix (rows x terms) into scores, float64[n_rows].

    indptr[n_terms + 1], indices[nnz], tf[nnz]; terms: columns of the query; idf[len(terms)]. Entries of 0 or less
    count as absent. Precondition: `check_indices` has passed. O(n_rows + nnz of the columns).
    """
    cdef Py_ssize_t t, i
    cdef double weight
    cdef LengthNorm norm = length_norm(average_length, k1, b)
    with nogil:
        scores[:] = 0.0
        for t in range(terms.shape[0]):
            weight = idf[t] * (k1 + 1.0)
            for i in range(indptr[terms[t]], indptr[terms[t] + 1]):
                if tf[i] > 0.0:
                    scores[indices[i]] += saturated(weight, tf[i], row_lengths[indices[i]], norm)
        for i in range(scores.shape[0]):
            scores[i] = scores[i] / idf_mass


def score_csr(
    const index_t[::1] indptr not None, const index_t[::1] indices not None, const double[::1] tf not None,
    const double[::1] row_lengths not None, const int64_t[::1] terms not None, const double[::1] idf not None,
    int64_t n_columns, double idf_mass, double average_length, double k1, double b, double[::1] scores not None
):
    """The same for a CSR matrix, to the bit: each row adds the terms in the order of the query. O(nnz)."""
    cdef Py_ssize_t n_terms = terms.shape[0], row, i, t
    cdef int32_t *position = <int32_t *> malloc(max(n_columns, 1) * sizeof(int32_t))
    cdef double *tf_of = <double *> malloc(max(n_terms, 1) * sizeof(double))
    cdef double total
    cdef LengthNorm norm = length_norm(average_length, k1, b)
    if position == NULL or tf_of == NULL:
        free(position)
        free(tf_of)
        raise MemoryError
    with nogil:
        memset(position, 0xFF, n_columns * sizeof(int32_t))
        for t in range(n_terms):
            position[terms[t]] = <int32_t> t
        memset(tf_of, 0, n_terms * sizeof(double))
        for row in range(scores.shape[0]):
            total = 0.0
            for i in range(indptr[row], indptr[row + 1]):
                if position[indices[i]] >= 0:
                    tf_of[position[indices[i]]] = tf[i]
            for t in range(n_terms):
                if tf_of[t] > 0.0:
                    total += saturated(idf[t] * (k1 + 1.0), tf_of[t], row_lengths[row], norm)
                tf_of[t] = 0.0
            scores[row] = total / idf_mass
    free(position)
    free(tf_of)


def idf_of(df, int64_t n_blocks):
    """idf = ln((N + 1) / (df + 1)) + 1 for an iterable of df: float64[n]. The same bits on every CPU."""
    return array.array("d", [inverse_document_frequency(count, n_blocks) for count in df])


def log_of(double x):
    """ln x for x > 0, to about 1 ulp, without libm."""
    if not x > 0.0:
        raise ValueError(f"x must be greater than 0, got {x}")
    return natural_log(x)


def cost_power(double cost):
    """cost ** 0.8 for cost >= 1, as cost / cost ** (1/5), without libm: the same bits on every CPU."""
    if not cost >= 1.0:
        raise ValueError(f"cost must be at least 1, got {cost}")
    return cost / fifth_root(cost)
