"""Rows 4 and 6: the worst single append, and what ten thousand turns cost against a hundred."""

from __future__ import annotations

import gc
from itertools import islice
from statistics import median
from time import process_time_ns

from benchmarks.peers.clock import Scale, Work, race
from benchmarks.peers.corpus import N_EXTRA
from benchmarks.peers.results import Results
from benchmarks.texts import queries, stream
from gatekeeper import ContextGatekeeper

RUNS = 3


def worst(scale: Scale) -> Results:
    """Row 4: add_turn while a conversation grows; the largest above the median, the best of three runs."""
    results = Results()
    n_turns = 10_000 if scale.quick else 100_000
    for script in ("mixed", "chinese"):
        runs = sorted(_excess(script, n_turns) for _ in range(RUNS))
        largest, second, usual = runs[0]
        results.limit(f"worst add_turn above the median while growing to {n_turns:,} turns, {script}", largest, "ms", 1,
                      beside=f"second worst {second:.2f} ms, median {usual * 1e3:.1f} µs")
        others = ", ".join(f"{run[0]:.2f}" for run in runs[1:])
        results.notes.append(f"Worst append, {script}: the other two runs had {others} ms.")
    return results


def _excess(script: str, n_turns: int) -> tuple[float, float, float]:
    """(worst minus median, second worst minus median, median) in ms; making the text is off the clock."""
    gate = ContextGatekeeper(4000)
    samples = []
    gc.collect()
    gc.disable()
    try:
        for user, assistant in stream(script, n_turns):
            start = process_time_ns()
            gate.add_turn(user, assistant)
            samples.append(process_time_ns() - start)
    finally:
        gc.enable()
    usual = median(samples)
    second, largest = sorted(samples)[-2:]
    return (largest - usual) / 1e6, (second - usual) / 1e6, usual / 1e6


def whole(scale: Scale) -> Results:
    """Row 6: add_turn and select, over the size of the conversation."""
    results = Results()
    sizes = (100, 1_000, 10_000)
    taken = race({str(n): _add_and_select(n) for n in sizes}, scale)
    for n in sizes:
        results.limit(f"add_turn, then select, {n:,} turns", taken[str(n)] / 1e3, "µs")
    results.limit("the same at 10,000 turns against 100", taken["10000"] / taken["100"], "x", 3)
    return results


def _add_and_select(n_turns: int) -> Work:
    turns = list(stream("mixed", n_turns + N_EXTRA))
    gate = ContextGatekeeper(4000)
    gate.add_turns(islice(turns, n_turns))
    asked = queries("mixed")

    def run(i: int) -> None:
        gate.add_turn(*turns[n_turns + i % N_EXTRA])
        gate.select(asked[i % len(asked)])

    return Work(run, lambda: gate.truncate(n_turns), repeat=16)
