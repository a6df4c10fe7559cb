"""The clock: CPU time of this process, on one CPU, contestants in turn."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from time import process_time_ns

CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
SAMPLE_NS = 2_000_000  # a sample repeats the work until it takes about this long
WARM_RUNS = 16  # before each sample, off the clock: the contestant before has emptied the caches
COLD_NS = 10_000_000  # work that takes longer needs no warming


def pin(cpus: int = 1) -> None:
    """Run this process, and what it starts, on the last `cpus` of the CPUs it may use."""
    if CPUS:
        os.sched_setaffinity(0, CPUS[-cpus:])


@dataclass
class Scale:
    """How much a run does: quick for a look, full for the document."""

    quick: bool
    rounds: int = field(init=False)
    slow_ns: int = field(init=False)  # what one contestant may take in all its rounds

    def __post_init__(self) -> None:
        self.rounds = 7 if self.quick else 15
        self.slow_ns = 1_000_000_000 if self.quick else 3_000_000_000

    def sizes(self, largest: int = 100_000) -> list[int]:
        top = min(largest, 10_000) if self.quick else largest
        return [n for n in (100, 1_000, 10_000, 100_000) if n <= top]


@dataclass
class Work:
    """Something to time. run(i) does it for the i-th time of a sample; reset undoes a sample, off the clock."""

    run: Callable[[int], object]
    reset: Callable[[], object] | None = None
    repeat: int = 0  # runs in a sample; 0: as many as fill it
    most: int = 100_000
    warm: int = 0
    samples: list[float] = field(default_factory=list)

    def sample(self) -> float:
        """CPU nanoseconds of one run, over a sample of `repeat`."""
        run = self.run
        for i in range(self.warm):
            run(i)
        if self.warm and self.reset:
            self.reset()
        start = process_time_ns()
        for i in range(self.repeat):
            run(i)
        taken = process_time_ns() - start
        if self.reset:
            self.reset()
        return taken / self.repeat

    def rounds(self, scale: Scale) -> int:
        """Warm up, settle `repeat`, and say in how many rounds to take part."""
        fixed, self.repeat = self.repeat, 1
        self.sample()
        taken = self.sample()
        self.repeat = fixed or min(self.most, max(1, ceil(SAMPLE_NS / max(taken, 1.0))))
        self.warm = min(WARM_RUNS, self.repeat) if taken < COLD_NS else 0
        return min(scale.rounds, max(3, int(scale.slow_ns / max(taken * self.repeat, 1.0))))


def race(works: dict[str, Work], scale: Scale) -> dict[str, float]:
    """The median CPU nanoseconds of one run of each, sampled in turn: A B C A B C …; slow ones drop out early."""
    gc.collect()
    gc.disable()
    try:
        rounds = {name: work.rounds(scale) for name, work in works.items()}
        for i in range(max(rounds.values(), default=0)):
            for name, work in works.items():
                if i < rounds[name]:
                    work.samples.append(work.sample())
    finally:
        gc.enable()
    return {name: median(work.samples) for name, work in works.items()}
