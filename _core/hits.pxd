"""Which sentences of a row hold which terms of a query."""

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport malloc, qsort

from _core.buffers cimport DoubleBuffer, IntBuffer, double_push, int_push, int_reserve
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


cdef struct SearchedHits:
    # terms that were searched for in the text: (position, side, sentence, term) each, in this order
    const int32_t *data
    Py_ssize_t n
    Py_ssize_t next


cdef inline bint is_here(const SearchedHits *searched, int32_t position, int side, int32_t sentence) noexcept nogil:
    cdef const int32_t *entry = searched.data + 4 * searched.next
    return (searched.next < searched.n and entry[0] == position and entry[1] == side
            and entry[2] == sentence)


cdef inline int push_hits(
    Row *row, int side, const TermSlot *slots, uint32_t mask, const double *idf, int32_t position,
    SearchedHits *searched, HitColumns *hits
) noexcept nogil:
    """Append the hits of one side of a row, the candidate at `position`; rows and sides must be asked in order."""
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
        while is_here(searched, position, side, s):
            if int_push(&hits.held, searched.data[4 * searched.next + 3]) < 0:
                return -1
            searched.next += 1
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


cdef struct KeptColumns:
    IntBuffer span_count        # for each candidate and side
    IntBuffer start
    IntBuffer end
    IntBuffer cover_count       # for each candidate
    IntBuffer cover


cdef inline void clear_hits(HitColumns *hits) noexcept nogil:
    hits.position.size = hits.side.size = hits.sentence.size = hits.start.size = hits.end.size = 0
    hits.held_end.size = hits.held.size = hits.mass.size = 0


cdef inline void mark_best(const HitColumns *hits, int32_t *chosen, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Set chosen[i] for the k hits of greatest mass among those not chosen yet, ties to the earlier one."""
    cdef Py_ssize_t i, best
    if n <= k:
        for i in range(n):
            chosen[i] = 1
        return
    while k > 0:
        best = -1
        for i in range(n):
            if not chosen[i] and (best < 0 or hits.mass.data[i] > hits.mass.data[best]):
                best = i
        if best < 0:
            return
        chosen[best] = 1
        k -= 1


cdef inline int push_span(KeptColumns *kept, int32_t start, int32_t end) noexcept nogil:
    return -1 if int_push(&kept.start, start) < 0 or int_push(&kept.end, end) < 0 else 0


cdef inline int keep_best(
    const HitColumns *hits, int32_t *chosen, Py_ssize_t max_sentences, int32_t first_end, KeptColumns *kept
) noexcept nogil:
    """Append the spans of the best hits of one side, and what they hold to `cover`, unsorted.

    first_end > 0: the side's first sentence ends there and is kept whatever it holds, among the max_sentences.
    """
    cdef Py_ssize_t n = hits.sentence.size, i, j
    cdef Py_ssize_t n_spans = kept.start.size
    cdef bint first_is_hit = n > 0 and hits.sentence.data[0] == 0
    for i in range(n):
        chosen[i] = 0
    if first_end > 0:
        if first_is_hit:
            chosen[0] = 1
        elif push_span(kept, 0, first_end) < 0:
            return -1
        max_sentences -= 1
    mark_best(hits, chosen, n, max_sentences)
    for i in range(n):
        if not chosen[i]:
            continue
        if push_span(kept, hits.start.data[i], hits.end.data[i]) < 0:
            return -1
        for j in range(hits.held_end.data[i - 1] if i > 0 else 0, hits.held_end.data[i]):
            if int_push(&kept.cover, hits.held.data[j]) < 0:
                return -1
    return int_push(&kept.span_count, <int32_t> (kept.start.size - n_spans))


cdef inline int close_set(IntBuffer *counts, IntBuffer *values, Py_ssize_t first) noexcept nogil:
    """Sort what was pushed from `first` on, drop repetitions, and append how many are left."""
    if values.size > first:
        values.size = first + sort_distinct(values.data + first, values.size - first)
    return int_push(counts, <int32_t> (values.size - first))


cdef inline int keep_row(
    Row *row, const TermSlot *slots, uint32_t mask, const double *idf, int32_t position, SearchedHits *searched,
    Py_ssize_t max_sentences, HitColumns *hits, IntBuffer *chosen, KeptColumns *kept
) noexcept nogil:
    """Append what is kept of one row, the candidate at `position`."""
    cdef Py_ssize_t first_cover = kept.cover.size
    cdef int32_t first_end = 0
    cdef int side
    for side in range(2):
        clear_hits(hits)
        if push_hits(row, side, slots, mask, idf, position, searched, hits) < 0:
            return -1
        if side == 1 and row.n_sentences[1] > 0:
            first_end = char_ends_of(row, 1)[0]
        if (int_reserve(chosen, hits.sentence.size) < 0
                or keep_best(hits, chosen.data, max_sentences, first_end, kept) < 0):
            return -1
    return close_set(&kept.cover_count, &kept.cover, first_cover)
