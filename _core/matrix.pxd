"""How the term matrix grows and shrinks by a turn: rows and postings together."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free

from _core.csr cimport inverse_document_frequency
from _core.postings cimport (
    MAX_TF,
    Posting,
    Postings,
    Term,
    drop_posting,
    last_turn,
    list_of,
    position_of,
    push_posting,
    reserve_terms,
    term_of,
)
from _core.rows cimport Row, Rows, new_row, reserve_rows, tokens_of
from _core.table cimport TermTable, entry_of, is_cjk_key

cdef enum:
    IDF_CACHE = 64


cdef struct Matrix:
    Postings postings
    Rows rows
    uint32_t mark               # of the append in progress


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


cdef inline bint mass_above(
    Matrix *matrix, const TermTable *table, const int32_t *tokens, Py_ssize_t n, double *masses,
    int32_t n_ages, double floor, double ngram_weight, double unseen_weight
) noexcept nogil:
    """Sum the weights of the distinct terms into masses[age], in order of first occurrence; whether there was one.

    CJK n-grams with an idf below the floor are left out.
    """
    cdef double cached[IDF_CACHE]
    cdef double idf
    cdef bint found = False
    cdef Term *term
    cdef int64_t age
    cdef Py_ssize_t i
    for i in range(IDF_CACHE):
        cached[i] = 0.0
    matrix.mark += 1
    for i in range(n):
        term = term_of(&matrix.postings, tokens[i])
        if term.mark == matrix.mark:
            continue
        term.mark = matrix.mark
        if term.df >= IDF_CACHE:
            idf = inverse_document_frequency(term.df, matrix.rows.n_live)
        else:
            if cached[term.df] == 0.0:
                cached[term.df] = inverse_document_frequency(term.df, matrix.rows.n_live)
            idf = cached[term.df]
        if is_cjk_key(entry_of(table, tokens[i]).key):
            if idf < floor:
                continue
            idf *= ngram_weight
        if term.df == 0:
            idf *= unseen_weight
        age = matrix.rows.n - last_turn(term) if term.df > 0 else 0
        masses[age if age <= n_ages else 0] += idf
        found = True
    return found


cdef inline void mass_by_age(
    Matrix *matrix, const TermTable *table, const int32_t *tokens, Py_ssize_t n, double *masses,
    int32_t n_ages, double ngram_floor, double ngram_weight, double unseen_weight
) noexcept nogil:
    """Sum the weights of the terms above the floor by age; of all of them where the floor would leave nothing."""
    cdef double floor = min(ngram_floor, inverse_document_frequency(1, matrix.rows.n_live))
    if not mass_above(matrix, table, tokens, n, masses, n_ages, floor, ngram_weight, unseen_weight):
        mass_above(matrix, table, tokens, n, masses, n_ages, 0.0, ngram_weight, unseen_weight)


cdef inline int link(
    Matrix *matrix, uint32_t turn, const int32_t *tokens, Py_ssize_t n_user, Py_ssize_t n_assistant
) noexcept nogil:
    """Count every token in the postings of its term."""
    cdef Term *term
    cdef Posting *posting
    cdef Py_ssize_t i
    for i in range(n_user + n_assistant):
        term = term_of(&matrix.postings, tokens[i])
        if term.df > 0 and last_turn(term) == turn:
            posting = <Posting *> list_of(term) + term.df - 1
        else:
            posting = push_posting(&matrix.postings, term, turn)
            if posting == NULL:
                return -1
        if i < n_user:
            posting.tf_user += posting.tf_user < MAX_TF
        else:
            posting.tf_assistant += posting.tf_assistant < MAX_TF
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
    const int32_t *char_ends, const int32_t *token_ends, const int32_t *n_sentences, double *masses, int32_t n_ages,
    double ngram_floor, double ngram_weight, double unseen_weight
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
    mass_by_age(matrix, found.table, tokens, n_tokens[0], masses, n_ages, ngram_floor, ngram_weight, unseen_weight)
    if link(matrix, <uint32_t> turn, tokens, n_tokens[0], n_tokens[1]) < 0:
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
    Matrix *matrix, const Findings *found, Py_ssize_t n_new, double *masses, int32_t n_ages, double ngram_floor,
    double ngram_weight, double unseen_weight
) noexcept nogil:
    """Append n_new turns, two texts each; masses[n_new][n_ages + 1] gets their idf masses by age. -1 without memory."""
    cdef Py_ssize_t i, token = 0, sentence = 0
    for i in range(n_new):
        if append_row(
                matrix, found, found.tokens + token, found.n_tokens + 2 * i, found.char_ends + sentence,
                found.token_ends + sentence, found.n_sentences + 2 * i, masses + i * (n_ages + 1), n_ages,
                ngram_floor, ngram_weight, unseen_weight) < 0:
            return -1
        token += found.n_tokens[2 * i] + found.n_tokens[2 * i + 1]
        sentence += found.n_sentences[2 * i] + found.n_sentences[2 * i + 1]
    return 0
