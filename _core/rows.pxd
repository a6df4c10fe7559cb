"""The rows of the term matrix: for each turn its term ids in order, with the bounds of its sentences."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset


cdef struct Row:
    int32_t n_tokens[2]         # user, assistant
    int32_t n_sentences[2]
    int32_t data[1]             # for each side: sentence ends in characters, in tokens; then the term ids


cdef struct SideLengths:
    uint32_t user
    uint32_t assistant


cdef struct Rows:
    Row **rows                  # NULL: forgotten
    SideLengths *lengths        # tokens of each side; 0 once forgotten
    int32_t *first_new_term     # terms of the vocabulary before each turn was added
    Py_ssize_t n
    Py_ssize_t capacity
    Py_ssize_t n_live           # rows that are not forgotten
    int64_t total_user          # tokens of all user sides
    int64_t total_assistant


cdef inline int32_t *char_ends_of(Row *row, int side) noexcept nogil:
    cdef int32_t *data = &row.data[0]
    return data if side == 0 else data + 2 * row.n_sentences[0]


cdef inline int32_t *token_ends_of(Row *row, int side) noexcept nogil:
    return char_ends_of(row, side) + row.n_sentences[side]


cdef inline int32_t *tokens_of(Row *row, int side) noexcept nogil:
    cdef int32_t *tokens = &row.data[0] + 2 * (row.n_sentences[0] + row.n_sentences[1])
    return tokens if side == 0 else tokens + row.n_tokens[0]


cdef inline int reserve_rows(Rows *rows, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t capacity = rows.capacity if rows.capacity > 0 else 16
    cdef void *moved
    if n <= rows.capacity:
        return 0
    while capacity < n:
        capacity *= 2
    moved = realloc(rows.rows, capacity * sizeof(Row *))
    if moved == NULL:
        return -1
    rows.rows = <Row **> moved
    moved = realloc(rows.lengths, capacity * sizeof(SideLengths))
    if moved == NULL:
        return -1
    rows.lengths = <SideLengths *> moved
    moved = realloc(rows.first_new_term, capacity * sizeof(int32_t))
    if moved == NULL:
        return -1
    rows.first_new_term = <int32_t *> moved
    rows.capacity = capacity
    return 0


cdef inline Row *new_row(
    const int32_t *tokens, const int32_t *n_tokens, const int32_t *char_ends, const int32_t *token_ends,
    const int32_t *n_sentences
) noexcept nogil:
    """A row from both sides' findings, which stand one behind the other in each array; NULL without memory."""
    cdef Py_ssize_t all_tokens = n_tokens[0] + n_tokens[1]
    cdef Py_ssize_t all_sentences = n_sentences[0] + n_sentences[1]
    cdef Row *row = <Row *> malloc(sizeof(Row) + (all_tokens + 2 * all_sentences) * sizeof(int32_t))
    cdef int side
    cdef Py_ssize_t done = 0
    if row == NULL:
        return NULL
    for side in range(2):
        row.n_tokens[side] = n_tokens[side]
        row.n_sentences[side] = n_sentences[side]
    for side in range(2):
        memcpy(char_ends_of(row, side), char_ends + done, n_sentences[side] * sizeof(int32_t))
        memcpy(token_ends_of(row, side), token_ends + done, n_sentences[side] * sizeof(int32_t))
        done += n_sentences[side]
    memcpy(tokens_of(row, 0), tokens, all_tokens * sizeof(int32_t))
    return row


cdef inline void drop_row(Rows *rows, Py_ssize_t turn) noexcept nogil:
    """Wipe and free one row; its place stays."""
    cdef Row *row = rows.rows[turn]
    cdef Py_ssize_t size
    if row == NULL:
        return
    size = sizeof(Row) + (row.n_tokens[0] + row.n_tokens[1]
                          + 2 * (row.n_sentences[0] + row.n_sentences[1])) * sizeof(int32_t)
    rows.n_live -= 1
    rows.total_user -= rows.lengths[turn].user
    rows.total_assistant -= rows.lengths[turn].assistant
    rows.lengths[turn].user = rows.lengths[turn].assistant = 0
    memset(row, 0, size)
    free(row)
    rows.rows[turn] = NULL


cdef inline void rows_clear(Rows *rows) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(rows.n):
        drop_row(rows, i)
    rows.n = 0


cdef inline void rows_free(Rows *rows) noexcept nogil:
    rows_clear(rows)
    free(rows.rows)
    free(rows.lengths)
    free(rows.first_new_term)
    memset(rows, 0, sizeof(Rows))
