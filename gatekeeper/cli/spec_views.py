"""How the commands of `gatekeeper spec` look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gatekeeper.cli.output import Output

if TYPE_CHECKING:
    from gatekeeper.spec.maintenance import Finding, Rebuilt

MAX_TOKENS_SHOWN = 12


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
