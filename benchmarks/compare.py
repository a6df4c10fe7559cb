"""Time the benchmarks of two git revisions in turns and compare their medians.

    python -m benchmarks.compare REV_A REV_B [--rounds N] [--only EXPR] [--json FILE]

Each revision is installed, not editable, into a virtual environment of its own in a temporary folder. Both run the
benchmarks of REV_B, A B A B ..., so that a machine that slows down does so for both. Only what is committed counts.

A line for each benchmark: the median of A and of B over the rounds, the median ratio B/A of the pairs and, in
brackets, its spread. It is marked where the whole spread of three rounds or more is beyond 5%.
Exit codes: 0 compared, 2 nothing to compare.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 0.05
LEAST_ROUNDS = 3
COMPARED, NOTHING = 0, 2
NEEDS = ("pytest>=8", "pytest-benchmark>=4")
UNITS = ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s"))
Medians = dict[str, float]


class CannotCompareError(Exception):
    """A revision cannot be had, built or timed; the message says why."""


class Pass(NamedTuple):
    """One run of the benchmarks: medians in seconds by name, and why others gave none, by name or file."""

    medians: Medians
    reasons: dict[str, str]


class Row(NamedTuple):
    """One benchmark: seconds of A and of B, and the ratios B/A of the rounds; what is None could not run."""

    name: str
    a: float | None
    b: float | None
    ratios: list[float]
    note: str


# --- comparing


def rows_of(rounds: list[tuple[Pass, Pass]]) -> list[Row]:
    """A row for every benchmark that ran in either revision, and one for every file that ran in neither."""
    names = list(dict.fromkeys(name for pair in rounds for run in reversed(pair) for name in run.medians))
    rows = [_row(name, rounds) for name in names]
    for name, reason in dict(item for pair in rounds for run in pair for item in run.reasons.items()).items():
        if not any(known == name or known.startswith(f"{name}::") for known in names):
            rows.append(Row(name, None, None, [], f"neither can run it: {reason}"))
    return rows


def _row(name: str, rounds: list[tuple[Pass, Pass]]) -> Row:
    of_a, of_b = ([pair[side].medians[name] for pair in rounds if name in pair[side].medians] for side in (0, 1))
    ratios = [b.medians[name] / a.medians[name] for a, b in rounds if name in a.medians and name in b.medians]
    note = mark_of(ratios)
    for side, label, values in ((0, "A", of_a), (1, "B", of_b)):
        if not values:
            note = f"{label} cannot run it: {reason_of(name, [pair[side] for pair in rounds])}"
    return Row(name, median(of_a) if of_a else None, median(of_b) if of_b else None, ratios, note)


def reason_of(name: str, runs: list[Pass]) -> str:
    """Why a benchmark did not run: pytest's words about it, or about its file."""
    for run in runs:
        for key in (name, name.split("::")[0]):
            if key in run.reasons:
                return run.reasons[key]
    return "no figure"


def mark_of(ratios: list[float], limit: float = LIMIT) -> str:
    """SLOWER or faster where every ratio is beyond the limit and they are enough to tell, "" otherwise."""
    if len(ratios) < LEAST_ROUNDS:
        return ""
    if min(ratios) > 1.0 + limit:
        return "SLOWER"
    return "faster" if max(ratios) < 1.0 - limit else ""


def seconds(value: float | None) -> str:
    """A time with four digits and its unit, "-" for none."""
    if value is None:
        return "-"
    factor, unit = next((factor, unit) for below, factor, unit in UNITS if value < below)
    return f"{value * factor:.4g} {unit}"


def line_of(row: Row, width: int) -> str:
    """One line for the terminal."""
    ratio = f"{median(row.ratios):6.3f} [{min(row.ratios):.3f}..{max(row.ratios):.3f}]" if row.ratios else f"{'-':>6}"
    return f"{row.name:<{width}} {seconds(row.a):>10} {seconds(row.b):>10}  {ratio:<21} {row.note}".rstrip()


def parse_pass(report: dict[str, Any], output: str) -> Pass:
    """Medians from pytest-benchmark's JSON, and reasons from the lines of pytest's short summary."""
    short = re.compile(r"^benchmarks/")
    medians = {short.sub("", entry["fullname"]): entry["stats"]["median"] for entry in report.get("benchmarks", [])}
    found = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", output, re.MULTILINE)
    return Pass(medians, {short.sub("", name): reason or "it failed" for name, reason in found})


# --- two environments


