"""Coverage: how much of a query's idf mass a block is about, not merely mentions."""

from libc.math cimport sqrt
from libc.stdint cimport uint32_t

from _core.csr cimport LengthNorm, saturated
from _core.postings cimport Posting
from _core.rows cimport SideLengths
from _core.scoring cimport QueryTerm, posting_of


cdef inline double share_of(int tf_user, int tf_assistant, const SideLengths *length, double k1,
                            LengthNorm norm) noexcept nogil:
    """BM25's saturated tf of the better side, at most 1."""
    cdef double user = saturated(k1 + 1.0, sqrt(tf_user), length.user, norm)
    cdef double assistant = saturated(k1 + 1.0, sqrt(tf_assistant), length.assistant, norm)
    cdef double share = user if user > assistant else assistant
    return share if share < 1.0 else 1.0


cdef inline double covered_mass(
    const QueryTerm *terms, const double *idf, Py_ssize_t n, uint32_t turn, const SideLengths *length, double k1,
    LengthNorm norm
) noexcept nogil:
    """Sum of idf times share over the words, each with its forms."""
    cdef Py_ssize_t i = 0, first
    cdef int tf_user, tf_assistant
    cdef const Posting *posting
    cdef double mass = 0.0
    while i < n:
        first = i
        tf_user = tf_assistant = 0
        while i == first or (i < n and terms[i].n_before > 0):
            posting = posting_of(&terms[i], turn)
            if posting != NULL:
                tf_user += posting.tf_user
                tf_assistant += posting.tf_assistant
            i += 1
        if tf_user + tf_assistant > 0:
            mass += idf[first] * share_of(tf_user, tf_assistant, length, k1, norm)
    return mass
