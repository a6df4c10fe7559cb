"""The term matrix of one conversation: append-only rows and postings, exact df, BM25 top k.

Rows are turns, each with two sides, user and assistant. Nothing is rebuilt when a turn is added: idf and
average lengths enter when a query is scored.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from cpython cimport array

from _core.buffers cimport IntBuffer, int_free, int_push
from _core.context cimport Context, best_in_context, context_free, context_init, neighbours_of
from _core.coverage cimport covered_mass
from _core.csr cimport LengthNorm, inverse_document_frequency, length_norm, saturated
from _core.hits cimport HitColumns, KeptColumns, SearchedHits, TermSlot, keep_row, position_table
from _core.matrix cimport Findings, Matrix, Weighing, append_rows, unlink
from _core.postings cimport (
    MAX_TF,
    Posting,
    Term,
    last_turn,
    list_of,
    position_of,
    postings_clear,
    postings_free,
    term_of,
)
from _core.rows cimport Row, char_ends_of, drop_row, rows_clear, rows_free, tokens_of
from _core.scoring cimport Allowed, QueryFormula, QueryTerm, best_rows, posting_of
from _core.topk cimport Scored
from gatekeeper._core.vocabulary cimport Vocabulary

import array

cdef enum:
    NOGIL_TOKENS = 512      # below, letting the GIL go costs more than the work

cdef array.array INTS = array.array("i")
cdef array.array DOUBLES = array.array("d")


cdef list checked_postings(group, Py_ssize_t n_turns):
    """Postings as (turn, tf_user, tf_assistant) of C's size; ValueError unless the turns exist and ascend."""
    postings = [(turn, min(tf_user, MAX_TF), min(tf_assistant, MAX_TF)) for turn, tf_user, tf_assistant in group]
    turns = [posting[0] for posting in postings]
    if any(a >= b for a, b in zip([-1, *turns], [*turns, n_turns])):
        raise ValueError(f"extra postings must be of existing turns, ascending, got turns {turns!r:.80}")
    return postings


cdef array.array ints(Py_ssize_t n):
    return array.clone(INTS, n, zero=False)


cdef array.array as_array(const IntBuffer *buffer):
    cdef array.array copy = ints(buffer.size)
    if buffer.size:
        memcpy(copy.data.as_ints, buffer.data, buffer.size * sizeof(int32_t))
    return copy


cdef array.array int_array(values):
    """`values` itself where it is an array("i"), which costs nothing; a copy of any other int32 buffer."""
    cdef const int32_t[::1] view
    cdef array.array copy
    if isinstance(values, array.array) and (<array.array> values).ob_descr.typecode == c"i":
        return values
    if values is None:
        raise TypeError("an array of int32 is expected, got None")
    view = values
    copy = ints(view.shape[0])
    if view.shape[0]:
        memcpy(copy.data.as_ints, &view[0], view.shape[0] * sizeof(int32_t))
    return copy


cdef array.array double_array(values):
    """`values` itself where it is an array("d"), which costs nothing; a copy of any other float64 buffer."""
    cdef const double[::1] view
    cdef array.array copy
    if isinstance(values, array.array) and (<array.array> values).ob_descr.typecode == c"d":
        return values
    if values is None:
        raise TypeError("an array of float64 is expected, got None")
    view = values
    copy = array.clone(DOUBLES, view.shape[0], zero=False)
    if view.shape[0]:
        memcpy(copy.data.as_doubles, &view[0], view.shape[0] * sizeof(double))
    return copy


cdef class Formula:
    """The constants of a block's score, for `TermMatrix.top`.

    score = weight_user lex(user) + weight_assistant lex(assistant) + weight_exact exact + weight_recency recency;
    lex is BM25 with k1 and b (Robertson and Zaragoza, 2009) over the query's idf mass; recency falls from 1 to 0
    over recency_window turns. joint: the two sides are one text, and its lex stands for the user's.
    """

    cdef readonly double k1, b, weight_user, weight_assistant, weight_exact, weight_recency, recency_window
    cdef readonly bint joint

    def __cinit__(self, *, double k1, double b, double weight_user, double weight_assistant, double weight_exact,
                  double weight_recency, double recency_window, bint joint=False):
        self.k1, self.b = k1, b
        self.weight_user, self.weight_assistant = weight_user, weight_assistant
        self.weight_exact, self.weight_recency = weight_exact, weight_recency
        self.recency_window = recency_window
        self.joint = joint


