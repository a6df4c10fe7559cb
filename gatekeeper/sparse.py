"""Sparse scores: BM25 over idf mass, exact match and recency; how much of a query a block is about."""

from __future__ import annotations

from array import array

from gatekeeper.block import CONTINUE, Anchor, Candidate
from gatekeeper.corpus import Corpus
from gatekeeper.errors import ArgumentValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csc_array, csr_array, sparray, spmatrix

LONG_CONVERSATION = 10  # turns, from which on a block must cover all of min_coverage


class QueryArrays:
    """A(q) as the kernels take it: ids, idf, the postings of searched anchors, and the whole idf mass.

    groups: for each anchor the place of the one that it is a form of, or its own; None where none is a form.
    word_mass: the idf mass without forms.
    """

    __slots__ = ("anchors", "extra_postings", "groups", "idf", "idf_mass", "term_ids", "word_mass")

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        self.anchors = anchors
        self.term_ids = array("i", [anchor.term_id for anchor in anchors])
        self.idf = array("d", [anchor.weight for anchor in anchors])
        self.extra_postings = [anchor.postings for anchor in anchors if anchor.is_searched]
        if self.extra_postings:
            self._number_searched()
        self.idf_mass = 0.0
        for idf in self.idf:
            self.idf_mass += idf
        self.groups: array[int] | None = None
        self.word_mass = self.idf_mass
        if any(anchor.form_of for anchor in anchors):
            self._group_forms()

    def _number_searched(self) -> None:
        n_searched = 0
        for i, anchor in enumerate(self.anchors):
            if anchor.is_searched:
                n_searched += 1
                self.term_ids[i] = -1 - n_searched

    def _group_forms(self) -> None:
        self.groups = array("i", range(len(self.anchors)))
        self.word_mass = 0.0
        for i, anchor in enumerate(self.anchors):
            if anchor.form_of:
                self.groups[i] = self.groups[i - 1]
            else:
                self.word_mass += anchor.weight


def find_coverage(corpus: Corpus, candidates: Sequence[Candidate], arrays: QueryArrays, action: str) -> None:
    """Find the coverage of every candidate, and which of them hold too little of the query to be of its topic.

    Within a topic that goes on less is asked.
    """
    settings = corpus.settings
    if not candidates:
        return
    masses = corpus.matrix.coverage(
        array("i", [candidate.turn_id for candidate in candidates]), arrays.term_ids, arrays.idf, k1=settings.k1,
        b=settings.b, length=settings.coverage_length, extra_postings=arrays.extra_postings, groups=arrays.groups)
    least = least_coverage(corpus)
    topic_start = corpus.topic_starts[-1] if action == CONTINUE else corpus.matrix.n_turns
    for candidate, mass in zip(candidates, masses, strict=True):
        candidate.coverage = mass / arrays.word_mass if arrays.word_mass else 0.0
        in_topic = candidate.turn_id >= topic_start
        candidate.is_mention = candidate.coverage < (least * settings.topic_coverage_ratio if in_topic else least)


def least_coverage(corpus: Corpus) -> float:
    """The coverage that makes a block more than a mention; less in a short conversation, whose idf says little yet."""
    return corpus.settings.min_coverage * min(1.0, corpus.matrix.n_blocks / LONG_CONVERSATION)


def score_blocks(
    corpus: Corpus, arrays: QueryArrays, max_blocks: int, allowed: array[int] | None = None
) -> list[Candidate]:
    """Score the blocks that share an anchor: score = 1.5 lex(user) + 0.7 lex(assistant) + 1.0 exact + 0.2 recency."""
    settings = corpus.settings
    n_turns = corpus.matrix.n_turns
    turns, scores, lex_user, lex_assistant, exact = corpus.matrix.top(
        arrays.term_ids, arrays.idf, corpus.formula, k=max_blocks, extra_postings=arrays.extra_postings,
        groups=arrays.groups, allowed=allowed)
    return [
        Candidate(
            turn,
            scores[i],
            lex_user[i],
            lex_assistant[i],
            float(exact[i]),
            max(0.0, 1.0 - (n_turns - turn) / settings.recency_window),
        )
        for i, turn in enumerate(turns)
    ]


# --- the same scores for any matrix


