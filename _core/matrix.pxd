"""How the term matrix grows and shrinks by a turn: rows and postings together."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from _core.csr cimport inverse_document_frequency
from _core.postings cimport (
    MAX_TF,
    Posting,
    Postings,
    Term,
    drop_posting,
    list_of,
    position_of,
    push_posting,
    reserve_terms,
    term_of,
)
from _core.rows cimport Row, Rows, new_row, reserve_rows, tokens_of
from _core.table cimport TermTable, is_cjk_key, name_of

cdef enum:
    IDF_CACHE = 64


cdef struct Matrix:
    Postings postings
    Rows rows


cdef struct Weighing:
    # how the terms of a new turn count for the topic gate
    int32_t n_ages
    double ngram_floor          # CJK n-grams below this idf are left out
    double ngram_weight         # of the idf of the other ones
    double unseen_weight        # of that of a term that no turn holds


cdef struct Findings:
    # what a vocabulary found in some texts, one behind the other
    const TermTable *table
    const int32_t *tokens
    const int32_t *n_tokens     # of each text
    const int32_t *char_ends    # of each sentence, in characters from the start of its text
    const int32_t *token_ends   # in tokens
    const int32_t *n_sentences  # of each text


cdef inline int32_t first_new_term(int32_t n_terms, const int32_t *tokens, Py_ssize_t n) noexcept nogil:
    """The terms that there are with a turn's tokens, when there were n_terms before it."""
    cdef Py_ssize_t i
    for i in range(n):
        n_terms = max(n_terms, tokens[i] + 1)
    return n_terms


cdef inline double cached_idf(double *cached, uint32_t df, int64_t n_blocks) noexcept nogil:
    if df >= IDF_CACHE:
        return inverse_document_frequency(df, n_blocks)
    if cached[df] == 0.0:
        cached[df] = inverse_document_frequency(df, n_blocks)
    return cached[df]


cdef inline int link(
    Matrix *matrix, const TermTable *table, uint32_t turn, const int32_t *tokens, Py_ssize_t n_user,
    Py_ssize_t n_assistant, const Weighing *weighing, double *masses
) noexcept nogil:
    """Count every token in the postings of its term, and weigh the distinct terms of the user's side on the way.

    masses[age] gets the sum, in order of first occurrence, of the weights of those above the floor; of all where the
    floor would leave nothing. df, idf and age are those before the turn joined.
    """
    cdef double cached[IDF_CACHE]
    cdef double floor = min(weighing.ngram_floor, inverse_document_frequency(1, matrix.rows.n_live))
    cdef double *below = masses + weighing.n_ages + 1
    cdef bint is_ngram, found = False
    cdef double idf, weight
    cdef uint32_t age
    cdef Term *term
    cdef Posting *posting
    cdef Py_ssize_t i
    memset(cached, 0, sizeof(cached))
    for i in range(n_user + n_assistant):
        term = term_of(&matrix.postings, tokens[i])
        if term.df > 0 and term.last == turn:
            posting = <Posting *> list_of(term) + term.df - 1
        else:
            if i < n_user:
                idf = cached_idf(cached, term.df, matrix.rows.n_live)
                age = turn - term.last if term.df > 0 else 0
                age = age if age <= <uint32_t> weighing.n_ages else 0
                is_ngram = is_cjk_key(name_of(table, tokens[i])[0])
                weight = idf * weighing.ngram_weight if is_ngram else idf
                if term.df == 0:
                    weight *= weighing.unseen_weight
                below[age] += weight
                if idf >= floor or not is_ngram:
                    masses[age] += weight
                    found = True
            posting = push_posting(&matrix.postings, term, turn)
            if posting == NULL:
                return -1
        if i < n_user:
            posting.tf_user += posting.tf_user < MAX_TF
        else:
            posting.tf_assistant += posting.tf_assistant < MAX_TF
    if not found:
        memcpy(masses, below, (weighing.n_ages + 1) * sizeof(double))
    memset(below, 0, (weighing.n_ages + 1) * sizeof(double))
    return 0


cdef inline int unlink(Matrix *matrix, uint32_t turn, Row *row) noexcept nogil:
    """Take a turn out of the postings of its terms."""
    cdef const int32_t *tokens = tokens_of(row, 0)
    cdef Term *term
    cdef Py_ssize_t i, position
    for i in range(row.n_tokens[0] + row.n_tokens[1]):
        term = term_of(&matrix.postings, tokens[i])
        if term.df == 0:
            continue
        position = position_of(term, turn)
        if position >= 0 and drop_posting(&matrix.postings, term, position) < 0:
            return -1
    return 0


cdef inline int append_row(
    Matrix *matrix, const Findings *found, const int32_t *tokens, const int32_t *n_tokens,
    const int32_t *char_ends, const int32_t *token_ends, const int32_t *n_sentences, const Weighing *weighing,
    double *masses
) noexcept nogil:
    cdef Rows *rows = &matrix.rows
    cdef Py_ssize_t turn = rows.n
    cdef Row *row
    if reserve_rows(rows, turn + 1) < 0 or reserve_terms(
            &matrix.postings, found.table.n_terms) < 0:
        return -1
    row = new_row(tokens, n_tokens, char_ends, token_ends, n_sentences)
    if row == NULL:
        return -1
    if link(matrix, found.table, <uint32_t> turn, tokens, n_tokens[0], n_tokens[1], weighing, masses) < 0:
        unlink(matrix, <uint32_t> turn, row)
        free(row)
        return -1
    rows.rows[turn] = row
    rows.lengths[turn].user = n_tokens[0]
    rows.lengths[turn].assistant = n_tokens[1]
    rows.first_new_term[turn] = first_new_term(
        rows.first_new_term[turn - 1] if turn > 0 else 0, tokens, n_tokens[0] + n_tokens[1])
    rows.total_user += n_tokens[0]
    rows.total_assistant += n_tokens[1]
    rows.n += 1
    rows.n_live += 1
    return 0


cdef inline int append_rows(
    Matrix *matrix, const Findings *found, Py_ssize_t n_new, const Weighing *weighing, double *masses
) noexcept nogil:
    """Append n_new turns, two texts each. -1 without memory.

    masses[n_new + 1][n_ages + 1], all 0, gets the idf masses by age of each turn; the last row is scratch.
    """
    cdef Py_ssize_t i, token = 0, sentence = 0
    cdef Py_ssize_t width = weighing.n_ages + 1
    for i in range(n_new):
        if append_row(
                matrix, found, found.tokens + token, found.n_tokens + 2 * i, found.char_ends + sentence,
                found.token_ends + sentence, found.n_sentences + 2 * i, weighing, masses + i * width) < 0:
            return -1
        token += found.n_tokens[2 * i] + found.n_tokens[2 * i + 1]
        sentence += found.n_sentences[2 * i] + found.n_sentences[2 * i + 1]
    return 0