cdef class TermMatrix:
    """What one conversation has indexed, by turn and by term.

    `vocabulary` must be the one whose findings are appended. Not thread safe: the owner locks.
    """

    cdef readonly Vocabulary vocabulary
    cdef Matrix matrix

    def __cinit__(self, Vocabulary vocabulary not None):
        self.vocabulary = vocabulary
        memset(&self.matrix, 0, sizeof(Matrix))

    def __dealloc__(self):
        postings_free(&self.matrix.postings)
        rows_free(&self.matrix.rows)

    @property
    def n_turns(self):
        """Rows, forgotten ones included: the next turn's id."""
        return self.matrix.rows.n

    @property
    def n_blocks(self):
        """N of the idf: rows that are not forgotten."""
        return self.matrix.rows.n_live

    @property
    def total_tokens(self):
        """(tokens of all user sides, tokens of all assistant sides)."""
        return self.matrix.rows.total_user, self.matrix.rows.total_assistant

    # --- growing and shrinking

    def append(self, *, int32_t n_ages, double ngram_floor, double ngram_weight=1.0, double unseen_weight=1.0):
        """Append what the vocabulary's last `add` found, two texts (user, assistant) a turn.

        Returns float64[n_new_turns * (n_ages + 1)]: for each turn, before it joined, the idf mass of its user
        side's distinct terms by age. Entry a of 1..n_ages: terms last seen a turns ago; entry 0: all
        others. CJK n-grams with idf < min(ngram_floor, idf of a term of one block) are left out. O(tokens).
        """
        cdef Vocabulary found = self.vocabulary
        cdef Py_ssize_t n_new = found.token_counts.size // 2
        cdef array.array masses
        cdef Findings findings
        cdef Weighing weighing
        cdef int status
        if n_ages < 0:
            raise ValueError(f"n_ages must be at least 0, got {n_ages}")
        if found.token_counts.size % 2:
            raise ValueError("append takes an even number of texts, a user side and an assistant side a turn")
        weighing.n_ages, weighing.ngram_floor = n_ages, ngram_floor
        weighing.ngram_weight, weighing.unseen_weight = ngram_weight, unseen_weight
        masses = array.clone(DOUBLES, (n_new + 1) * (n_ages + 1), zero=True)
        findings.tokens = found.stream.data
        findings.n_tokens = found.token_counts.data
        findings.char_ends = found.sentence_ends.data
        findings.token_ends = found.token_ends.data
        findings.n_sentences = found.sentence_counts.data
        findings.table = &found.table
        if found.stream.size >= NOGIL_TOKENS:
            with nogil:
                status = append_rows(&self.matrix, &findings, n_new, &weighing, masses.data.as_doubles)
        else:
            status = append_rows(&self.matrix, &findings, n_new, &weighing, masses.data.as_doubles)
        array.resize(masses, n_new * (n_ages + 1))
        if status < 0:
            raise MemoryError
        found.clear()
        return masses

    def forget(self, int64_t turn):
        """Wipe one row; its place stays. A term that no row holds any more is wiped from the vocabulary.

        O(tokens of the row x longest list of its terms). IndexError for a turn that does not exist.
        """
        cdef Row *row
        cdef Py_ssize_t i
        if not 0 <= turn < self.matrix.rows.n:
            raise IndexError(f"no turn {turn}; turns run from 0 to {self.matrix.rows.n - 1}")
        row = self.matrix.rows.rows[turn]
        if row == NULL:
            return
        if unlink(&self.matrix, <uint32_t> turn, row) < 0:
            raise MemoryError
        for i in range(row.n_tokens[0] + row.n_tokens[1]):
            if term_of(&self.matrix.postings, tokens_of(row, 0)[i]).df == 0:
                self.vocabulary.remove(tokens_of(row, 0)[i])
        drop_row(&self.matrix.rows, turn)

    def truncate(self, int64_t n_turns):
        """Drop the rows from n_turns on, and every term id that was first given there. O(terms) for n_turns 0."""
        if not 0 <= n_turns <= self.matrix.rows.n:
            raise IndexError(f"n_turns must be 0 to {self.matrix.rows.n}, got {n_turns}")
        if n_turns == 0:
            rows_clear(&self.matrix.rows)
            postings_clear(&self.matrix.postings)
            self.vocabulary.truncate(0)
            return
        while self.matrix.rows.n > n_turns:
            self.forget(self.matrix.rows.n - 1)
            self.matrix.rows.n -= 1
        self.vocabulary.truncate(self.matrix.rows.first_new_term[n_turns - 1])

    # --- reading

    def weigh(self, term_ids):
        """(df int32[n], idf float64[n], last turn int32[n], -1 for none) of each term; id -1: an unknown one."""
        cdef array.array ids = int_array(term_ids)
        cdef Py_ssize_t i, n = len(ids)
        cdef array.array df = ints(n), last = ints(n), idf = array.clone(DOUBLES, n, zero=False)
        cdef Term *term
        for i in range(n):
            df.data.as_ints[i] = 0
            last.data.as_ints[i] = -1
            if 0 <= ids.data.as_ints[i] < self.matrix.postings.n_terms:
                term = term_of(&self.matrix.postings, ids.data.as_ints[i])
                df.data.as_ints[i] = term.df
                last.data.as_ints[i] = <int32_t> last_turn(term)
            idf.data.as_doubles[i] = inverse_document_frequency(df.data.as_ints[i], self.matrix.rows.n_live)
        return df, idf, last

    def idf(self, int64_t df):
        """idf = ln((N + 1) / (df + 1)) + 1 for the conversation as it stands."""
        return inverse_document_frequency(df, self.matrix.rows.n_live)

    def side_terms(self, int64_t turn, int side):
        """Distinct term ids of one side (0 user, 1 assistant) in order of first occurrence: int32[n]."""
        cdef Row *row
        self.check_side(side)
        if not 0 <= turn < self.matrix.rows.n or self.matrix.rows.rows[turn] == NULL:
            return ints(0)
        row = self.matrix.rows.rows[turn]
        ids = [tokens_of(row, side)[i] for i in range(row.n_tokens[side])]
        return array.array("i", dict.fromkeys(ids))

    def sentence_ends(self, int64_t turn, int side):
        """Where the sentences of one side end, in characters: int32[n_sentences]."""
        cdef Row *row = self.row_at(turn)
        cdef array.array ends
        cdef Py_ssize_t i
        self.check_side(side)
        ends = ints(row.n_sentences[side])
        for i in range(row.n_sentences[side]):
            ends.data.as_ints[i] = char_ends_of(row, side)[i]
        return ends

    cdef int check_side(self, int side) except -1:
        if side != 0 and side != 1:
            raise ValueError(f"side must be 0 (user) or 1 (assistant), got {side}")
        return 0

    cdef Row *row_at(self, int64_t turn) except NULL:
        if not 0 <= turn < self.matrix.rows.n or self.matrix.rows.rows[turn] == NULL:
            raise IndexError(f"no turn {turn}; turns run from 0 to {self.matrix.rows.n - 1}")
        return self.matrix.rows.rows[turn]

    cdef LengthNorm norm_of(self, int64_t total_tokens, double k1, double b) noexcept:
        return length_norm(total_tokens / <double> max(self.matrix.rows.n_live, 1), k1, b)

    cdef QueryTerm *query_terms(
        self, array.array ids, array.array idf, double k1, extra_postings, groups, Posting **extra
    ) except NULL:
        """Posting lists of the terms; id -1 has none, -2 - j is extra_postings[j], (turn, tf, tf) triples."""
        cdef array.array of_group = int_array(groups) if groups is not None else None
        cdef Py_ssize_t n = len(ids), n_extra = len(extra_postings), i, j
        cdef const int32_t *term_ids = <const int32_t *> ids.data.as_ints
        cdef list firsts = [0], flat = []
        cdef QueryTerm *terms
        cdef Term *term
        if len(idf) != n:
            raise ValueError(f"term_ids and idf differ in length: {n} and {len(idf)}")
        if of_group is not None and len(of_group) != n:
            raise ValueError(f"term_ids and groups differ in length: {n} and {len(of_group)}")
        for group in extra_postings:
            flat += checked_postings(group, self.matrix.rows.n)
            firsts.append(len(flat))
        for i in range(n):
            if term_ids[i] < -1 - n_extra:
                raise ValueError(f"term_ids name extra postings that are not there: {term_ids[i]}")
        terms = <QueryTerm *> calloc(max(n, 1), sizeof(QueryTerm))
        extra[0] = <Posting *> malloc(max(len(flat), 1) * sizeof(Posting))
        if terms == NULL or extra[0] == NULL:
            free(terms)
            free(extra[0])
            raise MemoryError
        for i in range(<Py_ssize_t> len(flat)):
            extra[0][i].turn, extra[0][i].tf_user, extra[0][i].tf_assistant = flat[i]
        for i in range(n):
            terms[i].weight = idf.data.as_doubles[i] * (k1 + 1.0)
            if 0 <= term_ids[i] < self.matrix.postings.n_terms:
                term = term_of(&self.matrix.postings, term_ids[i])
                if term.df > 0:
                    terms[i].next = list_of(term)
                    terms[i].end = terms[i].next + term.df
            elif term_ids[i] <= -2:
                j = -2 - term_ids[i]
                terms[i].next = extra[0] + <Py_ssize_t> firsts[j]
                terms[i].end = extra[0] + <Py_ssize_t> firsts[j + 1]
            terms[i].first = terms[i].next
            if of_group is not None and i > 0 and of_group.data.as_ints[i] == of_group.data.as_ints[i - 1]:
                terms[i].n_before = terms[i - 1].n_before + 1
        return terms

    def top(self, term_ids, idf, Formula formula not None, *, Py_ssize_t k, extra_postings=(), groups=None,
            allowed=None):
        """The k best turns that hold a term of the query, best first, ties to the newer turn.

        term_ids: int32[n], distinct; -1 is a term that no turn holds, -2 - j one whose postings are
        extra_postings[j], a list of (turn, tf_user, tf_assistant) by turn. idf: float64[n] > 0, or None for that of
        the conversation as it stands. groups: int32[n] or None; terms of the same number in a row are forms of one
        word. allowed: int32[m] ascending, the only turns that count, or None.
        Returns (turns int32, score, lex_user, lex_assistant float64, exact int32), each [<= k]; exact: 1 where the
        turn holds every word that any turn holds. lex is BM25 over the sum of idf. O(postings of the terms).
        """
        cdef Posting *extra = NULL
        cdef QueryTerm *terms
        cdef Scored *heap
        cdef array.array ids = int_array(term_ids), only, weights
        cdef Allowed filter
        cdef QueryFormula of_query
        cdef Py_ssize_t n_found, n = len(ids)
        k = max(0, min(k, self.matrix.rows.n_live))
        memset(&filter, 0, sizeof(filter))
        if allowed is not None:
            only = int_array(allowed)
            filter.filtered = True
            filter.n = len(only)
            filter.turns = <const int32_t *> only.data.as_ints
        weights = self.idf_array(ids) if idf is None else double_array(idf)
        terms = self.query_terms(ids, weights, formula.k1, extra_postings, groups, &extra)
        of_query = self.of_query(formula, terms, weights)
        heap = <Scored *> malloc(max(k, 1) * sizeof(Scored))
        try:
            if heap == NULL:
                raise MemoryError
            with nogil:
                n_found = best_rows(terms, n, &self.matrix.rows, &of_query, &filter, heap, k)
            if n_found < 0:
                raise MemoryError
            return scored_arrays(heap, n_found, of_query.n_present)
        finally:
            free(terms)
            free(extra)
            free(heap)

    def top_in_context(self, term_ids, idf, Formula formula not None, *, Py_ssize_t k, double weight_neighbours,
                       Py_ssize_t neighbour_window, double recency_share, extra_postings=(), groups=None):
        """The k best turns by what they and the turns around them hold, best first, ties to the newer turn.

        score = (lexical + weight_neighbours neighbours) / best + weight_recency recency_share recency, where lexical is
        weight_user lex(user) + weight_assistant lex(assistant), neighbours the sum of lexical / d over the turns at
        distance d <= neighbour_window, and best the greatest value of the bracket, or 1 if that is 0. A turn counts
        that holds a term, stands beside one that does, or is recent while recency_share > 0. Arguments and lex are
        those of `top`; where the sum of idf is 0, lex is 0. Returns (turns int32, score, lex_user, lex_assistant,
        neighbours float64, each [<= k]; best). O(postings of the terms + turns x neighbour_window).
        """
        cdef Posting *extra = NULL
        cdef QueryTerm *terms
        cdef Scored *heap
        cdef Context context
        cdef QueryFormula of_query
        cdef array.array ids = int_array(term_ids), weights = double_array(idf)
        cdef Py_ssize_t n_found, n = len(ids)
        cdef double best = 0.0
        if neighbour_window < 0:
            raise ValueError(f"neighbour_window must be at least 0, got {neighbour_window}")
        k = max(0, min(k, self.matrix.rows.n_live))
        memset(&context, 0, sizeof(context))
        context.weight_neighbours, context.recency_share = weight_neighbours, recency_share
        context.window = min(neighbour_window, self.matrix.rows.n)
        terms = self.query_terms(ids, weights, formula.k1, extra_postings, groups, &extra)
        of_query = self.of_query(formula, terms, weights)
        heap = <Scored *> malloc(max(k, 1) * sizeof(Scored))
        try:
            if heap == NULL or context_init(&context, self.matrix.rows.n) < 0:
                raise MemoryError
            with nogil:
                n_found = best_in_context(terms, n, &self.matrix.rows, &of_query, &context, heap, k, &best)
            if n_found < 0:
                raise MemoryError
            return arrays_in_context(heap, n_found, &context, best)
        finally:
            free(terms)
            free(extra)
            free(heap)
            context_free(&context)

    cdef array.array idf_array(self, array.array ids):
        cdef array.array idf = array.clone(DOUBLES, len(ids), zero=False)
        cdef int32_t term_id
        cdef uint32_t df
        cdef Py_ssize_t i
        for i in range(len(ids)):
            term_id = ids.data.as_ints[i]
            df = term_of(&self.matrix.postings, term_id).df if 0 <= term_id < self.matrix.postings.n_terms else 0
            idf.data.as_doubles[i] = inverse_document_frequency(df, self.matrix.rows.n_live)
        return idf

    cdef QueryFormula of_query(self, Formula formula, const QueryTerm *terms, array.array idf) noexcept:
        cdef QueryFormula of_query
        cdef Py_ssize_t i, n = len(idf)
        cdef bint is_present = False
        of_query.joint = formula.joint
        of_query.norm_user = self.norm_of(
            self.matrix.rows.total_user + (self.matrix.rows.total_assistant if formula.joint else 0),
            formula.k1, formula.b)
        of_query.norm_assistant = self.norm_of(self.matrix.rows.total_assistant, formula.k1, formula.b)
        of_query.weight_user, of_query.weight_assistant = formula.weight_user, formula.weight_assistant
        of_query.weight_exact, of_query.weight_recency = formula.weight_exact, formula.weight_recency
        of_query.recency_window = formula.recency_window
        of_query.current_turn = self.matrix.rows.n
        of_query.idf_mass = 0.0
        of_query.n_present = 0
        for i in range(n):
            of_query.idf_mass += idf.data.as_doubles[i]
            is_present = terms[i].next < terms[i].end or (is_present and terms[i].n_before > 0)
            of_query.n_present += is_present and (i + 1 == n or terms[i + 1].n_before == 0)
        of_query.rough_user = formula.weight_user / of_query.idf_mass
        of_query.rough_assistant = formula.weight_assistant / of_query.idf_mass
        of_query.margin = 1e-9 * ((formula.weight_user + formula.weight_assistant) * (formula.k1 + 1.0)
                                  + formula.weight_exact + formula.weight_recency)
        return of_query

    def parts(self, int64_t turn, term_ids, idf, *, double k1, double b, bint joint=False, extra_postings=()):
        """One turn's BM25, term by term: (tf_user, tf_assistant int32, part_user, part_assistant float64), each [n].

        Added in order, the parts are exactly lex times the idf mass. Arguments as in `top`.
        """
        cdef array.array ids = int_array(term_ids)
        cdef Py_ssize_t i, n = len(ids)
        cdef array.array tf_user = array.clone(INTS, n, zero=True), tf_assistant = array.clone(INTS, n, zero=True)
        cdef array.array user = array.clone(DOUBLES, n, zero=True)
        cdef array.array assistant = array.clone(DOUBLES, n, zero=True)
        cdef Posting *extra = NULL
        cdef QueryTerm *terms
        cdef const Posting *posting
        cdef int64_t total_assistant = self.matrix.rows.total_assistant
        cdef LengthNorm norm_user = self.norm_of(
            self.matrix.rows.total_user + (total_assistant if joint else 0), k1, b)
        cdef LengthNorm norm_assistant = self.norm_of(total_assistant, k1, b)
        self.row_at(turn)
        terms = self.query_terms(ids, double_array(idf), k1, extra_postings, None, &extra)
        for i in range(n):
            posting = terms[i].next
            while posting < terms[i].end and posting.turn < turn:
                posting += 1
            if posting == terms[i].end or posting.turn != turn:
                continue
            tf_user.data.as_ints[i] = posting.tf_user
            tf_assistant.data.as_ints[i] = posting.tf_assistant
            if joint:
                user.data.as_doubles[i] = saturated(
                    terms[i].weight, posting.tf_user + posting.tf_assistant,
                    self.matrix.rows.lengths[turn].user + self.matrix.rows.lengths[turn].assistant, norm_user)
                continue
            user.data.as_doubles[i] = saturated(
                terms[i].weight, posting.tf_user, self.matrix.rows.lengths[turn].user, norm_user)
            assistant.data.as_doubles[i] = saturated(
                terms[i].weight, posting.tf_assistant, self.matrix.rows.lengths[turn].assistant, norm_assistant)
        free(terms)
        free(extra)
        return tf_user, tf_assistant, user, assistant

    def coverage(self, turns, term_ids, idf, *, double k1, double b, double length, extra_postings=(), groups=None):
        """The idf mass of a query that each turn is about: float64[m] for turns int32[m].

        mass = sum of idf min(1, t (k1 + 1) / (t + k1 (1 - b + b |x| / length))) over the words of the query, with
        t = sqrt(tf) and |x| those of the side that gives more: the saturated tf of BM25, for sides of a fixed length,
        not an average one. The forms of a word count together, with the idf of the first. The other arguments are
        those of `top`. IndexError for a turn that is not there. O(m n log of the longest list).
        """
        cdef array.array ids = int_array(term_ids), weights = double_array(idf), asked = int_array(turns)
        cdef Py_ssize_t i, m = len(asked), n = len(ids)
        cdef array.array masses = array.clone(DOUBLES, m, zero=False)
        cdef Posting *extra = NULL
        cdef QueryTerm *terms
        cdef LengthNorm norm = length_norm(length, k1, b)
        for i in range(m):
            self.row_at(asked.data.as_ints[i])
        terms = self.query_terms(ids, weights, k1, extra_postings, groups, &extra)
        for i in range(m):
            masses.data.as_doubles[i] = covered_mass(
                terms, weights.data.as_doubles, n, <uint32_t> asked.data.as_ints[i],
                &self.matrix.rows.lengths[asked.data.as_ints[i]], k1, norm)
        free(terms)
        free(extra)
        return masses

    def held(self, turns, term_ids, *, extra_postings=(), groups=None):
        """The words of a query that each turn holds: (how many int32[m], which int32[...]), for turns int32[m].

        Which: ascending indexes into term_ids, of a word's first form whichever is held. Arguments as in `top`.
        IndexError for a turn that is not there. O(m n log of the longest list).
        """
        cdef array.array ids = int_array(term_ids), asked = int_array(turns)
        cdef Py_ssize_t i, j, m = len(asked), n = len(ids)
        cdef array.array counts = ints(m)
        cdef Posting *extra = NULL
        cdef QueryTerm *terms
        cdef IntBuffer held
        cdef int32_t word, last
        memset(&held, 0, sizeof(held))
        for i in range(m):
            self.row_at(asked.data.as_ints[i])
        terms = self.query_terms(ids, array.clone(DOUBLES, n, zero=True), 0.0, extra_postings, groups, &extra)
        try:
            for i in range(m):
                last = -1
                counts.data.as_ints[i] = 0
                for j in range(n):
                    word = <int32_t> (j - terms[j].n_before)
                    if word != last and posting_of(&terms[j], <uint32_t> asked.data.as_ints[i]) != NULL:
                        last = word
                        counts.data.as_ints[i] += 1
                        if int_push(&held, word) < 0:
                            raise MemoryError
            return counts, as_array(&held)
        finally:
            free(terms)
            free(extra)
            int_free(&held)

    def holds_any(self, int64_t turn, term_ids):
        """Whether a turn holds at least one of the terms; ids below 0 are held by none."""
        cdef array.array ids = int_array(term_ids)
        cdef Py_ssize_t i
        for i in range(len(ids)):
            if 0 <= ids.data.as_ints[i] < self.matrix.postings.n_terms and position_of(
                    term_of(&self.matrix.postings, ids.data.as_ints[i]), <uint32_t> turn) >= 0:
                return True
        return False

    def turns_with(self, const int32_t[::1] term_ids not None, const int32_t[::1] group_ends not None):
        """Turns that hold every term of at least one group: int32[n] ascending.

        Group j is term_ids[group_ends[j - 1]:group_ends[j]]; an empty group matches nothing. O(postings).
        """
        cdef Py_ssize_t n_groups = group_ends.shape[0], j, i, first = 0, n = 0
        cdef uint8_t *held
        cdef array.array turns
        for j in range(n_groups):
            if not first <= group_ends[j] <= term_ids.shape[0]:
                raise ValueError(f"group_ends must ascend and end within term_ids, {term_ids.shape[0]} long")
            first = group_ends[j]
        first = 0
        held = <uint8_t *> calloc(max(self.matrix.rows.n, 1), 1)
        if held == NULL:
            raise MemoryError
        for j in range(n_groups):
            if group_ends[j] > first:
                self.mark_group(&term_ids[first], group_ends[j] - first, held)
            first = group_ends[j]
        for i in range(self.matrix.rows.n):
            n += held[i]
        turns = ints(n)
        n = 0
        for i in range(self.matrix.rows.n):
            if held[i]:
                turns.data.as_ints[n] = <int32_t> i
                n += 1
        free(held)
        return turns

    cdef void mark_group(self, const int32_t *term_ids, Py_ssize_t n, uint8_t *held) noexcept nogil:
        """Mark the turns that hold all n terms: those of the rarest term that the others hold too."""
        cdef Py_ssize_t i, rarest = 0, position
        cdef const Posting *posting
        cdef Term *term
        for i in range(n):
            if not 0 <= term_ids[i] < self.matrix.postings.n_terms:
                return
            if term_of(&self.matrix.postings, term_ids[i]).df < term_of(&self.matrix.postings, term_ids[rarest]).df:
                rarest = i
        term = term_of(&self.matrix.postings, term_ids[rarest])
        for position in range(term.df):
            posting = list_of(term) + position
            for i in range(n):
                if i != rarest and position_of(term_of(&self.matrix.postings, term_ids[i]), posting.turn) < 0:
                    break
            else:
                held[posting.turn] = 1

    def best_sentences(
        self, const int32_t[::1] turns not None, const int32_t[::1] term_ids not None, const double[::1] idf not None,
        *, Py_ssize_t max_sentences, const int32_t[::1] searched=None
    ):
        """Of both sides of each of `turns`, the sentences of the greatest idf mass that hold a term of the query.

        At most max_sentences >= 1 a side, ties to the earlier; of the assistant's side the first sentence always,
        among them. searched: int32[4 m], hits of terms that were searched for: (position in `turns`, side, sentence,
        index into term_ids), ascending. Returns int32 arrays: (spans of each turn's user side, assistant side, ...;
        their starts; their ends, in characters; terms that each turn's kept sentences hold; which, as ascending
        indexes into term_ids). O(tokens of the turns).
        """
        if idf.shape[0] != term_ids.shape[0]:
            raise ValueError(f"term_ids and idf differ in length: {term_ids.shape[0]} and {idf.shape[0]}")
        if max_sentences < 1:
            raise ValueError(f"max_sentences must be at least 1, got {max_sentences}")
        return best_sentences_of(self, turns, term_ids, idf, max_sentences, searched)

    def csc(self, int side):
        """One side as CSC by term: (indptr int32[n_terms + 1], turns int32[nnz], tf float64[nnz]). O(nnz)."""
        cdef Py_ssize_t n_terms = self.vocabulary.table.n_terms, i, j, nnz = 0
        cdef array.array indptr = ints(n_terms + 1)
        cdef array.array turns, tf
        cdef const Posting *posting
        cdef Term *term
        cdef int count
        self.check_side(side)
        turns = ints(self.n_postings())
        tf = array.clone(DOUBLES, len(turns), zero=False)
        indptr.data.as_ints[0] = 0
        for i in range(n_terms):
            if i < self.matrix.postings.n_terms:
                term = term_of(&self.matrix.postings, i)
                for j in range(term.df):
                    posting = list_of(term) + j
                    count = posting.tf_user if side == 0 else posting.tf_assistant
                    if count:
                        turns.data.as_ints[nnz] = posting.turn
                        tf.data.as_doubles[nnz] = count
                        nnz += 1
            indptr.data.as_ints[i + 1] = <int32_t> nnz
        array.resize(turns, nnz)
        array.resize(tf, nnz)
        return indptr, turns, tf

    cdef Py_ssize_t n_postings(self):
        cdef Py_ssize_t i, n = 0
        for i in range(self.matrix.postings.n_terms):
            n += term_of(&self.matrix.postings, i).df
        return n

    def lengths(self, int side):
        """Tokens of one side of every turn, |x| of the formula: int32[n_turns]; 0 for a forgotten turn."""
        cdef array.array lengths = ints(self.matrix.rows.n)
        cdef Py_ssize_t i
        self.check_side(side)
        for i in range(self.matrix.rows.n):
            lengths.data.as_ints[i] = (
                self.matrix.rows.lengths[i].user if side == 0 else self.matrix.rows.lengths[i].assistant)
        return lengths


