"""Append-only postings: for each term its blocks in order, with how often each side holds it.

A term that one block holds sits in the term record itself; a longer list lives in a pool of
power-of-two pieces. The capacity of a list follows from its length, so it is not stored.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

cdef enum:
    MAX_TF = 65535
    TERM_BITS = 10
    TERM_CHUNK = 1024       # 1 << TERM_BITS
    N_CLASSES = 12          # pieces of 2 ** 1 to 2 ** 11 postings come from the pool
    MIN_POOL = 2048
    MAX_POOL = 65536


cdef struct Posting:
    uint32_t turn
    uint16_t tf_user
    uint16_t tf_assistant


cdef union Link:
    Posting single          # df 1
    Posting *many           # df 2 or more


cdef struct Term:
    Link link
    uint32_t df
    uint32_t last           # the last block that holds the term, where df > 0


cdef struct PoolChunk:
    PoolChunk *previous
    size_t used
    size_t size


cdef struct Postings:
    Term **chunks
    Py_ssize_t n_terms      # records that exist; terms beyond have none yet
    Py_ssize_t capacity
    PoolChunk *pool
    Posting *free_pieces[12]    # by size class; the first bytes of a free piece hold the next one


cdef inline void postings_init(Postings *postings) noexcept nogil:
    memset(postings, 0, sizeof(Postings))


cdef inline int size_class(uint32_t n) noexcept nogil:
    """The least c with 2 ** c >= n."""
    cdef int c = 0
    while (<uint32_t> 1 << c) < n:
        c += 1
    return c


cdef inline Term *term_of(const Postings *postings, Py_ssize_t term_id) noexcept nogil:
    return &postings.chunks[<size_t> term_id >> TERM_BITS][<size_t> term_id & (TERM_CHUNK - 1)]


cdef inline const Posting *list_of(const Term *term) noexcept nogil:
    return &term.link.single if term.df <= 1 else term.link.many


cdef inline int64_t last_turn(const Term *term) noexcept nogil:
    """The last block that holds the term, or -1."""
    return term.last if term.df > 0 else -1


cdef inline Posting *take_piece(Postings *postings, int c) noexcept nogil:
    cdef size_t n_bytes = sizeof(Posting) << c
    cdef size_t size
    cdef Posting *piece
    cdef PoolChunk *chunk = postings.pool
    if c >= N_CLASSES:
        return <Posting *> malloc(n_bytes)
    piece = postings.free_pieces[c]
    if piece != NULL:
        memcpy(&postings.free_pieces[c], piece, sizeof(Posting *))
        return piece
    if chunk == NULL or chunk.used + n_bytes > chunk.size:
        size = MIN_POOL if chunk == NULL else min(2 * chunk.size, <size_t> MAX_POOL)
        size = max(size, n_bytes)
        chunk = <PoolChunk *> malloc(sizeof(PoolChunk) + size)
        if chunk == NULL:
            return NULL
        chunk.previous = postings.pool
        chunk.used = 0
        chunk.size = size
        postings.pool = chunk
    piece = <Posting *> (<char *> (chunk + 1) + chunk.used)
    chunk.used += n_bytes
    return piece


cdef inline void give_piece(Postings *postings, Posting *piece, int c) noexcept nogil:
    if c >= N_CLASSES:
        free(piece)
        return
    memset(piece, 0, sizeof(Posting) << c)
    memcpy(piece, &postings.free_pieces[c], sizeof(Posting *))
    postings.free_pieces[c] = piece


cdef inline int reserve_terms(Postings *postings, Py_ssize_t n_terms) noexcept nogil:
    """Make records for the terms up to n_terms, without postings."""
    cdef Py_ssize_t chunk, room
    cdef Term **chunks
    cdef Term *terms
    while postings.capacity < n_terms:
        if 0 < postings.capacity < TERM_CHUNK:
            room = 2 * postings.capacity
            terms = <Term *> realloc(postings.chunks[0], room * sizeof(Term))
            if terms == NULL:
                return -1
            postings.chunks[0] = terms
            postings.capacity = room
            continue
        chunk = postings.capacity // TERM_CHUNK
        room = 64 if chunk == 0 else TERM_CHUNK
        chunks = <Term **> realloc(postings.chunks, (chunk + 1) * sizeof(Term *))
        if chunks == NULL:
            return -1
        postings.chunks = chunks
        terms = <Term *> malloc(room * sizeof(Term))
        if terms == NULL:
            return -1
        chunks[chunk] = terms
        postings.capacity += room
    while postings.n_terms < n_terms:
        memset(term_of(postings, postings.n_terms), 0, sizeof(Term))
        postings.n_terms += 1
    return 0


cdef inline Posting *push_posting(Postings *postings, Term *term, uint32_t turn) noexcept nogil:
    """Append an empty posting of `turn`; NULL when memory runs out."""
    cdef Posting *piece
    cdef int c
    term.last = turn
    if term.df == 0:
        term.df = 1
        memset(&term.link, 0, sizeof(Link))
        term.link.single.turn = turn
        return &term.link.single
    if term.df & (term.df - 1) == 0:     # 1, 2, 4, 8 ...: full
        c = size_class(term.df)
        piece = take_piece(postings, c + 1)
        if piece == NULL:
            return NULL
        memcpy(piece, list_of(term), term.df * sizeof(Posting))
        if term.df > 1:
            give_piece(postings, term.link.many, c)
        term.link.many = piece
    piece = &term.link.many[term.df]
    memset(piece, 0, sizeof(Posting))
    piece.turn = turn
    term.df += 1
    return piece


cdef inline Py_ssize_t position_of(const Term *term, uint32_t turn) noexcept nogil:
    """Where the list of `term` holds `turn`, or -1; by bisection."""
    cdef const Posting *postings = list_of(term)
    cdef Py_ssize_t low = 0, high = term.df, middle
    while low < high:
        middle = (low + high) // 2
        if postings[middle].turn < turn:
            low = middle + 1
        else:
            high = middle
    return low if low < term.df and postings[low].turn == turn else -1


cdef inline int drop_posting(Postings *postings, Term *term, Py_ssize_t position) noexcept nogil:
    """Take one posting out of a list, which moves to a smaller piece when it fits one."""
    cdef Posting *old
    cdef Posting *piece
    cdef Posting kept
    cdef uint32_t n = term.df - 1
    cdef int c
    if n == 0:
        term.df = 0
        memset(&term.link, 0, sizeof(Link))
        return 0
    old = term.link.many
    memmove(old + position, old + position + 1, (n - position) * sizeof(Posting))
    memset(old + n, 0, sizeof(Posting))
    if n & (n - 1) == 0:
        c = size_class(n + 1)
        if n == 1:
            kept = old[0]
            give_piece(postings, old, c)
            term.link.single = kept
        else:
            piece = take_piece(postings, c - 1)
            if piece == NULL:
                return -1
            memcpy(piece, old, n * sizeof(Posting))
            give_piece(postings, old, c)
            term.link.many = piece
    term.df = n
    term.last = list_of(term)[n - 1].turn
    return 0


cdef inline void free_large_pieces(Postings *postings) noexcept nogil:
    cdef Py_ssize_t i
    cdef Term *term
    for i in range(postings.n_terms):
        term = term_of(postings, i)
        if term.df > 1 and size_class(term.df) >= N_CLASSES:
            free(term.link.many)


cdef inline void free_pool(PoolChunk *pool) noexcept nogil:
    cdef PoolChunk *previous
    while pool != NULL:
        previous = pool.previous
        free(pool)
        pool = previous


cdef inline void postings_clear(Postings *postings) noexcept nogil:
    """Forget every posting; the records and one piece of the pool are kept for others."""
    free_large_pieces(postings)
    memset(postings.free_pieces, 0, sizeof(postings.free_pieces))
    postings.n_terms = 0
    if postings.pool != NULL:
        free_pool(postings.pool.previous)
        postings.pool.previous = NULL
        postings.pool.used = 0


cdef inline void postings_free(Postings *postings) noexcept nogil:
    cdef Py_ssize_t i
    free_large_pieces(postings)
    for i in range((postings.capacity + TERM_CHUNK - 1) // TERM_CHUNK):
        free(postings.chunks[i])
    free(postings.chunks)
    free_pool(postings.pool)
    postings_init(postings)
