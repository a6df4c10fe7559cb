"""Han, kana and Hangul: the lexicon's entries and the n-grams between them."""

from libc.stdint cimport uint32_t

from _core.characters cimport CJK, CJK_FUNCTION, char_t, class_of, folded
from _core.scanner cimport FIRST_HAN, FROM_WORD, N_HAN, LexiconEntry, Scanner, Words, cjk_key, emit

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
