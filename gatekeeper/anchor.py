"""Anchors: the lexical units that can tell one topic from another."""

from __future__ import annotations

from gatekeeper import lexicon
from gatekeeper._core.vocabulary import Lexicon, Vocabulary
from gatekeeper.errors import require_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FROM_WORD = 1
FROM_PHRASE = 2
IS_NGRAM = 4
FALLBACK_CHARACTERS = 20


def _compile_lexicon() -> Lexicon:
    traditional, simplified = lexicon.traditional_pairs()
    questions = lexicon.question_words()
    return Lexicon(
        traditional=traditional,
        simplified=simplified,
        stop_words=lexicon.english_words() + tuple(word for word in questions if word.isascii()),
        marks=lexicon.mark_ranges(),
        function_characters=lexicon.chinese_function_characters(),
        breaking=lexicon.empty_words() + tuple(word for word in questions if not word.isascii()),
        protected=lexicon.protected_words(),
    )


LEXICON = _compile_lexicon()


def fold(text: str) -> str:
    """Fold a text as matching does: full-width to half-width, lower case, traditional to simplified; same length."""
    return LEXICON.fold(text)


def collapse(text: str) -> str:
    """Fold a text and make every run of white space one blank, as in a phrase."""
    return " ".join(fold(text).split())


def extract_anchors(text: str, *, idf: Callable[[str], float] | None = None) -> dict[str, float]:
    """The anchors of a text, in order of first occurrence, each with its idf.

    idf: from anchor to idf, such as `ContextGatekeeper.idf`; without it the corpus is empty and every idf is 1.
    A text without any anchor gives its first 20 characters, folded, as the only one.
    """
    require_text("text", text)
    query = Query(text)
    anchors = [query.vocabulary.text(i) for i in range(len(query.vocabulary))]
    if not anchors and query.fallback:
        anchors = [query.fallback]
    return {anchor: 1.0 if idf is None else idf(anchor) for anchor in anchors}


class Query:
    """A query's own anchors, before any conversation has weighed them.

    vocabulary: its distinct terms, ids in order of first occurrence; origins: FROM_WORD, FROM_PHRASE and IS_NGRAM
    of each; fallback: what stands for a query without anchors, "" if it has some.
    """

    __slots__ = ("_ngram_starts", "fallback", "origins", "text", "vocabulary")

    def __init__(self, text: str) -> None:
        self.text = text
        self.vocabulary = Vocabulary(LEXICON, keeps_origins=True)
        self.vocabulary.add((text,))
        self.origins = self.vocabulary.origins()
        self._ngram_starts: dict[int, dict[int, int]] | None = None
        self.fallback = "" if len(self.vocabulary) else fold(text.strip()[:FALLBACK_CHARACTERS])

    def phrases(self) -> Iterator[int]:
        """Ids of the terms that only a quoted phrase gave: an unquoted match must be searched for."""
        return (i for i, origin in enumerate(self.origins) if origin & (FROM_WORD | FROM_PHRASE) == FROM_PHRASE)

    def latin_content_words(self) -> list[int]:
        """Ids of the content words of alphabetic scripts: words that hold a letter, and versions of three numbers."""
        return [i for i, origin in enumerate(self.origins)
                if origin & FROM_WORD and not origin & IS_NGRAM and _is_content_word(self.vocabulary.text(i))]

    def cjk_windows(self) -> list[tuple[int, int]]:
        """The 4-character windows of the CJK runs, each as the ids of its first and last 3-gram.

        N-grams do not cross function characters, so two 3-grams that begin at neighbouring characters make a window.
        """
        return [(first, last) for first, last, _ in self._neighbours(3)]

    def head_bigrams(self) -> list[int]:
        """Ids of the 2-grams at the head of the CJK terms of 4 characters or more."""
        tokens = self._ngrams(2)
        begins = {start for _, _, start in self._neighbours(3)}
        return [tokens[start] for start in sorted(begins) if start in tokens and start - 1 not in tokens]

    def _ngrams(self, length: int) -> dict[int, int]:
        """Start in the text to id, for the n-grams of one length."""
        if self._ngram_starts is None:
            self._ngram_starts = {1: {}, 2: {}, 3: {}}
            folded = fold(self.text)
            for start, term in zip(self.vocabulary.token_starts(), self.vocabulary.token_ids(), strict=True):
                if self.origins[term] & IS_NGRAM:
                    text = self.vocabulary.text(term)
                    if folded[start] == text[0]:  # a quoted phrase begins at its quote
                        self._ngram_starts[len(text)][start] = term
        return self._ngram_starts[length]

    def _neighbours(self, length: int) -> list[tuple[int, int, int]]:
        ngrams = self._ngrams(length)
        return [(term, ngrams[start + 1], start) for start, term in ngrams.items() if start + 1 in ngrams]


def _is_content_word(word: str) -> bool:
    numbers = word.removeprefix("v").split(".")
    return any(map(str.isalpha, word)) or (len(numbers) == 3 and all(map(str.isdecimal, numbers)))
