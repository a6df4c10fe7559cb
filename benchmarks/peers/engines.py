"""Search engines behind one interface: build, query, append.

All index the same anchors of the same turns: one document a turn for the peers, two sides for gatekeeper. A peer gets
them spelled out as words and is not charged for finding them; gatekeeper starts from the text every time.
"""

from __future__ import annotations

from array import array
from collections import Counter
from heapq import nlargest
from importlib.util import find_spec
from math import log
from operator import itemgetter

from benchmarks.kernels import FORMULA, K1, B
from benchmarks.peers.corpus import Corpus
from gatekeeper._core.term_matrix import TermMatrix
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import LEXICON

TOP = 20
CHUNK = 1000


class Engine:
    """package: what must be installed; largest: turns it can hold in bearable time; most_appends: in one sample."""

    name = ""
    package = ""
    largest = 100_000
    most_appends = 1

    @classmethod
    def is_installed(cls) -> bool:
        return not cls.package or find_spec(cls.package) is not None

    def build(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.n_queries = len(corpus.queries)
        self.n_appended = 0

    def query(self, i: int) -> object:
        """The best 20 turns for one query, in the shape that the engine gives."""
        raise NotImplementedError

    def append(self, turn: int) -> None:
        """Add one of the extra turns so that the next query finds it."""
        raise NotImplementedError

    def append_and_query(self, i: int) -> None:
        self.append(self.n_appended % len(self.corpus.extra))
        self.n_appended += 1
        self.query(i)

    def reset(self) -> None:
        """Take back what was appended, where that is possible."""


class Kernel(Engine):
    """gatekeeper's kernels: from the text of a query to the 20 best turns by both sides, exact match and recency."""

    name = "gatekeeper"
    most_appends = 16

    def build(self, corpus: Corpus) -> None:
        super().build(corpus)
        self.vocabulary = Vocabulary(LEXICON)
        self.matrix = TermMatrix(self.vocabulary)
        for first in range(0, len(corpus), CHUNK):
            self._add(tuple(text for turn in corpus.turns[first : first + CHUNK] for text in turn))

    def _add(self, texts: tuple[str, ...]) -> None:
        self.vocabulary.add(texts)
        self.matrix.append(n_ages=8, ngram_floor=1.5)

    def query(self, i: int) -> object:
        query = Vocabulary(LEXICON)
        query.add((self.corpus.queries[i % self.n_queries],))
        return self.matrix.top(self.vocabulary.find(query), None, FORMULA, k=TOP)

    def append(self, turn: int) -> None:
        self._add(self.corpus.extra[turn])

    def reset(self) -> None:
        self.matrix.truncate(len(self.corpus))
        self.n_appended = 0


class DictIndex(Engine):
    """A plain incremental index: a dict from term to [(turn, tf)], idf as of now, heapq for the best."""

    name = "Python dict index"
    most_appends = 16

    def build(self, corpus: Corpus) -> None:
        super().build(corpus)
        self.postings: dict[str, list[tuple[int, int]]] = {}
        self.lengths: list[int] = []
        self.n_tokens = 0
        for tokens in corpus.tokens:
            self.add(tokens)

    def add(self, tokens: list[str]) -> None:
        turn = len(self.lengths)
        for term, tf in Counter(tokens).items():
            self.postings.setdefault(term, []).append((turn, tf))
        self.lengths.append(len(tokens))
        self.n_tokens += len(tokens)

    def query(self, i: int) -> object:
        n_turns, lengths = len(self.lengths), self.lengths
        base, slope = K1 * (1.0 - B), K1 * B * n_turns / self.n_tokens
        scores: dict[int, float] = {}
        for term in self.corpus.query_tokens[i % self.n_queries]:
            postings = self.postings.get(term, ())
            idf = (log((n_turns + 1) / (len(postings) + 1)) + 1.0) * (K1 + 1.0)
            for turn, tf in postings:
                scores[turn] = scores.get(turn, 0.0) + idf * tf / (tf + base + slope * lengths[turn])
        return nlargest(TOP, scores.items(), key=itemgetter(1))

    def append(self, turn: int) -> None:
        self.add(self.corpus.extra_tokens[turn])


class Bm25s(Engine):
    """bm25s computes every score when it indexes, so an append is a rebuild; the query comes as a list of words."""

    name = "bm25s (numpy)"
    package = "bm25s"
    backend = "numpy"

    def build(self, corpus: Corpus) -> None:
        super().build(corpus)
        ids: dict[str, int] = {}
        self.documents = [[ids.setdefault(token, len(ids)) for token in tokens] for tokens in corpus.tokens]
        self.extra = [[ids.setdefault(token, len(ids)) for token in tokens] for tokens in corpus.extra_tokens]
        self.ids = ids
        self._rebuild()

    def _rebuild(self) -> None:
        import bm25s

        self.retriever = bm25s.BM25(k1=K1, b=B, method="lucene", backend=self.backend)
        self.retriever.index((self.documents, self.ids), show_progress=False)

    def query(self, i: int) -> object:
        words = self.corpus.query_tokens[i % self.n_queries]
        return self.retriever.retrieve([words], k=TOP, show_progress=False, n_threads=0)

    def append(self, turn: int) -> None:
        self.documents.append(self.extra[turn])
        self._rebuild()


class Bm25sNumba(Bm25s):
    name = "bm25s (numba)"
    backend = "numba"

    @classmethod
    def is_installed(cls) -> bool:
        return super().is_installed() and find_spec("numba") is not None


class Bm25sRebuild(Bm25sNumba):
    name = "bm25s, a rebuild"
    largest = 10_000


class RankBm25(Engine):
    name = "rank_bm25"
    package = "rank_bm25"
    largest = 10_000

    def build(self, corpus: Corpus) -> None:
        from rank_bm25 import BM25Okapi

        super().build(corpus)
        self.index = BM25Okapi(corpus.tokens, k1=K1, b=B)

    def query(self, i: int) -> object:
        return self.index.get_scores(self.corpus.query_tokens[i % self.n_queries]).argsort()[::-1][:TOP]


class Turbo(Engine):
    """bm25-turbo takes texts only: the anchors with blanks between them, which its tokenizer keeps whole."""

    name = "bm25-turbo"
    package = "bm25_turbo_python"

    def build(self, corpus: Corpus) -> None:
        from bm25_turbo_python import BM25

        super().build(corpus)
        self.texts = [" ".join(tokens) for tokens in corpus.query_tokens]
        self.index = BM25(method="lucene", k1=K1, b=B)
        self.index.index([" ".join(tokens) for tokens in corpus.tokens])

    def query(self, i: int) -> object:
        return self.index.search(self.texts[i % self.n_queries], TOP)


class Tantivy(Engine):
    """In memory, one writing thread, words cut at blanks, no positions; a query is parsed, then searched."""

    name = "tantivy"
    package = "tantivy"

    def build(self, corpus: Corpus) -> None:
        import tantivy

        super().build(corpus)
        self.document = tantivy.Document
        schema = tantivy.SchemaBuilder().add_text_field("body", tokenizer_name="anchors", index_option="freq").build()
        self.index = tantivy.Index(schema)
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self.index.register_tokenizer("anchors", analyzer)
        self.writer = self.index.writer(num_threads=1)
        for tokens in corpus.tokens:
            self.writer.add_document(self.document(body=" ".join(tokens)))
        self.texts = [" ".join(tokens) for tokens in corpus.query_tokens]
        self.extra = [" ".join(tokens) for tokens in corpus.extra_tokens]
        self._commit()

    def _commit(self) -> None:
        self.writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def query(self, i: int) -> object:
        query = self.index.parse_query(self.texts[i % self.n_queries], ["body"])
        return self.searcher.search(query, TOP).hits

    def append(self, turn: int) -> None:
        self.writer.add_document(self.document(body=self.extra[turn]))
        self._commit()


class Fts5(Engine):
    """SQLite FTS5 in memory, one transaction a turn, any of the query's words, best rank first."""

    name = "SQLite FTS5 (unicode61)"
    package = "sqlite3"
    tokenizer = "unicode61"

    def build(self, corpus: Corpus) -> None:
        import sqlite3

        super().build(corpus)
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute(f"CREATE VIRTUAL TABLE turns USING fts5(body, tokenize='{self.tokenizer}')")
        self.connection.execute("BEGIN")
        self.connection.executemany("INSERT INTO turns VALUES (?)", ((body,) for body in self.bodies()))
        self.connection.execute("COMMIT")
        self.extra = self.extra_bodies()
        self.matches = [" OR ".join(f'"{word}"' for word in words) for words in self.words()]

    def bodies(self) -> list[str]:
        return [" ".join(tokens) for tokens in self.corpus.tokens]

    def extra_bodies(self) -> list[str]:
        return [" ".join(tokens) for tokens in self.corpus.extra_tokens]

    def words(self) -> list[list[str]]:
        return self.corpus.query_tokens

    def query(self, i: int) -> object:
        match = self.matches[i % self.n_queries]
        return self.connection.execute(
            "SELECT rowid, rank FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?", (match, TOP)).fetchall()

    def append(self, turn: int) -> None:
        self.connection.execute("BEGIN")
        self.connection.execute("INSERT INTO turns VALUES (?)", (self.extra[turn],))
        self.connection.execute("COMMIT")


class Fts5Trigram(Fts5):
    """With the trigram tokenizer: the texts as they are, the query's anchors of three characters or more."""

    name = "SQLite FTS5 (trigram)"
    tokenizer = "trigram"

    def bodies(self) -> list[str]:
        return ["\n".join(turn) for turn in self.corpus.turns]

    def extra_bodies(self) -> list[str]:
        return ["\n".join(turn) for turn in self.corpus.extra]

    def words(self) -> list[list[str]]:
        return [[word for word in words if len(word) >= 3] for words in self.corpus.query_tokens]


def lucene_idf(n_turns: int, df: array[int]) -> array[float]:
    """The idf of bm25s, bm25-turbo and tantivy."""
    return array("d", [log(1.0 + (n_turns - n + 0.5) / (n + 0.5)) for n in df])
