"""The scanner: one pass over a text, terms handed over as they are met.

What a term is stands in docs/algorithm.md; tests/reference.py says the same in plain Python.
"""

from libc.stdint cimport int32_t, uint32_t

from _core.characters cimport (
    CJK,
    LETTER,
    QUOTE,
    SPACE,
    begins_word,
    char_t,
    class_of,
    folded,
    in_word,
    put_utf8,
)
from _core.scan_cjk cimport scan_cjk
from _core.scan_words cimport is_apostrophe, scan_dot_net, scan_word
from _core.scanner cimport FROM_PHRASE, MAX_INDEX, MAX_PHRASE, Scanner, Words, emit, enter_sentence, intern_pending, key_of_text

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
    scanner.n_tokens = scanner.n_pending = scanner.n_pending_bytes = 0
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
    intern_pending(scanner)
    enter_sentence(scanner, MAX_INDEX)
    return -1 if scanner.failed else 0
