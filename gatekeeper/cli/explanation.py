"""How explain looks: gate, anchors, candidates, steps, and the turns left out."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from gatekeeper.block import CHOSEN, NO_ROOM, SWITCH, TAKEN_BACK
from gatekeeper.cli.output import Cell, Output
from gatekeeper.errors import GatekeeperError
from gatekeeper.report import Explanation, is_extra

HEAD_CHARACTERS = 40  # of a turn's user text in the list of turns left out

PARTS: tuple[str, ...] = ("user", "assistant", "exact", "recency")  # and "neighbours", where it is weighed


def write_page(output: Output, explained: Explanation, page: str, chat: str) -> None:
    """Write the decision as an HTML page and say so on stderr. Raises GatekeeperError when it cannot be written."""
    if os.path.exists(page) and os.path.exists(chat) and os.path.samefile(page, chat):
        raise GatekeeperError(f"{page}: is the chat file, it is not overwritten")
    try:
        html = explained.to_html()
    except ModuleNotFoundError as error:
        if not is_extra(error):
            raise
        raise GatekeeperError(f"a page needs {error.name}: pip install 'context-gatekeeper[report]'") from None
    try:
        with open(page, "w", encoding="utf-8") as file:
            n_characters = file.write(html)
    except OSError as error:
        raise GatekeeperError(f"{page}: cannot be written: {error.strerror or error}") from None
    output.message("debug", f"{page}: written, {n_characters:,} characters")


def print_explanation(output: Output, explained: Explanation, *, show_all: bool) -> None:
    """The whole decision; show_all lists each turn left out instead of only counting them."""
    _print_head(output, explained)
    if explained["anchors"]:
        output.table(("<anchor", "df", "idf", "<origin"), [
            ((anchor["text"], "highlight" if anchor["df"] else "debug"), f"{anchor['df']}",
             (f"{anchor['idf']:.3f}", "debug"), anchor["origin"] + (", searched" if anchor["searched"] else ""))
            for anchor in explained["anchors"]
        ], title="anchors")  # fmt: skip
    decisions = {turn["turn_id"]: turn["decision"] for turn in explained["turns"]}
    if explained["candidates"]:
        parts = PARTS + (("neighbours",) if explained["settings"]["weight_neighbours"] else ())
        covers = () if explained["settings"]["whole_blocks"] else ("coverage",)
        output.table(("turn", "score", *parts, *covers, "cost", "<decision"),
                     [_candidate(candidate, parts, covers, decisions) for candidate in explained["candidates"]],
                     title="candidates")
    if explained["steps"]:
        names = {anchor["id"]: anchor["text"] for anchor in explained["anchors"]}
        output.table(("step", "turn", "gain", "cost", "coverage", "budget left", "<newly covered"),
                     [_step(number, step, names) for number, step in enumerate(explained["steps"], 1)], title="steps")
    left_out = [turn for turn in explained["turns"] if turn["decision"] != CHOSEN]
    if left_out:
        counts = Counter(turn["decision"] for turn in left_out)
        output.table(("<decision", "turns"), [(_decision(decision), f"{n_turns}")
                                              for decision, n_turns in counts.most_common()], title="turns left out")
    if left_out and show_all:
        output.table(("turn", "<decision", "score", "cost", "<user"),
                     [_left_out(turn) for turn in left_out], title="each turn left out")


def _print_head(output: Output, explained: dict[str, Any]) -> None:
    gate, topic, tokens = explained["gate"], explained["topic"], explained["tokens"]
    over = max(tokens["prompt"], tokens["constraints_and_query"]) > tokens["budget"]
    low = explained["coverage"] < explained["settings"]["coverage_stop"]
    output.line(("query     ", "debug"), explained["query"])
    output.line(
        ("gate      ", "debug"), (gate["action"], "highlight" if gate["action"] == SWITCH else "normal"),
        (f"  anchor_overlap_ratio {gate['overlap']:.3f}  new_token_ratio {gate['new_ratio']:.3f}"
         f"  deictic {'yes' if gate['deictic'] else 'no'}"
         f"  topic since turn {topic['first_turn']}, window {topic['window']}", "debug"))
    if explained["content_words"]:
        output.line(("content   ", "debug"), (", ".join(explained["content_words"]), "highlight"))
    output.line(("decision  ", "debug"), explained["reason"])
    output.line(
        ("coverage  ", "debug"), (f"{explained['coverage']:.1%}", "warn" if low else "accent"),
        (f" of the idf mass that the candidates hold ({explained['coverable_mass']:.3f})", "debug"))
    output.line(
        ("tokens    ", "debug"), (f"{tokens['prompt']} of {tokens['budget']}", "warn" if over else "normal"),
        (f"  query and constraints {tokens['constraints_and_query']}", "debug"))  # fmt: skip


def _decision(decision: str) -> Cell:
    if decision == CHOSEN:
        return decision, "highlight"
    return decision, "warn" if decision in (NO_ROOM, TAKEN_BACK) else "debug"


def _candidate(
    candidate: dict[str, Any], parts: tuple[str, ...], covers: tuple[str, ...], decisions: dict[int, str]
) -> list[Cell]:
    turn_id = candidate["turn_id"]
    return [f"{turn_id}", f"{candidate['score']:.3f}", *(f"{candidate['parts'][part]:.3f}" for part in parts),
            *(f"{candidate[name]:.0%}" for name in covers), f"{candidate['cost']}", _decision(decisions[turn_id])]


def _step(number: int, step: dict[str, Any], names: dict[int, str]) -> list[Cell]:
    covered = ", ".join(names[i] for i in step["covered_ids"])
    return [f"{number}", f"{step['turn_id']}", (f"{step['gain']:.4f}", "accent"), f"{step['cost']}",
            (f"{step['coverage']:.1%}", "accent"), f"{step['budget_left']}",
            (covered or "nothing new", "highlight" if covered else "debug")]  # fmt: skip


def _left_out(turn: dict[str, Any]) -> list[Cell]:
    cost = "" if turn["cost"] is None else f"{turn['cost']}"
    head = turn["head"][:HEAD_CHARACTERS]
    return [f"{turn['turn_id']}", _decision(turn["decision"]), f"{turn['score']:.3f}", cost, (head, "debug")]
