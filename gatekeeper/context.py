"""Scores in context: what a turn and the turns around it hold, and how much a message leans on the last ones."""

from __future__ import annotations

from gatekeeper.anchor import Query
from gatekeeper.block import Anchor, Candidate, GateDecision
from gatekeeper.corpus import Corpus
from gatekeeper.sparse import QueryArrays
from gatekeeper.topic_gate import asks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RECENT_TURNS = 8  # in which a question's words make it one that goes on
RECENT_CHARACTERS = 600


class Ranking:
    """Candidates, best first, that are made when they are first looked at: a budget holds the fewest of them."""

    def __init__(self, make: Callable[[int], Candidate], n: int) -> None:
        self._make = make
        self._n = n
        self._made: list[Candidate] = []

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self[: self._n])

    def __getitem__(self, places: slice) -> list[Candidate]:
        while len(self._made) < min(self._n, places.stop):
            self._made.append(self._make(len(self._made)))
        return self._made[places]


def score_in_context(corpus: Corpus, arrays: QueryArrays, recency_share: float, max_blocks: int) -> Ranking:
    """Score turns by what they and the turns around them hold and by how recent they are, best first.

    score = (lexical + weight_neighbours neighbours) / best + weight_recency recency, with neighbours = sum of
    lexical / d over the turns at distance d <= neighbour_window, best = the greatest value of the bracket, and recency
    that of the plain score times recency_share.
    """
    settings = corpus.settings
    n_turns = corpus.matrix.n_turns
    turns, scores, lex_user, lex_assistant, neighbours, best = corpus.matrix.top_in_context(
        arrays.term_ids, arrays.idf, corpus.formula, k=max_blocks,
        weight_neighbours=settings.weight_neighbours, neighbour_window=settings.neighbour_window,
        recency_share=recency_share, extra_postings=arrays.extra_postings, groups=arrays.groups)

    def make(i: int) -> Candidate:
        recency = recency_share * max(0.0, 1.0 - (n_turns - turns[i]) / settings.recency_window)
        return Candidate(turns[i], scores[i], lex_user[i], lex_assistant[i], 0.0, recency, neighbours[i], best)

    return Ranking(make, len(turns))


def first_recent_turn(corpus: Corpus) -> int:
    """Where the last turns begin: the last one, and those before it up to a number of turns and of characters."""
    first = len(corpus.texts) - 1
    n_characters = 0
    for turn_id in range(first, max(-1, first - RECENT_TURNS), -1):
        user, assistant = corpus.texts[turn_id] or ("", "")
        n_characters += len(user) + len(assistant)
        if n_characters > RECENT_CHARACTERS and turn_id != first:
            return turn_id + 1
    return max(0, first - RECENT_TURNS + 1)


def recency_share(corpus: Corpus, query: Query, anchors: Sequence[Anchor], gate: GateDecision) -> float:
    """How much a message leans on the last turns whatever words it shares with them, 0 to 1.

    One that asks nothing answers or goes on. A question does so by the share of its known idf mass that stands in the
    last turns.
    """
    if gate.deictic or not asks(query.text):
        return 1.0
    known = recent = 0.0
    first = first_recent_turn(corpus)
    for anchor in anchors:
        if anchor.last_turn >= 0:
            known += anchor.weight
            recent += anchor.weight if anchor.last_turn >= first else 0.0
    return recent / known if known else 1.0
