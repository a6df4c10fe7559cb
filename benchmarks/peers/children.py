"""What needs a process of its own: `python -m benchmarks.peers.children NAME …` prints one JSON object."""

from __future__ import annotations

import gc
import json
import sys
from statistics import median
from time import process_time_ns

from benchmarks.texts import SEED, n_utf8_bytes, queries, stream


def resident_bytes(field: str = "VmRSS") -> int:
    """VmRSS is what is resident now, VmHWM the most it ever was."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(field))
    return int(line.split()[1]) * 1024


def million(script: str, n_turns: str) -> dict[str, float]:
    """Index n_turns turns in the kernels; append one and query, 50 times."""
    from benchmarks.peers.corpus import Corpus
    from benchmarks.peers.engines import CHUNK, Kernel

    kernel = Kernel()
    kernel.build(Corpus(0, script))
    chunk: list[str] = []
    n_bytes = 0
    for turn in stream(script, int(n_turns)):
        chunk.extend(turn)
        n_bytes += n_utf8_bytes([turn])
        if len(chunk) == 2 * CHUNK:
            kernel._add(tuple(chunk))
            chunk.clear()
    gc.disable()
    samples = []
    for i in range(50):
        start = process_time_ns()
        kernel.append_and_query(i)
        samples.append(process_time_ns() - start)
    return {"ns": median(samples), "peak": resident_bytes("VmHWM"), "text": n_bytes, "turns": kernel.matrix.n_turns}


def idle(script: str, n_conversations: str, compact: str) -> dict[str, float]:
    """Hold conversations of 100 turns; bytes of memory for each byte of UTF-8 text, strings included."""
    from gatekeeper import ContextGatekeeper

    warm = ContextGatekeeper(4000)
    warm.add_turns(stream(script, 100))
    warm.select(queries("mixed")[0])
    gates, n_bytes = [], 0
    gc.collect()
    before = resident_bytes()
    for i in range(int(n_conversations)):
        turns = list(stream(script, 100, seed=SEED + 1 + i))
        n_bytes += n_utf8_bytes(turns)
        gate = ContextGatekeeper(4000)
        for turn in turns:
            gate.add_turn(*turn)
        if compact == "compact":
            gate.compact()
        gates.append(gate)
    del turns
    gc.collect()
    return {"growth": resident_bytes() - before, "text": n_bytes, "conversations": len(gates)}


def light() -> dict[str, list[str]]:
    """Which heavy modules the live path has loaded."""
    from gatekeeper import ContextGatekeeper

    gate = ContextGatekeeper(4000)
    gate.add_turn("How does Redis expire keys?", "Lazily, and by sampling.")
    gate.select("Redis expiry")
    gate.build_prompt("Redis expiry")
    return {"loaded": [name for name in ("numpy", "scipy") if name in sys.modules]}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
