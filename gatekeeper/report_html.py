"""An explanation as one page: what is laid out where. Every figure on it carries its place in the explanation."""

from __future__ import annotations

import json
from bisect import bisect_right
from functools import cache
from itertools import pairwise
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gatekeeper import block
from gatekeeper.printable import one_line, printable
from gatekeeper.report import Explanation, merged

SIDES = ("user", "assistant")
PARTS = ("user", "assistant", "exact", "recency")  # and "neighbours", where it is weighed
N_TONES = 6  # colours of the time line: neighbouring topics differ
ROW, DENSE_ROW = 10, 25  # cells of the time line on a narrow screen; twice as many on a wide one
MAX_NUMBERED_TURNS = 200  # above, the cells of the time line are small and have no numbers
TITLE_CHARACTERS = 80
LONG_QUERY = 160  # characters; a longer one is no headline
TALL_CHARACTERS, TALL_LINES = 2000, 30  # a longer text scrolls within its frame
WHY = {
    block.CHOSEN: "In the prompt.",
    block.FORGOTTEN: "Removed for good; its number stays taken.",
    block.NO_ANCHOR: "Shares no anchor with the query.",
    block.NO_CONTENT_WORD: "The query left the topic, and the turn holds none of its content words.",
    block.BELOW_TOP: "Shares an anchor, but scored below the best that recall lets through.",
    block.TOO_LITTLE: "It covers too little of the query: it mentions a word of it, or another turn says much more.",
    block.EMPTY: "Pruning left none of its sentences.",
    block.NOTHING_NEW: "Every anchor that its kept sentences hold was covered by a turn chosen before it.",
    block.COVERED: "Would have covered more, but enough was covered.",
    block.NO_ROOM: "Costs more than what was left of the budget.",
    block.TAKEN_BACK: "Chosen, then taken back: the whole prompt counted more than its parts.",
}


def page(explained: Explanation) -> str:
    """The explanation as an HTML document without scripts or anything loaded; any text can be encoded as UTF-8."""
    return _render(explained, embedded=False)


def frame(explained: Explanation) -> str:
    """The page within an element of another page: its styles stay inside."""
    srcdoc = str(escape(_render(explained, embedded=True)))
    return (
        '<iframe title="gatekeeper: why each turn was chosen or left out" sandbox="" '
        f'style="width:100%;height:44rem;border:1px solid #8884;border-radius:8px" srcdoc="{srcdoc}"></iframe>'
    )


def _render(explained: Explanation, *, embedded: bool) -> str:
    return _environment().get_template("report.html").render(
        view(explained), e=explained, figure=Figures(explained), embedded=embedded)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gatekeeper"), autoescape=True, undefined=StrictUndefined, finalize=_shown,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["one_line"] = one_line
    return environment


def _shown(value: Any) -> Any:
    """Whatever the template prints: text is made printable here, before it is escaped."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


class Figures:
    """Shows values of the explanation by their place in it: rounded for people, in full as the element's value."""

    def __init__(self, explained: Explanation) -> None:
        self.explained = explained

    def __call__(self, spec: str, *path: str | int) -> Markup:
        """The number at `path`, formatted by `spec`; a list counts its items, True is yes, None a dash."""
        value: Any = self.explained
        for key in path:
            value = value[key]
        if isinstance(value, list):
            value = len(value)
        if value is None or isinstance(value, bool):
            shown = {None: "–", True: "yes", False: "no"}[value]
        else:
            shown = format(value, spec)
        key = ".".join(map(str, path))
        return Markup('<data value="{}" data-key="{}">{}</data>').format(json.dumps(value), key, shown)


# --- what the template lays out


def view(explained: Explanation) -> dict[str, Any]:
    """Places, widths in per cent, and pieces of text; no number of its own."""
    n_turns = explained["n_turns"]
    is_dense = n_turns > MAX_NUMBERED_TURNS
    positions = {candidate["turn_id"]: i for i, candidate in enumerate(explained["candidates"])}
    names = {anchor["id"]: anchor["text"] for anchor in explained["anchors"]}
    step_of = {step["turn_id"]: i for i, step in enumerate(explained["steps"])}
    return {
        "title": one_line(explained["query"][:TITLE_CHARACTERS]),
        "is_long": len(explained["query"]) > LONG_QUERY,
        "cells": _cells(explained, positions),
        "n_topics": len({turn["topic"] for turn in explained["turns"]}),
        "is_dense": is_dense,
        "row": DENSE_ROW if is_dense else ROW,
        "covered_by": {i: step["turn_id"] for step in explained["steps"] for i in step["covered_ids"]},
        "newly_covered": [[names[i] for i in step["covered_ids"]] for step in explained["steps"]],
        "max_idf": max((anchor["idf"] for anchor in explained["anchors"]), default=0.0),
        "max_score": max((candidate["score"] for candidate in explained["candidates"]), default=0.0),
        "parts": (*PARTS, "neighbours") if explained["settings"]["weight_neighbours"] else PARTS,
        "sides": SIDES,
        "step_of": step_of,
        "chosen": [positions[turn_id] for turn_id in sorted(step_of)],
        "not_chosen": [i for turn_id, i in positions.items() if turn_id not in step_of],
        "covers_from": [0.0, *(step["coverage"] for step in explained["steps"])],
        "pieces": [{side: pieces(candidate["text"][side], candidate["kept"][side], candidate["hits"][side])
                    for side in SIDES} for candidate in explained["candidates"]],
        "budget": _budget(explained, positions),
        "left_out": _left_out(explained),
        "why": WHY,
        "share": _share,
        "is_tall": _is_tall,
    }  # fmt: skip


