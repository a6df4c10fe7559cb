"""The term table: exact 64-bit keys, dense ids, growth in small steps.

A key holds the term itself where it fits: up to 8 ASCII characters, or 1 to 3 CJK characters of 21 bits
under bit 63. Any other term is a hash under bit 7 of the lowest byte, its UTF-8 stored and compared, so
that two terms never share an id. The table is a directory of small open-addressing buckets (extendible
hashing): a full bucket grows up to MAX_SLOTS and then splits in two, so no insertion moves more than
MAX_SLOTS / 2 keys. A slot holds 32 bits of the key's hash, which place it, and the id; the key itself stands in the
entry of the id, so that the table that is probed stays small.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cdef enum:
    MIN_SLOTS = 64
    GROWTH = 4
    MAX_SLOTS = 4096
    ENTRY_BITS = 12
    ENTRY_CHUNK = 4096      # 1 << ENTRY_BITS
    MIN_ARENA = 1024
    MAX_ARENA = 65536

cdef enum:
    EMPTY = 0               # as an id_plus_1
    GONE = -1               # as an id_plus_1: the slot of a removed term
    REMOVED = 1             # as a key: no term has it, every byte of a packed one is a space or more


cdef struct Slot:
    uint32_t tag            # the key's hash: its high bits choose the bucket, its low bits the slot
    int32_t id_plus_1


cdef struct Bucket:
    uint32_t n_used         # removed slots included
    uint32_t n_slots
    uint32_t depth
    Slot slots[1]


cdef struct Entry:
    uint64_t key
    uint8_t *text           # NULL for a packed key; else its length in 2 bytes, then UTF-8


cdef struct ArenaChunk:
    ArenaChunk *previous
    uint32_t used
    uint32_t size
    uint8_t data[1]


cdef struct TermTable:
    Bucket **directory
    uint32_t depth
    Entry **chunks
    int32_t n_terms
    int32_t capacity        # entries allocated
    ArenaChunk *arena


cdef inline uint32_t tag_of(uint64_t key) noexcept nogil:
    key = (key ^ (key >> 32)) * <uint64_t> 0x9E3779B97F4A7C15
    return <uint32_t> (key >> 32)


cdef inline bint is_packed(uint64_t key) noexcept nogil:
    return (key >> 63) != 0 or (key & 0x80) == 0


cdef inline bint is_cjk_key(uint64_t key) noexcept nogil:
    return (key >> 63) != 0


cdef inline Entry *entry_of(const TermTable *table, int32_t term_id) noexcept nogil:
    return &table.chunks[<uint32_t> term_id >> ENTRY_BITS][<uint32_t> term_id & (ENTRY_CHUNK - 1)]


cdef inline Bucket *bucket_of(const TermTable *table, uint32_t tag) noexcept nogil:
    return table.directory[<uint64_t> tag >> (32 - table.depth)]


cdef inline Bucket *new_bucket(uint32_t n_slots, uint32_t depth) noexcept nogil:
    cdef Bucket *bucket = <Bucket *> calloc(1, sizeof(Bucket) + n_slots * sizeof(Slot))
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


cdef inline void table_free(TermTable *table) noexcept nogil:
    cdef uint32_t i = 0
    cdef int32_t chunk
    cdef Bucket *bucket
    cdef ArenaChunk *previous
    if table.directory != NULL:
        while i < (<uint32_t> 1 << table.depth):
            bucket = table.directory[i]
            if bucket == NULL:
                break
            i += <uint32_t> 1 << (table.depth - bucket.depth)
            free(bucket)
        free(table.directory)
    for chunk in range((table.capacity + ENTRY_CHUNK - 1) // ENTRY_CHUNK):
        free(table.chunks[chunk])
    free(table.chunks)
    while table.arena != NULL:
        previous = table.arena.previous
        free(table.arena)
        table.arena = previous
    memset(table, 0, sizeof(TermTable))


cdef inline uint16_t stored_length(const uint8_t *stored) noexcept nogil:
    """The length in front of a stored text, which stands at any address, odd ones too."""
    cdef uint16_t length
    memcpy(&length, stored, 2)
    return length


cdef inline bint same_text(const uint8_t *stored, const uint8_t *text, uint32_t length) noexcept nogil:
    return stored_length(stored) == length and memcmp(stored + 2, text, length) == 0


cdef inline Slot *find_slot(
    const TermTable *table, Bucket *bucket, uint32_t tag, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """The slot of a term, or the empty one where it would go. `text` is read for hashed keys only."""
    cdef uint32_t mask = bucket.n_slots - 1
    cdef uint32_t i = tag & mask
    cdef Slot *slot = &bucket.slots[i]
    cdef const Entry *entry
    while slot.id_plus_1 != EMPTY:
        if slot.tag == tag and slot.id_plus_1 > 0:
            entry = entry_of(table, slot.id_plus_1 - 1)
            if entry.key == key and (entry.text == NULL or same_text(entry.text, text, length)):
                return slot
        i = (i + 1) & mask
        slot = &bucket.slots[i]
    return slot


cdef inline int32_t table_find(
    const TermTable *table, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """The id of a term, or -1."""
    cdef uint32_t tag = tag_of(key)
    return find_slot(table, bucket_of(table, tag), tag, key, text, length).id_plus_1 - 1


cdef inline void bucket_put(Bucket *bucket, uint32_t tag, int32_t id_plus_1) noexcept nogil:
    cdef uint32_t mask = bucket.n_slots - 1
    cdef uint32_t i = tag & mask
    while bucket.slots[i].id_plus_1 != EMPTY:
        i = (i + 1) & mask
    bucket.slots[i].tag = tag
    bucket.slots[i].id_plus_1 = id_plus_1
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
        n += bucket.slots[i].id_plus_1 > 0
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
    cdef Slot slot
    for i in range(old.n_slots):
        slot = old.slots[i]
        if slot.id_plus_1 > 0:
            bucket_put(high if split and (slot.tag >> (31 - old.depth)) & 1 else low, slot.tag, slot.id_plus_1)
    span = <uint32_t> 1 << (table.depth - old.depth)
    first = <uint32_t> (<uint64_t> tag >> (32 - table.depth)) & ~(span - 1)
    for i in range(span):
        table.directory[first + i] = high if split and i >= span // 2 else low
    free(old)
    return 0


cdef inline int add_entry_room(TermTable *table) noexcept nogil:
    cdef int32_t chunk = table.n_terms // ENTRY_CHUNK
    cdef int32_t room
    cdef Entry **chunks
    cdef Entry *entries
    if table.n_terms < table.capacity:
        return 0
    if chunk == 0 and table.n_terms > 0:
        room = 2 * table.capacity
        entries = <Entry *> realloc(table.chunks[0], room * sizeof(Entry))
        if entries == NULL:
            return -1
        table.chunks[0] = entries
        table.capacity = room
        return 0
    room = MIN_SLOTS if chunk == 0 else ENTRY_CHUNK
    chunks = <Entry **> realloc(table.chunks, (chunk + 1) * sizeof(Entry *))
    if chunks == NULL:
        return -1
    table.chunks = chunks
    entries = <Entry *> malloc(room * sizeof(Entry))
    if entries == NULL:
        return -1
    chunks[chunk] = entries
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
    while 2 * (bucket.n_used + 1) > bucket.n_slots:
        if grow_bucket(table, tag) < 0:
            return -1
        bucket = bucket_of(table, tag)
    if table.n_terms == table.capacity and add_entry_room(table) < 0:
        return -1
    cdef int32_t term_id = table.n_terms
    cdef Entry *entry = entry_of(table, term_id)
    entry.key = key
    entry.text = NULL
    if not is_packed(key):
        entry.text = store_text(table, text, <uint16_t> length)
        if entry.text == NULL:
            return -1
    bucket_put(bucket, tag, term_id + 1)
    table.n_terms += 1
    return term_id


cdef inline int32_t table_add(
    TermTable *table, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    """The id of a term, given a new one when it is new; -1 when memory runs out."""
    cdef uint32_t tag = tag_of(key)
    cdef Bucket *bucket = bucket_of(table, tag)
    cdef Slot *slot = find_slot(table, bucket, tag, key, text, length)
    if slot.id_plus_1 != EMPTY:
        return slot.id_plus_1 - 1
    if 2 * (bucket.n_used + 1) > bucket.n_slots or table.n_terms == table.capacity or not is_packed(key):
        return new_term(table, tag, key, text, length)
    cdef Entry *entry = entry_of(table, table.n_terms)
    entry.key = key
    entry.text = NULL
    slot.tag = tag
    slot.id_plus_1 = table.n_terms + 1
    bucket.n_used += 1
    table.n_terms += 1
    return table.n_terms - 1


cdef inline void table_remove(TermTable *table, int32_t term_id) noexcept nogil:
    """Forget a term: its slot is freed and its text is overwritten; the id is never given again."""
    cdef Entry *entry = entry_of(table, term_id)
    cdef uint32_t tag = tag_of(entry.key)
    cdef Bucket *bucket = bucket_of(table, tag)
    cdef uint32_t i = tag & (bucket.n_slots - 1)
    cdef uint16_t length
    if entry.key <= REMOVED:
        return
    while bucket.slots[i].id_plus_1 != EMPTY:
        if bucket.slots[i].id_plus_1 == term_id + 1:
            bucket.slots[i].id_plus_1 = GONE
            bucket.slots[i].tag = 0
            break
        i = (i + 1) & (bucket.n_slots - 1)
    if entry.text != NULL:
        memcpy(&length, entry.text, 2)
        memset(entry.text, 0, length + 2)
    entry.key = REMOVED
    entry.text = NULL
