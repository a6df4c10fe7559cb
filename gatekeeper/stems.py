"""English inflections: the forms of a query's word that a conversation may hold."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Endings that the stemmer may take off. What they make of a word is kept only where it has the word's stem, so one too
# many costs time, and one too few misses a form.
ENDINGS = ("", "s", "es", "e", "ed", "er", "ers", "ing", "ings", "ly", "y", "ion", "ions", "ation", "ations", "ity",
           "ities", "ment", "ments")
ENDINGS_OF_WHOLE_WORDS = ("s", "ed", "er", "ers", "ing", "ly", "ment", "ments")
VOWELS = ("a", "e", "i", "o", "u", "y")

_stem: Callable[[str], str] | None = None


def stem(word: str) -> str:
    """Snowball's English stem by PyStemmer, the extra `stems`; without it, and for any other text, the word itself."""
    global _stem
    if _stem is None:
        _stem = _english_stemmer()
    return _stem(word) if word.isascii() and word.isalpha() else word


def inflections(word: str) -> tuple[str, ...]:
    """The other forms of a lower-case English word: texts with its stem. Many are no words."""
    of_word = stem(word)
    found = dict.fromkeys(form for form in _candidates(word, of_word) if form != word and stem(form) == of_word)
    return tuple(found) if _is_installed() else ()


def _english_stemmer() -> Callable[[str], str]:
    try:
        from Stemmer import Stemmer
    except ImportError:
        return str
    of_word: Callable[[str], str] = Stemmer("english", 0).stemWord  # no cache of its own: it costs more than a stem
    return of_word


def _is_installed() -> bool:
    return _stem is not str


def _candidates(word: str, of_word: str) -> Iterator[str]:
    """A word and its stem with every ending; a final y is i in a stem, a consonant behind a vowel may be doubled."""
    if not (word.isascii() and word.isalpha()):
        return
    for ending in ENDINGS:
        yield of_word + ending
    if of_word != word:
        for ending in ENDINGS_OF_WHOLE_WORDS:
            yield word + ending
    if of_word.endswith("i"):
        yield of_word[:-1] + "y"
    if of_word.endswith("e"):
        for ending in ("ed", "er", "ers", "ing"):
            yield of_word[:-1] + ending
    if of_word[-1] not in VOWELS and of_word[-2:-1] in VOWELS:
        for ending in ("ed", "er", "ers", "ing"):
            yield of_word + of_word[-1] + ending
