"""The scanner's state, the keys of terms, and how a term is handed over."""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from _core.buffers cimport IntBuffer, int_push, int_reserve
from _core.characters cimport CJK, Characters, class_of, folded
from _core.table cimport TermTable, fetch_slot, is_packed, stored_length, table_add, table_find, tag_of, text_key

cdef enum:
    MAX_WORD = 255          # characters; a longer word is no anchor
    MAX_PHRASE = 64         # characters between the quotes
    MAX_ENTRY = 4           # characters of a lexicon entry
    TEXT_ROOM = 1056        # bytes: 4 * MAX_WORD and some
    MAX_PENDING = 512       # keys handed over to the table at a time
    AHEAD = 16              # look-ups whose slots are fetched together
    PENDING_ROOM = 4096     # bytes of the texts of those that are hashed
    MAX_INDEX = 0x7FFFFFFF
    FIRST_HAN = 0x4E00
    N_HAN = 0x5200

cdef enum:
    FROM_WORD = 1           # a word, an identifier, a version, a CJK n-gram
    FROM_PHRASE = 2


cdef struct LexiconEntry:
    uint16_t length
    uint16_t protects       # 0: breaks a run; 1: its characters are content
    uint16_t characters[4]


cdef struct EntrySpan:
    uint16_t first_character
    uint16_t n_entries      # 0: an empty slot
    uint32_t first_entry


cdef struct Words:
    # the lexicon as the scanner reads it; constant once it is built
    Characters characters
    const TermTable *stop_words
    const uint64_t *stop_bits       # [64]: hashes of the stop words, most other words are told from them here
    const uint32_t *plain_han       # [0x5200 / 32]: which of U+4E00-9FFF are CJK, fold to themselves, begin no entry
    const LexiconEntry *entries     # by first character, longest first
    const EntrySpan *spans          # open addressing on the first character
    uint32_t span_mask
    const uint64_t *pair_bits       # [512]: hashes of the first two characters of all entries


cdef struct Scanner:
    const Words *words
    TermTable *table
    IntBuffer *stream               # term ids in order of occurrence
    IntBuffer *origins              # where each of them comes from, or NULL
    IntBuffer *starts               # where each of them begins in the text, or NULL
    IntBuffer *token_ends           # tokens up to the end of each sentence
    const int32_t *sentence_ends
    Py_ssize_t n_sentences
    Py_ssize_t sentence             # the sentence that the scanner stands in
    Py_ssize_t sentence_end         # where it ends
    Py_ssize_t double_quote_end     # where the last phrase of each symmetric quote was closed
    Py_ssize_t single_quote_end
    Py_ssize_t backtick_end
    bint failed                     # memory ran out
    Py_ssize_t n_tokens             # emitted in this text
    Py_ssize_t n_pending            # of them, those that have no id yet
    Py_ssize_t n_pending_bytes
    uint64_t pending[MAX_PENDING]   # their keys
    uint8_t pending_texts[PENDING_ROOM]     # of the hashed ones: the length in 2 bytes, then UTF-8
    uint8_t text[TEXT_ROOM]


cdef inline uint64_t cjk_key(uint32_t a, uint32_t b, uint32_t c) noexcept nogil:
    return (<uint64_t> 1 << 63) | a | (<uint64_t> b << 21) | (<uint64_t> c << 42)


cdef inline uint64_t key_of_text(const Words *words, const uint8_t *text, uint32_t length) noexcept nogil:
    """The key of a folded text, UTF-8: the packed CJK key when it is 1 to 3 CJK characters."""
    cdef uint32_t points[4]
    cdef uint32_t i = 0, n_points = 0, c
    points[1] = points[2] = 0
    while i < length and n_points < 4 and text[i] >= 0xE0:
        if text[i] < 0xF0:
            c = ((text[i] & 0x0F) << 12) | ((text[i + 1] & 0x3F) << 6) | (text[i + 2] & 0x3F)
            i += 3
        else:
            c = (((text[i] & 0x07) << 18) | ((text[i + 1] & 0x3F) << 12)
                 | ((text[i + 2] & 0x3F) << 6) | (text[i + 3] & 0x3F))
            i += 4
        if class_of(&words.characters, c) < CJK:
            break
        points[n_points] = c
        n_points += 1
    else:
        if i == length and 1 <= n_points <= 3:
            return cjk_key(points[0], points[1], points[2])
    return text_key(text, length)


cdef inline void enter_sentence(Scanner *scanner, Py_ssize_t start) noexcept nogil:
    """Close the sentences that end at or before `start`."""
    while (scanner.sentence < scanner.n_sentences
           and start >= scanner.sentence_ends[scanner.sentence]):
        if int_push(scanner.token_ends, <int32_t> scanner.n_tokens) < 0:
            scanner.failed = True
        scanner.sentence += 1
    scanner.sentence_end = (
        scanner.sentence_ends[scanner.sentence] if scanner.sentence < scanner.n_sentences else MAX_INDEX)


cdef inline void intern_pending(Scanner *scanner) noexcept nogil:
    """Give the pending keys their ids, in order. Apart from the scan, so that the look-ups overlap."""
    cdef TermTable *table = scanner.table
    cdef IntBuffer *stream = scanner.stream
    cdef const uint8_t *text = &scanner.pending_texts[0]
    cdef Py_ssize_t n = scanner.n_pending, i, j
    cdef int32_t *ids
    cdef int32_t term_id
    cdef uint64_t key
    cdef uint32_t length
    scanner.n_pending = scanner.n_pending_bytes = 0
    if int_reserve(stream, stream.size + n) < 0:
        scanner.failed = True
        return
    ids = stream.data + stream.size
    for i in range(n):
        if i % AHEAD == 0:
            for j in range(i, min(i + AHEAD, n)):
                fetch_slot(table, scanner.pending[j])
        key = scanner.pending[i]
        if is_packed(key):
            term_id = table_add(table, key, NULL, 0)
        else:
            length = stored_length(text)
            term_id = table_add(table, key, text + 2, length)
            text += 2 + length
        if term_id < 0:
            scanner.failed = True
            return
        ids[i] = term_id
    stream.size += n


cdef inline void emit(
    Scanner *scanner, uint64_t key, uint32_t length, Py_ssize_t start, uint8_t origin
) noexcept nogil:
    """Hand over one token; the text of a key that is hashed stands in scanner.text."""
    cdef uint16_t stored = <uint16_t> length
    cdef uint8_t *text
    if scanner.n_pending == MAX_PENDING or scanner.n_pending_bytes > PENDING_ROOM - TEXT_ROOM - 2:
        intern_pending(scanner)
    if start >= scanner.sentence_end:
        enter_sentence(scanner, start)
    scanner.pending[scanner.n_pending] = key
    scanner.n_pending += 1
    scanner.n_tokens += 1
    if not is_packed(key):
        text = scanner.pending_texts + scanner.n_pending_bytes
        memcpy(text, &stored, 2)
        memcpy(text + 2, &scanner.text[0], length)
        scanner.n_pending_bytes += 2 + length
    if scanner.origins != NULL and (
        int_push(scanner.origins, origin) < 0 or int_push(scanner.starts, <int32_t> start) < 0
    ):
        scanner.failed = True


cdef inline bint is_stop_word(
    const Words *words, uint64_t key, const uint8_t *text, uint32_t length
) noexcept nogil:
    cdef uint32_t tag = tag_of(key)
    return ((words.stop_bits[(tag >> 6) & 63] >> (tag & 63)) & 1
            and table_find(words.stop_words, key, text, length) >= 0)
