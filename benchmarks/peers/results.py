"""What a group hands back: rows of the table and charts."""

from __future__ import annotations

from dataclasses import dataclass, field

MET, MISSED, NONE, ABSENT = "met", "missed", "", "not installed"


@dataclass
class Row:
    """One line of the table, as it is printed."""

    work: str
    ours: str
    peer: str = ""
    theirs: str = ""
    ratio: str = ""
    goal: str = ""
    verdict: str = NONE

    def cells(self) -> list[str]:
        return [self.work, self.ours, self.peer, self.theirs, self.ratio, self.goal, self.verdict]


@dataclass
class Chart:
    """Lines over a logarithmic axis; series: a name to its points (x, y)."""

    name: str
    title: str
    x: str
    y: str
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    logarithmic: bool = True

    def add(self, name: str, x: float, y: float) -> None:
        self.series.setdefault(name, []).append((x, y))


@dataclass
class Results:
    rows: list[Row] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def versus(self, work: str, ours_ns: float, peer: str, theirs_ns: float | None, goal: float | None = None) -> None:
        """A row that compares two times; goal: how many times faster we must be, None for information."""
        asked = NONE if goal is None else f"≥ {goal:g}x"
        if theirs_ns is None:
            self.rows.append(Row(work, spell_ns(ours_ns), peer, goal=asked, verdict=ABSENT))
            return
        ratio = theirs_ns / ours_ns
        verdict = NONE if goal is None else MET if ratio >= goal else MISSED
        self.rows.append(
            Row(work, spell_ns(ours_ns), peer, spell_ns(theirs_ns), spell_ratio(ratio), asked, verdict))

    def limit(self, work: str, value: float, unit: str, most: float | None = None, *, at_least: float | None = None,
              beside: str = "") -> None:
        """A row with one value that must stay at or below `most`, or reach `at_least`."""
        bound, sign = (most, "≤") if at_least is None else (at_least, "≥")
        asked = NONE if bound is None else f"{sign} {bound:,} {unit.removesuffix(' its UTF-8')}".strip()
        met = bound is not None and (value <= bound if at_least is None else value >= bound)
        verdict = NONE if bound is None else MET if met else MISSED
        shown = f"{value:g}" if unit.startswith("of ") else spell(value)
        self.rows.append(Row(work, f"{shown} {unit}".strip(), theirs=beside, goal=asked, verdict=verdict))


def spell(value: float) -> str:
    """Three digits that count, no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def spell_ratio(ratio: float) -> str:
    return f"{spell(ratio)}x"


def spell_ns(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{spell(nanoseconds / size)} {unit}"
    return f"{spell(nanoseconds)} ns"
