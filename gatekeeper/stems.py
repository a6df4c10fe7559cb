"""English inflections: words that differ only in them are one word to a thorough search."""

from __future__ import annotations

from gatekeeper._core.vocabulary import Vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def english_stemmer() -> Callable[[str], str]:
    """Snowball's English stemmer from PyStemmer, the extra `stems`; without it every word is its own stem."""
    try:
        from Stemmer import Stemmer
    except ImportError:
        return str
    stem: Callable[[str], str] = Stemmer("english").stemWord
    return stem


class Stems:
    """The words of a vocabulary by stem; it reads what is new whenever it is asked. One conversation has its own."""

    def __init__(self) -> None:
        self._stem: Callable[[str], str] | None = None
        self._vocabulary: Vocabulary | None = None
        self._ids: dict[str, list[int]] = {}
        self._n_read = 0

    def stem(self, word: str) -> str:
        """The stem of a word of ASCII letters; any other term is its own."""
        if self._stem is None:
            self._stem = english_stemmer()
        return self._stem(word) if word.isascii() and word.isalpha() else word

    def index(self, vocabulary: Vocabulary) -> dict[str, list[int]]:
        """Stem to term ids, of words alone. O(new terms); O(all) when one was removed since the last call."""
        if vocabulary is not self._vocabulary or len(vocabulary) < self._n_read:
            self._vocabulary, self._ids, self._n_read = vocabulary, {}, 0
        for term_id in range(self._n_read, len(vocabulary)):
            try:
                if not vocabulary.is_ngram(term_id):
                    self._ids.setdefault(self.stem(vocabulary.text(term_id)), []).append(term_id)
            except IndexError:  # a gap
                continue
        self._n_read = len(vocabulary)
        return self._ids

    def forget(self) -> None:
        """Terms were removed from the vocabulary, or it is let go."""
        self._vocabulary, self._ids, self._n_read = None, {}, 0
