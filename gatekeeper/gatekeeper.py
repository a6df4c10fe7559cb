"""ContextGatekeeper: the one place that chains the stages."""

from __future__ import annotations

from _thread import RLock

from gatekeeper.anchor import Query
from gatekeeper.block import (
    CONTINUE,
    TAKEN_BACK,
    TOO_LITTLE,
    Anchor,
    Block,
    Candidate,
    GateDecision,
    Selection,
    text_of_spelled_id,
)
from gatekeeper.constraints import Constraints
from gatekeeper.corpus import ASSISTANT, USER, Corpus
from gatekeeper.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetError,
    TurnError,
    require_text,
    require_whole_number,
)
from gatekeeper.prompt import render_block, render_prompt
from gatekeeper.pruning import bits_of, prune
from gatekeeper.recall import recall
from gatekeeper.selector import cover_minimum, fill_budget, is_empty, without_outshone
from gatekeeper.settings import Settings
from gatekeeper.sparse import QueryArrays, find_coverage, least_coverage, to_scipy
from gatekeeper.tokens import estimate_tokens
from gatekeeper.topic_gate import asks_or_is_blank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from scipy.sparse import csc_array, csr_array

    from gatekeeper.messages.log import MessageLog
    from gatekeeper.messages.selection import FittedMessages
    from gatekeeper.report import Explanation

MAX_TOKENS_PER_CHARACTER = 4  # no counter in use goes above: UTF-8 has at most 4 bytes a character
MAX_CACHED_COUNTS = 4096


