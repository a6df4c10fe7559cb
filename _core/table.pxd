"""The term table: exact 64-bit keys, dense ids, growth in small steps.

A key holds the term itself where it fits: up to 8 ASCII characters, or 1 to 3 CJK characters of 21 bits
under bit 63. Any other term is a hash under bit 7 of the lowest byte, its UTF-8 stored and compared, so
that two terms never share an id. The table is a directory of small open-addressing buckets (extendible
hashing): a full bucket grows up to MAX_SLOTS and then splits in two, so no insertion moves more than
MAX_SLOTS / 2 keys. The keys of a bucket stand together and its ids behind them, so that a look-up reads one place.
For each id the table keeps a name, from which the term is spelled: the packed key, or where its text is.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define gatekeeper_fetch(address) __builtin_prefetch(address)
    #else
    #define gatekeeper_fetch(address) ((void)(address))
    #endif
    """
    void gatekeeper_fetch(const void *address) nogil

cdef enum:
    MIN_SLOTS = 64
    GROWTH = 2
    MAX_SLOTS = 1024
    NAME_BITS = 10
    NAME_CHUNK = 1024       # 1 << NAME_BITS
    MIN_ARENA = 1024
    MAX_ARENA = 65536

cdef enum:
    EMPTY = 0               # as a key: a free slot
    REMOVED = 1             # as a key or a name: a forgotten term; every byte of a packed key is a space or more


cdef struct Bucket:
    uint32_t n_used         # removed slots included
    uint32_t n_slots
    uint32_t depth
    uint32_t unused
    uint64_t keys[1]        # [n_slots], then int32 ids[n_slots]


cdef struct ArenaChunk:
    ArenaChunk *previous
    uint32_t used
    uint32_t size
    uint8_t data[1]


cdef struct TermTable:
    Bucket **directory
    uint32_t depth
    uint64_t **chunks       # of the names, by id
    int32_t n_terms
    int32_t capacity        # names allocated
    ArenaChunk *arena       # texts: the length in 2 bytes, then UTF-8


cdef inline uint32_t tag_of(uint64_t key) noexcept nogil:
    """The key's hash: its high bits choose the bucket, its low bits the slot."""
    key = (key ^ (key >> 32)) * <uint64_t> 0x9E3779B97F4A7C15
    return <uint32_t> (key >> 32)


cdef inline bint is_packed(uint64_t key) noexcept nogil:
    """Whether a key or a name holds the term itself."""
    return (key >> 63) != 0 or (key & 0x80) == 0


cdef inline bint is_cjk_key(uint64_t key) noexcept nogil:
    return (key >> 63) != 0


cdef inline uint64_t *name_of(const TermTable *table, int32_t term_id) noexcept nogil:
    return &table.chunks[<uint32_t> term_id >> NAME_BITS][<uint32_t> term_id & (NAME_CHUNK - 1)]


cdef inline uint64_t name_of_text(const uint8_t *stored) noexcept nogil:
    """The name of a term by the place of its text: addresses have less than 55 bits."""
    return (<uint64_t> <size_t> stored << 8) | 0x80


cdef inline uint8_t *text_of(uint64_t name) noexcept nogil:
    return <uint8_t *> <size_t> (name >> 8)


cdef inline uint64_t text_key(const uint8_t *text, uint32_t length) noexcept nogil:
    """The key of a term given as UTF-8: packed where it is at most 8 printable ASCII characters."""
    cdef uint64_t key = 0
    cdef uint64_t h = length
    cdef uint64_t part
    cdef uint32_t i
    if length <= 8:
        for i in range(length):
            if not 0x20 <= text[i] <= 0x7E:
                break
            key |= <uint64_t> text[i] << (8 * i)
        else:
            return key
    for i in range(0, length, 8):
        part = 0
        memcpy(&part, text + i, min(length - i, <uint32_t> 8))
        h = (h ^ part) * <uint64_t> 0x9E3779B97F4A7C15
        h ^= h >> 29
    return (h & <uint64_t> 0x7FFFFFFFFFFFFFFF) | 0x80


