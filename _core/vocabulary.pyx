"""Text to term ids: the lexicon, the term table, and the scanner that reads the `str` buffer.

The only kernel that sees `str`. It decides nothing: what counts as a stop word or a function character comes in
with the `Lexicon`.
"""

from cpython.unicode cimport (
    PyUnicode_4BYTE_KIND,
    PyUnicode_DATA,
    PyUnicode_FromKindAndData,
    PyUnicode_KIND,
)
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from cpython cimport array

from _core.buffers cimport IntBuffer, int_free, int_push
from _core.characters cimport (
    CJK,
    CJK_FUNCTION,
    CJK_STARTER,
    DIGIT,
    LETTER,
    MARK,
    QUOTE,
    SPACE,
    UNDERSCORE,
    UPPER,
    Py_UNICODE_ISALNUM,
    Py_UNICODE_ISDECIMAL,
    Py_UNICODE_ISUPPER,
    Py_UNICODE_TOLOWER,
    char_t,
    class_of,
    folded,
)
from _core.scan cimport scan
from _core.scan_cjk cimport pair_hash
from _core.scanner cimport (
    FIRST_HAN,
    MAX_ENTRY,
    N_HAN,
    EntrySpan,
    LexiconEntry,
    Scanner,
    key_of_text,
)
from _core.sentences cimport find_sentences
from _core.table cimport (
    REMOVED,
    is_cjk_key,
    is_packed,
    name_of,
    stored_length,
    table_add,
    table_clear,
    table_find,
    table_free,
    table_init,
    table_remove,
    tag_of,
    text_key,
    text_of,
)

import array

cdef extern from "Python.h" nogil:
    bint Py_UNICODE_ISSPACE(uint32_t)

cdef enum:
    NOGIL_CHARACTERS = 2048     # below, letting the GIL go costs more than the scan
    MAX_CHARACTERS = 0x7FFFFFFF

cdef array.array INT_TEMPLATE = array.array("i")
cdef array.array BYTE_TEMPLATE = array.array("B")

# Han, kana and Hangul in the basic plane
cdef tuple CJK_RANGES = (
    (0x1100, 0x11FF), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029), (0x3041, 0x3096),
    (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x3131, 0x318E), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB),
    (0xF900, 0xFAFF), (0xFF66, 0xFFDC),
)


cdef array.array as_array(const IntBuffer *buffer):
    cdef array.array copy = array.clone(INT_TEMPLATE, buffer.size, zero=False)
    cdef Py_ssize_t i
    for i in range(buffer.size):
        copy.data.as_ints[i] = buffer.data[i]
    return copy


