"""The records that the stages hand on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from gatekeeper.anchor import Query
    from gatekeeper.context import Ranking
    from gatekeeper.sparse import QueryArrays

    class Texts(Protocol):
        """What spells a term: a `Vocabulary`, or a stand-in that holds one text."""

        def text(self, term_id: int, /) -> str: ...

CONTINUE = "continue"
SWITCH = "switch"

# why a turn is or is not in the prompt
CHOSEN = "chosen"
FORGOTTEN = "forgotten"
NO_ANCHOR = "no anchor"
NO_CONTENT_WORD = "no content word"
BELOW_TOP = "below the best"
TOO_LITTLE = "holds too little"
EMPTY = "empty after pruning"
NOTHING_NEW = "covers nothing new"
COVERED = "coverage reached"
NO_ROOM = "no room"
TAKEN_BACK = "taken back"


class Block:
    """A turn as the unit of selection: its number and the two texts as they came in."""

    __slots__ = ("assistant", "turn_id", "user")

    def __init__(self, turn_id: int, user: str, assistant: str) -> None:
        self.turn_id = turn_id
        self.user = user
        self.assistant = assistant

    def __repr__(self) -> str:
        return f"Block({self.turn_id}, {self.user!r:.40}, {self.assistant!r:.40})"


class Anchor:
    """A lexical unit of a query, with what the conversation knows of it.

    term_id: its id in the conversation, -1 for one that no turn holds, -2 - j for the j-th anchor that is
    found by searching the text. weight: its idf, less for n-grams and for what no turn holds. form_of: the anchor
    of the query of which it is another form (searches, searched), or None.
    postings: those of a searched anchor, (turn, tf_user, tf_assistant) by turn.
    """

    __slots__ = ("_local_id", "_vocabulary", "df", "form_of", "idf", "inherited", "is_ngram", "is_searched",
                 "last_turn", "postings", "term_id", "weight")

    def __init__(self, vocabulary: Texts, local_id: int, term_id: int, df: int, idf: float, last_turn: int,
                 is_ngram: bool, inherited: bool = False) -> None:
        self._vocabulary = vocabulary
        self._local_id = local_id
        self.term_id = term_id
        self.df = df
        self.idf = idf
        self.weight = idf
        self.last_turn = last_turn
        self.is_ngram = is_ngram
        self.inherited = inherited
        self.is_searched = False
        self.form_of: Anchor | None = None
        self.postings: Sequence[tuple[int, int, int]] = ()

    @property
    def text(self) -> str:
        return self._vocabulary.text(self._local_id)

    @property
    def covered_id(self) -> int:
        """The id that `covered_ids` lists: that of the term, or one that spells the text if it has none."""
        return self.term_id if self.term_id >= 0 else spelled_id(self.text)

    def __repr__(self) -> str:
        return f"Anchor({self.text!r}, df={self.df}, idf={self.idf:.3f})"


def spelled_id(text: str) -> int:
    """An id from 2**32 up that spells its own text, for an anchor that is found by searching."""
    return (1 << 32) + int.from_bytes(b"\1" + text.encode("utf-8", "surrogatepass"), "big")


def text_of_spelled_id(anchor_id: int) -> str:
    """The text that `spelled_id` made this id from. IndexError for a number that it does not make."""
    number = anchor_id - (1 << 32)
    spelling = number.to_bytes((number.bit_length() + 7) // 8, "big")
    if spelling[:1] != b"\1":
        raise IndexError("it spells no text")
    return spelling[1:].decode("utf-8", "surrogatepass")


class GateDecision:
    """What the topic gate says of a query.

    action: "continue" or "switch"; overlap, new_ratio: shares of the query's idf mass that the topic holds and
    does not hold; deictic: the query points back, which forces "continue"; new_anchors: those that the topic lacks.
    """

    __slots__ = ("action", "deictic", "new_anchors", "new_ratio", "overlap")

    def __init__(self, action: str, overlap: float, new_ratio: float, deictic: bool,
                 new_anchors: tuple[str, ...]) -> None:
        self.action = action
        self.overlap = overlap
        self.new_ratio = new_ratio
        self.deictic = deictic
        self.new_anchors = new_anchors

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GateDecision) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.action, self.overlap, self.new_ratio, self.deictic, self.new_anchors))

    def __repr__(self) -> str:
        return (f"GateDecision(action={self.action!r}, overlap={self.overlap!r}, new_ratio={self.new_ratio!r}, "
                f"deictic={self.deictic!r}, new_anchors={self.new_anchors!r})")


class Candidate:
    """A block that recall let through, with the parts of its score and, once pruned, what is left of it.

    kept: for each side the kept sentences as (first, last + 1) character offsets. covers: the query's anchors that
    the kept text holds, bit i for anchor i; holds: those that the whole block holds, found with whole_blocks. cost:
    tokens of the block as it stands in the prompt, or of its messages; then block_cost, if not 0, is what the gain
    goes by. coverage: the share of the query's idf mass that it is about; is_mention: it holds too little of it. best:
    what the parts of its score by words are divided by, that of the best turn where turns are scored in context,
    else 1.
    """

    __slots__ = ("assistant", "best", "block_cost", "cost", "coverage", "covers", "exact", "holds", "is_mention",
                 "kept", "lex_assistant", "lex_user", "neighbours", "recency", "score", "turn_id", "user")

    def __init__(self, turn_id: int, score: float, lex_user: float, lex_assistant: float, exact: float,
                 recency: float, neighbours: float = 0.0, best: float = 1.0) -> None:
        self.turn_id = turn_id
        self.score = score
        self.lex_user = lex_user
        self.lex_assistant = lex_assistant
        self.exact = exact
        self.recency = recency
        self.neighbours = neighbours
        self.best = best
        self.kept: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self.covers = 0
        self.holds = 0
        self.user = ""
        self.assistant = ""
        self.cost = 0
        self.block_cost = 0
        self.coverage = 0.0
        self.is_mention = False

    def __repr__(self) -> str:
        return f"Candidate({self.turn_id}, score={self.score:.3f}, cost={self.cost})"


class Step:
    """One greedy step: the block taken, its gain, its cost, and the anchors it was the first to cover."""

    __slots__ = ("candidate", "covered", "covered_mass", "gain")

    def __init__(self, candidate: Candidate, gain: float, covered: int, covered_mass: float) -> None:
        self.candidate = candidate
        self.gain = gain
        self.covered = covered
        self.covered_mass = covered_mass


class Selection:
    """The whole decision for one query; `select`, `build_prompt` and `explain` are views of it.

    anchors: A(q), inherited ones behind the query's own, forms behind their word; arrays: the same, as the kernels
    take it; steps: the choice, in order; reasons: why a candidate stayed out, by turn; base_cost: tokens of constraints
    and query; prompt_cost: tokens of the whole prompt.
    """

    __slots__ = ("anchors", "arrays", "base_cost", "candidates", "coverable_mass", "gate", "prompt", "prompt_cost",
                 "query", "query_anchors", "reasons", "steps")

    def __init__(self, query_anchors: Query, gate: GateDecision, anchors: list[Anchor],
                 candidates: list[Candidate] | Ranking, arrays: QueryArrays) -> None:
        self.query_anchors = query_anchors
        self.query = query_anchors.text
        self.gate = gate
        self.anchors = anchors
        self.arrays = arrays
        self.candidates = candidates
        self.steps: list[Step] = []
        self.reasons: dict[int, str] = {}
        self.coverable_mass = 0.0
        self.base_cost = 0
        self.prompt = ""
        self.prompt_cost = 0