cdef inline int32_t *ids_of(Bucket *bucket) noexcept nogil:
    return <int32_t *> (&bucket.keys[0] + bucket.n_slots)


cdef inline Bucket *bucket_of(const TermTable *table, uint32_t tag) noexcept nogil:
    return table.directory[<uint64_t> tag >> (32 - table.depth)]


cdef inline Bucket *new_bucket(uint32_t n_slots, uint32_t depth) noexcept nogil:
    cdef Bucket *bucket = <Bucket *> calloc(1, sizeof(Bucket) + n_slots * (sizeof(uint64_t) + sizeof(int32_t)))
    if bucket != NULL:
        bucket.n_slots = n_slots
        bucket.depth = depth
    return bucket


cdef inline int table_init(TermTable *table) noexcept nogil:
    memset(table, 0, sizeof(TermTable))
    table.directory = <Bucket **> malloc(sizeof(Bucket *))
    if table.directory == NULL:
        return -1
    table.directory[0] = new_bucket(MIN_SLOTS, 0)
    return 0 if table.directory[0] != NULL else -1


cdef inline void free_arena(ArenaChunk *arena) noexcept nogil:
    cdef ArenaChunk *previous
    while arena != NULL:
        previous = arena.previous
        free(arena)
        arena = previous


cdef inline void table_free(TermTable *table) noexcept nogil:
    cdef uint32_t i = 0
    cdef int32_t chunk
    cdef Bucket *bucket
    if table.directory != NULL:
        while i < (<uint32_t> 1 << table.depth):
            bucket = table.directory[i]
            if bucket == NULL:
                break
            i += <uint32_t> 1 << (table.depth - bucket.depth)
            free(bucket)
        free(table.directory)
    for chunk in range((table.capacity + NAME_CHUNK - 1) // NAME_CHUNK):
        free(table.chunks[chunk])
    free(table.chunks)
    free_arena(table.arena)
    memset(table, 0, sizeof(TermTable))


cdef inline void table_clear(TermTable *table) noexcept nogil:
    """Forget every term, wipe what was stored, and keep the memory for the next ones."""
    cdef uint32_t i = 0
    cdef int32_t chunk
    cdef Bucket *bucket
    while i < (<uint32_t> 1 << table.depth):
        bucket = table.directory[i]
        i += <uint32_t> 1 << (table.depth - bucket.depth)
        if bucket.n_used > 0:
            memset(&bucket.keys[0], 0, bucket.n_slots * sizeof(uint64_t))
            bucket.n_used = 0
    for chunk in range((table.n_terms + NAME_CHUNK - 1) // NAME_CHUNK):
        memset(table.chunks[chunk], 0, min(table.n_terms - chunk * NAME_CHUNK, <int32_t> NAME_CHUNK) * sizeof(uint64_t))
    if table.arena != NULL:
        free_arena(table.arena.previous)
        table.arena.previous = NULL
        memset(&table.arena.data[0], 0, table.arena.used)
        table.arena.used = 0
    table.n_terms = 0


cdef inline uint16_t stored_length(const uint8_t *stored) noexcept nogil:
    """The length in front of a stored text, which stands at any address, odd ones too."""
    cdef uint16_t length
    memcpy(&length, stored, 2)
    return length


cdef inline bint same_text(const uint8_t *stored, const uint8_t *text, uint32_t length) noexcept nogil:
    return stored_length(stored) == length and memcmp(stored + 2, text, length) == 0


cdef inline void fetch_slot(const TermTable *table, uint64_t key) noexcept nogil:
    """Bring where a key would stand into the cache, ahead of its look-up."""
    cdef uint32_t tag = tag_of(key)
    cdef Bucket *bucket = bucket_of(table, tag)
    cdef uint32_t i = tag & (bucket.n_slots - 1)
    gatekeeper_fetch(&bucket.keys[i])
    gatekeeper_fetch(ids_of(bucket) + i)


cdef inline uint32_t slot_of(
    const TermTable *table, Bucket *bucket, uint32_t tag, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """The slot of a term, or the empty one where it would go. `text` is read for hashed keys only."""
    cdef uint32_t mask = bucket.n_slots - 1
    cdef uint32_t i = tag & mask
    while bucket.keys[i] != EMPTY:
        if bucket.keys[i] == key and (
                is_packed(key) or same_text(text_of(name_of(table, ids_of(bucket)[i])[0]), text, length)):
            return i
        i = (i + 1) & mask
    return i


cdef inline int32_t table_find(
    const TermTable *table, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """The id of a term, or -1."""
    cdef uint32_t tag = tag_of(key)
    cdef Bucket *bucket = bucket_of(table, tag)
    cdef uint32_t i = slot_of(table, bucket, tag, key, text, length)
    return ids_of(bucket)[i] if bucket.keys[i] != EMPTY else -1


cdef inline void bucket_put(Bucket *bucket, uint64_t key, int32_t term_id) noexcept nogil:
    cdef uint32_t mask = bucket.n_slots - 1
    cdef uint32_t i = tag_of(key) & mask
    while bucket.keys[i] != EMPTY:
        i = (i + 1) & mask
    bucket.keys[i] = key
    ids_of(bucket)[i] = term_id
    bucket.n_used += 1


cdef inline int double_directory(TermTable *table) noexcept nogil:
    cdef uint32_t n = <uint32_t> 1 << table.depth
    cdef uint32_t i
    cdef Bucket **directory = <Bucket **> malloc(2 * n * sizeof(Bucket *))
    if directory == NULL:
        return -1
    for i in range(n):
        directory[2 * i] = directory[2 * i + 1] = table.directory[i]
    free(table.directory)
    table.directory = directory
    table.depth += 1
    return 0


cdef inline uint32_t n_live_slots(const Bucket *bucket) noexcept nogil:
    cdef uint32_t i, n = 0
    for i in range(bucket.n_slots):
        n += bucket.keys[i] > REMOVED
    return n


cdef inline int grow_bucket(TermTable *table, uint32_t tag) noexcept nogil:
    """Make room in the bucket of a tag: make it GROWTH times as large, or split it when it is as large as it may be.

    A bucket that is mostly removed slots is only cleared of them.
    """
    cdef Bucket *old = bucket_of(table, tag)
    cdef bint crowded = 4 * n_live_slots(old) > old.n_slots
    cdef bint split = crowded and old.n_slots >= MAX_SLOTS
    if split and old.depth == table.depth and double_directory(table) < 0:
        return -1
    cdef uint32_t depth = old.depth + 1 if split else old.depth
    cdef Bucket *low = new_bucket(GROWTH * old.n_slots if crowded and not split else old.n_slots, depth)
    cdef Bucket *high = new_bucket(old.n_slots, depth) if split else low
    if low == NULL or high == NULL:
        if high != low:
            free(high)
        free(low)
        return -1
    cdef uint32_t i, span, first
    cdef uint64_t key
    for i in range(old.n_slots):
        key = old.keys[i]
        if key > REMOVED:
            bucket_put(high if split and (tag_of(key) >> (31 - old.depth)) & 1 else low, key, ids_of(old)[i])
    span = <uint32_t> 1 << (table.depth - old.depth)
    first = <uint32_t> (<uint64_t> tag >> (32 - table.depth)) & ~(span - 1)
    for i in range(span):
        table.directory[first + i] = high if split and i >= span // 2 else low
    free(old)
    return 0


cdef inline int add_name_room(TermTable *table) noexcept nogil:
    cdef int32_t chunk = table.n_terms // NAME_CHUNK
    cdef int32_t room
    cdef uint64_t **chunks
    cdef uint64_t *names
    if table.n_terms < table.capacity:
        return 0
    if chunk == 0 and table.n_terms > 0:
        room = 2 * table.capacity
        names = <uint64_t *> realloc(table.chunks[0], room * sizeof(uint64_t))
        if names == NULL:
            return -1
        table.chunks[0] = names
        table.capacity = room
        return 0
    room = MIN_SLOTS if chunk == 0 else NAME_CHUNK
    chunks = <uint64_t **> realloc(table.chunks, (chunk + 1) * sizeof(uint64_t *))
    if chunks == NULL:
        return -1
    table.chunks = chunks
    names = <uint64_t *> malloc(room * sizeof(uint64_t))
    if names == NULL:
        return -1
    chunks[chunk] = names
    table.capacity += room
    return 0


cdef inline uint8_t *store_text(TermTable *table, const uint8_t *text, uint16_t length) noexcept nogil:
    cdef ArenaChunk *arena = table.arena
    cdef uint32_t size
    if arena == NULL or arena.used + length + 2 > arena.size:
        size = MIN_ARENA if arena == NULL else min(2 * arena.size, MAX_ARENA)
        size = max(size, <uint32_t> length + 2)
        arena = <ArenaChunk *> malloc(sizeof(ArenaChunk) + size)
        if arena == NULL:
            return NULL
        arena.previous = table.arena
        arena.used = 0
        arena.size = size
        table.arena = arena
    cdef uint8_t *stored = &arena.data[0] + arena.used
    memcpy(stored, &length, 2)
    memcpy(stored + 2, text, length)
    arena.used += length + 2
    return stored


cdef inline int32_t new_term(
    TermTable *table, uint32_t tag, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """Give a term that the table does not hold the next id; -1 when memory runs out."""
    cdef Bucket *bucket = bucket_of(table, tag)
    cdef uint64_t name = key
    cdef uint8_t *stored
    while 2 * (bucket.n_used + 1) > bucket.n_slots:
        if grow_bucket(table, tag) < 0:
            return -1
        bucket = bucket_of(table, tag)
    if table.n_terms == table.capacity and add_name_room(table) < 0:
        return -1
    if not is_packed(key):
        stored = store_text(table, text, <uint16_t> length)
        if stored == NULL:
            return -1
        name = name_of_text(stored)
    name_of(table, table.n_terms)[0] = name
    bucket_put(bucket, key, table.n_terms)
    table.n_terms += 1
    return table.n_terms - 1


cdef inline int32_t table_add(
    TermTable *table, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """The id of a term, given a new one when it is new; -1 when memory runs out."""
    cdef uint32_t tag = tag_of(key)
    cdef Bucket *bucket = bucket_of(table, tag)
    cdef uint32_t i = slot_of(table, bucket, tag, key, text, length)
    if bucket.keys[i] != EMPTY:
        return ids_of(bucket)[i]
    if 2 * (bucket.n_used + 1) > bucket.n_slots or table.n_terms == table.capacity or not is_packed(key):
        return new_term(table, tag, key, text, length)
    bucket.keys[i] = key
    ids_of(bucket)[i] = table.n_terms
    name_of(table, table.n_terms)[0] = key
    bucket.n_used += 1
    table.n_terms += 1
    return table.n_terms - 1


cdef inline void table_remove(TermTable *table, int32_t term_id) noexcept nogil:
    """Forget a term: its slot is freed and its text is overwritten; the id is never given again."""
    cdef uint64_t *name = name_of(table, term_id)
    cdef uint64_t key = name[0]
    cdef uint8_t *stored = NULL
    cdef uint32_t tag, i
    cdef Bucket *bucket
    if key <= REMOVED:
        return
    if not is_packed(key):
        stored = text_of(name[0])
        key = text_key(stored + 2, stored_length(stored))
    tag = tag_of(key)
    bucket = bucket_of(table, tag)
    i = tag & (bucket.n_slots - 1)
    while bucket.keys[i] != EMPTY:
        if ids_of(bucket)[i] == term_id and bucket.keys[i] == key:
            bucket.keys[i] = REMOVED
            break
        i = (i + 1) & (bucket.n_slots - 1)
    if stored != NULL:
        memset(stored, 0, stored_length(stored) + 2)
    name[0] = REMOVED
