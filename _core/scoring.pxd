"""Scoring the turns of a query: a block of turns at a time, so that their sums stay in the first-level cache."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from _core.csr cimport LengthNorm, saturated
from _core.postings cimport Posting
from _core.rows cimport Rows
from _core.topk cimport Scored, offer, sort_best_first

cdef enum:
    BLOCK = 1024            # turns scored at a time
    BATCH = 64              # postings divided at a time
    GROUP = 32              # turns looked at together for the k best; divides BLOCK


cdef struct QueryTerm:
    const Posting *next
    const Posting *end
    double weight           # idf (k1 + 1)


cdef struct Formula:
    LengthNorm norm_user
    LengthNorm norm_assistant
    double weight_user
    double weight_assistant
    double weight_exact
    double weight_recency
    double recency_window
    double idf_mass
    double rough_user       # weight_user / idf_mass
    double rough_assistant
    double margin           # far more than rounding can make of any score
    int64_t current_turn
    int32_t n_present


cdef struct Sums:
    # of one block of turns
    double user[BLOCK]
    double assistant[BLOCK]
    int32_t held[BLOCK]     # terms of the query that a turn holds


cdef struct Allowed:
    bint filtered
    const int32_t *turns    # ascending
    Py_ssize_t n
    Py_ssize_t next


cdef inline double recency_of(int64_t age, double window) noexcept nogil:
    cdef double recency = 1.0 - <double> age / window
    return recency if recency > 0.0 else 0.0


cdef inline Scored score_of(
    const Formula *formula, int32_t turn, double sum_user, double sum_assistant, int32_t n_held
) noexcept nogil:
    """score = w_u lex(user) + w_a lex(assistant) + w_e exact + w_r recency, added in this order."""
    cdef Scored scored
    scored.turn = turn
    scored.n_held = n_held
    scored.lex_user = sum_user / formula.idf_mass
    scored.lex_assistant = sum_assistant / formula.idf_mass
    scored.score = (
        formula.weight_user * scored.lex_user
        + formula.weight_assistant * scored.lex_assistant
        + formula.weight_exact * (1.0 if n_held == formula.n_present else 0.0)
        + formula.weight_recency * recency_of(formula.current_turn - turn, formula.recency_window))
    return scored


cdef inline bint is_allowed(Allowed *allowed, int64_t turn) noexcept nogil:
    """Whether a turn may count; turns must be asked in ascending order."""
    if not allowed.filtered:
        return True
    while allowed.next < allowed.n and allowed.turns[allowed.next] < turn:
        allowed.next += 1
    return allowed.next < allowed.n and allowed.turns[allowed.next] == turn


cdef inline void add_block(
    QueryTerm *term, const Rows *rows, const Formula *formula, uint32_t base, Sums *sums
) noexcept nogil:
    """Add one term's part to the sums of the turns of a block, BATCH postings at a time: divide, then scatter."""
    cdef double tf_user[BATCH]
    cdef double tf_assistant[BATCH]
    cdef double user[BATCH]
    cdef double assistant[BATCH]
    cdef uint32_t slots[BATCH]
    cdef uint32_t end = base + BLOCK
    cdef Py_ssize_t n, i
    cdef const Posting *posting = term.next
    while posting < term.end and posting.turn < end:
        n = 0
        while n < BATCH and posting < term.end and posting.turn < end:
            slots[n] = posting.turn - base
            tf_user[n] = posting.tf_user
            tf_assistant[n] = posting.tf_assistant
            user[n] = rows.lengths[posting.turn].user
            assistant[n] = rows.lengths[posting.turn].assistant
            posting += 1
            n += 1
        for i in range(n):
            user[i] = saturated(term.weight, tf_user[i], user[i], formula.norm_user)
        for i in range(n):
            assistant[i] = saturated(term.weight, tf_assistant[i], assistant[i], formula.norm_assistant)
        for i in range(n):
            sums.user[slots[i]] += user[i]
            sums.assistant[slots[i]] += assistant[i]
            sums.held[slots[i]] += 1
    term.next = posting


cdef inline bint may_hold_better(
    const Formula *formula, const Sums *sums, Py_ssize_t first, double limit
) noexcept nogil:
    """Whether a turn of the GROUP from `first` on may score above `limit` without its recency."""
    cdef const double *user = sums.user + first
    cdef const double *assistant = sums.assistant + first
    cdef const int32_t *held = sums.held + first
    cdef int any_better = 0
    cdef Py_ssize_t i
    for i in range(GROUP):
        any_better |= (
            formula.rough_user * user[i] + formula.rough_assistant * assistant[i]
            + (formula.weight_exact if held[i] == formula.n_present else 0.0)) >= limit
    return any_better


cdef inline Py_ssize_t offer_block(
    const Formula *formula, const Sums *sums, int64_t base, Py_ssize_t n, Allowed *allowed,
    Scored *heap, Py_ssize_t n_found, Py_ssize_t k
) noexcept nogil:
    """Offer the touched turns of a block to the heap of n_found of at most k; the new n_found."""
    cdef double recency = recency_of(formula.current_turn - base - n + 1, formula.recency_window)
    cdef double most_recency = formula.weight_recency * recency + formula.margin
    cdef Py_ssize_t first, slot
    cdef Scored scored
    first = -GROUP
    while first + GROUP < n:
        first += GROUP
        if n_found == k and not may_hold_better(formula, sums, first, heap[0].score - most_recency):
            continue
        for slot in range(first, min(first + GROUP, n)):
            if sums.held[slot] == 0 or not is_allowed(allowed, base + slot):
                continue
            scored = score_of(
                formula, <int32_t> (base + slot), sums.user[slot], sums.assistant[slot], sums.held[slot])
            n_found = offer(heap, n_found, k, &scored)
    return n_found


cdef inline Py_ssize_t best_rows(
    QueryTerm *terms, Py_ssize_t n_terms, const Rows *rows, const Formula *formula, Allowed *allowed,
    Scored *heap, Py_ssize_t k
) noexcept nogil:
    """The k best turns that hold a term, best first. Returns how many there are, or -1 without memory."""
    cdef Sums *sums = <Sums *> malloc(sizeof(Sums))
    cdef Py_ssize_t base = -BLOCK, t, n_found = 0
    cdef bint touched
    if sums == NULL:
        return -1
    while base + BLOCK < rows.n and k > 0:
        base += BLOCK
        touched = False
        for t in range(n_terms):
            if terms[t].next < terms[t].end and terms[t].next.turn < base + BLOCK:
                if not touched:
                    memset(sums, 0, sizeof(Sums))
                    touched = True
                add_block(&terms[t], rows, formula, <uint32_t> base, sums)
        if touched:
            n_found = offer_block(
                formula, sums, base, min(<Py_ssize_t> BLOCK, rows.n - base), allowed, heap, n_found, k)
    sort_best_first(heap, n_found)
    free(sums)
    return n_found
