"""Where sentences end.

Bounds partition the text: a sentence keeps the white space and the line breaks behind it. A fenced
code block is one sentence; nothing ends inside an inline code span or a URL.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from _core.buffers cimport IntBuffer, int_push
from _core.characters cimport char_t

cdef extern from *:
    """
    /* ASCII characters that may end a sentence or open what holds none: line feed ! . : ? ` */
    static const unsigned char GATEKEEPER_MARKS[128] = {
        [0x0A] = 1, [0x21] = 1, [0x2E] = 1, [0x3A] = 1, [0x3F] = 1, [0x60] = 1};
    """
    const uint8_t *GATEKEEPER_MARKS

cdef enum:
    MAX_CODE_TICKS = 8      # a longer run of backticks opens no inline code


cdef inline bint is_ender(uint32_t c) noexcept nogil:
    return (c == 0x21 or c == 0x3F or c == 0x3002 or c == 0xFF01 or c == 0xFF1F or c == 0xFF1B)


cdef inline bint is_closer(uint32_t c) noexcept nogil:
    """Closing quotes and brackets stay with the sentence that ends before them."""
    return (c == 0x22 or c == 0x27 or c == 0x29 or c == 0x5D or c == 0x201D or c == 0x2019 or c == 0x300D
            or c == 0x300F or c == 0xFF09 or c == 0x3011 or c == 0x300B)


cdef inline bint is_blank(uint32_t c) noexcept nogil:
    return c == 0x20 or c == 0x09 or c == 0x0D


cdef inline bint is_plain(uint32_t c) noexcept nogil:
    """Whether a character surely ends nothing and opens nothing; most letters are, and blanks."""
    if c - 0x3003 < 0xFF01 - 0x3003:    # unsigned, so 0x3003 <= c too: Han and most of what stands beside it
        return True
    if c < 0x80:
        return not GATEKEEPER_MARKS[c]
    return c < 0x3002


cdef inline bint is_ascii_letter(uint32_t c) noexcept nogil:
    return 0x61 <= (c | 0x20) <= 0x7A


cdef inline Py_ssize_t line_end(const char_t *s, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    """The index behind the line break that ends the line of i, or n."""
    while i < n and s[i] != 0x0A:
        i += 1
    return i + 1 if i < n else n


cdef inline Py_ssize_t run_length(const char_t *s, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t j = i
    while j < n and s[j] == s[i]:
        j += 1
    return j - i


cdef inline Py_ssize_t skip_markers(const char_t *s, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    """Skip blanks and the markers of list items and quotations at the head of a line."""
    cdef Py_ssize_t j
    while i < n:
        if is_blank(s[i]) or s[i] == 0x3E:
            i += 1
            continue
        j = i
        while j < n and 0x30 <= s[j] <= 0x39:
            j += 1
        if j < n and ((j > i and (s[j] == 0x2E or s[j] == 0x29)) or (
                j == i and (s[j] == 0x2D or s[j] == 0x2A or s[j] == 0x2B))):
            if j + 1 < n and (s[j + 1] == 0x20 or s[j + 1] == 0x09):
                i = j + 1
                continue
        return i
    return i


cdef inline Py_ssize_t fence_end(const char_t *s, Py_ssize_t n, Py_ssize_t start) noexcept nogil:
    """The index behind a fenced block whose opening line begins at `start`, or `start` if none does.

    A block that is never closed ends with the text.
    """
    cdef Py_ssize_t i = start
    cdef Py_ssize_t ticks, end, j
    cdef uint32_t mark
    i = skip_markers(s, n, i)
    if i >= n or (s[i] != 0x60 and s[i] != 0x7E):
        return start
    mark = s[i]
    ticks = run_length(s, n, i)
    if ticks < 3:
        return start
    end = line_end(s, n, i)
    if mark == 0x60:
        for j in range(i + ticks, end):     # "```code```" on one line is an inline span
            if s[j] == 0x60:
                return start
    i = end
    while i < n:
        end = line_end(s, n, i)
        while i < end and (is_blank(s[i]) or s[i] == 0x3E):
            i += 1
        if i < end and s[i] == mark and run_length(s, n, i) >= ticks:
            i += run_length(s, n, i)
            while i < end and (is_blank(s[i]) or s[i] == 0x0A):
                i += 1
            if i == end:
                return end
        i = end
    return n


cdef inline Py_ssize_t code_span_end(
    const char_t *s, Py_ssize_t n, Py_ssize_t i, Py_ssize_t *no_closer_until
) noexcept nogil:
    """The index behind the inline code span that opens at i, or behind its backticks if none closes it.

    no_closer_until[k]: up to there, this line is known to hold no closing run of k backticks.
    """
    cdef Py_ssize_t ticks = run_length(s, n, i)
    cdef Py_ssize_t j = i + ticks
    cdef Py_ssize_t ticks_there
    if ticks > MAX_CODE_TICKS or i < no_closer_until[ticks]:
        return j
    while j < n and s[j] != 0x0A:
        if s[j] != 0x60:
            j += 1
            continue
        ticks_there = run_length(s, n, j)
        j += ticks_there
        if ticks_there == ticks:
            return j
    no_closer_until[ticks] = j
    return i + ticks


cdef inline bint in_url(uint32_t c) noexcept nogil:
    return 0x21 <= c <= 0x7E and c != 0x22 and c != 0x3C and c != 0x3E and c != 0x60


cdef inline bint trails_url(uint32_t c) noexcept nogil:
    return (c == 0x2E or c == 0x2C or c == 0x21 or c == 0x3F or c == 0x3B or c == 0x3A or c == 0x29
            or c == 0x27 or c == 0x5D)


cdef inline Py_ssize_t url_end(const char_t *s, Py_ssize_t n, Py_ssize_t colon) noexcept nogil:
    """The index behind the URL whose "://" begins at `colon`, closing punctuation left out, or `colon`."""
    cdef Py_ssize_t i = colon + 3
    if colon == 0 or not is_ascii_letter(s[colon - 1]) or colon + 3 >= n:
        return colon
    if s[colon + 1] != 0x2F or s[colon + 2] != 0x2F:
        return colon
    while i < n and in_url(s[i]):
        i += 1
    while i > colon + 3 and trails_url(s[i - 1]):
        i -= 1
    return i


cdef inline bint is_list_number(const char_t *s, Py_ssize_t line_start, Py_ssize_t dot) noexcept nogil:
    """Whether the line up to `dot` is only a number: the marker of a list item."""
    cdef Py_ssize_t i = line_start
    cdef Py_ssize_t first
    while i < dot and is_blank(s[i]):
        i += 1
    first = i
    while i < dot and 0x30 <= s[i] <= 0x39:
        i += 1
    return i == dot and i > first


cdef inline Py_ssize_t skip_blank_lines(const char_t *s, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    """Skip line breaks from i on, with the blank lines between them; an indented line is left whole."""
    cdef Py_ssize_t end = i
    while i < n and (s[i] == 0x0A or is_blank(s[i])):
        i += 1
        if s[i - 1] == 0x0A:
            end = i
    return end


cdef inline Py_ssize_t end_of_break(const char_t *s, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    """Skip the blanks behind a sentence, then line breaks."""
    while i < n and is_blank(s[i]):
        i += 1
    return skip_blank_lines(s, n, i)


cdef inline bint holds_content(const char_t *s, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """Whether s[start:end] is more than blanks and line feeds."""
    while start < end and (is_blank(s[start]) or s[start] == 0x0A):
        start += 1
    return start < end


cdef inline int find_sentences(const char_t *s, Py_ssize_t n, IntBuffer *ends) noexcept nogil:
    """Append the end of every sentence of s[:n], the last one n; nothing for an empty text."""
    cdef Py_ssize_t no_closer_until[9]
    cdef Py_ssize_t i, start = 0, line_start = 0, end
    cdef Py_ssize_t first = ends.size
    cdef bint at_line_start = True
    cdef uint32_t c
    for i in range(9):
        no_closer_until[i] = 0
    i = 0
    while i < n:
        if at_line_start:
            at_line_start = False
            line_start = i
            end = fence_end(s, n, i)
            if end > i:
                if holds_content(s, start, i) and int_push(ends, <int32_t> i) < 0:
                    return -1
                i = skip_blank_lines(s, n, end)
                if int_push(ends, <int32_t> i) < 0:
                    return -1
                start = i
                at_line_start = True
                continue
        while i < n and is_plain(s[i]):
            i += 1
        if i == n:
            break
        c = s[i]
        if c == 0x60:
            i = code_span_end(s, n, i, no_closer_until)
            continue
        if c == 0x0A:
            end = i
        elif is_ender(c):
            end = i + 1
            while end < n and (is_ender(s[end]) or is_closer(s[end])):
                end += 1
        elif c == 0x2E and i + 1 < n and (s[i + 1] == 0x20 or s[i + 1] == 0x09) and not is_list_number(
                s, line_start, i):
            end = i + 1
        else:
            end = url_end(s, n, i) if c == 0x3A else i
            i = max(end, i + 1)
            continue
        i = end_of_break(s, n, end)
        at_line_start = i > 0 and s[i - 1] == 0x0A
        if holds_content(s, start, end):
            if int_push(ends, <int32_t> i) < 0:
                return -1
            start = i
    if start < n:
        if ends.size == first or holds_content(s, start, n):
            return int_push(ends, <int32_t> n)
        ends.data[ends.size - 1] = <int32_t> n
    return 0
