"""Row 1: the anchors of one 100-turn conversation after another, and how extraction grows with a text's length."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.clock import Scale, Work, race
from benchmarks.peers.results import Chart, Results
from benchmarks.texts import SCRIPTS, conversations, n_utf8_bytes, stream
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import LEXICON

Texts = tuple[str, ...]
TESTS = Path(__file__).resolve().parents[2] / "tests"


class Extractor:
    """run: all the texts of one conversation to whatever the peer gives."""

    name = "gatekeeper"
    package = ""
    goal: float | None = None
    is_slow = False  # then on one conversation, and on short texts only

    def __init__(self) -> None:
        """Load what a fresh process would load once."""
        self.vocabulary = Vocabulary(LEXICON)

    @classmethod
    def is_installed(cls) -> bool:
        return not cls.package or find_spec(cls.package) is not None

    def run(self, texts: Texts) -> object:
        """With the sentence bounds of each text; one vocabulary, emptied for each conversation."""
        self.vocabulary.truncate(0)
        return self.vocabulary.add(texts)


class Twin(Extractor):
    """The library's own rules in plain Python, from the tests: anchors and sentence bounds."""

    name = "Python twin"
    goal = 25
    is_slow = True

    def __init__(self) -> None:
        reference_text = twin("reference_text")
        self.tokens, self.sentence_ends = reference_text.tokens, reference_text.sentence_ends

    @classmethod
    def is_installed(cls) -> bool:
        return (TESTS / "reference_text.py").exists()

    def run(self, texts: Texts) -> object:
        forget_texts()
        return [(self.tokens(text), self.sentence_ends(text)) for text in texts]


class Rjieba(Extractor):
    name = "rjieba cut"
    package = "rjieba"
    goal = 5

    def __init__(self) -> None:
        from rjieba import cut

        self.cut = cut

    def run(self, texts: Texts) -> object:
        return [self.cut(text) for text in texts]


class TantivyWords(Extractor):
    name = "tantivy, simple tokenizer"
    package = "tantivy"
    goal = 2.5

    def __init__(self) -> None:
        from tantivy import TextAnalyzerBuilder, Tokenizer

        self.analyze = TextAnalyzerBuilder(Tokenizer.simple()).build().analyze

    def run(self, texts: Texts) -> object:
        return [self.analyze(text) for text in texts]


class Hashing(Extractor):
    name = "HashingVectorizer, characters 2-3"
    package = "sklearn"
    goal = 25

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self.transform = HashingVectorizer(analyzer="char", ngram_range=(2, 3)).transform

    def run(self, texts: Texts) -> object:
        return self.transform(texts)


class Bm25sTokens(Extractor):
    name = "bm25s.tokenize"
    package = "bm25s"

    def __init__(self) -> None:
        from bm25s import tokenize

        self.tokenize = partial(tokenize, show_progress=False)

    def run(self, texts: Texts) -> object:
        return self.tokenize(list(texts))


PEERS: list[type[Extractor]] = [Twin, Rjieba, TantivyWords, Hashing, Bm25sTokens]


def twin(name: str):
    """A module of the tests."""
    from importlib import import_module

    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return import_module(name)


def forget_texts() -> None:
    """Empty the twin's caches of whole texts, or its second run would time look-ups. What it knows of single

    characters stays.
    """
    for name in ("reference_text", "reference"):
        for function in vars(twin(name)).values():
            if hasattr(function, "cache_clear") and function.__name__ not in ("fold_character", "class_of"):
                function.cache_clear()


def extraction(scale: Scale) -> Results:
    """Row 1."""
    results = Results()
    for script in SCRIPTS:
        pool = conversations(script, 5 if scale.quick else 20)
        texts = [tuple(text for turn in turns for text in turn) for turns in pool]
        kinds = [kind for kind in [Extractor, *PEERS] if kind.is_installed()]
        taken = race({kind.name: Work(_each(kind(), texts)) for kind in kinds}, scale)
        n_bytes = sum(n_utf8_bytes(turns) for turns in pool)
        taken = {name: ns / len(pool) for name, ns in taken.items()}
        for kind in PEERS:
            results.versus(f"extract, {script}, a conversation", taken[Extractor.name], kind.name,
                           taken.get(kind.name), kind.goal)
        results.limit(f"extract, {script}", n_bytes / len(pool) / taken[Extractor.name] * 1e3, "MB/s of UTF-8")
    return results


def _each(extractor: Extractor, conversations: list[Texts]) -> Callable[[int], None]:
    def run(_: int) -> None:
        for texts in conversations:
            extractor.run(texts)

    return run


def length(scale: Scale) -> Results:
    """Extraction of one text, from a hundred characters to a hundred thousand or a million."""
    chart = Chart("length", "Extraction of one mixed text", "characters", "CPU time, µs")
    results = Results(charts=[chart])
    whole = "".join(text for turn in stream("mixed", 6_000) for text in turn)
    kinds = [kind for kind in [Extractor, *PEERS] if kind.is_installed()]
    for n in (100, 1_000, 10_000, 100_000) if scale.quick else (100, 1_000, 10_000, 100_000, 1_000_000):
        text = (whole[:n],)
        racing = [kind for kind in kinds if n <= 10_000 or not kind.is_slow]
        for name, ns in race({kind.name: Work(_each(kind(), [text])) for kind in racing}, scale).items():
            chart.add(name, n, ns / 1e3)
    ours = chart.series[Extractor.name]
    (few, short), (many, long) = ours[1], ours[-1]
    results.limit(f"extract one text of {many:,.0f} characters, each character against one of {few:,.0f}",
                  (long / many) / (short / few), "x")
    return results
