"""What is to be reached, each beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.quality.bootstrap import Estimate, ratio
from benchmarks.quality.run import ALL, GATE, RETURN, Key, Tally, balanced_accuracy

MET, MISSED = "met", "missed"


@dataclass(frozen=True)
class Goal:
    set_name: str
    setting: str
    question: str
    measure: str
    budget: int
    limit: float
    category: str = ALL
    at_most: bool = False

    def key(self, selector: str) -> Key:
        return (self.set_name, selector, self.budget, self.category, self.measure)

    def estimate(self, tally: Tally, selector: str) -> Estimate | None:
        statistic: Callable = balanced_accuracy if self.measure == "switch" else ratio
        return tally.estimate(self.key(selector), statistic)

    def verdict(self, found: Estimate) -> str:
        return MET if (found.value <= self.limit if self.at_most else found.value >= self.limit) else MISSED

    def asked(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.limit:g}".replace("0.", ".")


def _goals(set_name: str, setting: str, question: str, measure: str, limits: dict[int, float],
           category: str = ALL) -> list[Goal]:
    return [Goal(set_name, setting, f"{question}, {budget:,}", measure, budget, limit, category)
            for budget, limit in limits.items()]


GOALS = [
    Goal("javaguide_mix", "minimal", "queries without a foreign turn, 4,000", "clean", 4000, 0.95),
    Goal("javaguide_mix", "minimal", "foreign turns, 4,000", "foreign", 4000, 0.03, at_most=True),
    Goal("javaguide_mix", "minimal", "recall, 4,000", "recall", 4000, 0.50),
    Goal("javaguide_mix", "minimal", "tokens saved, 4,000", "saved", 4000, 0.977),
    *_goals("locomo", "thorough", "evidence text", "evidence text", {500: 0.76, 1000: 0.85, 2000: 0.91}),
    *_goals("beam_100k", "thorough", "recall", "recall", {1000: 0.62, 4000: 0.83, 8000: 0.91}),
    *_goals("beam_100k", "thorough", "user side's text", "user text", {8000: 0.80}),
    *_goals("qmsum", "thorough", "recall", "recall", {2000: 0.50, 4000: 0.66}),
    *_goals("madial_zh", "thorough", "recall", "recall", {1000: 0.78}),
    *_goals("madial_en", "thorough", "recall", "recall", {1000: 0.82}),
    *_goals("kdconv_mix", "thorough", "recall of queries that return", "recall", {500: 0.70}, RETURN),
    *_goals("kdconv_mix", "thorough", "recall", "recall", {500: 0.72}),
    *_goals("irc", "thorough", "recall, parent over 20 lines back", "far recall", {500: 0.86}),
    *_goals("irc", "thorough", "recall", "recall", {125: 0.88}),
    *_goals("locomo", "minimal", "precision", "precision", {4000: 0.35}),
    *_goals("locomo", "minimal", "recall", "recall", {4000: 0.50}),
    *_goals("kdconv_mix", "minimal", "nothing sent where nothing is needed", "nothing", {4000: 0.60}),
    *_goals("crosswoz", "minimal", "nothing sent where nothing is needed", "nothing", {4000: 0.60}),
    Goal("tiage", "minimal", "switch, balanced accuracy", "switch", GATE, 0.62),
    Goal("crosswoz", "minimal", "switch, balanced accuracy", "switch", GATE, 0.75),
    Goal("kdconv_mix", "minimal", "switch, balanced accuracy", "switch", GATE, 0.70),
    Goal("irc", "minimal", "switch, balanced accuracy", "switch", GATE, 0.82),
]
