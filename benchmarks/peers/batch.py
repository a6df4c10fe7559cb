"""Row 7: index a conversation of 100 turns and select once, one conversation after another."""

from __future__ import annotations

import os
from time import perf_counter

from benchmarks.peers.clock import CPUS, Scale, Work, pin, race
from benchmarks.peers.extraction import TESTS, forget_texts, twin
from benchmarks.peers.results import Chart, Results
from benchmarks.texts import SCRIPTS, Turn, conversations, queries
from gatekeeper import ContextGatekeeper, select_many
from gatekeeper.tokens import estimate_tokens

BUDGET = 4000


def batch(scale: Scale) -> Results:
    """Row 7."""
    results = Results(charts=[Chart("threads", "select_many, mixed conversations of 100 turns", "threads",
                                    "conversations a second", logarithmic=False)])
    for script in SCRIPTS:
        pool = conversations(script, 10)
        _against_twin(results, scale, script, pool, queries(script))
    _threads(results, scale)
    return results


def _against_twin(results: Results, scale: Scale, script: str, pool: list[list[Turn]], asked: list[str]) -> None:
    def ours(i: int) -> None:
        gate = ContextGatekeeper(BUDGET)
        gate.add_turns(pool[i % len(pool)])
        gate.select(asked[i % len(asked)])

    works = {"gatekeeper": Work(ours, repeat=len(pool))}
    has_twin = (TESTS / "reference.py").exists()
    if has_twin and script == "mixed":
        conversation_twin = twin("reference").Conversation

        def theirs(i: int) -> None:
            forget_texts()
            conversation_twin(pool[i % len(pool)]).cover(asked[i % len(asked)], BUDGET, estimate_tokens)

        works["Python twin"] = Work(theirs, repeat=1)
    taken = race(works, scale)
    work = f"index 100 turns and select once, {script}"
    if script == "mixed":
        results.versus(work, taken["gatekeeper"], "Python twin", taken.get("Python twin"), 50)
    at_least = 2_000 if script == "mixed" else None
    results.limit(f"{work}, one core", 1e9 / taken["gatekeeper"], "conversations/s", at_least=at_least)


def _threads(results: Results, scale: Scale) -> None:
    """By the wall clock and on all CPUs: the best of several, because other work on the machine counts against it."""
    pool = conversations("mixed", 100 if scale.quick else 300)
    asked = queries("mixed")
    texts = [asked[i % len(asked)] for i in range(len(pool))]
    counts = sorted({1, 2, *(n for n in (4, 8) if n <= len(CPUS))})
    pin(len(CPUS) or 1)
    best = dict.fromkeys(counts, float("inf"))
    for _ in range(scale.rounds):
        for n in counts:
            start = perf_counter()
            for _ in select_many(pool, texts, threads=n, token_budget=BUDGET):
                pass
            best[n] = min(best[n], perf_counter() - start)
    pin()
    for n in counts:
        results.charts[0].add("gatekeeper", n, len(pool) / best[n])
    load = f"load average before the run {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    results.limit(f"select_many, two threads against one, {len(CPUS)} CPUs", best[1] / best[2], "x", at_least=1.5,
                  beside=load)
