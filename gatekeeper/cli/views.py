"""How select, stats and demo look."""

from __future__ import annotations

from typing import Any

from gatekeeper.chat_file import ChatReader
from gatekeeper.cli.output import Cell, Output
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.report import anchor_spans, merged
from gatekeeper.tokens import estimate_tokens

# --- select


def print_selection(
    output: Output, gate: ContextGatekeeper, blocks: list[dict[str, Any]], explained: dict[str, Any]
) -> None:
    """Each chosen turn: number, score, what it covers, both texts with the query's anchors highlighted."""
    if not blocks:
        output.line((f"nothing selected: {explained['reason']}", "warn"))
    anchors = {anchor["text"]: anchor["searched"] for anchor in explained["anchors"]}
    for block in blocks:
        covered = ", ".join(gate.anchor_text(i) for i in block["covered_ids"])
        output.line(f"turn {block['turn_id']}", (f"  score {block['score']:.3f}", "debug"), "  covers ",
                    (covered or "nothing new", "accent"))  # fmt: skip
        for side in ("user", "assistant"):
            if block[side]:
                output.line((f"{side}: ", "debug"), *highlighted(block[side], anchors))
        output.line("")


def highlighted(text: str, anchors: dict[str, bool]) -> list[Cell]:
    """A text in pieces, those that are one of the anchors in the highlight role."""
    pieces: list[Cell] = []
    done = 0
    for start, end in merged(anchor_spans(text, anchors)):
        pieces += [text[done:start], (text[start:end], "highlight")]
        done = end
    return [*pieces, text[done:]]


# --- stats


def statistics(gate: ContextGatekeeper, reader: ChatReader) -> dict[str, Any]:
    """What a chat file holds, and what of it was skipped."""
    corpus = gate._corpus
    texts = [text for turn in corpus.texts if turn for text in turn]
    n_topics = len(set(corpus.topic_starts))
    return {
        "turns": len(gate),
        "characters": sum(map(len, texts)),
        "tokens": sum(map(estimate_tokens, texts)),
        "anchors": len(corpus.vocabulary),
        "topics": n_topics,
        "topic_switches": max(0, n_topics - 1),
        "skipped": {"system": reader.n_system, "tool": reader.n_tool, "broken": reader.n_broken},
    }


def print_statistics(output: Output, figures: dict[str, Any]) -> None:
    """One row a figure."""
    rows: list[tuple[Cell, Cell]] = [
        ("turns", f"{figures['turns']}"),
        ("characters", f"{figures['characters']}"),
        ("tokens, estimated", f"{figures['tokens']}"),
        ("distinct anchors", f"{figures['anchors']}"),
        ("topics", f"{figures['topics']}"),
        ("topic switches", (f"{figures['topic_switches']}", "highlight")),
    ]
    for kind, what in (("system", "system messages"), ("tool", "tool messages"), ("broken", "broken lines")):
        n_skipped = figures["skipped"][kind]
        rows.append((f"skipped {what}", (f"{n_skipped}", "warn" if n_skipped else "debug")))
    if not figures["turns"]:
        output.line(("no history", "warn"))
    output.table(("<figure", "value"), rows)


# --- demo


def print_demo(output: Output, figures: dict[str, Any], claims: list[tuple[str, str, str, bool]]) -> None:
    """One row a query, then one row a claim."""
    output.line(f"{figures['history_tokens']} tokens of history, {figures['alternation_queries']} queries after it")
    rows: list[list[Cell]] = []
    for answer in figures["queries"]:
        turns = ", ".join(f"{turn['turn_id']} {turn['topic']}" for turn in answer["turns"])
        n_foreign = answer["foreign_turns"]
        rows.append([
            (answer["query"], "highlight"), answer["topic"], turns or "none",
            (f"{n_foreign}", "error" if n_foreign else "normal"), (f"{answer['coverage']:.0%}", "accent"),
            f"{answer['tokens']}", f"{answer['tokens_saved_ratio']:.2%}",
            (f"{answer['select_microseconds']:.0f}", "debug"),
        ])  # fmt: skip
    columns = ("<query", "<topic", "<chosen turns", "foreign", "coverage", "tokens", "saved", "select, µs")
    output.table(columns, rows, title="queries")
    output.table(("<claim", "measured", "required", "<holds"),
                 [(name, (measured, "accent"), required, ("yes", "normal") if holds else ("NO", "error"))
                  for name, measured, required, holds in claims], title="claims")  # fmt: skip
