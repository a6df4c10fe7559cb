"""What a character is, after folding: one class and one folded form each, read from two flat tables.

The tables cover the basic plane; `Lexicon` fills them. Above it only Han and the letters of
historic scripts matter, and Python's own character data is asked.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef extern from "Python.h" nogil:
    bint Py_UNICODE_ISALNUM(uint32_t)
    bint Py_UNICODE_ISDECIMAL(uint32_t)
    bint Py_UNICODE_ISUPPER(uint32_t)
    uint32_t Py_UNICODE_TOLOWER(uint32_t)

ctypedef fused char_t:
    uint8_t
    uint16_t
    uint32_t

cdef enum:
    OTHER = 0
    SPACE = 1
    QUOTE = 2           # opens a phrase
    LETTER = 3          # LETTER to MARK: inside a word
    UPPER = 4
    DIGIT = 5
    UNDERSCORE = 6
    MARK = 7            # a combining mark goes on with a word, it does not begin one
    CJK = 8             # CJK and above: inside a run of Han, kana or Hangul
    CJK_STARTER = 9     # begins a lexicon entry of two characters or more
    CJK_FUNCTION = 10   # a function character by itself; may begin an entry too


cdef struct Characters:
    const uint8_t *classes      # [65536]
    const uint16_t *folds       # [65536]


cdef inline bint is_astral_han(uint32_t c) noexcept nogil:
    return 0x20000 <= c <= 0x3FFFF


cdef inline uint32_t class_of(const Characters *characters, uint32_t c) noexcept nogil:
    if c < 0x10000:
        return characters.classes[c]
    if is_astral_han(c):
        return CJK
    if not Py_UNICODE_ISALNUM(c):
        return OTHER
    if Py_UNICODE_ISUPPER(c):
        return UPPER
    return DIGIT if Py_UNICODE_ISDECIMAL(c) else LETTER


cdef inline uint32_t folded(const Characters *characters, uint32_t c) noexcept nogil:
    if c < 0x10000:
        return characters.folds[c]
    return Py_UNICODE_TOLOWER(c)


cdef inline bint in_word(uint32_t character_class) noexcept nogil:
    return LETTER <= character_class <= MARK


cdef inline bint begins_word(uint32_t character_class) noexcept nogil:
    return LETTER <= character_class <= UNDERSCORE


cdef inline uint32_t put_utf8(uint8_t *out, uint32_t c) noexcept nogil:
    """Write c as UTF-8, surrogates as any other code point; the number of bytes written."""
    if c < 0x80:
        out[0] = <uint8_t> c
        return 1
    if c < 0x800:
        out[0] = <uint8_t> (0xC0 | (c >> 6))
        out[1] = <uint8_t> (0x80 | (c & 0x3F))
        return 2
    if c < 0x10000:
        out[0] = <uint8_t> (0xE0 | (c >> 12))
        out[1] = <uint8_t> (0x80 | ((c >> 6) & 0x3F))
        out[2] = <uint8_t> (0x80 | (c & 0x3F))
        return 3
    out[0] = <uint8_t> (0xF0 | (c >> 18))
    out[1] = <uint8_t> (0x80 | ((c >> 12) & 0x3F))
    out[2] = <uint8_t> (0x80 | ((c >> 6) & 0x3F))
    out[3] = <uint8_t> (0x80 | (c & 0x3F))
    return 4