class ContextGatekeeper:
    """Picks, for each query, the smallest set of past turns worth sending.

    token_budget: tokens of the whole prompt without the system prompt. settings: `Settings.minimal()` by default.
    count_tokens: text to tokens; called at most once for a text that is seen again. One gatekeeper is one
    conversation of one user. Its methods may be called from several threads.

    Raises ArgumentTypeError or BudgetError for arguments that do not fit.
    """

    def __init__(self, token_budget: int, *, settings: Settings | None = None,
                 count_tokens: Callable[[str], int] = estimate_tokens) -> None:
        require_whole_number("token_budget", token_budget)
        if token_budget <= 0:
            raise BudgetError(f"token_budget must be at least 1, got {token_budget}")
        if settings is not None and not isinstance(settings, Settings):
            raise ArgumentTypeError(f"settings must be a Settings, got {type(settings).__name__}")
        if not callable(count_tokens):
            raise ArgumentTypeError(f"count_tokens must be callable, got {type(count_tokens).__name__}")
        self.token_budget = token_budget
        self.settings = Settings() if settings is None else settings
        self.constraints = Constraints()
        self._count_tokens = count_tokens
        self._counts: dict[str, int] = {}
        self._corpus = Corpus(self.settings)
        self._lock = RLock()
        self._message_log: MessageLog | None = None  # made by the first call with messages

    # --- growing and shrinking

    def add_turn(self, user_text: str, assistant_text: str) -> int:
        """Add a turn and return its id, from 0. Warns when the turn alone exceeds the budget; it is kept.

        Raises ArgumentTypeError unless both are str; the conversation is then as before.
        """
        require_text("user_text", user_text)
        require_text("assistant_text", assistant_text)
        return self._append([(user_text, assistant_text)])[0]

    def add_turns(self, turns: Iterable[tuple[str, str]]) -> range:
        """Add turns (user, assistant) in order and return their ids: the same as adding them one by one.

        All are checked before the first is added.
        """
        return self._append([_checked_turn(position, turn) for position, turn in enumerate(turns)])

    def _append(self, turns: list[tuple[str, str]]) -> range:
        """Count first: a counter that fails leaves the conversation as it was."""
        with self._lock:
            over_budget = self._over_budget(turns)
            turn_ids = self._corpus.append(turns)
        self._warn_of(turn_ids, over_budget)
        return turn_ids

    def forget(self, turn_id: int) -> None:
        """Remove one turn's text, anchors and counts for good. Ids stay; a turn may be forgotten twice.

        Raises TurnError for a turn that was never added.
        """
        require_whole_number("turn_id", turn_id)
        with self._lock:
            if not 0 <= turn_id < len(self):
                raise TurnError(f"turn_id must be 0 to {len(self) - 1}, got {turn_id}" if len(self)
                                else f"there is no turn yet, got turn_id {turn_id}")
            self._corpus.forget(turn_id)
            self._counts.clear()
            if self._message_log:
                self._message_log.forget(turn_id)

    def truncate(self, n_turns: int) -> None:
        """Drop the turns from n_turns on, topic included: the conversation is as if they had never been added.

        Raises ArgumentValueError unless 0 <= n_turns <= len(self).
        """
        require_whole_number("n_turns", n_turns)
        with self._lock:
            if not 0 <= n_turns <= len(self):
                raise ArgumentValueError(f"n_turns must be 0 to {len(self)}, got {n_turns}")
            self._corpus.truncate(n_turns)
            self._counts.clear()
            if self._message_log:
                self._message_log.truncate(n_turns)

    # --- chat messages

    def add_messages(self, messages: Any) -> None:
        """Add chat messages in any format of docs/messages.md; a user message begins a turn.

        A message that is known, by its id or by being the same object, changes nothing; one that has changed takes the
        place of the old one. Raises ArgumentTypeError or ArgumentValueError that names the message; the conversation
        is then as before.
        """
        from gatekeeper.messages.selection import add_messages

        with self._lock:
            add_messages(self, messages)

    def select_messages(self, messages_or_query: Any, *, token_budget: int | None = None, tools: Any = None,
                        pinned: Callable[[Any], bool] | None = None, prune: bool = True, reserved_tokens: int = 0,
                        strict: bool = False) -> FittedMessages:
        """The messages to send: of those added, and for a list, of those in it. Changes nothing.

        messages_or_query: the query as a str, which is not in the result; or messages that go on from those added, the
        last user message being the query. token_budget: that of the gatekeeper by default; it bounds system messages
        too. The other arguments, the result and the errors are those of `gatekeeper.fit_messages`.
        """
        from gatekeeper.messages.selection import Request, select_messages

        request = Request(self.token_budget if token_budget is None else token_budget, tools=tools, pinned=pinned,
                          prune=prune, reserved_tokens=reserved_tokens, strict=strict)
        with self._lock:
            return select_messages(self, messages_or_query, request)

    def compact(self) -> None:
        """Let the index go while the conversation rests: what is left is its texts, about a tenth of the memory.

        The next call that needs the index builds it again, in half a millisecond for 100 turns; every answer is the
        same, only that the ids of anchors may be new ones where turns were forgotten.
        """
        with self._lock:
            self._corpus.compact()
            self._counts.clear()

    # --- choosing

    def select(self, query: str) -> list[dict[str, Any]]:
        """The chosen blocks, in the order chosen, pruned; [] when nothing is worth sending.

        Each is {'turn_id': int, 'user': str, 'assistant': str, 'score': float, 'covered_ids': list[int]};
        covered_ids are the anchors that this block was the first to cover (see `anchor_text`). Changes nothing.
        """
        selection = self._decide(query)
        return [
            {
                "turn_id": step.candidate.turn_id,
                "user": step.candidate.user,
                "assistant": step.candidate.assistant,
                "score": step.candidate.score,
                "covered_ids": covered_ids(selection.anchors, step.covered),
            }
            for step in selection.steps
        ]

    def build_prompt(self, query: str) -> str:
        """The prompt: constraints, the chosen blocks in time order, the query. At most token_budget tokens,

        unless constraints and query alone exceed it: then it is these two, and a warning is logged.
        """
        return self._decide(query).prompt

    def explain(self, query: str) -> Explanation:
        """The whole decision as plain data, a dict; docs/explain.md describes it. Accounts for every turn."""
        from gatekeeper.report import explanation

        with self._lock:
            selection = self._decide(query)
            return explanation(self._corpus, selection, self.token_budget)

    def _decide(self, query: str) -> Selection:
        require_text("query", query)
        with self._lock:
            selection = self._recall(query)
            self._choose(selection)
            return selection

    def _recall(self, text: str) -> Selection:
        """Anchors, gate, inheritance, recall, pruning."""
        corpus = self._corpus
        query = Query(text)
        anchors = corpus.weigh(query)
        gate = corpus.gate(query, anchors)
        if _points_back(query, gate, anchors, self.settings):
            own = {anchor.text for anchor in anchors}
            anchors += [anchor for anchor in corpus.inherited() if anchor.text not in own]
        if self.settings.stems:
            anchors = corpus.with_forms(anchors)
        if self.settings.squared_idf:
            for anchor in anchors:
                anchor.weight *= anchor.weight
        arrays = QueryArrays(anchors)
        candidates = recall(corpus, query, arrays, gate)
        if not self.settings.whole_blocks:  # else they are pruned as they are looked at
            candidates = [*candidates]
            find_coverage(corpus, candidates, arrays, gate.action)
            prune(corpus, [candidate for candidate in candidates if not candidate.is_mention], arrays)
        return Selection(query, gate, anchors, candidates, arrays)

    def _choose(self, selection: Selection) -> None:
        """Cover or fill within the budget; then count the finished prompt and take choices back while it is over."""
        constraints = self.constraints.render()
        selection.base_cost = self._count(render_prompt(constraints, (), selection.query))
        budget = self.token_budget - selection.base_cost
        if budget < 0:
            _warn("the constraints and the query take %d tokens, the budget is %d: nothing is selected",
                  selection.base_cost, self.token_budget)
        self._cover(selection, budget, self._cost)
        while True:
            chosen = [step.candidate for step in selection.steps]
            selection.prompt = render_prompt(constraints, chosen, selection.query)
            selection.prompt_cost = self._count(selection.prompt) if chosen else selection.base_cost
            if not chosen or selection.prompt_cost <= self.token_budget:
                return
            selection.reasons[selection.steps.pop().candidate.turn_id] = TAKEN_BACK

    def _cover(self, selection: Selection, budget: int, cost_of: Callable[[Candidate], int]) -> None:
        """Take candidates within the budget, each at its cost."""
        if self.settings.whole_blocks:
            cover = fill_budget(
                self._corpus, selection.candidates, selection.arrays, budget, cost_of, self._is_short)
        else:
            candidates = [candidate for candidate in selection.candidates if not candidate.is_mention]
            arrays, settings = selection.arrays, self.settings
            best = without_outshone(candidates, arrays.idf, settings.min_coverage_of_best,
                                    least_coverage(self._corpus) * arrays.word_mass)
            for candidate in best:
                candidate.cost = 0 if is_empty(candidate) else cost_of(candidate)
            cover = cover_minimum(best, arrays.idf, budget, settings.coverage_stop, settings.n_covers)
            taking_part = {candidate.turn_id for candidate in best}
            cover.reasons.update((c.turn_id, TOO_LITTLE) for c in selection.candidates if c.turn_id not in taking_part)
        selection.steps, selection.reasons = cover.steps, cover.reasons
        selection.coverable_mass = cover.coverable_mass

    def _prune(self, selection: Selection, candidates: list[Candidate], max_sentences: int) -> None:
        """Cut candidates down to fewer sentences a side than the settings say."""
        prune(self._corpus, candidates, selection.arrays, max_sentences)

    # --- tokens

    def _cost(self, candidate: Candidate) -> int:
        """Tokens of a block as it stands in the prompt, counted once for each text."""
        return self._cached_count(render_block(candidate))

    def _is_short(self, text: str) -> bool:
        """Whether a side goes in whole, where blocks do."""
        most = self.settings.whole_side_tokens
        return MAX_TOKENS_PER_CHARACTER * len(text) <= most or self._cached_count(text) <= most

    def _cached_count(self, text: str) -> int:
        if self._count_tokens is estimate_tokens:
            return estimate_tokens(text)
        cost = self._counts.get(text)
        if cost is None:
            if len(self._counts) >= MAX_CACHED_COUNTS:
                self._counts.clear()
            cost = self._counts[text] = max(1, self._count(text))
        return cost

    def _count(self, text: str) -> int:
        n_tokens = self._count_tokens(text)
        if not isinstance(n_tokens, int) or n_tokens < 0:
            raise ArgumentValueError(f"count_tokens must return a whole number from 0 up, got {n_tokens!r:.80}")
        return n_tokens

    def _over_budget(self, turns: list[tuple[str, str]]) -> list[tuple[int, int]]:
        """(position, tokens) of the turns that alone exceed the budget."""
        most = self.token_budget // MAX_TOKENS_PER_CHARACTER  # characters that fit under any counter
        counted = [(i, self._count(user) + self._count(assistant))
                   for i, (user, assistant) in enumerate(turns) if len(user) + len(assistant) > most]
        return [(i, n_tokens) for i, n_tokens in counted if n_tokens > self.token_budget]

    def _warn_of(self, turn_ids: range, over_budget: list[tuple[int, int]]) -> None:
        for i, n_tokens in over_budget:
            _warn("turn %d has %d tokens, the budget is %d: it is kept", turn_ids[i], n_tokens, self.token_budget)

    # --- reading

    def __len__(self) -> int:
        """Turns added so far, forgotten ones included."""
        return len(self._corpus.texts)

    def block(self, turn_id: int) -> Block:
        """A turn as it came in; both texts are empty once it is forgotten. Raises TurnError for no such turn."""
        if not isinstance(turn_id, int) or not 0 <= turn_id < len(self):
            raise TurnError(f"no turn {turn_id!r}; there are {len(self)}, from 0")
        return self._corpus.block(turn_id)

    def idf(self, anchor: str) -> float:
        """idf = ln((N + 1) / (df + 1)) + 1 of an anchor for the conversation as it stands."""
        require_text("anchor", anchor)
        with self._lock:
            return float(self._corpus.idf(anchor))

    def anchor_text(self, anchor_id: int) -> str:
        """The text of an anchor that `covered_ids` or `explain` names. Raises ArgumentValueError for no such id."""
        require_whole_number("anchor_id", anchor_id)
        try:
            if anchor_id >= 1 << 32:
                return text_of_spelled_id(anchor_id)
            with self._lock:
                return self._corpus.vocabulary.text(anchor_id)
        except (IndexError, OverflowError, UnicodeDecodeError) as error:
            raise ArgumentValueError(f"anchor_id names no anchor of this conversation: {anchor_id} ({error})") from None

    def to_scipy(self, side: str = "user", layout: str = "csr") -> csr_array | csc_array:
        """One side ("user" or "assistant") as a scipy.sparse matrix turns x anchors of counts, CSR or CSC."""
        if side not in ("user", "assistant") or layout not in ("csr", "csc"):
            raise ArgumentValueError(
                f"side must be 'user' or 'assistant' and layout 'csr' or 'csc', got {side!r} and {layout!r}")
        with self._lock:
            return to_scipy(self._corpus, USER if side == "user" else ASSISTANT, layout)

    def __repr__(self) -> str:
        return f"ContextGatekeeper(token_budget={self.token_budget}, turns={len(self)})"


