"""Which sentences of a row hold which terms of a query."""

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport malloc, qsort

from _core.buffers cimport DoubleBuffer, IntBuffer, double_push, int_push
from _core.rows cimport Row, char_ends_of, token_ends_of, tokens_of


cdef struct TermSlot:
    int32_t term_id
    int32_t position        # in the query, -1: an empty slot


cdef inline int32_t query_position(const TermSlot *slots, uint32_t mask, int32_t term_id) noexcept nogil:
    cdef uint32_t i = (<uint32_t> term_id * <uint32_t> 0x9E3779B1) & mask
    while slots[i].position >= 0:
        if slots[i].term_id == term_id:
            return slots[i].position
        i = (i + 1) & mask
    return -1


cdef struct HitColumns:
    IntBuffer position
    IntBuffer side
    IntBuffer sentence
    IntBuffer start
    IntBuffer end
    IntBuffer held_end
    IntBuffer held
    DoubleBuffer mass


cdef inline int by_value(const void *a, const void *b) noexcept nogil:
    return (<const int32_t *> a)[0] - (<const int32_t *> b)[0]


cdef inline Py_ssize_t sort_distinct(int32_t *values, Py_ssize_t n) noexcept nogil:
    """Sort in place and drop repetitions; how many are left."""
    cdef Py_ssize_t i, kept = 1
    if n > 1:
        qsort(values, n, sizeof(int32_t), by_value)
    for i in range(1, n):
        if values[i] != values[kept - 1]:
            values[kept] = values[i]
            kept += 1
    return kept


cdef inline TermSlot *position_table(const int32_t *term_ids, Py_ssize_t n, uint32_t *mask) noexcept nogil:
    """Where each term id >= 0 stands in the query, as a table to probe; NULL when memory runs out."""
    cdef Py_ssize_t n_slots = 16, j
    cdef uint32_t i
    cdef TermSlot *slots
    while n_slots < 4 * n:
        n_slots *= 2
    slots = <TermSlot *> malloc(n_slots * sizeof(TermSlot))
    if slots == NULL:
        return NULL
    for j in range(n_slots):
        slots[j].position = -1
    mask[0] = <uint32_t> (n_slots - 1)
    for j in range(n):
        if term_ids[j] < 0:
            continue
        i = (<uint32_t> term_ids[j] * <uint32_t> 0x9E3779B1) & mask[0]
        while slots[i].position >= 0:
            i = (i + 1) & mask[0]
        slots[i].term_id = term_ids[j]
        slots[i].position = <int32_t> j
    return slots


cdef inline int push_hits(
    Row *row, int side, const TermSlot *slots, uint32_t mask, const double *idf, int32_t position, HitColumns *hits
) noexcept nogil:
    """Append the hits of one side of a row, the candidate at `position`."""
    cdef int32_t token = 0, start = 0, s, held
    cdef Py_ssize_t first, i
    cdef double mass
    for s in range(row.n_sentences[side]):
        first = hits.held.size
        while token < token_ends_of(row, side)[s]:
            held = query_position(slots, mask, tokens_of(row, side)[token])
            token += 1
            if held >= 0 and int_push(&hits.held, held) < 0:
                return -1
        if hits.held.size > first:
            hits.held.size = first + sort_distinct(hits.held.data + first, hits.held.size - first)
            mass = 0.0
            for i in range(first, hits.held.size):
                mass += idf[hits.held.data[i]]
            if (int_push(&hits.position, position) < 0 or int_push(&hits.side, side) < 0
                    or int_push(&hits.sentence, s) < 0 or int_push(&hits.start, start) < 0
                    or int_push(&hits.end, char_ends_of(row, side)[s]) < 0
                    or int_push(&hits.held_end, <int32_t> hits.held.size) < 0
                    or double_push(&hits.mass, mass) < 0):
                return -1
        start = char_ends_of(row, side)[s]
    return 0