def _run(*command: str | Path, cwd: Path | None = None) -> bytes:
    run = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, check=False)
    if run.returncode:
        said = (run.stderr or run.stdout).decode(errors="replace")[-3000:]
        raise CannotCompareError(f"{' '.join(map(str, command[:4]))} ... failed:\n{said}")
    return run.stdout


def environment() -> dict[str, str]:
    """This environment without what would lead to another build of the library."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GATEKEEPER_BUILD")}


def commit_of(revision: str) -> str:
    """The commit that a revision names."""
    named = f"{revision}^{{commit}}"
    return _run("git", "-C", ROOT, "rev-parse", "--verify", "--end-of-options", named).decode().strip()


def export(commit: str, folder: Path) -> None:
    """The files of a commit, without touching the repository or its working folder."""
    with tarfile.open(fileobj=io.BytesIO(_run("git", "-C", ROOT, "archive", commit))) as archive:
        archive.extractall(folder, filter="data")


def install(tree: Path, folder: Path) -> Path:
    """Build and install a tree into a new virtual environment; its Python."""
    _run(sys.executable, "-m", "venv", folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", tree, *NEEDS)
    return python


def time_once(python: Path, suite: Path, only: str | None) -> Pass:
    """One run of the benchmarks in a suite folder that holds nothing else."""
    report = suite / "report.json"
    report.unlink(missing_ok=True)
    command: list[str | Path] = [
        python, "-m", "pytest", "benchmarks", "--benchmark-only", f"--benchmark-json={report}", "-q", "-rfE",
        "--continue-on-collection-errors", "-p", "no:cacheprovider", *(["-k", only] if only else []),
    ]  # fmt: skip
    run = subprocess.run(command, cwd=suite, env={**environment(), "COLUMNS": "200"}, capture_output=True, check=False)
    output = run.stdout.decode(errors="replace")
    text = report.read_text(encoding="utf-8") if report.exists() else ""
    result = parse_pass(json.loads(text) if text else {}, output)
    if not result.medians and not result.reasons:
        said = (output + run.stderr.decode(errors="replace"))[-3000:]
        raise CannotCompareError(f"no benchmark ran{f' that fits {only!r}' if only else ''}:\n{said}")
    return result


def time_both(revisions: tuple[str, str], rounds: int, only: str | None, folder: Path) -> list[tuple[Pass, Pass]]:
    """Install both, then time them in turns."""
    for label, revision in zip("AB", revisions, strict=True):
        commit = commit_of(revision)
        progress(f"{label}: {revision} = {commit[:12]}")
        export(commit, folder / label / "tree")
    newer, suite = folder / "B" / "tree" / "benchmarks", folder / "suite"
    if not newer.is_dir():
        raise CannotCompareError(f"{revisions[1]} has no folder benchmarks")
    shutil.copytree(newer, suite / "benchmarks")
    progress("building both")
    pythons = [install(folder / label / "tree", folder / label / "venv") for label in "AB"]
    (suite / "pytest.ini").write_text("[pytest]\npython_files = bench_*.py\n", encoding="utf-8")
    results = []
    for i in range(rounds):
        pair = []
        for label, python in zip("AB", pythons, strict=True):
            progress(f"round {i + 1} of {rounds}: {label}")
            pair.append(time_once(python, suite, only))
        results.append((pair[0], pair[1]))
    return results


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the command


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rev_a", metavar="REV_A", help="the older revision")
    parser.add_argument("rev_b", metavar="REV_B", help="the newer one, whose benchmarks are run")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="passes of each revision (5)")
    parser.add_argument("--only", metavar="EXPR", help="as pytest's -k")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every median and ratio there, too")
    arguments = parser.parse_args(argv)
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {arguments.rounds}")
    return arguments


def main(argv: list[str] | None = None) -> int:
    """Time, compare, print; the exit code."""
    arguments = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave through the folder's clean-up
    try:
        with tempfile.TemporaryDirectory(prefix="gatekeeper-compare-") as folder:
            rounds = time_both((arguments.rev_a, arguments.rev_b), arguments.rounds, arguments.only, Path(folder))
    except CannotCompareError as error:
        print(error, file=sys.stderr)
        return NOTHING
    rows = rows_of(rounds)
    width = max(len(row.name) for row in rows)
    print(f"{'':<{width}} {'A':>10} {'B':>10}  {'B/A':>6} [spread]")
    print(*(line_of(row, width) for row in rows), sep="\n")
    if arguments.json:
        report = {"a": arguments.rev_a, "b": arguments.rev_b, "benchmarks": [row._asdict() for row in rows]}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return COMPARED if any(row.ratios for row in rows) else NOTHING


if __name__ == "__main__":
    sys.exit(main())
