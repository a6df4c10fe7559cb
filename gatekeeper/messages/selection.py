"""From a decision to messages: what of each chosen turn is sent, what it costs, and the list in order."""

from __future__ import annotations

from bisect import bisect_right

from gatekeeper._core.vocabulary import sentence_ends
from gatekeeper.errors import ArgumentTypeError, ArgumentValueError, BudgetError, require_whole_number
from gatekeeper.messages.formats import SYSTEM, View, is_marked, read_all
from gatekeeper.messages.log import MessageLog, workbench
from gatekeeper.messages.turns import Segment, Turn, split_turns
from gatekeeper.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from gatekeeper.block import Candidate, Selection
    from gatekeeper.gatekeeper import ContextGatekeeper

    Spans = Sequence[tuple[int, int]]
    Sent = dict[View, list[str] | None]  # the texts that stay of a message; None: all of it

MESSAGE_TOKENS = 5  # what a chat template puts around a message: 4 in OpenAI's, 5 in ChatML and in Llama 3's
MAX_CACHED_COUNTS = 4096


class FittedMessages(list):  # type: ignore[type-arg]  # of whatever messages came in
    """Messages to send, a plain list; n_tokens: what they and the tools count, n_fixed_tokens: that of the part

    that always stays; over_budget: whether that part alone exceeds the budget, so that nothing else was chosen.
    """

    def __init__(self, messages: Iterable[Any], n_tokens: int, n_fixed_tokens: int, *, over_budget: bool) -> None:
        super().__init__(messages)
        self.n_tokens = n_tokens
        self.n_fixed_tokens = n_fixed_tokens
        self.over_budget = over_budget


class Request:
    """What one call asks for beside the messages; arguments and errors as in `fit_messages`."""

    def __init__(self, token_budget: int, *, tools: Any, pinned: Callable[[Any], bool] | None, prune: bool,
                 reserved_tokens: int, strict: bool) -> None:
        require_whole_number("token_budget", token_budget)
        if token_budget <= 0:
            raise BudgetError(f"token_budget must be at least 1, got {token_budget}")
        require_whole_number("reserved_tokens", reserved_tokens)
        if reserved_tokens < 0:
            raise ArgumentValueError(f"reserved_tokens must be at least 0, got {reserved_tokens}")
        if pinned is not None and not callable(pinned):
            raise ArgumentTypeError(f"pinned must be a callable from message to bool, got {type(pinned).__name__}")
        self.token_budget = token_budget
        self.tools = spell_tools(tools)
        self.is_pinned = pinned or is_marked
        self.prune = prune
        self.reserved_tokens = reserved_tokens
        self.strict = strict


def add_messages(gate: ContextGatekeeper, messages: Any) -> None:
    """Behind `ContextGatekeeper.add_messages`; its lock is held."""
    log_of(gate).add(gate, messages)


def log_of(gate: ContextGatekeeper) -> MessageLog:
    if gate._message_log is None:
        gate._message_log = MessageLog()
    return gate._message_log


def select_messages(gate: ContextGatekeeper, messages: Any, request: Request) -> FittedMessages:
    """Behind `ContextGatekeeper.select_messages`; its lock is held. The gatekeeper is afterwards as before."""
    log = log_of(gate)
    if isinstance(messages, str):
        return MessageSelection(gate, log, request).fit(messages, None)
    merged = log.merged(messages)
    bench = workbench(gate)
    before = log.state(bench)
    try:
        log.update(bench, merged, hold_last=True, durable=False)
        return fit_last_turn(bench, log, request)
    finally:
        log.restore(bench, before)


def fit_last_turn(gate: ContextGatekeeper, log: MessageLog, request: Request) -> FittedMessages:
    """Choose for the last turn of the log, which is not in the index; what it asks is the query."""
    last = log.turns[-1] if log.turns else None
    texts = [view.own_text for view in last.views if view.role == "user" and view.own_text.strip()] if last else []
    return MessageSelection(gate, log, request).fit(texts[-1] if texts else "", last)


