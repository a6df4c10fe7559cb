"""Rows 8 and 9 and the million turns: what needs fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.peers.clock import Scale
from benchmarks.peers.results import Results, spell_ns
from benchmarks.texts import SCRIPTS

ROOT = Path(__file__).resolve().parents[2]
MB = 1_000_000
PRINT_PEAK = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
IMPORTS = {"numpy": "numpy", "bm25s": "bm25s", "LangChain": "langchain_core.messages"}


def imports(scale: Scale) -> Results:
    """Row 8: fresh processes in turn, each against bare Python."""
    results = Results()
    statements = {"bare": "pass", "gatekeeper": "import gatekeeper"}
    peers = {} if scale.quick else IMPORTS
    statements |= {name: f"import {module}" for name, module in peers.items() if _can_import(module)}
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in statements}
    for i in range(6 if scale.quick else 16):
        for name, statement in statements.items():
            sample = _run_bare(statement)
            if i:  # the first one filled the file cache
                samples[name].append(sample)
    cpu = {name: median(sample[0] for sample in taken) for name, taken in samples.items()}
    peak = {name: median(sample[1] for sample in taken) for name, taken in samples.items()}
    results.limit("import gatekeeper over bare Python", (cpu["gatekeeper"] - cpu["bare"]) * 1e3, "ms", 25,
                  beside=_beside(cpu, 1e3, "ms"))
    results.limit("import gatekeeper over bare Python", (peak["gatekeeper"] - peak["bare"]) / MB, "MB", 5,
                  beside=_beside(peak, 1 / MB, "MB"))
    loaded = child("light")["loaded"]
    results.limit("numpy or scipy loaded by import, add_turn, select, build_prompt", len(loaded), "of 2", 0)
    return results


def _beside(values: dict[str, float], factor: float, unit: str) -> str:
    others = (name for name in values if name not in ("bare", "gatekeeper"))
    return ", ".join(f"{name} {(values[name] - values['bare']) * factor:.0f} {unit}" for name in others)


def _can_import(module: str) -> bool:
    return _start(["-c", f"import {module}"]).wait() == 0


def _start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)  # fmt: skip


def _run_bare(statement: str) -> tuple[float, float]:
    """(CPU seconds, peak bytes) of a fresh Python. The peak is the child's own VmHWM: its ru_maxrss would begin

    with the memory of the parent that forked it.
    """
    process = _start(["-c", f"{statement}\n{PRINT_PEAK}"])
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise RuntimeError(f"a fresh Python failed at: {statement}")
    return usage.ru_utime + usage.ru_stime, int(output) * 1024


def child(name: str, *arguments: object) -> dict:
    """What a function of `children` prints."""
    command = [sys.executable, "-m", "benchmarks.peers.children", name, *map(str, arguments)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def idle(scale: Scale) -> Results:
    """Row 9."""
    results = Results()
    n = 200 if scale.quick else 2_000
    for way in ("", "compact"):
        for script in SCRIPTS:
            held = child("idle", script, n, way)
            beside = f"{held['growth'] / n / 1e3:.0f} kB for {held['text'] / n / 1e3:.0f} kB of text"
            results.limit(f"idle 100-turn conversation{' after compact()' if way else ''}, {script}",
                          held["growth"] / held["text"], "x its UTF-8", 8 if way else None, beside=beside)
    return results


def million(scale: Scale) -> Results:
    """Row 3, at a million turns, the kernels alone: the texts themselves are the caller's."""
    results = Results()
    n_turns = 100_000 if scale.quick else 1_000_000
    for script in ("english", "mixed"):
        grown = child("million", script, n_turns)
        beside = f"{grown['text'] / MB:,.0f} MB of text; append + query {spell_ns(grown['ns'])}"
        results.limit(f"peak memory of the index at {n_turns:,} turns, {script}", grown["peak"] / MB, "MB", 1_000,
                      beside=beside)
    return results