cdef tuple scored_columns(const Scored *scored, Py_ssize_t n):
    """(turns int32, score, lex_user, lex_assistant float64), each [n]."""
    cdef array.array turns = ints(n)
    cdef array.array score = array.clone(DOUBLES, n, zero=False)
    cdef array.array user = array.clone(DOUBLES, n, zero=False)
    cdef array.array assistant = array.clone(DOUBLES, n, zero=False)
    cdef Py_ssize_t i
    for i in range(n):
        turns.data.as_ints[i] = scored[i].turn
        score.data.as_doubles[i] = scored[i].score
        user.data.as_doubles[i] = scored[i].lex_user
        assistant.data.as_doubles[i] = scored[i].lex_assistant
    return turns, score, user, assistant


cdef tuple scored_arrays(const Scored *scored, Py_ssize_t n, int32_t n_present):
    cdef array.array exact = ints(n)
    cdef Py_ssize_t i
    for i in range(n):
        exact.data.as_ints[i] = scored[i].n_held == n_present
    return *scored_columns(scored, n), exact


cdef tuple arrays_in_context(const Scored *scored, Py_ssize_t n, const Context *context, double best):
    cdef array.array neighbours = array.clone(DOUBLES, n, zero=False)
    cdef Py_ssize_t i
    for i in range(n):
        neighbours.data.as_doubles[i] = neighbours_of(context, scored[i].turn)
    return *scored_columns(scored, n), neighbours, best


