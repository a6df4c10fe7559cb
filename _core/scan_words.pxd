"""Words, identifiers, versions and names with signs."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from _core.characters cimport (
    DIGIT,
    LETTER,
    UNDERSCORE,
    UPPER,
    begins_word,
    char_t,
    class_of,
    folded,
    in_word,
    put_utf8,
)
from _core.letters cimport EIGHT, GATEKEEPER_EIGHT_AT_A_TIME, letters_at
from _core.scanner cimport FROM_WORD, MAX_WORD, Scanner, Words, emit, is_stop_word
from _core.table cimport text_key

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
    cdef uint32_t c = folded(&words.characters, s[i]) if i + 1 < n else 0
    return (c == 0x2E or c == 0x2D) and begins_word(class_of(&words.characters, s[i + 1]))


cdef inline bint is_version(
    const Words *words, const char_t *s, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Whether the dotted path s[start:end] is a version or a number: digits and dots, a v before them."""
    cdef Py_ssize_t i = start
    cdef uint32_t c
    if folded(&words.characters, s[i]) == 0x76:
        i += 1
        if i < end and folded(&words.characters, s[i]) == 0x2E:
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


cdef inline bint is_letter(uint32_t character_class) noexcept nogil:
    """A word character that is no digit: C++17 is C++, C#s is not C#."""
    return in_word(character_class) and character_class != DIGIT


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
    if end < n and end > start + 1 and is_letter(class_of(&words.characters, s[end])):
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


cdef inline Py_ssize_t scan_plain_word(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Emit the word of 2 to 8 ASCII letters at `start`, if it is one and nothing joins it. The index behind it, or -1."""
    cdef const Words *words = scanner.words
    cdef uint64_t key
    cdef bint has_inner_capital
    cdef Py_ssize_t end
    cdef uint32_t behind
    if not GATEKEEPER_EIGHT_AT_A_TIME or start + EIGHT >= n:
        return -1
    end = start + letters_at(s + start, &key, &has_inner_capital)
    if end - start < 2 or has_inner_capital or in_word(class_of(&words.characters, s[end])):
        return -1
    behind = folded(&words.characters, s[end])
    if behind == 0x2E or behind == 0x2D:
        return -1
    if not is_stop_word(words, key, NULL, 0):
        emit(scanner, key, 0, start, FROM_WORD)
    return end


cdef inline Py_ssize_t scan_word(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
    """Emit the word or the identifier that begins at `start`. Return the index behind it."""
    cdef Py_ssize_t end
    if char_t is not uint32_t:
        end = scan_plain_word(scanner, s, n, start)
        if end > 0:
            return end
    return scan_any_word(scanner, s, n, start)


cdef inline Py_ssize_t scan_any_word(
    Scanner *scanner, const char_t *s, Py_ssize_t n, Py_ssize_t start
) noexcept nogil:
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
        has_hyphen = has_hyphen or folded(&words.characters, s[end]) == 0x2D
        end = run_end(words, s, n, end + 1, &has_parts)
    if not has_hyphen:
        emit_path(scanner, s, start, end, True)
        return end
    emit_word(scanner, s, start, end)
    first = start
    for i in range(start, end + 1):
        if i == end or folded(&words.characters, s[i]) == 0x2D:
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
    if dot + 4 < n and is_letter(class_of(&words.characters, s[dot + 4])):
        return False
    emit(scanner, text_key(scanner.text, 4), 4, dot, FROM_WORD)
    return True
