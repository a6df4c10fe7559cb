"""The field reports about sessions on disk, and about packages that are built and installed."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gatekeeper
from gatekeeper import ChatFileError, ContextGatekeeper, StoreCorruptError
from gatekeeper.store import files
from gatekeeper.store.recovery import recover

Check = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
VALID = json.dumps({"user": "redis ttl", "assistant": "a time to live"})
WRITER = """
import sys, threading, gatekeeper
path, process, n_threads, n_turns = sys.argv[1], *map(int, sys.argv[2:])
def work(thread):
    with gatekeeper.open(path) as gate:
        for i in range(n_turns):
            gate.add_turn(f"process {process} writer {thread} turn {i}\\nsecond line", "ok")
threads = [threading.Thread(target=work, args=(thread,)) for thread in range(n_threads)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
SELECT = """
import json, sys, gatekeeper
with gatekeeper.open(sys.argv[1]) as gate:
    print(json.dumps([[gate.select(q), gate.build_prompt(q), gate.settings.as_dict()] for q in json.load(sys.stdin)]))
"""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def in_a_new_file(run: Callable[[Path, dict[str, Any]], None], given: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "chat.db", given)


# --- concurrency


def run_concurrency(given: dict[str, Any], check: Check) -> None:
    expect(set(check) <= {"lossless", "raises"}, f"unknown checks {check}")
    in_a_new_file(write_at_once, given)


def write_at_once(path: Path, given: dict[str, Any]) -> None:
    n_processes, n_writers, n_turns = (given.get(key, 1) for key in ("processes", "writers", "writes_each"))
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(process), str(n_writers), str(n_turns)],
                         cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for process in range(n_processes)
    ]  # fmt: skip
    for writer in writers:
        _, errors = writer.communicate()
        expect(writer.returncode == 0 and not errors, f"a writer failed: {errors[-300:]}")
    wanted = {f"process {p} writer {w} turn {i}\nsecond line"
              for p in range(n_processes) for w in range(n_writers) for i in range(n_turns)}  # fmt: skip
    _, turns = files.read_session(path)
    found = [turn[0] for turn in turns if turn]
    expect(len(found) == len(wanted) and set(found) == wanted, f"{len(wanted)} turns were written, {len(found)} found")
    with gatekeeper.open(path) as gate:
        expect(gate.add_turn("next", "") == len(wanted), "the next id does not continue")


# --- store


def run_store(given: dict[str, Any], check: Check) -> None:
    expect(set(check) <= {"typed", "roundtrip_identical", "raises"}, f"unknown checks {check}")
    expect(bool(check), "nothing to check")
    if "file_lines" in given:
        in_a_new_file(take_good_lines, given)
    if "typed" in check:
        in_a_new_file(damage_is_typed, given)
    if "roundtrip_identical" in check:
        in_a_new_file(decide_the_same_in_a_new_process, given)


def take_good_lines(path: Path, given: dict[str, Any]) -> None:
    """Damaged JSON lines: the good ones are taken, the others named by number, strict refuses; ids go on."""
    lines = [line.replace("{valid}", VALID).encode() + b"\n" for line in given["file_lines"]]
    broken = [number for number, line in enumerate(lines, 1) if not is_record(line)]
    warnings: list[str] = []
    ids = files.import_session(path, lines, name="chat.jsonl", on_warning=warnings.append)
    expect(len(ids) == len(lines) - len(broken), f"{len(ids)} of {len(lines) - len(broken)} good lines were taken")
    named = [int(number) for text in warnings for number in re.findall(r"^chat\.jsonl:(\d+):", text)]
    expect(named == broken, f"lines {broken} are broken, named are {named}")
    with gatekeeper.open(path) as gate:
        expect(gate.add_turn("next", "") == len(ids), "the next id does not continue")
    try:
        files.import_session(path, lines, name="chat.jsonl", strict=True)
    except ChatFileError as error:
        expect(f"chat.jsonl:{broken[0]}" in str(error), f"strict does not name the line: {error}")
    else:
        expect(not broken, "strict takes broken lines")


