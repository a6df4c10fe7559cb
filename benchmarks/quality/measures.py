"""What one selection is worth: a number for each measure that the query's labels allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.quality.data import Conversation, Query


@dataclass(frozen=True)
class Chosen:
    """A selected turn with the text that is sent of it."""

    turn_id: int
    user: str
    assistant: str


# A measure's value as (numerator, denominator); a mean over queries has denominators of 1, a share of turns counts them
Values = dict[str, tuple[float, float]]


def measure(conversation: Conversation, query: Query, chosen: Sequence[Chosen], cost: Callable[[int], int]) -> Values:
    """Evidence, foreign turns and tokens of one selection."""
    turns = conversation.turns[: query.at]
    ids = {block.turn_id for block in chosen}
    sent = cost(sum(len(block.user) + len(block.assistant) for block in chosen))
    history = cost(sum(len(turn.user) + len(turn.assistant) for turn in turns))
    values = {"tokens": (sent, 1.0), "saved": (history - sent, history), "turns": (len(ids), 1.0)}
    if query.evidence:
        gold = query.thread or query.evidence
        values["recall"] = (len(ids & query.evidence) / len(query.evidence), 1.0)
        values["precision"] = (len(ids & gold), len(ids))
        if query.at - max(query.evidence) > 20:
            values["far recall"] = values["recall"]
        if query.evidence_text:
            values["evidence text"] = (kept_text(query.evidence_text, chosen), 1.0)
        values["user text"] = (kept_user_text(conversation, query, chosen), 1.0)
    elif query.evidence is not None:
        values["nothing"] = (float(not ids), 1.0)
    if query.topic is not None and ids:
        n_foreign = sum(turns[turn_id].topic != query.topic for turn_id in ids)
        values["foreign"] = (n_foreign, len(ids))
        values["clean answers"] = (float(n_foreign == 0), 1.0)
    if query.topic is not None:
        values["clean"] = (float(all(turns[turn_id].topic == query.topic for turn_id in ids)), 1.0)
        values["silent"] = (float(not ids), 1.0)
    return values


def kept_text(evidence: Sequence[str], chosen: Sequence[Chosen]) -> float:
    """The share of the evidence's characters, blanks left out, that the sent text still holds, sentence by sentence."""
    sent = "\0".join(_squeezed(side) for block in chosen for side in (block.user, block.assistant))
    pieces = [piece for utterance in evidence for piece in re.findall(r"[^.!?\n]+[.!?\n]*", utterance)]
    sizes = {piece: len(_squeezed(piece)) for piece in pieces}
    total = sum(sizes[piece] for piece in pieces)
    return sum(sizes[piece] for piece in pieces if _squeezed(piece) in sent) / total if total else 0.0


def kept_user_text(conversation: Conversation, query: Query, chosen: Sequence[Chosen]) -> float:
    """The share of the characters of the evidence turns' user sides that is sent."""
    kept = {block.turn_id: len(_squeezed(block.user)) for block in chosen}
    whole = {turn_id: len(_squeezed(conversation.turns[turn_id].user)) for turn_id in query.evidence or ()}
    return sum(kept.get(turn_id, 0) for turn_id in whole) / max(1, sum(whole.values()))


def _squeezed(text: str) -> str:
    return "".join(text.split())