def _cells(explained: Explanation, positions: dict[int, int]) -> list[dict[str, Any]]:
    """The time line: a cell a turn, its colour and what marks it."""
    cells = []
    tone = -1
    window_start = explained["n_turns"] - explained["topic"]["window"]
    for turn in explained["turns"]:
        turn_id, decision = turn["turn_id"], turn["decision"]
        begins = turn["topic"] == turn_id
        tone += begins
        marks = [f"tone-{tone % N_TONES}"]
        if begins:
            marks.append("begins")
        if turn_id >= window_start:
            marks.append("active")
        if decision == block.CHOSEN:
            marks.append("chosen")
        elif turn_id in positions:
            marks.append("candidate")
        elif decision == block.FORGOTTEN:
            marks.append("forgotten")
        cells.append({"turn_id": turn_id, "marks": " ".join(marks), "is_link": turn_id in positions,
                      "label": f"turn {turn_id}, topic of turn {turn['topic']}, {decision}"})  # fmt: skip
    return cells


def _budget(explained: Explanation, positions: dict[int, int]) -> list[dict[str, Any]]:
    """What the prompt is made of, in its order: (name, tokens' place in the explanation, per cent of the bar)."""
    tokens = explained["tokens"]
    chosen = sorted(step["turn_id"] for step in explained["steps"])
    parts: list[tuple[str, tuple[str | int, ...], int]] = [
        ("constraints and query", ("tokens", "constraints_and_query"), tokens["constraints_and_query"])]
    for turn_id in chosen:
        i = positions[turn_id]
        parts.append((f"turn {turn_id}", ("candidates", i, "cost"), explained["candidates"][i]["cost"]))
    whole = max(tokens["budget"], sum(n_tokens for *_, n_tokens in parts))
    return [{"name": name, "path": path, "share": _share(n_tokens, whole)} for name, path, n_tokens in parts]


def _left_out(explained: Explanation) -> list[tuple[str, list[int]]]:
    """Turns that are not in the prompt by decision, those that came nearest first."""
    groups: dict[str, list[int]] = {}
    for turn in explained["turns"]:
        groups.setdefault(turn["decision"], []).append(turn["turn_id"])
    order = (block.TAKEN_BACK, block.NO_ROOM, block.COVERED, block.NOTHING_NEW, block.EMPTY, block.TOO_LITTLE,
             block.BELOW_TOP, block.NO_CONTENT_WORD, block.NO_ANCHOR, block.FORGOTTEN)  # fmt: skip
    return [(decision, groups[decision]) for decision in order if decision in groups]


def _share(value: float, whole: float) -> str:
    """Per cent, as CSS takes it."""
    return f"{100.0 * min(1.0, max(0.0, value / whole)) if whole else 0.0:.3f}%"


def _is_tall(text: str) -> bool:
    return len(text) > TALL_CHARACTERS or text.count("\n") > TALL_LINES


def pieces(text: str, kept: list[list[int]], hits: list[list[int]]) -> list[tuple[bool, list[tuple[bool, str]]]]:
    """A text in stretches that are kept or cut, each in pieces that are a hit or not; joined, they are the text."""
    kept_spans, hit_spans = merged(kept), merged(hits)
    bounds = sorted({0, len(text), *(end for span in kept_spans + hit_spans for end in span)})
    stretches: list[tuple[bool, list[tuple[bool, str]]]] = []
    for start, end in pairwise(bounds):
        is_kept = _inside(kept_spans, start)
        if not stretches or stretches[-1][0] != is_kept:
            stretches.append((is_kept, []))
        stretches[-1][1].append((_inside(hit_spans, start), text[start:end]))
    return stretches


def _inside(spans: list[tuple[int, int]], position: int) -> bool:
    """Whether one of these sorted spans holds a position."""
    i = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return i >= 0 and position < spans[i][1]
