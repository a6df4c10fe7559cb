"""Kill a process that writes a session with SIGKILL, again and again, and hold the file to what was acknowledged.

    python tests/store/kill_nine.py [--repeats 200] [--seed 0]

The writer says each call before it makes it and when it has returned. After the kill the file must hold exactly what
the calls that returned made of it, with or without the one call that was under way, whole.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gatekeeper
from gatekeeper.store import files

ROUNDS_A_FILE = 10  # then a new one: making a file is killed too
State = tuple[list[Any], dict[str, str]]  # turns, None for a forgotten one; constraints

WRITER = """
import json, sys, gatekeeper, gatekeeper.store.gate
path, calls = sys.argv[1:]
with open(calls) as file:
    calls = json.load(file)
print("ready", flush=True)
gate = gatekeeper.open(path, token_budget=10**9)
for name, *arguments in calls:
    print("call", flush=True)
    if name == "add":
        gate.add_turns(map(tuple, arguments[0]))
    elif name == "constrain":
        gate.constraints[arguments[0]] = arguments[1]
    else:
        getattr(gate, name)(*arguments)
    print("done", flush=True)
"""


def calls(chance: random.Random, n_turns: int) -> list[list[Any]]:
    """Some calls that fit a session of n_turns turns."""
    made: list[list[Any]] = []
    for _ in range(400):
        kind = chance.random()
        if kind < 0.8 or n_turns < 4:
            n_new = 1 if kind < 0.7 else chance.randrange(2, 6)
            size = chance.choice((1, 1, 10, 400))
            made.append(["add", [[f"问题 {chance.random()} " * size, "ok"] for _ in range(n_new)]])
            n_turns += n_new
        elif kind < 0.9:
            made.append(["constrain", f"key {chance.randrange(3)}", str(chance.random())])
        elif kind < 0.95:
            n_turns -= chance.randrange(4)
            made.append(["truncate", n_turns])
        else:
            made.append(["forget", chance.randrange(n_turns)])
    return made


def after(state: State, call: list[Any]) -> State:
    """What a call makes of a state."""
    turns, constraints = list(state[0]), dict(state[1])
    name, *arguments = call
    if name == "add":
        turns += map(tuple, arguments[0])
    elif name == "constrain":
        constraints[arguments[0]] = arguments[1]
    elif name == "truncate":
        del turns[arguments[0] :]
    else:
        turns[arguments[0]] = None
    return turns, constraints


def on_disk(path: Path) -> State:
    """What the file holds, as two ways to read it agree."""
    with gatekeeper.open(path) as gate:
        gate.select("问题")
        constraints = dict(gate.constraints)
    return files.read_session(path)[1], constraints


def killed(path: Path, chance: random.Random, state: State) -> tuple[State, int, list[Any] | None]:
    """The state that the acknowledged calls made, how many they were, and the call that was under way."""
    planned = calls(chance, len(state[0]))
    plan = path.with_suffix(".json")
    plan.write_text(json.dumps(planned), encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(plan)], stdout=subprocess.PIPE,
                          text=True) as writer:  # fmt: skip
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.08))
        writer.kill()
        lines = writer.stdout.read().split("\n")[:-1]  # a line that was cut short was not said
    n_done = lines.count("done")
    for call in planned[:n_done]:
        state = after(state, call)
    under_way = planned[n_done] if lines.count("call") > n_done else None
    return state, n_done, under_way


def run(repeats: int, seed: int, folder: Path) -> tuple[int, int]:
    """(calls acknowledged, kills in the midst of a call). Raises AssertionError when something is lost."""
    chance = random.Random(seed)
    n_acknowledged = n_under_way = 0
    state: State = ([], {})
    for number in range(repeats):
        path = folder / f"chat{number // ROUNDS_A_FILE}.db"
        if number % ROUNDS_A_FILE == 0:
            state = ([], {})
        state, n_done, call = killed(path, chance, state)
        found = on_disk(path)
        may_be = [state] if call is None else [state, after(state, call)]
        assert found in may_be, f"kill {number}: {len(found[0])} turns on disk, {[len(s[0]) for s in may_be]} expected"
        state = found
        n_acknowledged += n_done
        n_under_way += call is not None
    return n_acknowledged, n_under_way


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        n_acknowledged, n_under_way = run(arguments.repeats, arguments.seed, Path(folder))
    print(f"{arguments.repeats} kills, {n_under_way} in the midst of a call: "
          f"{n_acknowledged} acknowledged calls, none lost")


if __name__ == "__main__":
    main()
