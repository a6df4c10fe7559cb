"""Eight characters at a time: the ASCII letters at the head of a text, as a packed key.

The bytes of a 64-bit number are worked on side by side, in the manner of Lamport, "Multiple byte processing with
full-word instructions", CACM 18 (1975). On a machine that is not little-endian nothing is found, and words are read one
character at a time.
"""

from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy

from _core.characters cimport char_t

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define GATEKEEPER_EIGHT_AT_A_TIME 1
    #define gatekeeper_trailing_zeros(x) __builtin_ctzll(x)
    #else
    #define GATEKEEPER_EIGHT_AT_A_TIME 0
    #define gatekeeper_trailing_zeros(x) 0
    #endif
    """
    const bint GATEKEEPER_EIGHT_AT_A_TIME
    int gatekeeper_trailing_zeros(uint64_t x) nogil

cdef enum:
    EIGHT = 8

cdef inline uint64_t low_bytes(uint64_t four) noexcept nogil:
    """Four 16-bit characters as bytes; what is no ASCII character gets bit 7."""
    cdef uint64_t high = (four >> 8) & <uint64_t> 0x00FF00FF00FF00FF
    four = (four & <uint64_t> 0x00FF00FF00FF00FF) | (
        ((high + <uint64_t> 0x00FF00FF00FF00FF) & <uint64_t> 0x0100010001000100) >> 1)
    four = (four | (four >> 8)) & <uint64_t> 0x0000FFFF0000FFFF
    return (four | (four >> 16)) & <uint64_t> 0xFFFFFFFF


cdef inline uint64_t eight_characters(const char_t *s) noexcept nogil:
    """s[:8] as bytes, the first one lowest; what is no ASCII character has bit 7."""
    cdef uint64_t low, high
    memcpy(&low, s, 8)
    if char_t is uint8_t:
        return low
    memcpy(&high, s + 4, 8)
    return low_bytes(low) | (low_bytes(high) << 32)


cdef inline int letters_at(const char_t *s, uint64_t *key, bint *has_inner_capital) noexcept nogil:
    """How many of s[:8] are ASCII letters, up to the first that is none; key: these, in lower case, packed."""
    cdef uint64_t each = 0x0101010101010101
    cdef uint64_t eight = eight_characters(s)
    cdef uint64_t lower = eight | (0x20 * each)
    cdef uint64_t letters = (lower + (0x80 - 0x61) * each) & ~(lower + (0x80 - 0x7B) * each) & ~eight & (0x80 * each)
    cdef uint64_t others = letters ^ (0x80 * each)
    cdef int n = gatekeeper_trailing_zeros(others) >> 3 if others != 0 else EIGHT
    cdef uint64_t mask = (<uint64_t> 1 << (8 * n)) - 1 if n < EIGHT else ~<uint64_t> 0
    key[0] = lower & mask
    has_inner_capital[0] = (letters & ~(eight << 2) & mask & ~<uint64_t> 0xFF) != 0
    return n
