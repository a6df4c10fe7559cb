"""The scanner: one pass over a text, terms handed over as they are met.

What a term is stands in docs/algorithm.md; tests/reference.py says the same in plain Python.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from _core.buffers cimport IntBuffer, int_push
from _core.characters cimport (
    CJK,
    CJK_FUNCTION,
    CJK_STARTER,
    DIGIT,
    LETTER,
    QUOTE,
    SPACE,
    UNDERSCORE,
    UPPER,
    Characters,
    begins_word,
    char_t,
    class_of,
    folded,
    in_word,
    put_utf8,
)
from _core.table cimport TermTable, table_add, table_find, tag_of

cdef enum:
    MAX_WORD = 255          # characters; a longer word is no anchor
    MAX_PHRASE = 64         # characters between the quotes
    MAX_ENTRY = 4           # characters of a lexicon entry
    TEXT_ROOM = 1056        # bytes: 4 * MAX_WORD and some
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
    Py_ssize_t first_token
    Py_ssize_t double_quote_end     # where the last phrase of each symmetric quote was closed
    Py_ssize_t single_quote_end
    Py_ssize_t backtick_end
    bint failed                     # memory ran out
    uint8_t text[TEXT_ROOM]


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
        if int_push(scanner.token_ends, <int32_t> (scanner.stream.size - scanner.first_token)) < 0:
            scanner.failed = True
        scanner.sentence += 1
    scanner.sentence_end = (
        scanner.sentence_ends[scanner.sentence] if scanner.sentence < scanner.n_sentences else MAX_INDEX)


cdef inline void emit(
    Scanner *scanner, uint64_t key, uint32_t length, Py_ssize_t start, uint8_t origin
) noexcept nogil:
    cdef int32_t term_id = table_add(scanner.table, key, scanner.text, length)
    if start >= scanner.sentence_end:
        enter_sentence(scanner, start)
    if term_id < 0 or int_push(scanner.stream, term_id) < 0:
        scanner.failed = True
        return
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


cdef inline bint is_apostrophe(uint32_t c) noexcept nogil:
    return c == 0x27 or c == 0x2019


cdef inline bint touches_apostrophe(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Whether s[start:end] is cut off from a word by an apostrophe: the T of DON'T, the O of O'Brien."""
    if (start >= 2 and is_apostrophe(folded(&words.characters, s[start - 1]))
            and in_word(class_of(&words.characters, s[start - 2]))):
        return True
    return (end + 1 < n and is_apostrophe(folded(&words.characters, s[end]))
            and in_word(class_of(&words.characters, s[end + 1])))


