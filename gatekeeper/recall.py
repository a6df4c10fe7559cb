"""Recall: the best blocks by one of the two scores; after a switch, only those with a content word of the query."""

from __future__ import annotations

from array import array

from gatekeeper.anchor import Query, fold
from gatekeeper.block import SWITCH, Anchor, Candidate, GateDecision
from gatekeeper.context import Ranking, recency_share, score_in_context
from gatekeeper.corpus import Corpus
from gatekeeper.settings import Settings
from gatekeeper.sparse import QueryArrays, score_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def recall(corpus: Corpus, query: Query, arrays: QueryArrays, gate: GateDecision) -> list[Candidate] | Ranking:
    """The `max_candidates` best blocks, best first, ties to the newer turn; after a switch with a content word."""
    max_candidates = corpus.settings.max_candidates
    filters = asks_content_word(corpus.settings, gate)
    words = ContentWords(corpus, query, arrays.anchors) if filters and arrays.idf_mass > 0.0 else None
    allowed = words.turns() if words else None
    n_asked = max_candidates
    while True:
        candidates = score(corpus, query, arrays, gate, n_asked, allowed)
        if words is None or allowed is None:
            return candidates
        passing = [candidate for candidate in candidates if words.are_in(candidate.turn_id)]
        if len(passing) >= max_candidates or len(candidates) < n_asked:
            return passing[:max_candidates]
        n_asked *= 2


def score(corpus: Corpus, query: Query, arrays: QueryArrays, gate: GateDecision, max_blocks: int,
          allowed: array[int] | None = None) -> list[Candidate] | Ranking:  # fmt: skip
    """The best blocks that share an anchor with the query; with weight_neighbours also those beside one, and the last.

    allowed: the only turns that count, ascending; not with weight_neighbours.
    """
    if corpus.settings.weight_neighbours:
        if not arrays.anchors:
            return []
        return score_in_context(corpus, arrays, recency_share(corpus, query, arrays.anchors, gate), max_blocks)
    return score_blocks(corpus, arrays, max_blocks, allowed) if arrays.idf_mass > 0.0 else []


def asks_content_word(settings: Settings, gate: GateDecision) -> bool:
    """Whether a block must hold a content word. One that counts for the turns around it need not."""
    return gate.action == SWITCH and settings.content_filter and not settings.weight_neighbours


# --- content words


def content_words(query: Query) -> tuple[str, ...]:
    """The query's content words: words of alphabetic scripts, versions, 4-character windows of CJK runs."""
    latin = [query.vocabulary.text(i) for i in query.latin_content_words()]
    return (*latin, *_windows(query))


def _windows(query: Query) -> list[str]:
    text = query.vocabulary.text
    return [text(first) + text(last)[-1] for first, last in query.cjk_windows()]


class ContentWords:
    """The content words of a query as one conversation holds them, forms of a word among its anchors included.

    When no block holds any, those pass that hold the 2-gram at the head of one of the query's terms.
    """

    def __init__(self, corpus: Corpus, query: Query, anchors: Sequence[Anchor]) -> None:
        self._corpus = corpus
        ids = corpus.vocabulary.find(query.vocabulary)
        self._windows = _windows(query)
        self._words = array("i", [ids[i] for i in query.latin_content_words()])
        words = set(self._words)
        self._words.extend(a.term_id for a in anchors if a.form_of and a.form_of.term_id in words)
        self._pairs = [(ids[first], ids[last]) for first, last in query.cjk_windows()]
        self._heads = array("i", [ids[i] for i in query.head_bigrams()])
        self._turns_that_may = self._turns_with([*((i,) for i in self._words), *self._pairs])
        self._by_head = not any(map(self._hold_word, self._turns_that_may))

    def __bool__(self) -> bool:
        """Whether the query has any; without, nothing is filtered."""
        return bool(self._words or self._windows)

    def turns(self) -> array[int] | None:
        """Turns that may hold one, ascending; None without content words.

        CJK windows are matched by their two 3-grams here; `are_in` looks at the text itself.
        """
        if not self:
            return None
        return self._turns_with([(i,) for i in self._heads]) if self._by_head else self._turns_that_may

    def are_in(self, turn_id: int) -> bool:
        """Whether a turn passes: it really holds a whole word, or a window as a substring."""
        if self._by_head:
            return self._corpus.matrix.holds_any(turn_id, self._heads)
        return self._hold_word(turn_id)

    def _hold_word(self, turn_id: int) -> bool:
        matrix = self._corpus.matrix
        if matrix.holds_any(turn_id, self._words):
            return True
        windows = [window for window, pair in zip(self._windows, self._pairs, strict=True)
                   if all(matrix.holds_any(turn_id, array("i", [i])) for i in pair)]
        if not windows:
            return False
        block = self._corpus.block(turn_id)
        texts = fold(block.user), fold(block.assistant)
        return any(window in text for window in windows for text in texts)

    def _turns_with(self, groups: Sequence[tuple[int, ...]]) -> array[int]:
        terms = array("i", [term for group in groups for term in group])
        ends = array("i")
        for group in groups:
            ends.append((ends[-1] if ends else 0) + len(group))
        return self._corpus.matrix.turns_with(terms, ends)
