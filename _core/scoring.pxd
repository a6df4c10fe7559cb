"""Scoring the turns of a query: a block of turns at a time, so that their sums stay in the first-level cache."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from _core.csr cimport LengthNorm, saturated
from _core.postings cimport Posting
from _core.rows cimport Rows, SideLengths
from _core.topk cimport Scored, offer, sort_best_first

cdef extern from *:
    """
    /* sums[0], sums[1] += weight tf / (tf + (base + slope length)) of both sides: each as `saturated` computes it,
       divided together where the compiler has vectors */
    #if defined(__GNUC__)
    typedef double gatekeeper_pair __attribute__((vector_size(16), aligned(8)));
    static inline void gatekeeper_add_pair(double *sums, double weight, int tf_user, int tf_assistant, int user,
                                           int assistant, const double *base, const double *slope) {
        gatekeeper_pair tf = {tf_user, tf_assistant}, length = {user, assistant};
        *(gatekeeper_pair *) sums +=
            weight * tf / (tf + (*(const gatekeeper_pair *) base + *(const gatekeeper_pair *) slope * length));
    }
    #else
    static inline void gatekeeper_add_pair(double *sums, double weight, int tf_user, int tf_assistant, int user,
                                           int assistant, const double *base, const double *slope) {
        sums[0] += weight * tf_user / (tf_user + (base[0] + slope[0] * user));
        sums[1] += weight * tf_assistant / (tf_assistant + (base[1] + slope[1] * assistant));
    }
    #endif
    """
    void gatekeeper_add_pair(double *sums, double weight, int tf_user, int tf_assistant, int user, int assistant,
                             const double *base, const double *slope) nogil

cdef enum:
    BLOCK = 1024            # turns scored at a time
    BATCH = 64              # postings divided at a time


cdef struct QueryTerm:
    const Posting *next
    const Posting *end
    double weight           # idf (k1 + 1)
    const Posting *first    # of the whole list; `next` moves on
    int32_t n_before        # terms right before it that are forms of the same word


cdef struct QueryFormula:
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
    int32_t n_present       # words that any turn holds in some form
    bint joint              # both sides are one text, the user's; norm_user is that of the two together


cdef struct Sum:
    # of one turn
    double user
    double assistant
    int32_t n_held          # words of the query that it holds in some form


cdef struct Sums:
    # of one block of turns; all 0 between blocks
    Sum turns[BLOCK]
    uint32_t touched[BLOCK + 1]     # those that hold a term, in no order; one more is written than there are
    Py_ssize_t n_touched


cdef struct Allowed:
    bint filtered
    const int32_t *turns    # ascending
    Py_ssize_t n
    Py_ssize_t next


cdef inline double recency_of(int64_t age, double window) noexcept nogil:
    cdef double recency = 1.0 - <double> age / window
    return recency if recency > 0.0 else 0.0


cdef inline Scored score_of(
    const QueryFormula *formula, int32_t turn, double sum_user, double sum_assistant, int32_t n_held
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


cdef inline const Posting *posting_of(const QueryTerm *term, uint32_t turn) noexcept nogil:
    """The posting of a turn in the list of a term, or NULL; by bisection."""
    cdef const Posting *low = term.first
    cdef const Posting *high = term.end
    cdef const Posting *middle
    while low < high:
        middle = low + (high - low) // 2
        if middle.turn < turn:
            low = middle + 1
        else:
            high = middle
    return low if low < term.end and low.turn == turn else NULL


cdef inline bint is_held_before(const QueryTerm *term, uint32_t turn) noexcept nogil:
    """Whether a turn holds another form of the word, of those before this one."""
    cdef int32_t i
    for i in range(1, term.n_before + 1):
        if posting_of(term - i, turn) != NULL:
            return True
    return False


cdef inline void count_once(const QueryTerm *term, const Posting *last, uint32_t base, Sums *sums) noexcept nogil:
    """Take back what a form added to n_held where another form of its word was counted: its postings up to `last`."""
    cdef const Posting *posting = term.next
    while posting < last:
        if is_held_before(term, posting.turn):
            sums.turns[posting.turn - base].n_held -= 1
        posting += 1


cdef inline void add_block(
    QueryTerm *term, const Rows *rows, const QueryFormula *formula, uint32_t base, Sums *sums
) noexcept nogil:
    """Add one term's part to the sums of the turns of a block."""
    cdef uint32_t slot, end = base + BLOCK
    cdef Py_ssize_t n_touched = sums.n_touched
    cdef Sum *sum_of
    cdef const SideLengths *length
    cdef double weight = term.weight
    cdef LengthNorm norm_user = formula.norm_user
    cdef LengthNorm norm_assistant = formula.norm_assistant
    cdef const Posting *posting = term.next
    cdef const Posting *last = term.end
    cdef double[2] base_of = [norm_user.base, norm_assistant.base]
    cdef double[2] slope_of = [norm_user.slope, norm_assistant.slope]
    while posting < last and posting.turn < end:
        slot = posting.turn - base
        length = &rows.lengths[posting.turn]
        sum_of = &sums.turns[slot]
        sums.touched[n_touched] = slot
        n_touched += sum_of.n_held == 0
        if formula.joint:
            gatekeeper_add_pair(&sum_of.user, weight, posting.tf_user + posting.tf_assistant, 0,
                                <int> (length.user + length.assistant), 0, base_of, slope_of)
        else:
            gatekeeper_add_pair(&sum_of.user, weight, posting.tf_user, posting.tf_assistant, <int> length.user,
                                <int> length.assistant, base_of, slope_of)
        sum_of.n_held += 1
        posting += 1
    if term.n_before > 0:
        count_once(term, posting, base, sums)
    term.next = posting
    sums.n_touched = n_touched


