"""Scoring turns in their context: what they hold, what the turns around them hold, and how recent they are."""

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from _core.rows cimport Rows
from _core.scoring cimport BLOCK, QueryFormula, QueryTerm, Sum, Sums, add_block, recency_of
from _core.topk cimport Scored, offer, sort_best_first


cdef struct Context:
    # one entry a turn, but for `lexical`, which has `window` zeros more at both ends
    double weight_neighbours
    Py_ssize_t window
    double recency_share
    double *user            # lex of both sides
    double *assistant
    double *lexical         # weighted sum of the two
    double *combined        # with that of the neighbours; one entry an asked turn
    uint8_t *marked
    uint32_t *asked         # turns that hold a word, or stand beside one, or are recent; in no order
    Py_ssize_t n_asked


cdef inline void context_free(Context *context) noexcept nogil:
    free(context.user)
    free(context.assistant)
    free(context.lexical)
    free(context.combined)
    free(context.marked)
    free(context.asked)


cdef inline int context_init(Context *context, Py_ssize_t n_turns) noexcept nogil:
    """Room for n_turns; the three settings must be set. Returns -1 without memory; free it in any case."""
    cdef Py_ssize_t n = n_turns + 1
    context.user = <double *> calloc(n, sizeof(double))
    context.assistant = <double *> calloc(n, sizeof(double))
    context.lexical = <double *> calloc(n + 2 * context.window, sizeof(double))
    context.combined = <double *> malloc(n * sizeof(double))
    context.marked = <uint8_t *> calloc(n, 1)
    context.asked = <uint32_t *> malloc(n * sizeof(uint32_t))
    context.n_asked = 0
    if (context.user == NULL or context.assistant == NULL or context.lexical == NULL or context.combined == NULL
            or context.marked == NULL or context.asked == NULL):
        return -1
    return 0


cdef inline double neighbours_of(const Context *context, Py_ssize_t turn) noexcept nogil:
    """Sum of lexical / d over the turns at distance d <= window, nearest first, the earlier before the later."""
    cdef const double *lexical = context.lexical + context.window + turn
    cdef Py_ssize_t d
    cdef double total = 0.0
    for d in range(1, context.window + 1):
        total += lexical[-d] / d
        total += lexical[d] / d
    return total


cdef inline void ask(Context *context, const Rows *rows, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Ask the turns from first to last that are there and not asked yet."""
    cdef Py_ssize_t turn
    for turn in range(max(first, 0), min(last + 1, rows.n)):
        if not context.marked[turn] and rows.rows[turn] != NULL:
            context.marked[turn] = 1
            context.asked[context.n_asked] = <uint32_t> turn
            context.n_asked += 1


cdef inline void take_block(
    Context *context, const Rows *rows, const QueryFormula *formula, Py_ssize_t base, Sums *sums
) noexcept nogil:
    """Move the sums of a block to the turns; ask these and their neighbours."""
    cdef Py_ssize_t i, turn
    cdef Sum *sum_of
    for i in range(sums.n_touched):
        sum_of = &sums.turns[sums.touched[i]]
        turn = base + sums.touched[i]
        context.user[turn] = sum_of.user / formula.idf_mass
        context.assistant[turn] = sum_of.assistant / formula.idf_mass
        context.lexical[context.window + turn] = (
            formula.weight_user * context.user[turn] + formula.weight_assistant * context.assistant[turn])
        ask(context, rows, turn - context.window, turn + context.window)
        memset(sum_of, 0, sizeof(Sum))
    sums.n_touched = 0


cdef inline Scored score_in_context(
    const Context *context, const QueryFormula *formula, Py_ssize_t turn, double best
) noexcept nogil:
    cdef Scored scored
    cdef double recency = context.recency_share * recency_of(formula.current_turn - turn, formula.recency_window)
    scored.turn = <int32_t> turn
    scored.n_held = 0
    scored.lex_user = context.user[turn]
    scored.lex_assistant = context.assistant[turn]
    scored.score = (
        formula.weight_user * scored.lex_user / best
        + formula.weight_assistant * scored.lex_assistant / best
        + formula.weight_recency * recency
        + context.weight_neighbours * neighbours_of(context, turn) / best)
    return scored


cdef inline Py_ssize_t best_in_context(
    QueryTerm *terms, Py_ssize_t n_terms, const Rows *rows, const QueryFormula *formula, Context *context,
    Scored *heap, Py_ssize_t k, double *best
) noexcept nogil:
    """The k best turns, best first; best: the greatest combined sum, by which the others are divided.

    score = (lexical + weight_neighbours neighbours) / best + weight_recency recency_share recency, each part divided
    by itself; lexical is 0 where the query has no idf mass. Returns how many there are, or -1 without memory.
    """
    cdef Sums *sums = <Sums *> malloc(sizeof(Sums))
    cdef Py_ssize_t base, t, i, n_found = 0
    cdef Scored scored
    if sums == NULL:
        return -1
    memset(sums.turns, 0, min(<Py_ssize_t> BLOCK, rows.n) * sizeof(Sum))
    sums.n_touched = 0
    base = 0
    while base < rows.n and formula.idf_mass > 0.0:
        for t in range(n_terms):
            if terms[t].next < terms[t].end and terms[t].next.turn < base + BLOCK:
                add_block(&terms[t], rows, formula, <uint32_t> base, sums)
        take_block(context, rows, formula, base, sums)
        base += BLOCK
    free(sums)
    if context.recency_share * formula.weight_recency > 0.0:
        ask(context, rows, rows.n - <Py_ssize_t> formula.recency_window + 1, rows.n - 1)
    best[0] = 0.0
    for i in range(context.n_asked):
        context.combined[i] = (context.lexical[context.window + context.asked[i]]
                               + context.weight_neighbours * neighbours_of(context, context.asked[i]))
        best[0] = max(best[0], context.combined[i])
    if best[0] == 0.0:
        best[0] = 1.0
    for i in range(context.n_asked):
        scored = score_in_context(context, formula, context.asked[i], best[0])
        if scored.score > 0.0:
            n_found = offer(heap, n_found, k, &scored)
    sort_best_first(heap, n_found)
    return n_found
