"""A library under fire: several processes that write and read at once, and writers that are killed.

    python tests/spec/stress.py together [SECONDS]
    python tests/spec/stress.py killed [TIMES]

Each prints what it did and ends with 1 when something was lost or torn.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from gatekeeper.spec.library import Library, template_id
from gatekeeper.spec.model import GLOBAL, Fingerprint, Template
from gatekeeper.spec.settings import FP_VERSION, SpecSettings
from gatekeeper.spec.tokenizing import template_fingerprint

N_WRITERS = 2
N_READERS = 2
N_NAMES = 12
SHARED = "共用的模板"


def open_library(folder: str) -> Library:
    return Library(folder, settings=SpecSettings())


def sealed(name: str, words: str) -> Template:
    """A template that holds a checksum of itself over several sections, so that a torn one shows."""
    seal = sha256(words.encode()).hexdigest()
    made = Template(template_id(name, "project"), name, tags=("seal",), trigger=words, approach=(seal[:32],),
                    prompt=words * 20, acceptance=(seal[32:],), fp_version=FP_VERSION)  # fmt: skip
    return replace(made, fingerprint=Fingerprint(template_fingerprint(made, topic_only=made.scope != GLOBAL).weights))


def is_whole(template: Template) -> bool:
    seal = sha256(template.trigger.encode()).hexdigest()
    return (template.approach, template.acceptance) == ((seal[:32],), (seal[32:],)) \
        and template.prompt == template.trigger * 20  # fmt: skip


def torn(library: Library) -> list[str]:
    """What is wrong with a library: problems it reports, and templates that are not whole."""
    snapshot = library.load()
    wrong = [f"{path}: {problem}" for path, problem in snapshot.problems]
    return wrong + [template.name for template in snapshot.templates if not is_whole(template)]


# --- the processes


def write_on(folder: str, seconds: float, number: int) -> None:
    """Write until the time is over: own templates, and one more in the ledger of the shared one."""
    library, chance = open_library(folder), random.Random(number)
    n_written = 0
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        def with_one_more(old: Template | None) -> Template:
            ledger = Counter(json.loads(old.trigger) if old else {})
            ledger[str(number)] += 1
            return sealed(SHARED, json.dumps(ledger, sort_keys=True))

        library.write(SHARED, "project", with_one_more)
        n_written += 1
        name = f"模板 {number} {chance.randrange(N_NAMES)}"
        text = "".join(chance.choices("订单导出登录报错 abc", k=chance.randrange(1, 400))).strip() or "空"
        library.write(name, "project", lambda old, name=name, text=text: sealed(name, text))
        redline = f"禁区 {number} 第 {chance.randrange(5)} 条，不改接口 {chance.randrange(3)}"
        library.add_redlines([redline], "2025-01-01")
    print(json.dumps({"written": n_written}))


def read_on(folder: str, seconds: float) -> None:
    """Load and count until the time is over; every template must be whole each time."""
    library = open_library(folder)
    n_loads = n_counted = 0
    wrong: list[str] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wrong += torn(library)
        n_loads += 1
        shared = [entry.key for entry in library.load().entries if entry.template and entry.template.name == SHARED]
        library.count_uses(shared, "2025-01-01")
        n_counted += len(shared)
    print(json.dumps({"loads": n_loads, "counted": n_counted, "wrong": wrong[:5]}))


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": _path()})


def _path() -> str:
    import gatekeeper

    return os.pathsep.join([str(Path(gatekeeper.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])


# --- the two trials


def together(folder: str, seconds: float) -> list[str]:
    """Writers and readers at once; what went wrong."""
    writers = [start("write", folder, seconds, number) for number in range(N_WRITERS)]
    readers = [start("read", folder, seconds) for _ in range(N_READERS)]
    lines = [process.communicate()[0].splitlines() for process in writers + readers]
    answers = [json.loads(found[-1]) if found and found[-1] != "ready" else {"wrong": ["a process failed"]}
               for found in lines]  # fmt: skip
    library = open_library(folder)
    entries = {entry.template.name: entry for entry in library.load().entries if entry.template}
    ledger = json.loads(entries[SHARED].template.trigger) if SHARED in entries else {}  # type: ignore[union-attr]
    n_written = {str(number): answer.get("written", 0) for number, answer in enumerate(answers[:N_WRITERS])}
    n_counted = sum(answer.get("counted", 0) for answer in answers[N_WRITERS:])
    n_kept = library.state.usage().get(entries[SHARED].key, (0, ""))[0] if SHARED in entries else 0
    wrong = torn(library) + [text for answer in answers for text in answer.get("wrong", [])]
    if ledger != n_written:
        wrong.append(f"written {n_written}, kept {ledger}")
    if n_counted != n_kept:
        wrong.append(f"counted {n_counted}, kept {n_kept}")
    left = [path.name for path in Path(folder).rglob("*.tmp")]
    if left:
        wrong.append(f"left behind: {left}")
    n_loads = sum(answer.get("loads", 0) for answer in answers[N_WRITERS:])
    print(f"{sum(n_written.values())} writes of one template by {N_WRITERS} processes, {n_loads} loads by {N_READERS}, "
          f"{n_counted} uses counted; {len(entries)} templates; wrong: {wrong or 'nothing'}")  # fmt: skip
    return wrong


def killed(folder: str, times: int) -> list[str]:
    """Kill a writer in the middle, so many times; what went wrong."""
    chance = random.Random(1)
    wrong: list[str] = []
    n_before = 0
    for number in range(times):
        process = start("write", folder, 60, number % 3)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        library = open_library(folder)
        wrong += torn(library)
        templates = {template.name: template for template in library.load().templates}
        n_now = sum(json.loads(templates[SHARED].trigger).values()) if SHARED in templates else 0
        if n_now < n_before:
            wrong.append(f"{n_before} writes were kept, now {n_now}")
        n_before = n_now
        library.close()
    print(f"{times} writers killed, {n_before} writes kept, wrong: {wrong or 'nothing'}")
    return wrong


def main(arguments: list[str]) -> int:
    name, *rest = arguments
    if name == "write":
        write_on(rest[0], float(rest[1]), int(rest[2]))
        return 0
    if name == "read":
        read_on(rest[0], float(rest[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if name == "together":
            return bool(together(folder, float(rest[0]) if rest else 60.0))
        return bool(killed(folder, int(rest[0]) if rest else 200))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
