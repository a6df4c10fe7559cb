"""The form of the evaluation data: JSON lines, gzip-compressed or plain, one conversation a line (docs/quality.md)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETS = ["locomo", "beam_100k", "qmsum", "madial_en", "irc", "tiage", "crosswoz", "kdconv_mix", "javaguide_mix",
        "madial_zh"]
OWN_SETS = ["working_day"]  # text written for this project: reported apart, never among the figures of the others


@dataclass(frozen=True)
class Turn:
    user: str
    assistant: str
    topic: str | int | None


@dataclass(frozen=True)
class Query:
    """A question and its labels; None where a set does not label that.

    at: turns before it; evidence: the turns that should be found, [] = none is needed; thread: a wider gold, for
    precision; evidence_text: the very utterances; switch: it leaves the topic of the turn before it.
    """

    at: int
    text: str
    evidence: frozenset[int] | None
    thread: frozenset[int] | None
    evidence_text: tuple[str, ...]
    switch: bool | None
    category: str | None
    topic: str | int | None


@dataclass(frozen=True)
class Conversation:
    id: str
    language: str
    turns: list[Turn]
    queries: list[Query]


def read_set(folder: Path, name: str, half: str) -> list[Conversation]:
    """The conversations of one set, queries in the order of `at`. FileNotFoundError if the folder lacks it, ValueError

    if it holds no conversation or what is none. A set of our own has no halves: it is a plain NAME.jsonl.
    """
    path = folder / (f"{name}.jsonl" if name in OWN_SETS else f"{name}.{half}.jsonl.gz")
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        try:
            conversations = [_conversation(json.loads(line)) for line in file]
        except KeyError as error:
            raise ValueError(f"{path}: a conversation lacks {error}") from None
    if not conversations:
        raise ValueError(f"{path} holds no conversation")
    return conversations


def _conversation(raw: dict[str, Any]) -> Conversation:
    turns = [Turn(turn["user"], turn["assistant"], turn.get("topic")) for turn in raw["turns"]]
    queries = sorted((_query(raw_query, turns) for raw_query in raw["queries"]), key=lambda query: query.at)
    return Conversation(raw["id"], raw["lang"], turns, queries)


def _query(raw: dict[str, Any], turns: list[Turn]) -> Query:
    evidence, thread, at = raw["evidence"], raw.get("thread"), raw["at"]
    is_turn = at < len(turns) and turns[at].user == raw["query"]
    return Query(
        at=at,
        text=raw["query"],
        evidence=None if evidence is None else frozenset(evidence),
        thread=frozenset(thread) if thread else None,
        evidence_text=tuple(raw.get("evidence_text") or ()),
        switch=raw["switch"],
        category=raw["category"],
        topic=raw.get("topic", turns[at].topic if is_turn else None),
    )
