"""The shipped demonstration: 100 turns of four topics, five alternating queries, and what must hold of the answers."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from gatekeeper.anchor import Query, extract_anchors, fold
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.recall import content_words
from gatekeeper.tokens import estimate_tokens

CONVERSATION = Path(__file__).with_name("demo_conversation.jsonl")
QUERIES = (
    ("EXPLAIN ANALYZE怎么看", "postgresql"),
    ("Git rebase/merge区别", "git"),
    ("Redis惰性删除区别", "redis"),
    ("asyncio.Task cancel", "asyncio"),
    ("Git reset/revert场景", "git"),
)
RECALL_WINDOW = 20  # turns before the query that window recall looks at
WINDOW_TOPICS = ("git", "redis")
LEAST_SAVED = 0.977
N_TIMED = 101  # calls of select, of which the median is reported


def load_topics() -> list[str]:
    """The topic of each turn of the shipped conversation."""
    return [row["topic"] for row in _rows()]


def load_turns() -> list[tuple[str, str]]:
    """The turns (user, assistant) of the shipped conversation."""
    return [(row["user"], row["assistant"]) for row in _rows()]


def _rows() -> list[dict[str, str]]:
    return [json.loads(line) for line in CONVERSATION.read_text(encoding="utf-8").splitlines()]


def measure(gate: ContextGatekeeper) -> dict[str, Any]:
    """Load the conversation into an empty gatekeeper, ask the queries, and measure.

    foreign_turns: chosen turns of another topic. git_coverage: of the Git queries' anchors that any turn holds, the
    share covered. tokens_saved_ratio: 1 - tokens of the prompt / tokens of all turns, by the default estimate, of the
    worst query. alternation_clean: queries answered without a foreign turn. window_recall: see `window_recall`.
    """
    turns, topics = load_turns(), load_topics()
    gate.add_turns(turns)
    n_history = sum(estimate_tokens(user) + estimate_tokens(assistant) for user, assistant in turns)
    queries = [_ask(gate, topics, n_history, query, topic) for query, topic in QUERIES]
    saved = [answer["tokens_saved_ratio"] for answer in queries]
    git = [answer for answer in queries if answer["topic"] == "git"]
    n_anchors = sum(answer["n_anchors_held"] for answer in git)
    return {
        "foreign_turns": sum(answer["foreign_turns"] for answer in queries),
        "git_coverage": sum(answer["n_anchors_covered"] for answer in git) / n_anchors,
        "tokens_saved_ratio": min(saved),
        "tokens_saved_ratio_mean": sum(saved) / len(saved),
        "alternation_clean": sum(bool(answer["turns"]) and not answer["foreign_turns"] for answer in queries),
        "alternation_queries": len(queries),
        "window_recall": {topic: window_recall(gate, turns, topics, topic) for topic in WINDOW_TOPICS},
        "history_tokens": n_history,
        "queries": queries,
    }


def claims(figures: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """What the demonstration claims: name, figure, what is required, whether it holds."""
    n_queries, recall = figures["alternation_queries"], figures["window_recall"]
    return [
        ("foreign turns in all answers", f"{figures['foreign_turns']}", "0", figures["foreign_turns"] == 0),
        ("Git coverage", f"{figures['git_coverage']:.3f}", "1.000", figures["git_coverage"] == 1.0),
        ("tokens saved, mean", f"{figures['tokens_saved_ratio_mean']:.2%}", f">= {LEAST_SAVED:.1%}",
         figures["tokens_saved_ratio_mean"] >= LEAST_SAVED),
        ("tokens saved, worst query", f"{figures['tokens_saved_ratio']:.2%}", f">= {LEAST_SAVED:.1%}",
         figures["tokens_saved_ratio"] >= LEAST_SAVED),
        ("alternating queries answered clean", f"{figures['alternation_clean']}/{n_queries}",
         f"{n_queries}/{n_queries}", figures["alternation_clean"] == n_queries),
        *((f"window recall, {topic}", f"{recall[topic]:.3f}", "1.000", recall[topic] == 1.0) for topic in recall),
    ]  # fmt: skip


def window_recall(gate: ContextGatekeeper, turns: list[tuple[str, str]], topics: list[str], topic: str) -> float:
    """Of the topic's turns among the last 20 that hold a content word of a query (or, without any, one of its anchors),

    the share that recall lets through as candidates of that query; over all queries of the topic.
    """
    n_held = n_recalled = 0
    for query, target in QUERIES:
        if target != topic:
            continue
        words = content_words(Query(query)) or tuple(extract_anchors(query))
        held = [turn_id for turn_id in range(len(turns) - RECALL_WINDOW, len(turns))
                if topics[turn_id] == topic and any(_holds(text, words) for text in turns[turn_id])]
        candidates = {candidate["turn_id"] for candidate in gate.explain(query)["candidates"]}
        n_held += len(held)
        n_recalled += len(candidates.intersection(held))
    return n_recalled / n_held if n_held else 0.0


def _holds(text: str, words: tuple[str, ...]) -> bool:
    """Whether a text holds one of the words: alphabetic ones as anchors, others as substrings."""
    anchors, folded = extract_anchors(text), fold(text)
    return any(word in anchors or (not word.isascii() and word in folded) for word in words)


def _ask(gate: ContextGatekeeper, topics: list[str], n_history: int, query: str, topic: str) -> dict[str, Any]:
    """One query's answer and its figures."""
    chosen = gate.select(query)
    n_tokens = estimate_tokens(gate.build_prompt(query))
    held = {anchor["id"] for anchor in gate.explain(query)["anchors"]
            if anchor["df"] and anchor["origin"] != "stem"}
    covered = held & {i for block in chosen for i in block["covered_ids"]}
    turns = [{"turn_id": block["turn_id"], "topic": topics[block["turn_id"]]} for block in chosen]
    return {
        "query": query,
        "topic": topic,
        "turns": turns,
        "foreign_turns": sum(turn["topic"] != topic for turn in turns),
        "n_anchors_held": len(held),
        "n_anchors_covered": len(covered),
        "coverage": len(covered) / len(held) if held else 0.0,
        "tokens": n_tokens,
        "tokens_saved_ratio": 1 - n_tokens / n_history,
        "select_microseconds": _median_microseconds(gate, query),
    }


def _median_microseconds(gate: ContextGatekeeper, query: str) -> float:
    times = []
    for _ in range(N_TIMED):
        begin = perf_counter_ns()
        gate.select(query)
        times.append(perf_counter_ns() - begin)
    return sorted(times)[N_TIMED // 2] / 1000