class MessageSelection:
    """One selection: the part that stays, the turns chosen in what it leaves of the budget."""

    def __init__(self, gate: ContextGatekeeper, log: MessageLog, request: Request) -> None:
        self.gate = gate
        self.log = log
        self.request = request
        self.turns = {turn.turn_id: turn for turn in log.turns}
        self.fixed: Sent = {}
        self.sent: dict[int, tuple[object, Sent]] = {}  # by turn: what was kept, and what is sent for it

    def fit(self, query: str, last: Turn | None) -> FittedMessages:
        """The messages for a query; last: the turn it stands in, None for a query by itself."""
        self._fix(last)
        request = self.request
        n_fixed = self._cost_of(self.fixed) + self._count(request.tools) + request.reserved_tokens + MESSAGE_TOKENS
        if last is None:
            n_fixed += self._count(query) + MESSAGE_TOKENS
        if n_fixed > request.token_budget:
            self._report_over_budget(n_fixed)
            return FittedMessages(self._in_order({}), n_fixed, n_fixed, over_budget=True)
        chosen = self._choose(query, request.token_budget - n_fixed)
        n_tokens = n_fixed + sum(self._cost_of(sent) for sent in chosen.values())
        return FittedMessages(self._in_order(chosen), n_tokens, n_fixed, over_budget=False)

    def _fix(self, last: Turn | None) -> None:
        """Note what always stays: system messages, the last turn, what is pinned with its unit and its question."""
        is_pinned = self.request.is_pinned
        pinned = set()
        for view in self.log.views:
            if view.role == SYSTEM:
                self.fixed[view] = None
            elif not (view.is_plain and is_pinned is is_marked) and is_pinned(view.message):
                pinned.add(view.shown)
        for turn in self.log.turns if pinned else ():
            head = [turn.head] if turn.head else []
            for unit in [head, *(unit.views for unit in turn.sound_units())]:
                if pinned.intersection(unit):
                    self.fixed.update(dict.fromkeys([*head, *unit]))
        if last:
            self.fixed.update(dict.fromkeys(last.sound_views()))

    def _report_over_budget(self, n_fixed: int) -> None:
        message = (f"system messages, pinned ones, tools and the last turn take {n_fixed} tokens, "
                   f"the budget is {self.request.token_budget}")
        if self.request.strict:
            raise BudgetError(message)
        import logging

        logging.getLogger("gatekeeper").warning("%s: nothing else is selected", message)

    # --- choosing

    def _choose(self, query: str, budget: int) -> dict[int, Sent]:
        """By turn id what is sent of it."""
        gate = self.gate
        selection = gate._recall(query)
        selection.candidates = [candidate for candidate in selection.candidates if self._can_be_sent(candidate)]
        if not gate.settings.whole_blocks:  # else nothing is kept yet
            for candidate in selection.candidates:
                self._cut_to(budget, selection, candidate)
                candidate.block_cost = gate._cost(candidate)  # so that the same turns are chosen as for a prompt
        gate._cover(selection, budget, self._cost_of_candidate)
        return {step.candidate.turn_id: self._sent(step.candidate) for step in selection.steps}

    def _can_be_sent(self, candidate: Candidate) -> bool:
        """A turn that came as texts may have no question to begin with."""
        return bool(self.gate._corpus.block(candidate.turn_id).user.strip()) or candidate.turn_id in self.turns

    def _cut_to(self, budget: int, selection: Selection, candidate: Candidate) -> None:
        """Keep fewer sentences of a turn that could not be sent in any case: a long run of tools."""
        n_sentences = self.gate.settings.max_sentences
        while n_sentences > 1 and self._cost_of_candidate(candidate) > budget:
            n_sentences -= 1
            self.gate._prune(selection, [candidate], n_sentences)

    def _cost_of_candidate(self, candidate: Candidate) -> int:
        """Tokens of what is sent of a turn beside what is sent anyway; at least 1."""
        return max(1, self._cost_of(self._sent(candidate)))

    def _sent(self, candidate: Candidate) -> Sent:
        known = self.sent.get(candidate.turn_id)
        if known is None or known[0] is not candidate.kept:
            turn = self._turn(candidate.turn_id)
            known = self.sent[candidate.turn_id] = (
                candidate.kept, sent_of_turn(turn, candidate.kept, self.fixed, prune=self.request.prune))
        return known[1]

    def _turn(self, turn_id: int) -> Turn:
        """The turn with this id; one that came as two texts becomes messages in the canonical form."""
        turn = self.turns.get(turn_id)
        if turn is None:
            block = self.gate._corpus.block(turn_id)
            pair = [{"role": "user", "content": block.user}, {"role": "assistant", "content": block.assistant}]
            [turn] = split_turns(read_all(pair, self.log.read), self.log.read)
            self.turns[turn_id] = turn
        return turn

    # --- tokens

    def _cost_of(self, sent: Sent) -> int:
        return sum(self._cost_of_view(view, texts) for view, texts in sent.items())

    def _cost_of_view(self, view: View, texts: list[str] | None) -> int:
        """Tokens of a message, or of a copy with other texts; the whole of it is counted once for good."""
        if texts is None and view.cost >= 0:
            return view.cost
        parts = [*(view.texts if texts is None else texts), view.call_text, view.hidden]
        cost = MESSAGE_TOKENS + view.n_opaque * self.gate.settings.image_tokens
        cost += self._count("\n".join(part for part in parts if part))
        if texts is None:
            view.cost = cost
        return cost

    def _count(self, text: str) -> int:
        if not text:
            return 0
        if self.gate._count_tokens is estimate_tokens:
            return estimate_tokens(text)
        counts = self.log.counts
        n_tokens = counts.get(text)
        if n_tokens is None:
            if len(counts) >= MAX_CACHED_COUNTS:
                counts.clear()
            n_tokens = counts[text] = self.gate._count(text)
        return n_tokens

    # --- the list

    def _in_order(self, chosen: dict[int, Sent]) -> Iterator[Any]:
        """Messages in the order in which they came; a turn that came as texts stands where it was added."""
        sent = dict(self.fixed)
        for texts in chosen.values():
            sent.update(texts)
        first_of = {turn.views[0]: turn.turn_id for turn in self.log.turns}
        as_texts = sorted(turn_id for turn_id in chosen if self.turns[turn_id] not in self.log.turns)
        for view in self.log.views:
            view = view.shown
            turn_id = first_of.get(view, -1)
            while as_texts and as_texts[0] < turn_id:
                yield from _messages(chosen[as_texts.pop(0)])
            if view in sent:
                yield from _messages({view: sent[view]})
        for turn_id in as_texts:
            yield from _messages(chosen[turn_id])


