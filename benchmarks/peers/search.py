"""Rows 2 and 3: a query, and an append with a query behind it, over growing conversations."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import partial
from math import log

from benchmarks.peers.clock import Scale, Work, race
from benchmarks.peers.corpus import Corpus
from benchmarks.peers.engines import (
    K1,
    B,
    Bm25s,
    Bm25sNumba,
    Bm25sRebuild,
    DictIndex,
    Engine,
    Fts5,
    Fts5Trigram,
    Kernel,
    RankBm25,
    Tantivy,
    Turbo,
    lucene_idf,
)
from benchmarks.peers.results import Chart, Results
from gatekeeper._core.term_matrix import Formula, TermMatrix
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import LEXICON

Goals = dict[int, float]
ALL = (100, 1_000, 10_000, 100_000)
QUERY_PEERS: list[tuple[type[Engine], Goals]] = [
    (Bm25sNumba, dict.fromkeys(ALL, 3)),
    (Bm25s, {}),
    (Tantivy, dict.fromkeys(ALL, 4)),
    (Turbo, {100: 1.5, 1_000: 1.5, 10_000: 5, 100_000: 5}),
    (DictIndex, {100: 15, 1_000: 25, 10_000: 60, 100_000: 150}),
    (RankBm25, {}),
]
APPEND_PEERS: list[tuple[type[Engine], Goals]] = [
    (Fts5, dict.fromkeys(ALL, 100)),
    (Fts5Trigram, dict.fromkeys(ALL, 100)),
    (Tantivy, {100: 300, 1_000: 300, 10_000: 300, 100_000: 30}),
    (Bm25sRebuild, {100: 500, 1_000: 4_000, 10_000: 25_000}),
    (DictIndex, {}),
]


def query(scale: Scale) -> Results:
    """Row 2."""
    results = Results(charts=[Chart("query", "Query, top 20", "turns", "CPU time of a query, µs")])
    for n_turns in scale.sizes():
        corpus = Corpus(n_turns)
        _compare(results, scale, corpus, QUERY_PEERS, f"query, top 20, {n_turns:,} turns", appends=False)
        if n_turns == 1_000:
            agreement(results, corpus)
    return results


def append(scale: Scale) -> Results:
    """Row 3."""
    results = Results(charts=[Chart("append", "Append a turn, then query", "turns", "CPU time of both, µs")])
    for n_turns in scale.sizes():
        work = f"append a turn, then query, {n_turns:,} turns"
        _compare(results, scale, Corpus(n_turns), APPEND_PEERS, work, appends=True)
    return results


def _compare(results: Results, scale: Scale, corpus: Corpus, peers: list[tuple[type[Engine], Goals]], work: str, *,
             appends: bool) -> None:
    n_turns = len(corpus)
    engines = [Kernel()] + [kind() for kind, _ in peers if kind.is_installed() and n_turns <= kind.largest]
    works = {}
    for engine in engines:
        engine.build(corpus)
        if appends:
            works[engine.name] = Work(engine.append_and_query, engine.reset, repeat=engine.most_appends)
        else:  # a sample is whole turns through the queries
            works[engine.name] = Work(_all_queries(engine))
    taken = race(works, scale)
    if not appends:
        taken = {name: ns / len(corpus.queries) for name, ns in taken.items()}
    for name, ns in taken.items():
        results.charts[0].add(name, n_turns, ns / 1e3)
    for kind, goals in peers:
        if n_turns <= kind.largest:
            results.versus(work, taken[Kernel.name], kind.name, taken.get(kind.name), goals.get(n_turns))


def _all_queries(engine: Engine) -> Callable[[int], None]:
    def run(_: int) -> None:
        for i in range(engine.n_queries):
            engine.query(i)

    return run


# --- the same turn first

USER_SIDE = Formula(k1=K1, b=B, weight_user=1.0, weight_assistant=0.0, weight_exact=0.0, weight_recency=0.0,
                    recency_window=1)  # fmt: skip


class OneSided:
    """Each turn's texts on the user's side alone, scored by BM25 alone, with any idf."""

    def __init__(self, corpus: Corpus) -> None:
        self.n_turns = len(corpus)
        self.vocabulary = Vocabulary(LEXICON)
        self.matrix = TermMatrix(self.vocabulary)
        for turn in corpus.turns:
            self.vocabulary.add(("\n".join(turn), ""))
            self.matrix.append(n_ages=8, ngram_floor=1.5)

    def best(self, text: str, idf_of: Callable[[int, array[int]], Iterable[float]] | None) -> int:
        query = Vocabulary(LEXICON)
        query.add((text,))
        ids = self.vocabulary.find(query)
        df, own, _ = self.matrix.weigh(ids)
        idf = own if idf_of is None else array("d", idf_of(self.n_turns, df))
        turns = self.matrix.top(
            ids, idf, USER_SIDE, k=1)[0]
        return turns[0]


def agreement(results: Results, corpus: Corpus) -> None:
    """How often a peer gives no turn a better score than the one that gatekeeper puts first."""
    ours = OneSided(corpus)
    for kind in (Bm25s, RankBm25):
        if not kind.is_installed():
            continue
        engine = kind()
        engine.build(corpus)
        scores_of = engine.retriever.get_scores if kind is Bm25s else engine.index.get_scores
        theirs = lucene_idf if kind is Bm25s else partial(_okapi_idf, engine)
        ways = {"its own idf": None, "the peer's idf": theirs}
        for way, idf_of in ways.items():
            same = 0
            for text, words in zip(corpus.queries, corpus.query_tokens, strict=True):
                scores = scores_of(words)
                same += scores[ours.best(text, idf_of)] >= scores.max() * (1.0 - 1e-5)
            of = len(corpus.queries)
            goal = of if idf_of else None
            results.limit(f"same first turn as {kind.name.split()[0]}, gatekeeper with {way}", same, f"of {of}",
                          at_least=goal)


def _okapi_idf(engine: RankBm25, n_turns: int, df: array[int]) -> list[float]:
    """rank_bm25's idf: ln((N - df + 0.5) / (df + 0.5)), a quarter of the average one where that is negative."""
    floor = engine.index.epsilon * engine.index.average_idf
    own = [log(n_turns - n + 0.5) - log(n + 0.5) for n in df]
    return [floor if idf < 0.0 else idf for idf in own]