def to_scipy(corpus: Corpus, side: int, layout: str) -> csr_array | csc_array:
    """One side (USER, ASSISTANT) of the conversation as a sparse matrix turns x terms of float64 counts."""
    import numpy as np
    from scipy.sparse import csc_array

    indptr, turns, tf = corpus.matrix.csc(side)
    shape = (corpus.matrix.n_turns, len(corpus.vocabulary))
    arrays = (np.frombuffer(tf, np.float64), np.frombuffer(turns, np.int32), np.frombuffer(indptr, np.int32))
    matrix = csc_array(arrays, shape=shape)
    return matrix if layout == "csc" else matrix.tocsr()


def score_matrix(
    matrix: sparray | spmatrix,
    terms: ArrayLike,
    *,
    idf: ArrayLike | None = None,
    k1: float = 1.2,
    b: float = 0.75,
    row_lengths: ArrayLike | None = None,
    average_length: float | None = None,
    idf_mass: float | None = None,
) -> NDArray[np.float64]:
    """BM25 of every row of a CSR or CSC matrix rows x terms of counts, divided by the query's idf mass.

    terms: columns of the query, int[n], distinct. idf: float64[n]; without it ln((N + 1) / (df + 1)) + 1 of the
    matrix. row_lengths: float64[rows], |x|; without it the row sums. average_length: without it their mean.
    idf_mass: without it the sum of idf. Returns float64[rows]. The conversation's own scores are these to the bit.
    Raises ArgumentValueError for another layout, an unsorted or broken index, or a term out of range. O(nnz).
    """
    import numpy as np
    from scipy.sparse import issparse

    from gatekeeper._core import bm25

    if not issparse(matrix) or matrix.format not in ("csr", "csc"):
        raise ArgumentValueError(f"matrix must be a scipy.sparse CSR or CSC matrix, got {type(matrix).__name__}")
    n_rows, n_terms = matrix.shape
    columns = np.ascontiguousarray(terms, np.int64)
    if columns.ndim != 1 or len(np.unique(columns)) != columns.size or not np.all((columns >= 0) & (columns < n_terms)):
        raise ArgumentValueError(f"terms must be distinct columns from 0 to {n_terms - 1}, got {terms!r:.80}")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    indices = np.ascontiguousarray(matrix.indices)
    indptr = np.ascontiguousarray(matrix.indptr, indices.dtype)
    counts = np.ascontiguousarray(matrix.data, np.float64)
    try:
        bm25.check_indices(indptr, indices, n_terms if matrix.format == "csr" else n_rows)
    except ValueError as error:
        raise ArgumentValueError(str(error)) from None
    if idf is None:
        weights = np.frombuffer(bm25.idf_of(_df(matrix, columns), n_rows))
    else:
        weights = _vector("idf", idf, columns.size)
    if row_lengths is None:
        lengths = np.asarray(matrix.sum(axis=1), np.float64).ravel()
    else:
        lengths = _vector("row_lengths", row_lengths, n_rows)
    average = float(lengths.mean()) if average_length is None and n_rows else float(average_length or 0.0)
    mass = _sum_in_order(weights) if idf_mass is None else float(idf_mass)
    scores = np.zeros(n_rows)
    if mass <= 0.0:
        return scores
    if matrix.format == "csc":
        bm25.score_csc(indptr, indices, counts, lengths, columns, weights, mass, average, k1, b, scores)
    else:
        bm25.score_csr(indptr, indices, counts, lengths, columns, weights, n_terms, mass, average, k1, b, scores)
    return scores


def _sum_in_order(values: NDArray[np.float64]) -> float:
    """A sum from left to right, as the kernels add; numpy's own adds in pairs."""
    total = 0.0
    for value in values:
        total += float(value)
    return total


def _df(matrix: sparray | spmatrix, columns: NDArray[np.int64]) -> list[int]:
    held = matrix.tocsc()[:, columns]
    return [int((held.data[held.indptr[i] : held.indptr[i + 1]] > 0).sum()) for i in range(columns.size)]


def _vector(name: str, values: ArrayLike, length: int) -> NDArray[np.float64]:
    import numpy as np

    vector = np.ascontiguousarray(values, np.float64)
    if vector.shape != (length,):
        raise ArgumentValueError(f"{name} must have the shape ({length},), got {vector.shape}")
    return vector


__all__ = ["QueryArrays", "find_coverage", "least_coverage", "score_blocks", "score_matrix", "to_scipy"]
