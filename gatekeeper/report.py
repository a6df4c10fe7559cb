"""An explanation: the whole decision for one query as plain data, every number of it accounted for."""

from __future__ import annotations

from gatekeeper.anchor import Query, fold
from gatekeeper.block import (
    BELOW_TOP,
    CHOSEN,
    FORGOTTEN,
    NO_ANCHOR,
    NO_CONTENT_WORD,
    NO_ROOM,
    SWITCH,
    Anchor,
    Candidate,
    GateDecision,
    Selection,
    Step,
)
from gatekeeper.corpus import Corpus
from gatekeeper.pruning import bits_of, phrase_spans
from gatekeeper.recall import ContentWords, asks_content_word, content_words, score
from gatekeeper.settings import Settings
from gatekeeper.sparse import QueryArrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Document = dict[str, Any]
else:
    Document = dict

HEAD_CHARACTERS = 80  # of a turn's user text in the list of turns


class Explanation(Document):
    """The decision as dicts, lists, str, int, float and bool; docs/explain.md describes each key."""

    def to_html(self) -> str:
        """The decision as one self-contained page without scripts. Needs jinja2, the extra `report`."""
        from gatekeeper.report_html import page

        return page(self)

    def _repr_html_(self) -> str | None:
        """The page in a frame of its own, for a notebook; None, so that it shows the dict, without jinja2."""
        try:
            from gatekeeper.report_html import frame
        except ModuleNotFoundError as error:
            if not is_extra(error):
                raise
            return None
        return frame(self)


def is_extra(error: ModuleNotFoundError) -> bool:
    """Whether what is missing is of the extra `report`."""
    return (error.name or "").partition(".")[0] in ("jinja2", "markupsafe")


def explanation(corpus: Corpus, selection: Selection, token_budget: int) -> Explanation:
    """The whole decision for one query."""
    gate = selection.gate
    arrays = selection.arrays
    words = content_words(selection.query_anchors)
    covered_mass = selection.steps[-1].covered_mass if selection.steps else 0.0
    return Explanation({
        "query": selection.query,
        "reason": _reason(corpus, selection, token_budget),
        "settings": corpus.settings.as_dict(),
        "n_turns": corpus.matrix.n_turns,
        "n_blocks": corpus.matrix.n_blocks,
        "topic": {"first_turn": corpus.topic_starts[-1] if corpus.topic_starts else 0,
                  "window": corpus.topic_window()},
        "gate": {"action": gate.action, "overlap": gate.overlap, "new_ratio": gate.new_ratio,
                 "deictic": gate.deictic, "new_anchors": list(gate.new_anchors),
                 "reason": _gate_reason(gate, corpus.settings)},
        "anchors": [_anchor(anchor) for anchor in selection.anchors],
        "idf_mass": arrays.idf_mass,
        "content_words": list(words) if asks_content_word(corpus.settings, gate) else [],
        "candidates": [_candidate(corpus, selection.anchors, arrays, c) for c in selection.candidates],
        "steps": _steps(selection, token_budget),
        "coverable_mass": selection.coverable_mass,
        "covered_mass": covered_mass,
        "coverage": covered_mass / selection.coverable_mass if selection.coverable_mass else 0.0,
        "tokens": {"budget": token_budget, "constraints_and_query": selection.base_cost,
                   "prompt": selection.prompt_cost},
        "turns": _turns(corpus, selection, arrays),
        "prompt": selection.prompt,
    })  # fmt: skip


def _reason(corpus: Corpus, selection: Selection, token_budget: int) -> str:
    """The decision in one sentence."""
    if corpus.matrix.n_blocks == 0:
        return "no history"
    if selection.base_cost > token_budget:
        return "constraints and query alone exceed the budget"
    prefix = "query has no content terms: " if selection.query_anchors.fallback else ""
    if any(anchor.inherited for anchor in selection.anchors):
        prefix += "anchors inherited from the topic's last turn: "
    if not selection.candidates:
        return prefix + "no turn is a candidate"
    return f"{prefix}{len(selection.steps)} of {len(selection.candidates)} candidates chosen"


def _gate_reason(gate: GateDecision, settings: Settings) -> str:
    """The rule of `topic_gate.gate_action` that spoke."""
    if gate.deictic:
        return "the query points back"
    if gate.overlap > settings.overlap_continue:
        return "overlap is above overlap_continue"
    if gate.action == SWITCH:
        return "overlap is below overlap_switch and new_ratio above new_ratio_switch"
    if gate.overlap + gate.new_ratio == 0.0:
        return "the query has no anchors"
    if gate.overlap < settings.overlap_switch and gate.new_ratio > settings.new_ratio_switch:
        return "what the query shares with the topic weighs shared_mass or more"
    return "the ratios are between the thresholds"


def _anchor(anchor: Anchor) -> dict[str, Any]:
    return {
        "id": anchor.covered_id,
        "text": anchor.text,
        "df": anchor.df,
        "idf": anchor.idf,
        "weight": anchor.weight,
        "origin": "inherited" if anchor.inherited else "stem" if anchor.form_of else "query",
        "searched": anchor.is_searched,
    }