def _messages(sent: Sent) -> Iterator[Any]:
    for view, texts in sent.items():
        yield view.message if texts is None else view.with_texts(texts)


# --- what of a turn is sent


def sent_of_turn(turn: Turn, kept: tuple[Spans, Spans], fixed: Sent, *, prune: bool) -> Sent:
    """The messages of a chosen turn that are sent, in order, each with the texts that stay.

    kept: the kept spans of each side. The question and the answer always go, a tool call with its results when a kept
    sentence stands in them; so roles follow each other as they did. A message that goes without a kept sentence keeps
    its first one.
    """
    pieces: dict[View, list[tuple[Segment, str]]] = {}
    for (text, segments), spans in zip(turn.sides(), kept, strict=True):
        for segment, piece in _pieces(text, segments, spans):
            pieces.setdefault(segment.view, []).append((segment, piece))
    answer = turn.answer()
    sent: Sent = {turn.head: None} if turn.head else {}
    for unit in turn.sound_units():
        if unit is answer or any(view in pieces for view in unit.views):
            sent.update(dict.fromkeys(unit.views))
    for view in sent:
        if prune and view not in fixed:
            sent[view] = _kept_texts(view, pieces.get(view, []))
    return {view: texts for view, texts in sent.items() if view not in fixed}


def _pieces(text: str, segments: list[Segment], spans: Spans) -> Iterator[tuple[Segment, str]]:
    """What the spans of a side hold of each message's text, blanks alone left out."""
    found: dict[int, str] = {}
    for start, end in spans:
        place = max(bisect_right(segments, start, key=_start_of) - 1, 0)
        while place < len(segments) and segments[place].start < end:
            segment = segments[place]
            piece = text[max(start, segment.start) : min(end, segment.end)]
            found[place] = found[place] + piece if place in found else piece
            place += 1
    for place, piece in found.items():
        if piece.strip():
            yield segments[place], piece


def _start_of(segment: Segment) -> int:
    return segment.start


def _kept_texts(view: View, pieces: list[tuple[Segment, str]]) -> list[str] | None:
    """The texts of a message cut to pieces of them; None when nothing is lost but blanks at the ends."""
    texts = [""] * len(view.texts)
    for segment, piece in pieces:
        if segment.part >= 0:
            texts[segment.part] = piece.strip()
    if not any(texts):
        first = next((part for part, text in enumerate(view.texts) if text.strip()), None)
        if first is None:
            return None
        text = view.texts[first]
        texts[first] = text[: sentence_ends(text)[0]].strip() or text.strip()
    return None if all(new == old.strip() for new, old in zip(texts, view.texts, strict=True)) else texts


# --- tools


def spell_tools(tools: Any) -> str:
    """The schemas of tools as the text that is counted; "" without any. Raises ArgumentTypeError for no schema."""
    if tools is None:
        return ""
    if isinstance(tools, (str, bytes)) or not hasattr(tools, "__iter__"):
        raise ArgumentTypeError(f"tools must be a list of schemas, got {type(tools).__name__}: {tools!r:.80}")
    schemas = list(tools)
    if not schemas:
        return ""
    import json

    return json.dumps(schemas, ensure_ascii=False, default=_schema)


def _schema(tool: Any) -> Any:
    """The schema of a Pydantic model, of a class as of an object."""
    if isinstance(tool, type) and hasattr(tool, "model_json_schema"):
        return tool.model_json_schema()
    if hasattr(tool, "model_dump"):
        return tool.model_dump()
    raise ArgumentTypeError(f"a tool must be a schema (a dict), got {type(tool).__name__}: {tool!r:.80}")
