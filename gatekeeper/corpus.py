"""What a conversation has indexed: its texts, its term matrix, its topics."""

from __future__ import annotations

from array import array

from gatekeeper._core.term_matrix import Formula, TermMatrix
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import FROM_PHRASE, IS_NGRAM, LEXICON, Query, collapse
from gatekeeper.block import SWITCH, Anchor, Block, GateDecision
from gatekeeper.settings import Settings
from gatekeeper.stems import inflections
from gatekeeper.topic_gate import (
    MAX_PRONOUNS,
    gate_action,
    implied_mass,
    is_deictic,
    ratios,
    says_nothing,
    topic_masses,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USER, ASSISTANT = 0, 1
MOST_WORDS = 2048  # whose forms are kept, 4 KB each
LONGEST_WORD = 32
INHERITED_TURNS = 8  # of the topic; a query that points back looks no further

_forms_of: dict[str, Vocabulary | None] = {}


class Corpus:
    """The turns of one conversation and everything that is known of them. Not thread safe: the owner locks."""

    vocabulary: Vocabulary
    matrix: TermMatrix

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._most_implied = settings.pronoun_mass * MAX_PRONOUNS + settings.answer_mass
        self.formula = Formula(
            k1=settings.k1, b=settings.b, weight_user=settings.weight_user, weight_assistant=settings.weight_assistant,
            weight_exact=settings.weight_exact, weight_recency=settings.weight_recency,
            recency_window=settings.recency_window, joint=settings.joint_sides)
        self.texts: list[tuple[str, str] | None] = []
        self.topic_starts: list[int] = []  # for each turn, the first turn of its topic
        self._index()

    def _index(self) -> None:
        """Index the texts as they stand, in order."""
        self.vocabulary = Vocabulary(LEXICON)
        self.matrix = TermMatrix(self.vocabulary)
        self.vocabulary.add(tuple(text for turn in self.texts for text in turn or ("", "")))
        self.matrix.append(n_ages=0, ngram_floor=0.0)
        for turn_id, turn in enumerate(self.texts):
            if turn is None:
                self.matrix.forget(turn_id)

    def compact(self) -> None:
        """Let the index go. Whatever needs it next builds it again: see `__getattr__`."""
        self.__dict__.pop("matrix", None)
        self.__dict__.pop("vocabulary", None)

    def __getattr__(self, name: str) -> Vocabulary | TermMatrix:
        """The index, asked for while there is none. O(text)."""
        if name not in ("matrix", "vocabulary"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._index()
        return self.matrix if name == "matrix" else self.vocabulary

    # --- growing and shrinking

    def append(self, turns: Sequence[tuple[str, str]]) -> range:
        """Index turns (user, assistant) in order; each user side is gated before its turn joins. Their ids."""
        first = len(self.texts)
        n_ages = self.settings.topic_window
        self.vocabulary.add(tuple(text for turn in turns for text in turn))
        masses = self.matrix.append(
            n_ages=n_ages, ngram_floor=self.settings.ngram_idf_floor, ngram_weight=self.settings.ngram_weight,
            unseen_weight=self.settings.unseen_weight)
        for i, turn in enumerate(turns):
            self.topic_starts.append(self._topic_start(turn[0], masses[i * (n_ages + 1) : (i + 1) * (n_ages + 1)]))
            self.texts.append(turn)
        return range(first, len(self.texts))

    def _topic_start(self, user_text: str, masses: Sequence[float]) -> int:
        turn_id = len(self.topic_starts)
        if turn_id == 0:
            return 0
        held, lacking = topic_masses(masses, self.topic_window())
        if self._switches(held, lacking, user_text) and not is_deictic(user_text):
            return turn_id
        return self.topic_starts[-1]

    def _switches(self, held: float, lacking: float, user_text: str) -> bool:
        """Whether the ratios say so. A text is looked at for what it implies only where that could turn the switch."""
        settings = self.settings
        if gate_action(*ratios(held, lacking), False, settings, held) != SWITCH:
            return False
        if gate_action(*ratios(held, lacking, self._most_implied), False, settings, held) == SWITCH:
            return True
        implied = implied_mass(user_text, self.texts[-1], settings)
        return gate_action(*ratios(held, lacking, implied), False, settings, held) == SWITCH

    def topic_window(self) -> int:
        """How many of the last turns speak for the active topic."""
        n_turns = len(self.topic_starts)
        return min(self.settings.topic_window, n_turns - self.topic_starts[-1]) if n_turns else 0

    def forget(self, turn_id: int) -> None:
        """Remove one turn's text, anchors and counts. Its id stays taken."""
        self.matrix.forget(turn_id)
        self.texts[turn_id] = None

    def truncate(self, n_turns: int) -> None:
        """Drop the turns from n_turns on, as if they had never been added."""
        self.matrix.truncate(n_turns)
        del self.texts[n_turns:], self.topic_starts[n_turns:]

    # --- reading

    def block(self, turn_id: int) -> Block:
        """The turn's two texts as they came in; both empty once it is forgotten."""
        return Block(turn_id, *(self.texts[turn_id] or ("", "")))

    def idf(self, text: str) -> float:
        """The idf of the anchor that is `text`, folded first."""
        folded = collapse(text)
        ids = array("i", [self.vocabulary.id_of(folded)])
        return self.matrix.weigh(ids)[1][0]

    def weigh(self, query: Query) -> list[Anchor]:
        """A(q): the query's anchors that pass the idf floor, in order of first occurrence.

        A phrase that no term equals, and the fallback of a query without anchors, are searched for in the texts.
        """
        found = self._anchors(query.vocabulary, self.vocabulary.find(query.vocabulary), query.origins)
        for i in query.phrases():
            self._search(found[i], found[i].text)
        anchors = self._above_floor(found)
        if query.fallback:
            anchors.append(self._fallback_anchor(query.fallback))
        return self._weighted(anchors)

    def inherited(self) -> list[Anchor]:
        """The user-side anchors of the topic's last turn that has any, for a query that points back.

        A turn that points back itself ("go on") hands on what stands before it too, within the topic's last turns.
        """
        ids: dict[int, None] = {}
        n_turns = len(self.texts)
        first = max(self.topic_starts[-1], n_turns - INHERITED_TURNS) if n_turns else 0
        for turn_id in range(n_turns - 1, first - 1, -1):
            side = self.matrix.side_terms(turn_id, USER)
            ids.update(dict.fromkeys(side))
            if side and not is_deictic(self.block(turn_id).user):
                break
        term_ids = array("i", ids)
        origins = [IS_NGRAM if self.vocabulary.is_ngram(i) else 0 for i in term_ids]
        anchors = self._anchors(self.vocabulary, term_ids, origins, local_ids=term_ids, inherited=True)
        return self._weighted(self._above_floor(anchors))

    def with_forms(self, anchors: list[Anchor]) -> list[Anchor]:
        """The anchors, each word followed by its other forms that some turn holds; all have the weight of the group."""
        found: list[tuple[Anchor, array[int]]] = []
        for anchor in anchors:
            if anchor.idf and not anchor.is_ngram and not anchor.is_searched:  # listed words have no idf
                forms = forms_of(anchor.text)
                ids = self.vocabulary.find(forms) if forms else None
                if ids and max(ids) >= 0:
                    found.append((anchor, ids))
        if not found:
            return anchors
        known = {anchor.term_id for anchor in anchors} | {-1}
        groups: dict[Anchor, list[int]] = {}
        for anchor, ids in found:
            groups[anchor] = [term_id for term_id in ids if term_id not in known]
            known.update(groups[anchor])
        return [one for anchor in anchors for one in (anchor, *self._forms(anchor, groups.get(anchor)))]

    def _forms(self, anchor: Anchor, ids: list[int] | None) -> list[Anchor]:
        if not ids:
            return []
        forms = self._anchors(self.vocabulary, array("i", ids), [0] * len(ids), local_ids=ids)
        idf = self.matrix.idf(min(self.matrix.n_blocks, anchor.df + sum(form.df for form in forms)))
        anchor.weight = idf
        for form in forms:
            form.weight = idf
            form.form_of = anchor
        return forms

    def gate(self, query: Query, anchors: Sequence[Anchor]) -> GateDecision:
        """Gate a query against the active topic. Only anchors count, not a fallback."""
        window_start = len(self.texts) - self.topic_window()
        n_ages = self.settings.topic_window
        masses = [0.0] * (n_ages + 1)
        new_anchors = []
        for anchor in [] if query.fallback else anchors:
            age = len(self.texts) - anchor.last_turn if anchor.last_turn >= 0 else 0
            masses[age if age <= n_ages else 0] += anchor.weight
            if anchor.last_turn < window_start or anchor.last_turn < 0:
                new_anchors.append(anchor.text)
        implied = implied_mass(query.text, self.texts[-1] if self.texts else None, self.settings)
        held, lacking = topic_masses(masses, self.topic_window())
        overlap, new_ratio = ratios(held, lacking, implied)
        deictic = is_deictic(query.text)
        action = gate_action(overlap, new_ratio, deictic, self.settings, held)
        return GateDecision(action, overlap, new_ratio, deictic, tuple(new_anchors))

    def _anchors(self, vocabulary: Vocabulary, ids: array[int], origins: Sequence[int], *,
                 local_ids: Sequence[int] | None = None, inherited: bool = False) -> list[Anchor]:
        df, idf, last_turns = self.matrix.weigh(ids)
        return [
            Anchor(vocabulary, i if local_ids is None else local_ids[i], ids[i], df[i], idf[i], last_turns[i],
                   origins[i] & (IS_NGRAM | FROM_PHRASE) == IS_NGRAM, inherited)
            for i in range(len(ids))
        ]

    def _above_floor(self, anchors: list[Anchor]) -> list[Anchor]:
        """Without the n-grams below the floor; all of them where the floor would leave nothing.

        It never exceeds the idf of a term seen once: a conversation of one turn would have no anchors.
        """
        floor = min(self.settings.ngram_idf_floor, self.matrix.idf(1))
        return [anchor for anchor in anchors if not anchor.is_ngram or anchor.idf >= floor] or anchors

    def _weighted(self, anchors: list[Anchor]) -> list[Anchor]:
        """Set the weights: idf, less for an n-gram, less for what no turn holds."""
        for anchor in anchors:
            anchor.weight = anchor.idf * self.settings.ngram_weight if anchor.is_ngram else anchor.idf
            if not anchor.df:
                anchor.weight *= self.settings.unseen_weight
        return anchors

    def _search(self, anchor: Anchor, phrase: str) -> None:
        """Give an anchor the postings of the blocks whose folded text holds `phrase`, quoted or not."""
        anchor.is_searched = True
        anchor.postings = self._phrase_postings(phrase)
        anchor.df = len(anchor.postings)
        anchor.idf = self.matrix.idf(anchor.df)
        anchor.last_turn = anchor.postings[-1][0] if anchor.postings else -1

    def _phrase_postings(self, phrase: str) -> list[tuple[int, int, int]]:
        """The blocks that hold a phrase and every anchor inside it; where none does, all that hold it.

        The anchors inside it find the blocks at once, but words may be cut otherwise where no quote stands.
        """
        inner = Vocabulary(LEXICON)
        inner.add((phrase,))
        ids = self.vocabulary.find(inner)
        if ids:
            postings = self._count_phrase(phrase, self.matrix.turns_with(ids, array("i", [len(ids)])))
            if postings:
                return postings
        return self._count_phrase(phrase, range(len(self.texts)))

    def _count_phrase(self, phrase: str, turns: Sequence[int]) -> list[tuple[int, int, int]]:
        postings = []
        for turn_id in turns:
            user, assistant = self.texts[turn_id] or ("", "")
            tf_user, tf_assistant = collapse(user).count(phrase), collapse(assistant).count(phrase)
            if tf_user or tf_assistant:
                postings.append((turn_id, tf_user, tf_assistant))
        return postings

    def _fallback_anchor(self, fallback: str) -> Anchor:
        """The anchor of a query without any; searched unless it is made of listed words, which any text may hold."""
        anchor = Anchor(SpelledTerm(fallback), 0, -1, 0, 0.0, -1, is_ngram=False)
        if not says_nothing(fallback):
            self._search(anchor, " ".join(fallback.split()))
        return anchor


def forms_of(word: str) -> Vocabulary | None:
    """The other forms of an English word as terms, None for anything else. Words of queries recur, so they are kept."""
    try:
        return _forms_of[word]
    except KeyError:  # asked for once, not twice: another thread may clear in between
        pass
    forms = inflections(word)
    found = Vocabulary(LEXICON) if forms else None
    if found is not None:
        found.add((" ".join(forms),))
    if len(word) <= LONGEST_WORD:
        if len(_forms_of) >= MOST_WORDS:
            _forms_of.clear()
        _forms_of[word] = found
    return found


class SpelledTerm:
    """A stand-in vocabulary that holds one text, for an anchor that is in none."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, term_id: int) -> str:
        return self._text
