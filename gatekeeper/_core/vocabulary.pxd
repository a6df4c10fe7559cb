from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from _core.buffers cimport IntBuffer
from _core.scanner cimport EntrySpan, LexiconEntry, Words
from _core.table cimport TermTable


cdef struct TextView:
    const void *data            # the buffer of a str
    Py_ssize_t n
    int kind                    # bytes a character


cdef class Lexicon:
    cdef uint8_t *classes
    cdef uint16_t *folds
    cdef LexiconEntry *entries
    cdef EntrySpan *spans
    cdef uint64_t pair_bits[512]
    cdef uint64_t stop_bits[64]
    cdef uint32_t plain_han[656]
    cdef TermTable stop_words
    cdef Words words
    cdef fill_characters(self, marks)
    cdef fill_folds(self, str traditional, str simplified)
    cdef fill_stop_words(self, stop_words)
    cdef fill_entries(self, dict entries)
    cdef fill_plain_han(self)


cdef class Vocabulary:
    cdef TermTable table
    cdef readonly Lexicon lexicon
    cdef bint keeps_origins
    cdef IntBuffer stream               # what `add` found last: term ids of all its texts
    cdef IntBuffer stream_origins
    cdef IntBuffer stream_starts
    cdef IntBuffer token_counts         # tokens of each text
    cdef IntBuffer sentence_counts      # sentences of each text
    cdef IntBuffer sentence_ends        # in characters, from the start of the text
    cdef IntBuffer token_ends           # in tokens, from the start of the text
    cdef void clear(self) noexcept
    cdef int scan_texts(self, const TextView *views, Py_ssize_t n) noexcept nogil