cdef inline Py_ssize_t allowed_in_block(
    const Sums *sums, int64_t base, Py_ssize_t n_turns, Allowed *allowed, uint32_t *slots
) noexcept nogil:
    """The touched turns of a block of n_turns that may count; blocks must be asked in ascending order."""
    cdef Py_ssize_t n = 0
    while allowed.next < allowed.n and allowed.turns[allowed.next] < base + n_turns:
        if allowed.turns[allowed.next] >= base:
            slots[n] = <uint32_t> (allowed.turns[allowed.next] - base)
            n += sums.turns[slots[n]].n_held > 0
        allowed.next += 1
    return n


cdef inline Py_ssize_t offer_block(
    const QueryFormula *formula, Sums *sums, int64_t base, Py_ssize_t n, Allowed *allowed,
    Scored *heap, Py_ssize_t n_found, Py_ssize_t k
) noexcept nogil:
    """Offer the touched turns of a block of n to the heap of n_found of at most k, and clear them; the new n_found.

    A turn whose score without its recency cannot reach the worst of k is passed over by one rough sum.
    """
    cdef double most_recency = formula.weight_recency * recency_of(
        formula.current_turn - base - n + 1, formula.recency_window) + formula.margin
    cdef uint32_t only[BLOCK]
    cdef const uint32_t *slots = sums.touched
    cdef Py_ssize_t n_slots = sums.n_touched, i
    cdef Sum sum_of
    cdef double least = heap[0].score if n_found == k else -1.0
    cdef Scored scored
    if allowed.filtered:
        n_slots = allowed_in_block(sums, base, n, allowed, only)
        slots = only
    for i in range(n_slots):
        sum_of = sums.turns[slots[i]]
        if (formula.rough_user * sum_of.user + formula.rough_assistant * sum_of.assistant + most_recency < least
                and sum_of.n_held != formula.n_present):
            continue
        scored = score_of(formula, <int32_t> (base + slots[i]), sum_of.user, sum_of.assistant, sum_of.n_held)
        n_found = offer(heap, n_found, k, &scored)
        least = heap[0].score if n_found == k else -1.0
    for i in range(sums.n_touched):
        memset(&sums.turns[sums.touched[i]], 0, sizeof(Sum))
    sums.n_touched = 0
    return n_found


cdef inline Py_ssize_t best_rows(
    QueryTerm *terms, Py_ssize_t n_terms, const Rows *rows, const QueryFormula *formula, Allowed *allowed,
    Scored *heap, Py_ssize_t k
) noexcept nogil:
    """The k best turns that hold a term, best first. Returns how many there are, or -1 without memory."""
    cdef Sums *sums = <Sums *> malloc(sizeof(Sums))
    cdef Py_ssize_t base, n, t, n_found = 0
    if sums == NULL:
        return -1
    memset(sums.turns, 0, min(<Py_ssize_t> BLOCK, rows.n) * sizeof(Sum))
    sums.n_touched = 0
    base = 0
    while base < rows.n and k > 0:
        for t in range(n_terms):
            if terms[t].next < terms[t].end and terms[t].next.turn < base + BLOCK:
                add_block(&terms[t], rows, formula, <uint32_t> base, sums)
        if sums.n_touched > 0:
            n = min(<Py_ssize_t> BLOCK, rows.n - base)
            n_found = offer_block(formula, sums, base, n, allowed, heap, n_found, k)
        base += BLOCK
    sort_best_first(heap, n_found)
    free(sums)
    return n_found