cdef void free_hits(HitColumns *hits) noexcept:
    int_free(&hits.position)
    int_free(&hits.side)
    int_free(&hits.sentence)
    int_free(&hits.start)
    int_free(&hits.end)
    int_free(&hits.held_end)
    int_free(&hits.held)
    free(hits.mass.data)


cdef tuple best_sentences_of(
    TermMatrix matrix, const int32_t[::1] turns, const int32_t[::1] term_ids, const double[::1] idf,
    Py_ssize_t max_sentences, const int32_t[::1] searched_hits
):
    cdef HitColumns hits
    cdef KeptColumns kept
    cdef IntBuffer chosen
    cdef SearchedHits searched
    cdef uint32_t mask = 0
    cdef Py_ssize_t p
    cdef Row *row
    cdef TermSlot *slots
    memset(&hits, 0, sizeof(hits))
    memset(&kept, 0, sizeof(kept))
    memset(&chosen, 0, sizeof(chosen))
    memset(&searched, 0, sizeof(searched))
    if searched_hits is not None:
        for p in range(3, searched_hits.shape[0], 4):
            if not 0 <= searched_hits[p] < term_ids.shape[0]:
                raise ValueError(f"searched names a term that is not there: {searched_hits[p]}")
    if searched_hits is not None and searched_hits.shape[0] >= 4:
        searched.data = &searched_hits[0]
        searched.n = searched_hits.shape[0] // 4
    slots = position_table(&term_ids[0] if term_ids.shape[0] else NULL, term_ids.shape[0], &mask)
    try:
        if slots == NULL:
            raise MemoryError
        for p in range(turns.shape[0]):
            row = matrix.row_at(turns[p])
            if keep_row(row, slots, mask, &idf[0] if idf.shape[0] else NULL, <int32_t> p, &searched, max_sentences,
                        &hits, &chosen, &kept) < 0:
                raise MemoryError
        return (
            as_array(&kept.span_count), as_array(&kept.start), as_array(&kept.end), as_array(&kept.cover_count),
            as_array(&kept.cover))
    finally:
        free(slots)
        free_hits(&hits)
        int_free(&chosen)
        int_free(&kept.span_count)
        int_free(&kept.start)
        int_free(&kept.end)
        int_free(&kept.cover_count)
        int_free(&kept.cover)
