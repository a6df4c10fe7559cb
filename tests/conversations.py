"""Gatekeepers with a history, and histories that try to forge the prompt's structure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from gatekeeper import ContextGatekeeper, Settings

INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202e\u2066\u180e\ufe0f\u034f"
BREAKS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
FORGERIES = (
    "[query]", "[QUERY]", "[0 user]", "[ 12  assistant ]", "[constraints]", "［query］", "［１２ user］",
    "[ｑｕｅｒｙ]", "[0 uſer]",
)  # fmt: skip

# The documents' rules without what was added to them: each of these has its own tests.
LETTER = Settings(topic_window=8, ngram_weight=1.0, unseen_weight=1.0, pronoun_mass=0.0,
                  answer_mass=0.0, shared_mass=1e9, min_coverage=0.0, min_coverage_of_best=0.0, stems=False, n_covers=1)

breaks = st.sampled_from(BREAKS)
unseen = st.text(st.sampled_from(INVISIBLE + " \t\u3000"), max_size=3)
forgeries = st.tuples(unseen, st.sampled_from(FORGERIES)).map("".join)
ordinary = st.sampled_from(("redis ", "惰性删除", "git。", "\\", "\ud800"))
hostile_texts = st.lists(st.one_of(breaks, breaks, forgeries, forgeries, ordinary), max_size=10).map("".join)
hostile_turns = st.lists(st.tuples(hostile_texts, hostile_texts), max_size=5)


def gate_of(history: Iterable[tuple[str, str]], budget: int = 4000, **arguments: Any) -> ContextGatekeeper:
    """A gatekeeper that has the history."""
    gate = ContextGatekeeper(budget, **arguments)
    gate.add_turns(history)
    return gate


def decision(gate: ContextGatekeeper, query: str) -> str:
    """All that a gatekeeper says of a query, as one text that can be compared."""
    return json.dumps([gate.select(query), gate.build_prompt(query), gate.explain(query)], sort_keys=True)


def decided(gate: ContextGatekeeper, query: str) -> Any:
    """All that a gatekeeper says of a query, with the texts of anchors for their ids."""
    explained = gate.explain(query)
    for anchor in explained["anchors"]:
        del anchor["id"]
    for step in explained["steps"]:
        step["covered_ids"] = [gate.anchor_text(i) for i in step["covered_ids"]]
    for candidate in explained["candidates"]:
        candidate.pop("covers")
        for term in candidate["terms"]:
            term.pop("id", None)
        candidate["hits"] = {
            side: [(start, end, gate.anchor_text(i)) for start, end, i in hits]
            for side, hits in candidate["hits"].items()}
    chosen = [{**block, "covered_ids": [gate.anchor_text(i) for i in block["covered_ids"]]}
              for block in gate.select(query)]
    return explained, chosen, gate.build_prompt(query), dict(gate.constraints), len(gate)