def is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def damage_is_typed(path: Path, given: dict[str, Any]) -> None:
    """A session file damaged anywhere: the same turns or a StoreCorruptError, and most can be recovered."""
    n_turns = 200
    with gatekeeper.open(path) as gate:
        gate.add_turns([(f"question {i} about redis", "an answer " * 40) for i in range(n_turns)])
    data, right = path.read_bytes(), list(files.export_session(path))
    n_typed = 0
    for seed in range(20):
        chance = random.Random(seed)
        at = chance.randrange(len(data))
        path.write_bytes(data[:at] + chance.randbytes(2000) + data[at + 2000 :])
        try:
            with gatekeeper.open(path) as gate:
                gate.select("redis")
            expect(list(files.export_session(path)) == right, "damage shows as other turns")
        except StoreCorruptError as error:
            n_typed += 1
            expect(str(path) in str(error), f"the file is not named: {error}")
            saved = path.with_name(f"saved{seed}.db")
            report = recover(path, saved)
            expect(sum(item["n_saved"] for item in report) > n_turns // 2, f"little is saved: {report}")
    expect(n_typed > 0, "no damage was found")
    path.write_bytes(b"")
    try:
        gatekeeper.open(path)
    except StoreCorruptError:
        return
    raise AssertionError("an emptied file opens as an empty conversation")


def decide_the_same_in_a_new_process(path: Path, given: dict[str, Any]) -> None:
    made = [[f"Redis 的第 {i} 个问题是过期策略", f"第 {i} 个回答：token_budget v1.{i}"] for i in range(30)]
    turns = given.get("turns") or made
    queries = given.get("queries") or [given.get("query") or "Redis 过期策略", "token_budget v1.7", "继续"]
    changed = given.get("settings") or {"ngram_idf_floor": 0.5, "topic_window": 3, "k1": 0.7, "max_sentences": 2}
    own = gatekeeper.Settings(**changed)
    with gatekeeper.open(path, settings=own) as gate:
        gate.add_turns([tuple(turn) for turn in turns])
        before = [[gate.select(query), gate.build_prompt(query), gate.settings.as_dict()] for query in queries]
    after = subprocess.run([sys.executable, "-c", SELECT, str(path)], input=json.dumps(queries), cwd=ROOT, check=True,
                           capture_output=True, text=True)  # fmt: skip
    expect(json.loads(after.stdout) == before, "a new process selects otherwise")
    expect(any(selection for selection, *_ in before), "nothing was selected")
    try:
        gatekeeper.open(path, settings=own.replace(topic_window=own.topic_window + 1)).close()
    except gatekeeper.StoreSettingsError as error:
        expect("topic_window" in str(error), f"the setting is not named: {error}")
    else:
        raise AssertionError("settings that index otherwise are taken")


# --- isolation


def run_isolation(given: dict[str, Any], check: Check, room: int,
                  check_selection: Callable[[ContextGatekeeper, str, Check], None]) -> None:
    """In memory, and in one file with the same session name for all users."""
    in_memory = {user: ContextGatekeeper(room) for user in given["users"]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.db"
        on_disk = {user: gatekeeper.open(path, user=user, token_budget=room) for user in given["users"]}
        for gates in (in_memory, on_disk):
            for user, texts in given["users"].items():
                gates[user].add_turns([(text, "ok") for text in texts])
            gate = gates[given["query_as"]]
            n_own = len(given["users"][given["query_as"]])
            expect(gate.explain(given["query"])["n_blocks"] == n_own, "N is shared")
            check_selection(gate, given["query"], check)
        for gate in on_disk.values():
            gate.close()
        listed = {item["user"] for item in files.list_sessions(path, user=given["query_as"])}
        expect(listed == {given["query_as"]}, f"listed are {listed}")


# --- env: build the package, install it with the oldest and the newest numpy and scipy, and try it there


def run_installs(given: dict[str, Any], check: Check) -> None:
    expect(set(check) <= {"ok", "raises"}, f"unknown checks {check}")
    with tempfile.TemporaryDirectory() as folder:
        wheel = built_wheel(Path(folder))
        for name, pins in (("oldest", oldest_pins()), ("newest", [])):
            python = Path(folder) / name / "bin" / "python"
            call([sys.executable, "-m", "venv", str(python.parents[1])], folder)
            call([str(python), "-m", "pip", "install", "--quiet", "--only-binary", "numpy,scipy", *pins,
                  f"{wheel}[cli,report]"], folder)  # fmt: skip
            printed = call([str(python), "-I", "-W", "error", str(ROOT / ".ci" / "smoke.py")], folder)
            expect("smoke passed" in printed, f"with the {name} numpy and scipy: {printed}")


def built_wheel(folder: Path) -> Path:
    """The wheel that GATEKEEPER_WHEEL names, else one built here."""
    if os.environ.get("GATEKEEPER_WHEEL"):
        return Path(os.environ["GATEKEEPER_WHEEL"])
    call([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], folder)
    [wheel] = folder.glob("*.whl")
    return wheel


def oldest_pins() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [line] = re.findall(r"^dependencies = \[(.*)\]$", text, re.MULTILINE)
    return [requirement.replace(">=", "==") for requirement in re.findall(r'"([^"]+)"', line)]


def call(command: list[str], folder: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    expect(done.returncode == 0, f"{' '.join(command)[:200]}: {done.stderr[-500:]}")
    return done.stdout
