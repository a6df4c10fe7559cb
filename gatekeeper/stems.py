"""English inflections: words that differ only in them are one word to a thorough search."""

from __future__ import annotations

from gatekeeper._core.vocabulary import Vocabulary

VOWELS = frozenset("aeiouy")
SHORTEST = 4  # letters; shorter words are left as they are


def stem(word: str) -> str:
    """A word without its inflection, after step 1 of Porter's algorithm (1980), with -ly, -e and -y dropped besides."""
    if len(word) < SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    word = _without_plural(word)
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base is not word and len(base) >= 3 and not VOWELS.isdisjoint(base):
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    if len(word) > 5:
        word = word.removesuffix("ly")
    if len(word) > 3:
        word = word.removesuffix("e").removesuffix("y").removesuffix("i")
    return word


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class Stems:
    """The words of a vocabulary by stem; it reads what is new whenever it is asked."""

    def __init__(self) -> None:
        self._vocabulary: Vocabulary | None = None
        self._ids: dict[str, list[int]] = {}
        self._n_read = 0
        self._has_gaps = False

    def index(self, vocabulary: Vocabulary) -> dict[str, list[int]]:
        """Stem to term ids, of words alone. O(new terms); O(all) once one was removed, since its id is given again."""
        if vocabulary is not self._vocabulary or len(vocabulary) < self._n_read or self._has_gaps:
            self._vocabulary, self._ids, self._n_read = vocabulary, {}, 0
        for term_id in range(self._n_read, len(vocabulary)):
            try:
                if not vocabulary.is_ngram(term_id):
                    self._ids.setdefault(stem(vocabulary.text(term_id)), []).append(term_id)
            except IndexError:  # a gap
                continue
        self._n_read = len(vocabulary)
        return self._ids

    def forget(self) -> None:
        """Terms were removed from the vocabulary."""
        self._vocabulary, self._has_gaps = None, True