cdef class Lexicon:
    """The word lists, compiled once into tables that every `Vocabulary` reads.

    traditional, simplified: str of equal length, folded pairwise; stop_words: words of alphabetic scripts
    that are no anchors; function_characters, breaking, protected: CJK, in simplified form, entries of 2 to 4
    characters; marks: ranges (first, last) of combining marks. ValueError names an entry that does not fit.
    """

    def __cinit__(self):
        self.classes = <uint8_t *> calloc(65536, 1)
        self.folds = <uint16_t *> malloc(65536 * sizeof(uint16_t))
        if self.classes == NULL or self.folds == NULL or table_init(&self.stop_words) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self.classes)
        free(self.folds)
        free(self.entries)
        free(self.spans)
        table_free(&self.stop_words)

    def __init__(self, *, str traditional not None, str simplified not None, stop_words, marks,
                 str function_characters not None, breaking, protected):
        self.fill_characters(marks)
        self.fill_folds(traditional, simplified)
        self.words.characters.classes = self.classes
        self.words.characters.folds = self.folds
        self.fill_stop_words(stop_words)
        for character in function_characters:
            self.classes[<uint16_t> ord(character)] = CJK_FUNCTION
        self.fill_entries(
            {**dict.fromkeys(breaking, 0), **dict.fromkeys(protected, 1)})
        for k in range(len(traditional)):
            self.classes[<uint16_t> ord(traditional[k])] = self.classes[<uint16_t> ord(simplified[k])]
        self.fill_plain_han()
        self.words.stop_words = &self.stop_words
        self.words.stop_bits = self.stop_bits
        self.words.plain_han = self.plain_han
        self.words.pair_bits = self.pair_bits

    cdef fill_characters(self, marks):
        cdef uint32_t c, first, last
        for c in range(65536):
            self.folds[c] = <uint16_t> min(Py_UNICODE_TOLOWER(c), <uint32_t> 0xFFFF)
            if Py_UNICODE_ISALNUM(c):
                self.classes[c] = LETTER
                if Py_UNICODE_ISUPPER(c):
                    self.classes[c] = UPPER
                elif Py_UNICODE_ISDECIMAL(c):
                    self.classes[c] = DIGIT
            elif Py_UNICODE_ISSPACE(c):
                self.classes[c] = SPACE
        for first, last in marks:
            for c in range(first, last + 1):
                self.classes[c] = MARK
        for first, last in CJK_RANGES:
            for c in range(first, last + 1):
                if self.classes[c] == LETTER:
                    self.classes[c] = CJK
        self.classes[0x5F] = self.classes[0xFF3F] = UNDERSCORE
        for character in "\"'`＂＇｀“‘「『《":
            self.classes[<uint16_t> ord(character)] = QUOTE

    cdef fill_folds(self, str traditional, str simplified):
        cdef uint32_t c
        if len(traditional) != len(simplified):
            raise ValueError(
                f"traditional and simplified differ in length: {len(traditional)} and {len(simplified)}")
        for c in range(0xFF01, 0xFF5F):
            self.folds[c] = <uint16_t> Py_UNICODE_TOLOWER(c - 0xFEE0)
        self.folds[0x3000] = 0x20
        for k in range(len(traditional)):
            self.folds[<uint16_t> ord(traditional[k])] = <uint16_t> ord(simplified[k])

    cdef fill_stop_words(self, stop_words):
        cdef bytes text
        cdef uint64_t key
        cdef uint32_t tag
        for word in stop_words:
            text = word.encode()
            key = text_key(text, <uint32_t> len(text))
            tag = tag_of(key)
            self.stop_bits[(tag >> 6) & 63] |= <uint64_t> 1 << (tag & 63)
            if table_add(&self.stop_words, key, text, <uint32_t> len(text)) < 0:
                raise MemoryError

    cdef fill_plain_han(self):
        cdef uint32_t k
        for k in range(N_HAN):
            if self.classes[FIRST_HAN + k] == CJK and self.folds[FIRST_HAN + k] == FIRST_HAN + k:
                self.plain_han[k >> 5] |= <uint32_t> 1 << (k & 31)

    cdef fill_entries(self, dict entries):
        """Lay the entries out by first character, longest first, and index the first characters."""
        cdef Py_ssize_t n_slots = 64
        cdef uint32_t k, slot, h
        cdef LexiconEntry *entry
        for text in entries:
            if not 2 <= len(text) <= MAX_ENTRY or max(text) > "\uffff":
                raise ValueError(f"a lexicon entry has 2 to {MAX_ENTRY} characters, got {text!r}")
        ordered = sorted(entries, key=lambda text: (text[0], -len(text), text))
        while n_slots < 4 * len(ordered):
            n_slots *= 2
        self.entries = <LexiconEntry *> calloc(max(len(ordered), 1), sizeof(LexiconEntry))
        self.spans = <EntrySpan *> calloc(n_slots, sizeof(EntrySpan))
        if self.entries == NULL or self.spans == NULL:
            raise MemoryError
        memset(self.pair_bits, 0, sizeof(self.pair_bits))
        self.words.span_mask = <uint32_t> (n_slots - 1)
        for k, text in enumerate(ordered):
            entry = &self.entries[k]
            entry.length = <uint16_t> len(text)
            entry.protects = entries[text]
            for i, character in enumerate(text):
                entry.characters[i] = <uint16_t> ord(character)
            h = pair_hash(entry.characters[0], entry.characters[1])
            self.pair_bits[h >> 6] |= <uint64_t> 1 << (h & 63)
            slot = entry.characters[0] & self.words.span_mask
            while self.spans[slot].n_entries > 0 and (
                    self.spans[slot].first_character != entry.characters[0]):
                slot = (slot + 1) & self.words.span_mask
            if self.spans[slot].n_entries == 0:
                self.spans[slot].first_character = entry.characters[0]
                self.spans[slot].first_entry = k
            self.spans[slot].n_entries += 1
            if self.classes[entry.characters[0]] == CJK:
                self.classes[entry.characters[0]] = CJK_STARTER
        self.words.entries = self.entries
        self.words.spans = self.spans

    def fold(self, str text not None):
        """Fold every character of `text`: full-width to half-width, lower case, traditional to simplified.

        Returns a str of the same length. Lone surrogates stay as they are.
        """
        cdef Py_ssize_t i, n = len(text)
        cdef uint32_t *points
        if text.isascii():
            return text.lower()
        points = <uint32_t *> malloc(n * sizeof(uint32_t))
        if points == NULL:
            raise MemoryError
        for i in range(n):
            points[i] = folded(&self.words.characters, <uint32_t> text[i])
        try:
            return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, points, n)
        finally:
            free(points)

    def classes_of(self, str text not None):
        """The class of every character of `text`, as bytes; see _core/characters.pxd."""
        return bytes([class_of(&self.words.characters, <uint32_t> c) for c in text])