def _candidate(corpus: Corpus, anchors: list[Anchor], arrays: QueryArrays, candidate: Candidate) -> dict[str, Any]:
    """score = user + assistant + exact + recency + neighbours, added in this order; each lex is the sum of its terms'

    parts, added in order, over idf_mass.
    """
    settings = corpus.settings
    tf_user, tf_assistant, user, assistant = corpus.matrix.parts(
        candidate.turn_id, arrays.term_ids, arrays.idf, k1=settings.k1, b=settings.b, joint=settings.joint_sides,
        extra_postings=arrays.extra_postings)
    block = corpus.block(candidate.turn_id)
    return {
        "turn_id": candidate.turn_id,
        "score": candidate.score,
        "parts": {
            "user": settings.weight_user * candidate.lex_user / candidate.best,
            "assistant": settings.weight_assistant * candidate.lex_assistant / candidate.best,
            "exact": settings.weight_exact * candidate.exact,
            "recency": settings.weight_recency * candidate.recency,
            "neighbours": settings.weight_neighbours * candidate.neighbours / candidate.best,
        },
        "lex_user": candidate.lex_user,
        "lex_assistant": candidate.lex_assistant,
        "exact": candidate.exact,
        "recency": candidate.recency,
        "coverage": candidate.coverage,
        "best": candidate.best,
        "terms": [
            {"id": anchor.covered_id, "text": anchor.text, "tf_user": tf_user[i], "tf_assistant": tf_assistant[i],
             "user": user[i], "assistant": assistant[i]}
            for i, anchor in enumerate(anchors) if tf_user[i] or tf_assistant[i]
        ],
        "text": {"user": block.user, "assistant": block.assistant},
        "hits": {"user": _hits(block.user, anchors, tf_user),
                 "assistant": _hits(block.assistant, anchors, tf_assistant)},
        "kept": {"user": [list(span) for span in candidate.kept[0]],
                 "assistant": [list(span) for span in candidate.kept[1]]},
        "user": candidate.user,
        "assistant": candidate.assistant,
        "cost": candidate.cost,
        "covers": [anchors[bit].covered_id for bit in bits_of(candidate.covers)],
    }  # fmt: skip


def _hits(text: str, anchors: Sequence[Anchor], tf: Sequence[int]) -> list[list[int]]:
    """Where the anchors that the side holds stand in its text: [start, end, id], by start."""
    held = {anchor.text: anchor for i, anchor in enumerate(anchors) if tf[i]}
    spans = anchor_spans(text, {name: anchor.is_searched for name, anchor in held.items()})
    return [[start, end, held[name].covered_id] for start, end, name in spans]


def anchor_spans(text: str, anchors: Mapping[str, bool]) -> list[tuple[int, int, str]]:
    """Where anchors, each with whether it is a searched one, stand in a text: (start, end, anchor), by start."""
    if not anchors:
        return []
    vocabulary, folded = Query(text).vocabulary, fold(text)
    spans = set()
    for start, term_id in zip(vocabulary.token_starts(), vocabulary.token_ids(), strict=True):
        name = vocabulary.text(term_id)
        if name not in anchors:
            continue
        if not folded.startswith(name, start):  # a quoted phrase, which begins behind its quote
            start, end = next(span for span in phrase_spans(text, name) if span[0] > start)
        else:
            end = start + len(name)
        spans.add((start, end, name))
    for name, is_searched in anchors.items():
        if is_searched:
            spans.update((start, end, name) for start, end in phrase_spans(text, name))
    return sorted(spans)


def merged(spans: Iterable[Sequence[Any]]) -> list[tuple[int, int]]:
    """Spans by start, (start, end, ...), without overlaps."""
    merged: list[tuple[int, int]] = []
    for start, end, *_ in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _steps(selection: Selection, token_budget: int) -> list[dict[str, Any]]:
    budget_left = token_budget - selection.base_cost
    steps = []
    for step in selection.steps:
        budget_left -= step.candidate.cost
        steps.append(_step(selection, step, budget_left))
    return steps


def _step(selection: Selection, step: Step, budget_left: int) -> dict[str, Any]:
    coverable = selection.coverable_mass
    return {
        "turn_id": step.candidate.turn_id,
        "gain": step.gain,
        "cost": step.candidate.cost,
        "covered_ids": [selection.anchors[bit].covered_id for bit in bits_of(step.covered)],
        "covered_mass": step.covered_mass,
        "coverage": step.covered_mass / coverable if coverable else 0.0,
        "budget_left": budget_left,
    }


def _turns(corpus: Corpus, selection: Selection, arrays: QueryArrays) -> list[dict[str, Any]]:
    """Every turn: chosen, or why not; its score where it shares an anchor, its tokens where it was a candidate."""
    query, gate = selection.query_anchors, selection.gate
    scores = {c.turn_id: c.score for c in score(corpus, query, arrays, gate, corpus.matrix.n_turns)}
    costs = {c.turn_id: c.cost for c in selection.candidates}
    decisions = dict.fromkeys(range(corpus.matrix.n_turns), NO_ANCHOR)
    for turn_id in scores:
        decisions[turn_id] = BELOW_TOP
    words = ContentWords(corpus, query, selection.anchors) if asks_content_word(corpus.settings, gate) else None
    if words:
        for turn_id in scores:
            if not words.are_in(turn_id):
                decisions[turn_id] = NO_CONTENT_WORD
    scores.update((c.turn_id, c.score) for c in selection.candidates)
    decisions.update((c.turn_id, NO_ROOM) for c in selection.candidates)  # unless there is another reason
    decisions.update(selection.reasons)
    decisions.update((step.candidate.turn_id, CHOSEN) for step in selection.steps)
    return [
        {"turn_id": turn_id, "topic": corpus.topic_starts[turn_id],
         "decision": FORGOTTEN if corpus.texts[turn_id] is None else decision,
         "score": 0.0 if decision == NO_CONTENT_WORD else scores.get(turn_id, 0.0), "cost": costs.get(turn_id),
         "head": corpus.block(turn_id).user[:HEAD_CHARACTERS]}
        for turn_id, decision in decisions.items()
    ]  # fmt: skip