cdef inline bint is_name_letter(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Whether the one-letter run at `start` is a capital that stands for a name (R, C; not A, I)."""
    cdef uint32_t letter = folded(&words.characters, s[start])
    return (class_of(&words.characters, s[start]) == UPPER and 0x61 <= letter <= 0x7A and letter != 0x61
            and letter != 0x69 and not touches_apostrophe(words, s, n, start, start + 1))


cdef inline void emit_word(
    Scanner *scanner, const char_t *s, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Emit the folded text of s[start:end] unless it is one character, a stop word or too long."""
    cdef const Words *words = scanner.words
    cdef uint32_t length = 0
    cdef uint64_t key
    cdef Py_ssize_t i
    if end - start < 2 or end - start > MAX_WORD:
        return
    for i in range(start, end):
        length += put_utf8(scanner.text + length, folded(&words.characters, s[i]))
    key = text_key(scanner.text, length)
    if not is_stop_word(words, key, scanner.text, length):
        emit(scanner, key, length, start, FROM_WORD)


cdef inline bint is_part_boundary(
    const Words *words, const char_t *s, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Whether a part of an identifier begins at i: getUser|Name, HTTP|Server."""
    cdef uint32_t before = class_of(&words.characters, s[i - 1])
    if class_of(&words.characters, s[i]) != UPPER:
        return False
    if before == LETTER or before == DIGIT:
        return True
    return before == UPPER and i + 1 < end and class_of(&words.characters, s[i + 1]) == LETTER


cdef inline void emit_parts(
    Scanner *scanner, const char_t *s, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Emit the parts of a run: at underscores and at capitals inside it. Nothing if it has only one."""
    cdef const Words *words = scanner.words
    cdef Py_ssize_t first = start
    cdef Py_ssize_t i
    for i in range(start, end):
        if class_of(&words.characters, s[i]) == UNDERSCORE:
            emit_word(scanner, s, first, i)
            first = i + 1
        elif i > first and is_part_boundary(words, s, i, end):
            emit_word(scanner, s, first, i)
            first = i
    if first > start:
        emit_word(scanner, s, first, end)


cdef inline Py_ssize_t run_end(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t i, bint *has_parts
) noexcept nogil:
    """The index behind the run of word characters at i; has_parts: an underscore or an inner capital."""
    cdef uint32_t character_class
    i += 1
    while i < n:
        character_class = class_of(&words.characters, s[i])
        if not in_word(character_class):
            break
        if character_class == UPPER or character_class == UNDERSCORE:
            has_parts[0] = True
        i += 1
    return i


cdef inline bint joins(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t i
) noexcept nogil:
    """Whether a dot or a hyphen at i joins the run before it with one that begins at i + 1."""
    return (i + 1 < n and (s[i] == 0x2E or s[i] == 0x2D)
            and begins_word(class_of(&words.characters, s[i + 1])))


cdef inline bint is_version(
    const Words *words, const char_t *s, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Whether the dotted path s[start:end] is a version or a number: digits and dots, a v before them."""
    cdef Py_ssize_t i = start
    cdef uint32_t c
    if folded(&words.characters, s[i]) == 0x76:
        i += 1
        if i < end and s[i] == 0x2E:
            return False
    while i < end:
        c = folded(&words.characters, s[i])
        if c != 0x2E and not 0x30 <= c <= 0x39:
            return False
        i += 1
    return True


cdef inline void emit_path(
    Scanner *scanner, const char_t *s, Py_ssize_t start, Py_ssize_t end, bint whole_is_new
) noexcept nogil:
    """Emit a dotted path (a part of an identifier between hyphens): the whole, then its names."""
    cdef const Words *words = scanner.words
    cdef bint has_parts = False
    cdef Py_ssize_t i = start
    cdef Py_ssize_t stop = run_end(words, s, end, start, &has_parts)
    if stop == end:
        emit_word(scanner, s, start, end)
        if has_parts or class_of(&words.characters, s[start]) == UNDERSCORE:
            emit_parts(scanner, s, start, end)
        return
    if whole_is_new:
        emit_word(scanner, s, start, end)
    if is_version(words, s, start, end):
        if folded(&words.characters, s[start]) == 0x76:
            emit_word(scanner, s, start, stop)
        return
    while True:
        has_parts = class_of(&words.characters, s[i]) == UNDERSCORE
        stop = run_end(words, s, end, i, &has_parts)
        emit_word(scanner, s, i, stop)
        if has_parts:
            emit_parts(scanner, s, i, stop)
        if stop == end:
            return
        i = stop + 1


cdef inline Py_ssize_t emit_name_letter(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Emit a name of one letter, with its sign: R, C++, C#. Return the index behind it."""
    cdef const Words *words = scanner.words
    cdef uint32_t letter = folded(&words.characters, s[start])
    cdef Py_ssize_t end = start + 1
    cdef uint32_t length
    if 0x61 <= letter <= 0x7A:
        if end < n and folded(&words.characters, s[end]) == 0x23:
            end += 1
        elif ((letter == 0x63 or letter == 0x67) and end + 1 < n
                and folded(&words.characters, s[end]) == 0x2B
                and folded(&words.characters, s[end + 1]) == 0x2B):
            end += 2
    if end < n and end > start + 1 and in_word(class_of(&words.characters, s[end])):
        end = start + 1
    if end > start + 1 or is_name_letter(words, s, n, start):
        scanner.text[0] = <uint8_t> letter
        for length in range(1, <uint32_t> (end - start)):
            scanner.text[length] = <uint8_t> folded(&words.characters, s[start + length])
        length = <uint32_t> (end - start)
        emit(scanner, text_key(scanner.text, length), length, start, FROM_WORD)
    return end


cdef inline Py_ssize_t ascii_run_end(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t start, bint *has_parts, uint64_t *key
) noexcept nogil:
    """The index behind the ASCII word characters from `start` on; key: the first 8 of them, folded and packed."""
    cdef Py_ssize_t i = start
    cdef uint32_t character_class
    while i < n and s[i] < 0x80:
        character_class = words.characters.classes[s[i]]
        if not in_word(character_class):
            break
        if i > start and (character_class == UPPER or character_class == UNDERSCORE):
            has_parts[0] = True
        if i < start + 8:
            key[0] |= <uint64_t> words.characters.folds[s[i]] << (8 * (i - start))
        i += 1
    return i


cdef inline Py_ssize_t scan_word(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Emit the word or the identifier that begins at `start`. Return the index behind it."""
    cdef const Words *words = scanner.words
    cdef bint has_parts = class_of(&words.characters, s[start]) == UNDERSCORE
    cdef bint has_hyphen = False
    cdef uint64_t key = 0
    cdef Py_ssize_t end = ascii_run_end(words, s, n, start, &has_parts, &key)
    cdef Py_ssize_t i, first
    cdef bint is_packed = end - start <= 8
    if end < n and s[end] >= 0x80 and in_word(class_of(&words.characters, s[end])):
        is_packed = False
        has_parts = has_parts or class_of(&words.characters, s[end]) == UPPER
        end = run_end(words, s, n, end, &has_parts)
    if not joins(words, s, n, end):
        if end - start == 1:
            return emit_name_letter(scanner, s, n, start)
        if not is_packed:
            emit_word(scanner, s, start, end)
        elif not is_stop_word(words, key, NULL, 0):
            emit(scanner, key, 0, start, FROM_WORD)
        if has_parts:
            emit_parts(scanner, s, start, end)
        return end
    while joins(words, s, n, end):
        has_hyphen = has_hyphen or s[end] == 0x2D
        end = run_end(words, s, n, end + 1, &has_parts)
    if not has_hyphen:
        emit_path(scanner, s, start, end, True)
        return end
    emit_word(scanner, s, start, end)
    first = start
    for i in range(start, end + 1):
        if i == end or s[i] == 0x2D:
            emit_path(scanner, s, first, i, True)
            first = i + 1
    return end


cdef inline bint scan_dot_net(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t dot
) noexcept nogil:
    """Emit `.net` when it stands at `dot` as a name of its own."""
    cdef const Words *words = scanner.words
    cdef const uint8_t *name = b".net"
    cdef Py_ssize_t i
    if dot + 4 > n or (dot > 0 and in_word(class_of(&words.characters, s[dot - 1]))):
        return False
    for i in range(4):
        if folded(&words.characters, s[dot + i]) != name[i]:
            return False
        scanner.text[i] = name[i]
    if dot + 4 < n and in_word(class_of(&words.characters, s[dot + 4])):
        return False
    emit(scanner, text_key(scanner.text, 4), 4, dot, FROM_WORD)
    return True


cdef inline uint32_t pair_hash(uint32_t a, uint32_t b) noexcept nogil:
    """15 bits of two characters."""
    return (a * <uint32_t> 0x9E3779B1 + b * <uint32_t> 0x85EBCA6B) >> 17


cdef inline const LexiconEntry *longest_entry(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t i, uint32_t a, uint32_t b
) noexcept nogil:
    """The longest lexicon entry that begins at i with the folded characters a and b, or NULL."""
    cdef uint32_t c = folded(&words.characters, s[i + 2]) if i + 2 < n else 0
    cdef uint32_t d = folded(&words.characters, s[i + 3]) if i + 3 < n else 0
    cdef uint32_t slot = a & words.span_mask
    cdef uint32_t k
    cdef const LexiconEntry *entry
    while words.spans[slot].n_entries > 0 and words.spans[slot].first_character != a:
        slot = (slot + 1) & words.span_mask
    for k in range(words.spans[slot].n_entries):
        entry = &words.entries[words.spans[slot].first_entry + k]
        if entry.characters[1] == b and (entry.length < 3 or entry.characters[2] == c) and (
                entry.length < 4 or entry.characters[3] == d):
            return entry
    return NULL


cdef inline const LexiconEntry *entry_at(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t i, uint32_t a
) noexcept nogil:
    """The longest lexicon entry of two characters or more that begins at i with the folded a, or NULL."""
    cdef uint32_t b, h
    if i + 1 >= n:
        return NULL
    b = folded(&words.characters, s[i + 1])
    h = pair_hash(a, b)
    if not (words.pair_bits[h >> 6] >> (h & 63)) & 1:
        return NULL
    return longest_entry(words, s, n, i, a, b)


cdef inline bint is_plain_han(const Words *words, uint32_t c) noexcept nogil:
    cdef uint32_t k = c - FIRST_HAN
    return k < N_HAN and (words.plain_han[k >> 5] >> (k & 31)) & 1


cdef inline Py_ssize_t scan_cjk(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Emit the 2-grams and 3-grams of the CJK run at `start`. Return the index behind the run."""
    cdef const Words *words = scanner.words
    cdef const LexiconEntry *entry
    cdef uint32_t a = 0, b = 0, c, character_class
    cdef Py_ssize_t n_content = 0, protected_until = start, skip
    cdef Py_ssize_t i = start
    while i < n:
        c = s[i]
        if is_plain_han(words, c):
            character_class = CJK
        else:
            character_class = class_of(&words.characters, c)
            if character_class < CJK:
                break
            c = folded(&words.characters, c)
        if character_class > CJK and i >= protected_until:
            entry = entry_at(words, s, n, i, c)
            skip = 0
            if entry != NULL and entry.protects:
                protected_until = i + entry.length
            elif entry != NULL:
                skip = entry.length
            elif character_class == CJK_FUNCTION:
                skip = 1
            if skip > 0:
                if n_content == 1:
                    emit(scanner, cjk_key(b, 0, 0), 0, i - 1, FROM_WORD)
                n_content = 0
                i += skip
                continue
        n_content += 1
        if n_content > 2:
            emit(scanner, cjk_key(a, b, c), 0, i - 2, FROM_WORD)
        if n_content > 1:
            emit(scanner, cjk_key(b, c, 0), 0, i - 1, FROM_WORD)
        a = b
        b = c
        i += 1
    if n_content == 1:
        emit(scanner, cjk_key(b, 0, 0), 0, i - 1, FROM_WORD)
    return i


cdef inline uint32_t closing_quote(uint32_t c) noexcept nogil:
    if c == 0x201C:
        return 0x201D
    if c == 0x2018:
        return 0x2019
    if c == 0x300C:
        return 0x300D
    if c == 0x300E:
        return 0x300F
    if c == 0x300A:
        return 0x300B
    return c


cdef inline Py_ssize_t *symmetric_quote_end(Scanner *scanner, uint32_t c) noexcept nogil:
    if c == 0x22:
        return &scanner.double_quote_end
    if c == 0x27:
        return &scanner.single_quote_end
    if c == 0x60:
        return &scanner.backtick_end
    return NULL


cdef inline Py_ssize_t phrase_end(
    const Words *words, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """The index of the quote that closes the phrase opened at `start`, or -1."""
    cdef uint32_t closer = closing_quote(folded(&words.characters, s[start]))
    cdef Py_ssize_t limit = min(n, start + MAX_PHRASE + 2)
    cdef Py_ssize_t i
    for i in range(start + 1, limit):
        if s[i] == 0x0A:
            return -1
        if folded(&words.characters, s[i]) == closer and not (
            is_apostrophe(closer) and i + 1 < n and in_word(class_of(&words.characters, s[i + 1]))
        ):
            return i
    return -1


cdef inline void scan_phrase(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Emit the phrase that the quote at `start` opens: folded, trimmed, white space collapsed."""
    cdef const Words *words = scanner.words
    cdef Py_ssize_t *last_end = symmetric_quote_end(scanner, folded(&words.characters, s[start]))
    cdef Py_ssize_t i, end
    cdef uint32_t length = 0, n_characters = 0, character_class
    cdef bint has_space = False, has_content = False
    if last_end != NULL and (start <= last_end[0] or (
            start > 0 and in_word(class_of(&words.characters, s[start - 1])))):
        return
    end = phrase_end(words, s, n, start)
    if end < 0:
        return
    if last_end != NULL:
        last_end[0] = end
    for i in range(start + 1, end):
        character_class = class_of(&words.characters, s[i])
        if character_class == SPACE:
            has_space = n_characters > 0
            continue
        if has_space:
            scanner.text[length] = 0x20
            length += 1
            n_characters += 1
            has_space = False
        has_content = has_content or character_class >= LETTER
        length += put_utf8(scanner.text + length, folded(&words.characters, s[i]))
        n_characters += 1
    if n_characters >= 2 and has_content:
        emit(scanner, key_of_text(words, scanner.text, length), length, start, FROM_PHRASE)


cdef inline int scan(Scanner *scanner, const char_t *s, Py_ssize_t n) noexcept nogil:
    """Emit every term of s[:n], and the token bounds of its sentences. -1 when memory ran out."""
    cdef const Words *words = scanner.words
    cdef Py_ssize_t i = 0
    cdef uint32_t character_class
    scanner.sentence = 0
    scanner.first_token = scanner.stream.size
    scanner.sentence_end = scanner.sentence_ends[0] if scanner.n_sentences > 0 else MAX_INDEX
    scanner.double_quote_end = scanner.single_quote_end = scanner.backtick_end = -1
    while i < n:
        character_class = class_of(&words.characters, s[i])
        if begins_word(character_class):
            i = scan_word(scanner, s, n, i)
        elif character_class >= CJK:
            i = scan_cjk(scanner, s, n, i)
        else:
            if character_class == QUOTE:
                scan_phrase(scanner, s, n, i)
            elif folded(&words.characters, s[i]) == 0x2E and scan_dot_net(scanner, s, n, i):
                i += 3
            i += 1
    while scanner.sentence < scanner.n_sentences:
        if int_push(scanner.token_ends, <int32_t> (scanner.stream.size - scanner.first_token)) < 0:
            return -1
        scanner.sentence += 1
    return -1 if scanner.failed else 0
