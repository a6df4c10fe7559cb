"""What `benchmarks.instructions` counts: every kernel on fixed input, by name.

    python -m benchmarks.kernels NAME

runs one workload between marks: calls of `getppid`, which nothing else calls and at which callgrind
writes down what it has counted. Between the first two marks lie 0 repetitions, between the last two all.
"""

from __future__ import annotations

import gc
import os
import sys
from array import array
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.texts import SCRIPTS, Turn, conversation, queries
from gatekeeper import ContextGatekeeper
from gatekeeper._core.bm25 import score_csc, score_csr
from gatekeeper._core.term_matrix import Formula, TermMatrix
from gatekeeper._core.vocabulary import Vocabulary, sentence_ends
from gatekeeper.anchor import LEXICON

WARM_UP = 3
N_TURNS = 100
QUERY = "".join(queries("mixed")[:2])
K1, B = 1.2, 0.75
FORMULA = Formula(k1=K1, b=B, weight_user=1.5, weight_assistant=0.7, weight_exact=1.0, weight_recency=0.2,
                  recency_window=100)  # fmt: skip
Workload = Callable[[], object]


class Kernel(NamedTuple):
    """prepare: how many calls will come -> what one repetition calls; repetitions: how many are counted."""

    prepare: Callable[[int], Workload]
    repetitions: int


def run_marked(kernel: Kernel) -> None:
    """Warm up, then call the marks with 0 and with all repetitions between them."""
    repeat = kernel.prepare(WARM_UP + kernel.repetitions)
    for _ in range(WARM_UP):
        repeat()
    gc.collect()
    gc.disable()
    for n in (0, kernel.repetitions):
        os.getppid()
        for _ in range(n):
            repeat()
    os.getppid()


def _texts(turns: list[Turn]) -> tuple[str, ...]:
    return tuple(text for turn in turns for text in turn)


def _found(texts: tuple[str, ...]) -> Vocabulary:
    vocabulary = Vocabulary(LEXICON)
    vocabulary.add(texts)
    return vocabulary


class _Indexed:
    """A mixed conversation in a term matrix, and a query as the kernels take it."""

    def __init__(self, n_turns: int) -> None:
        self.vocabulary = _found(_texts(conversation("mixed", n_turns)))
        self.matrix = TermMatrix(self.vocabulary)
        self.matrix.append(n_ages=8, ngram_floor=1.5)
        self.ids = array("i", [i for i in self.vocabulary.find(_found((QUERY,))) if i >= 0])
        self.idf = self.matrix.weigh(self.ids)[1]
        self.idf_mass = sum(self.idf)


# --- text


def _extract(script: str) -> Callable[[int], Workload]:
    def prepare(n: int) -> Workload:
        texts = _texts(conversation(script, 30))
        return lambda: _found(texts)

    return prepare


def _sentence_ends(n: int) -> Workload:
    text = "".join(text for script in SCRIPTS for text in _texts(conversation(script, 10)))
    return lambda: sentence_ends(text)


# --- the term matrix


def _append(n: int) -> Workload:
    texts = _texts(conversation("mixed", N_TURNS))
    fresh = iter([TermMatrix(_found(texts)) for _ in range(n)])
    return lambda: next(fresh).append(n_ages=8, ngram_floor=1.5)


def _top_20(n: int) -> Workload:
    held = _Indexed(10_000)
    return lambda: held.matrix.top(held.ids, held.idf, FORMULA, k=20)


def _weigh(n: int) -> Workload:
    held = _Indexed(1_000)
    ids = array("i", range(len(held.vocabulary)))
    return lambda: held.matrix.weigh(ids)


def _turns_with(n: int) -> Workload:
    held = _Indexed(1_000)
    ends = array("i", range(2, len(held.ids) + 1, 2))  # two terms a group
    return lambda: held.matrix.turns_with(held.ids, ends)


def _sentence_hits(n: int) -> Workload:
    held = _Indexed(1_000)
    turns = held.matrix.turns_with(held.ids, array("i", range(1, len(held.ids) + 1)))[-20:]
    return lambda: held.matrix.sentence_hits(turns, held.ids, held.idf)


# --- BM25 over arrays


def _as_csr(
    indptr: array[int], rows: array[int], tf: array[float], n_rows: int
) -> tuple[array[int], array[int], array[float]]:
    """The CSR arrays of a CSC matrix."""
    columns = range(len(indptr) - 1)
    cells = sorted((rows[i], column, tf[i]) for column in columns for i in range(indptr[column], indptr[column + 1]))
    starts = array("i", bytes(4 * (n_rows + 1)))
    for row, _, _ in cells:
        starts[row + 1] += 1
    for row in range(n_rows):
        starts[row + 1] += starts[row]
    return starts, array("i", [column for _, column, _ in cells]), array("d", [count for _, _, count in cells])


def _score(layout: str) -> Callable[[int], Workload]:
    def prepare(n: int) -> Workload:
        held = _Indexed(300)
        indptr, turns, tf = held.matrix.csc(1)
        lengths = array("d", held.matrix.lengths(1))
        average = sum(lengths) / len(lengths)
        terms, scores = array("q", held.ids), array("d", bytes(8 * len(lengths)))
        if layout == "csc":
            return lambda: score_csc(
                indptr, turns, tf, lengths, terms, held.idf, held.idf_mass, average, K1, B, scores)
        starts, columns, counts = _as_csr(indptr, turns, tf, len(lengths))
        return lambda: score_csr(
            starts, columns, counts, lengths, terms, held.idf, len(held.vocabulary), held.idf_mass, average, K1, B,
            scores)

    return prepare


# --- the whole path


def _filled() -> ContextGatekeeper:
    gate = ContextGatekeeper(4000)
    for turn in conversation("mixed", N_TURNS):
        gate.add_turn(*turn)
    return gate


def _select(n: int) -> Workload:
    gate = _filled()
    return lambda: gate.select(QUERY)


def _add_turn(n: int) -> Workload:
    turns = conversation("mixed", N_TURNS)

    def add_all() -> None:
        gate = ContextGatekeeper(4000)
        for user, assistant in turns:
            gate.add_turn(user, assistant)

    return add_all


KERNELS = {
    **{f"extract/{script}": Kernel(_extract(script), 30) for script in SCRIPTS},
    "sentence_ends": Kernel(_sentence_ends, 100),
    "append": Kernel(_append, 10),
    "top_20": Kernel(_top_20, 40),
    "weigh": Kernel(_weigh, 20),
    "turns_with": Kernel(_turns_with, 200),
    "sentence_hits": Kernel(_sentence_hits, 100),
    "score_csc": Kernel(_score("csc"), 200),
    "score_csr": Kernel(_score("csr"), 100),
    "select": Kernel(_select, 20),
    "add_turn": Kernel(_add_turn, 5),
}


if __name__ == "__main__":
    run_marked(KERNELS[sys.argv[1]])