def covered_ids(anchors: list[Anchor], mask: int) -> list[int]:
    """The ids of the anchors whose bits are set, in the order of the query."""
    return [anchors[bit].covered_id for bit in bits_of(mask)]


def _points_back(query: Query, gate: GateDecision, anchors: list[Anchor], settings: Settings) -> bool:
    """Whether a query means what the topic's last turn names: a deictic, or nothing in it that could be looked up.

    Where it names something that no turn holds, it must speak for the topic otherwise: it may be a new one.
    """
    if gate.action != CONTINUE or gate.deictic:
        return gate.deictic
    if any(anchor.df for anchor in anchors):
        return False
    return gate.overlap > settings.overlap_continue if len(query.vocabulary) else asks_or_is_blank(query.fallback)


def _checked_turn(position: int, turn: object) -> tuple[str, str]:
    if type(turn) is tuple and len(turn) == 2 and type(turn[0]) is str and type(turn[1]) is str:
        return turn
    if not isinstance(turn, (tuple, list)) or len(turn) != 2:
        raise ArgumentTypeError(f"turns[{position}] must be a pair (user, assistant), got {turn!r:.80}")
    user, assistant = turn
    require_text(f"turns[{position}][0]", user)
    require_text(f"turns[{position}][1]", assistant)
    return user, assistant


def _warn(message: str, *values: object) -> None:
    import logging

    logging.getLogger("gatekeeper").warning(message, *values)
