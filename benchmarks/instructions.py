"""Count the instructions of every kernel under callgrind and compare them with benchmarks/instructions.json.

    python -m benchmarks.instructions [--only NAME ...] [--accept]

A figure is instructions per repetition of a workload of `benchmarks.kernels`. Unlike a time it is the same on a busy
machine and, for one compiler and one Python, on any CPU of one architecture: callgrind runs on valgrind's own CPU
model, and GLIBC_TUNABLES takes from the C library what differs between CPUs (which memcpy, when to map memory).
It does not see caches, branches, the garbage collector or the kernel: `benchmarks.compare` times.

Exit codes: 0 within 3%, or --accept; 1 a kernel needs more; 2 it could not run; 3 there is no baseline to compare with.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BASELINE = Path(__file__).with_suffix(".json")
LIMIT = 0.03
SAME, SLOWER, CANNOT_RUN, NO_BASELINE = 0, 1, 2, 3
MARK = "getppid"
HOW_TO_INSTALL = (
    "valgrind is not installed: `apt-get install valgrind`, `dnf install valgrind` or `pacman -S valgrind`; "
    "it runs on Linux"
)
TUNABLES = ":".join((
    "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM",
    "glibc.malloc.mmap_threshold=33554432",  # by default it moves with what was freed before
    "glibc.malloc.trim_threshold=1073741824",
))
Counts = dict[str, int]
Facts = dict[str, str]


class CannotRunError(Exception):
    """No figure could be taken; the message says why."""


# --- counting


def count_of_dumps(dumps: list[str], repetitions: int) -> int:
    """Instructions per repetition from the dumps up to each mark: before the first, after 0 and after all."""
    if len(dumps) < 3:
        raise CannotRunError(f"callgrind saw {len(dumps)} of 3 marks: it cannot see the function {MARK}")
    totals = []
    for dump in dumps:
        found = re.search(r"^summary: (\d+)", dump, re.MULTILINE)
        if not found:
            raise CannotRunError("a callgrind dump has no line `summary:`")
        totals.append(int(found[1]))
    return round((totals[2] - totals[1]) / repetitions)


def environment() -> dict[str, str]:
    """A fixed environment, so that neither hashes nor the C library's choices differ between runs."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "GLIBC_TUNABLES": TUNABLES}


def count(name: str, repetitions: int) -> int:
    """Instructions per repetition of one workload, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "dump"
        workload = [sys.executable, "-m", "benchmarks.kernels", name]
        callgrind = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}"]
        for command in (workload, callgrind + workload):  # alone first: compiling modules would leave another heap
            run = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
            if run.returncode:
                raise CannotRunError(f"{name} failed: {command[0]} ended with {run.returncode}\n{run.stderr[-2000:]}")
        paths = [path for path in (out.with_suffix(f".{i}") for i in (1, 2, 3)) if path.exists()]
        return count_of_dumps([path.read_text(encoding="utf-8", errors="replace") for path in paths], repetitions)


def count_all(repetitions: Counts) -> Counts:
    """The figures of the named workloads, as many at a time as there are CPUs."""
    def counted(name: str) -> tuple[str, int]:
        figure = count(name, repetitions[name])
        print(f"counted {name}", file=sys.stderr)
        return name, figure

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(pool.map(counted, repetitions))


# --- what the figures depend on


def compiler_of(binary: bytes) -> str:
    """Name and version of the compiler that left its mark in a shared library, such as "gcc 12.2.0"."""
    clang = re.search(rb"clang version (\d[\d.]*)", binary)
    if clang:
        return f"clang {clang[1].decode()}"
    versions = re.findall(rb"GCC: \([^)\0]*\) (\d[\d.]*)", binary)  # the C library's start files leave theirs, too
    if not versions:
        return "unknown 0"
    return f"gcc {max(versions, key=lambda version: [int(n) for n in version.split(b'.') if n]).decode()}"


def _extension() -> Path:
    spec = importlib.util.find_spec("gatekeeper._core.vocabulary")
    if spec is None or spec.origin is None:
        raise CannotRunError("the compiled core is not built")
    return Path(spec.origin)


def facts() -> Facts:
    """What the figures depend on, besides the code."""
    core = _extension().read_bytes()
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "python": platform.python_version(),
        "python_compiler": platform.python_compiler(),
        "compiler": compiler_of(core),
        "debug_information": "yes" if b".debug_info" in core else "no",  # a release build has none
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "valgrind": valgrind,
    }


def key_of(present: Facts) -> str:
    """The key of a baseline: Python minor version, compiler major version, architecture."""
    name, version = present["compiler"].split()
    minor = ".".join(present["python"].split(".")[:2])
    return f"python{minor}-{name}{version.split('.')[0]}-{present['machine']}"


def differing_facts(recorded: Facts, present: Facts) -> list[str]:
    """A line for every fact that is not as it was when the baseline was taken."""
    return [
        f"note: {name} was {recorded.get(name, 'not recorded')}, is {value}: small differences may come from that"
        for name, value in present.items() if recorded.get(name) != value
    ]  # fmt: skip


# --- comparing


def load(path: Path) -> dict[str, Any]:
    """Every baseline by its key: {"facts": ..., "instructions": {name: figure}}. {} without a file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def compare(counts: Counts, baseline: Counts, limit: float = LIMIT) -> tuple[list[str], int]:
    """A line for every workload, then a verdict; and the exit code."""
    lines, slower, faster, unknown = [], [], [], []
    for name, figure in counts.items():
        before = baseline.get(name)
        if not before:
            unknown.append(name)
            lines.append(f"{name:<18}{figure:>14,}   no baseline")
            continue
        change = figure / before - 1.0
        mark = ""
        if figure > before * (1.0 + limit):
            slower.append(f"{name} {change:+.2%}")
            mark = f"   MORE: the baseline is {before:,}"
        elif figure < before * (1.0 - limit):
            faster.append(f"{name} {change:+.2%}")
            mark = f"   less: the baseline is {before:,}"
        lines.append(f"{name:<18}{figure:>14,} {change:>+9.2%}{mark}")
    if faster:
        lines.append(f"fewer instructions: {', '.join(faster)}; a new baseline could be accepted with --accept")
    if unknown:
        lines.append(f"no baseline for {', '.join(unknown)}: accept one with --accept")
    if slower:
        lines.append(f"FAILED: {', '.join(slower)}; at most {limit:+.0%} is allowed. If it is worth it: --accept")
    return lines, SLOWER if slower else NO_BASELINE if unknown else SAME


