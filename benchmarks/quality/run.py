"""Run selectors over sets and keep, for each conversation, the sums of every measure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.bootstrap import Estimate, estimate, ratio
from benchmarks.quality.data import Conversation, Query
from benchmarks.quality.measures import measure
from benchmarks.quality.selectors import Selector

BUDGETS = {"irc": (125, 250, 500, 1000, 2000, 4000), "beam_100k": (250, 500, 1000, 2000, 4000, 8000)}
USUAL_BUDGETS = (250, 500, 1000, 2000, 4000)
ALL = "all"
RETURN = "return"
GATE = 0  # in the place of a budget: what does not depend on one

Key = tuple[str, str, int, str, str]  # set, selector, budget, category, measure


@dataclass
class Tally:
    """sums[key][conversation]: sums over its queries; n_queries[key]: how many there are."""

    sums: dict[Key, dict[int, NDArray[np.float64]]] = field(default_factory=lambda: defaultdict(dict))
    n_queries: dict[Key, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, key: Key, conversation: int, values: Iterable[float]) -> None:
        added = np.array(list(values), np.float64)
        of = self.sums[key]
        of[conversation] = of[conversation] + added if conversation in of else added
        self.n_queries[key] += 1

    def estimate(self, key: Key,
                 statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]] = ratio) -> Estimate | None:
        """The statistic with its interval, or None where the set does not label that."""
        if key not in self.sums:
            return None
        return estimate(np.array(list(self.sums[key].values())), self.n_queries[key], statistic)

    def categories(self, set_name: str) -> list[str]:
        return sorted({key[3] for key in self.sums if key[0] == set_name} - {ALL})


def run(tally: Tally, set_name: str, conversations: list[Conversation], selector: Selector) -> None:
    """Ask a selector every query of a set, at every budget."""
    budgets = BUDGETS.get(set_name, USUAL_BUDGETS)
    for number, conversation in enumerate(conversations):
        selector.begin(conversation)
        for query in conversation.queries:
            selector.grow(query.at)
            if query.evidence is not None or query.topic is not None:
                for budget, chosen in zip(budgets, selector.ask(query.text, budgets), strict=True):
                    for name, values in measure(conversation, query, chosen, selector.cost).items():
                        for category in (ALL, query.category) if query.category else (ALL,):
                            tally.add((set_name, selector.name, budget, category, name), number, values)
            if selector.has_gate and query.switch is not None:
                _tally_switch(tally, set_name, selector, number, query)


def _tally_switch(tally: Tally, set_name: str, selector: Selector, number: int, query: Query) -> None:
    """Counts of (true, called): both, false alarms, missed, neither."""
    called = selector.leaves_topic(query.text)
    cells = [float((query.switch, called) == cell)
             for cell in ((True, True), (False, True), (True, False), (False, False))]
    for category in (ALL, query.category) if query.category else (ALL,):
        tally.add((set_name, selector.name, GATE, category, "switch"), number, cells)


# --- statistics of the four counts of a gate


def switch_precision(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return cells[..., 0] / (cells[..., 0] + cells[..., 1])


def switch_recall(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return cells[..., 0] / (cells[..., 0] + cells[..., 2])


def switch_f1(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return 2.0 * cells[..., 0] / (2.0 * cells[..., 0] + cells[..., 1] + cells[..., 2])


def balanced_accuracy(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (switch_recall(cells) + cells[..., 3] / (cells[..., 1] + cells[..., 3]))
