"""How the commands of `gatekeeper spec` look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gatekeeper.cli.output import Output

if TYPE_CHECKING:
    from gatekeeper.spec.bench import Row
    from gatekeeper.spec.maintenance import Finding, Rebuilt

MAX_TOKENS_SHOWN = 12
MAX_BAR = 30


def print_findings(output: Output, root: str, n_templates: int, findings: list[Finding]) -> None:
    """What the doctor found, and what helps."""
    output.line(("library    ", "debug"), root)
    output.line(("templates  ", "debug"), str(n_templates))
    if not findings:
        output.line(("nothing wrong", "highlight"))
        return
    rows = [(finding.path, (finding.kind, "warn"), finding.text, finding.remedy) for finding in findings]
    output.table(["<where", "<what", "<detail", "<remedy"], rows, title="findings")


def print_rebuilt(output: Output, rebuilt: list[Rebuilt], *, dry_run: bool) -> None:
    """What becomes of each fingerprint."""
    if not rebuilt:
        output.line("nothing to rebuild")
        return
    rows = [(one.key, one.name, _some(one.added), _some(one.removed), f"{one.before:.3f}", f"{one.after:.3f}",
             "; ".join(one.hoisted)) for one in rebuilt]  # fmt: skip
    output.table(["<template", "<name", "<added", "<removed", "score before", "after", "<to the profile"], rows,
                 title="would be rebuilt" if dry_run else "rebuilt")  # fmt: skip


def print_rows(output: Output, rows: list[Row]) -> None:
    """Figures beside what they must reach."""
    cells = [(row.name, row.value, row.target, ("yes", "highlight") if row.holds else ("NO", "error")) for row in rows]
    output.table(["<figure", "<measured", "<required", "<holds"], cells, title="figures")


def print_calibration(output: Output, found: dict[str, Any]) -> None:
    """The pairwise distribution as bars, and the threshold it proposes."""
    output.line(("templates  ", "debug"), str(found["templates"]), ("  pairs ", "debug"), str(found["pairs"]))
    if not found["pairs"]:
        output.line(("nothing to compare: no template says in what words it is asked for", "warn"))
        return
    n_bins, most = len(found["own"]), max(*found["own"], *found["other"], 1)
    rows = [(f"{i / n_bins:.2f}", str(own), _bar(own, most), str(other), _bar(other, most))
            for i, (own, other) in enumerate(zip(found["own"], found["other"], strict=True))
            if own or other]  # fmt: skip
    output.table(["score from", "own", "<", "others", "<"], rows, title="templates in their own words")
    output.line("\n", ("own templates from  ", "debug"), f"{found['least_own']:.3f}",
                ("  others up to ", "debug"), f"{found['most_other']:.3f}")  # fmt: skip
    output.line(("threshold  ", "debug"), f"{found['threshold']:g}", ("  proposed ", "debug"),
                (f"{found['proposed']:g}", "highlight"), ("  missed ", "debug"), str(found["missed"]),
                ("  false ", "debug"), str(found["false"]))  # fmt: skip


def _bar(count: int, most: int) -> str:
    return "█" * ((count * MAX_BAR + most - 1) // most)


def print_explanations(output: Output, explained: dict[str, Any], *, in_full: bool) -> None:
    """Why each template matches, or not: one line each, or everything."""
    prepared = explained["prepared"]
    output.line(("cleaned  ", "debug"), prepared["text"] or "(nothing left)")
    removed = ", ".join(f"{count} {kind}" for kind, count in prepared["removed"].items() if count)
    output.line(("removed  ", "debug"), removed or "nothing")
    output.line(("query    ", "debug"), _weights(explained["query"]))
    if explained["skipped"]:
        output.line((explained["skipped"], "warn"))
    if not explained["templates"]:
        output.line("no template")
        return
    rows = [(one["template_id"], one["name"], f"{one['lexical']:.3f}", f"{one['rank_score']:.3f}",
             (one["verdict"], "highlight" if one["verdict"] == "hit" else "debug"), ", ".join(one["topic_evidence"]))
            for one in explained["templates"]]  # fmt: skip
    output.table(["<template", "<name", "lexical", "rank", "<verdict", "<topic evidence"], rows,
                 title=f"threshold {explained['threshold']:g}")  # fmt: skip
    if in_full:
        for one in explained["templates"]:
            _print_in_full(output, one)


def _print_in_full(output: Output, one: dict[str, Any]) -> None:
    output.line("\n", (one["line"], "highlight"))
    output.line(("tokens    ", "debug"), _weights(one["template"]))
    output.line(("shared    ", "debug"), ", ".join(one["shared"]) or "none")
    output.line(("ignored   ", "debug"), ", ".join(one["ignored"]) or "none")
    output.line(("cosine    ", "debug"), f"{one['cosine']:.3f}", ("  coverage ", "debug"), f"{one['coverage']:.3f}")
    output.line(("priors    ", "debug"), ", ".join(f"{name} {value:.2f}" for name, value in one["priors"].items()))


def _weights(tokens: dict[str, float]) -> str:
    return "  ".join(f"{token}|{weight:g}" for token, weight in tokens.items()) or "none"


def _some(tokens: tuple[str, ...]) -> str:
    more = len(tokens) - MAX_TOKENS_SHOWN
    return " ".join(tokens[:MAX_TOKENS_SHOWN]) + (f" … {more} more" if more > 0 else "")