cdef int scan_text(Scanner *scanner, const char_t *s, Py_ssize_t n, IntBuffer *ends) noexcept nogil:
    cdef Py_ssize_t first = ends.size
    if find_sentences(s, n, ends) < 0:
        return -1
    scanner.sentence_ends = ends.data + first
    scanner.n_sentences = ends.size - first
    return scan(scanner, s, n)


cdef int scan_kind(
    Scanner *scanner, int kind, const void *data, Py_ssize_t n, IntBuffer *ends
) noexcept nogil:
    if kind == 1:
        return scan_text(scanner, <const uint8_t *> data, n, ends)
    if kind == 2:
        return scan_text(scanner, <const uint16_t *> data, n, ends)
    return scan_text(scanner, <const uint32_t *> data, n, ends)


cdef class Vocabulary:
    """An append-only term table: each distinct term gets the next id, from 0.

    `add` reads texts and keeps what it found (term ids in order, sentence bounds) until it is called
    again: `TermMatrix.append` takes it from there. With keeps_origins, where each term comes from and
    begins is kept too, for queries.
    """

    def __cinit__(self, Lexicon lexicon not None, *, bint keeps_origins=False):
        self.lexicon = lexicon
        self.keeps_origins = keeps_origins
        if table_init(&self.table) < 0:
            raise MemoryError

    def __dealloc__(self):
        table_free(&self.table)
        int_free(&self.stream)
        int_free(&self.stream_origins)
        int_free(&self.stream_starts)
        int_free(&self.token_counts)
        int_free(&self.sentence_counts)
        int_free(&self.sentence_ends)
        int_free(&self.token_ends)

    def __len__(self):
        return self.table.n_terms

    cdef void clear(self) noexcept:
        self.stream.size = self.stream_origins.size = self.stream_starts.size = 0
        self.token_counts.size = self.sentence_counts.size = 0
        self.sentence_ends.size = self.token_ends.size = 0

    cdef int scan_texts(self, const TextView *views, Py_ssize_t n) noexcept nogil:
        cdef Scanner scanner
        cdef Py_ssize_t i, n_tokens, n_sentences
        scanner.words = &self.lexicon.words
        scanner.table = &self.table
        scanner.stream = &self.stream
        scanner.origins = &self.stream_origins if self.keeps_origins else NULL
        scanner.starts = &self.stream_starts
        scanner.token_ends = &self.token_ends
        scanner.failed = False
        for i in range(n):
            n_tokens = self.stream.size
            n_sentences = self.sentence_ends.size
            if (scan_kind(&scanner, views[i].kind, views[i].data, views[i].n, &self.sentence_ends) < 0
                    or int_push(&self.token_counts, <int32_t> (self.stream.size - n_tokens)) < 0
                    or int_push(&self.sentence_counts, <int32_t> (self.sentence_ends.size - n_sentences)) < 0):
                return -1
        return 0

    def add(self, tuple texts not None):
        """Read `texts`, give new terms new ids, and keep the findings in place of the last ones.

        O(characters). ValueError for a text of 2**31 characters or more, MemoryError when memory runs out.
        The lock of the interpreter is let go where there is enough to read.
        """
        cdef Py_ssize_t i, n = len(texts), n_characters = 0
        cdef int status
        cdef str text
        cdef TextView *views = <TextView *> malloc(max(n, 1) * sizeof(TextView))
        if views == NULL:
            raise MemoryError
        try:
            for i in range(n):
                text = texts[i]
                if text is None or len(text) > MAX_CHARACTERS:
                    raise ValueError(f"a text is a str of at most {MAX_CHARACTERS} characters")
                views[i].n = len(text)
                views[i].kind = PyUnicode_KIND(text)
                views[i].data = PyUnicode_DATA(text)
                n_characters += views[i].n
            self.clear()
            if n_characters >= NOGIL_CHARACTERS:
                with nogil:
                    status = self.scan_texts(views, n)
            else:
                status = self.scan_texts(views, n)
            if status < 0:
                raise MemoryError
        finally:
            free(views)

    def token_ids(self):
        """Term ids of the texts that `add` read last, in order of occurrence: int32[n_tokens]."""
        return as_array(&self.stream)

    def token_starts(self):
        """Where each of those tokens begins in its text: int32[n_tokens]. Only with keeps_origins."""
        return as_array(&self.stream_starts)

    def origins(self):
        """For every term: 1 found as a word or n-gram, 2 as a quoted phrase, 4 it is 1 to 3 CJK characters.

        Returns uint8[n_terms], the bits added up. Only with keeps_origins, for terms that `add` read last.
        """
        cdef array.array flags = array.clone(BYTE_TEMPLATE, self.table.n_terms, zero=True)
        cdef Py_ssize_t i
        for i in range(self.stream_origins.size):
            flags.data.as_uchars[self.stream.data[i]] |= <uint8_t> self.stream_origins.data[i]
        for i in range(self.table.n_terms):
            if is_cjk_key(name_of(&self.table, <int32_t> i)[0]):
                flags.data.as_uchars[i] |= 4
        return flags

    def text(self, int32_t term_id):
        """The text of a term, folded. IndexError for an id that was never given or is forgotten."""
        cdef uint64_t name
        cdef uint8_t *stored
        cdef bytes data
        if not 0 <= term_id < self.table.n_terms or name_of(&self.table, term_id)[0] <= REMOVED:
            raise IndexError(f"no term has the id {term_id}; ids run from 0 to {self.table.n_terms - 1}")
        name = name_of(&self.table, term_id)[0]
        if is_cjk_key(name):
            points = (name & 0x1FFFFF, (name >> 21) & 0x1FFFFF, (name >> 42) & 0x1FFFFF)
            return "".join([chr(c) for c in points if c])
        if is_packed(name):
            return name.to_bytes(8, "little").rstrip(b"\0").decode("ascii")
        stored = text_of(name)
        data = stored[2:2 + stored_length(stored)]
        return data.decode("utf-8", "surrogatepass")

    def id_of(self, str text not None):
        """The id of the term that is `text`, folded already, or -1."""
        cdef bytes data = text.encode("utf-8", "surrogatepass")
        cdef uint64_t key = key_of_text(&self.lexicon.words, data, <uint32_t> len(data))
        return table_find(&self.table, key, data, <uint32_t> len(data))

    def is_ngram(self, int32_t term_id):
        """Whether a term is 1 to 3 CJK characters."""
        return 0 <= term_id < self.table.n_terms and is_cjk_key(name_of(&self.table, term_id)[0])

    def find(self, Vocabulary other not None):
        """The id here of every term of `other`: int32[len(other)], -1 where this table has none."""
        cdef array.array ids = array.clone(INT_TEMPLATE, other.table.n_terms, zero=False)
        cdef int32_t i
        cdef uint64_t name
        cdef uint8_t *text
        cdef uint16_t length
        for i in range(other.table.n_terms):
            name = name_of(&other.table, i)[0]
            if name <= REMOVED:
                ids.data.as_ints[i] = -1
            elif is_packed(name):
                ids.data.as_ints[i] = table_find(&self.table, name, NULL, 0)
            else:
                text = text_of(name)
                length = stored_length(text)
                ids.data.as_ints[i] = table_find(&self.table, text_key(text + 2, length), text + 2, length)
        return ids

    def remove(self, int32_t term_id):
        """Forget a term: its text is overwritten, its id is not given again."""
        if 0 <= term_id < self.table.n_terms:
            table_remove(&self.table, term_id)

    def truncate(self, int32_t n_terms):
        """Forget the terms from id n_terms on; the next new term gets that id. The memory is kept for others."""
        cdef int32_t term_id
        if not 0 <= n_terms <= self.table.n_terms:
            raise ValueError(f"n_terms must be 0 to {self.table.n_terms}, got {n_terms}")
        if n_terms == 0:
            table_clear(&self.table)
            return
        for term_id in range(n_terms, self.table.n_terms):
            table_remove(&self.table, term_id)
        self.table.n_terms = n_terms


def sentence_ends(str text not None):
    """Where each sentence of `text` ends: int32[n_sentences], the last one len(text). O(characters)."""
    cdef IntBuffer ends
    cdef Py_ssize_t n = len(text)
    cdef int kind = PyUnicode_KIND(text)
    cdef const void *data = PyUnicode_DATA(text)
    cdef int status
    memset(&ends, 0, sizeof(ends))
    if n > MAX_CHARACTERS:
        raise ValueError(f"a text has at most {MAX_CHARACTERS} characters, got {n}")
    with nogil:
        if kind == 1:
            status = find_sentences(<const uint8_t *> data, n, &ends)
        elif kind == 2:
            status = find_sentences(<const uint16_t *> data, n, &ends)
        else:
            status = find_sentences(<const uint32_t *> data, n, &ends)
    try:
        if status < 0:
            raise MemoryError
        return as_array(&ends)
    finally:
        int_free(&ends)