def accepted(baselines: dict[str, Any], present: Facts, counts: Counts, known: list[str]) -> dict[str, Any]:
    """The baselines with these figures under their key; of the others there, only what is known still."""
    key = key_of(present)
    before = baselines.get(key, {"facts": present, "instructions": {}})
    if before["facts"] != present and not set(counts) >= set(known):
        raise CannotRunError("the other figures were taken under other conditions: run --accept without --only")
    merged = {**before["instructions"], **counts}
    entry = {"facts": present, "instructions": {name: merged[name] for name in known if name in merged}}
    return dict(sorted({**baselines, key: entry}.items()))


def chosen(known: list[str], patterns: list[str] | None) -> list[str]:
    """The known names that fit one of the patterns ("top_20", "extract/*"), or all without a pattern."""
    for pattern in patterns or ():
        if not any(fnmatch(name, pattern) for name in known):
            raise CannotRunError(f"no kernel fits {pattern!r}; there are {', '.join(known)}")
    return [name for name in known if patterns is None or any(fnmatch(name, pattern) for pattern in patterns)]


def check(present: Facts, counts: Counts, baselines: dict[str, Any]) -> tuple[list[str], int]:
    """What to print, and the exit code, for figures taken under the present facts."""
    key = key_of(present)
    entry = baselines.get(key, {"facts": present, "instructions": {}})
    lines, status = compare(counts, entry["instructions"])
    if key not in baselines:
        others = ", ".join(baselines) or "none"
        lines.append(f"{BASELINE.name} has no baseline for {key} (it has {others}): accept these figures with --accept")
    return differing_facts(entry["facts"], present) + lines, status


def report(present: Facts, counts: Counts, known: list[str], *, accept: bool) -> int:
    """Print the comparison with the baseline and, if it is to be accepted, write the new one; the exit code."""
    baselines = load(BASELINE)
    lines, status = check(present, counts, baselines)
    print(*lines, sep="\n")
    if not accept:
        return status
    try:
        text = json.dumps(accepted(baselines, present, counts, known), indent=2)
    except CannotRunError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    BASELINE.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {key_of(present)} into {BASELINE.name}")
    return SAME


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=summary)
    parser.add_argument("--only", action="append", metavar="NAME", help="a kernel or a pattern, may be repeated")
    parser.add_argument("--accept", action="store_true", help=f"write the figures into {BASELINE.name}")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Count, compare, print; the exit code."""
    arguments = _arguments(argv)
    if shutil.which("valgrind") is None:
        print(HOW_TO_INSTALL, file=sys.stderr)
        return CANNOT_RUN
    try:
        from benchmarks.kernels import KERNELS

        names = chosen(list(KERNELS), arguments.only)
        present = facts()
        counts = count_all({name: KERNELS[name].repetitions for name in names})
    except (CannotRunError, ImportError) as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    return report(present, counts, list(KERNELS), accept=arguments.accept)


if __name__ == "__main__":
    sys.exit(main())
