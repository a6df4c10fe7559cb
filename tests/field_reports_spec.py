"""Field reports of spec recall and of the hook: libraries on disk, the tools that an agent calls, processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gatekeeper.spec.config import read_config
from gatekeeper.spec.library import Library
from gatekeeper.spec.maintenance import examine
from gatekeeper.spec.routing import render_block, render_note
from gatekeeper.spec.settings import MAX_NOTE_LENGTH
from gatekeeper.spec.tools import SpecTools
from gatekeeper.spec.triaging import decide

ROOT = Path(__file__).resolve().parents[1]
Check = dict[str, Any]
P99_SECONDS = 0.005
MADE = ("报表", "退款", "考勤", "库存", "短信", "地图", "问卷", "排班", "发票", "直播")
PARTS = ("定时汇总", "异常重试", "权限校验", "历史回放", "批量修改", "多级审批", "缓存预热", "断点续传")


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


@contextmanager
def opened() -> Iterator[SpecTools]:
    """Tools over an empty library of a project of its own, apart from the user's."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("GATEKEEPER_HOME")
        os.environ["GATEKEEPER_HOME"] = os.path.join(folder, "home")
        project = Path(folder, "project")
        project.mkdir()
        tools = SpecTools(project)
        try:
            yield tools
        finally:
            tools.library.close()
            if before is None:
                del os.environ["GATEKEEPER_HOME"]
            else:
                os.environ["GATEKEEPER_HOME"] = before


def add(tools: SpecTools, given: dict[str, Any], scope: str = "global") -> str:
    """Write a template as a session does; its id."""
    name = given.get("title") or given["name"]
    kept = {key: given[key] for key in ("category", "tags", "trigger") if key in given}
    answer = tools.retro(name, scope=scope, persist_redlines=False, **kept)
    expect(answer["saved"], f"{name} was not saved: {answer['message']}")
    return str(answer["id"])


# --- spec


def run_spec(given: dict[str, Any], check: Check) -> None:
    with opened() as tools:
        if "broken YAML" in given.get("action", ""):
            read_around_broken_files(tools, check)
        elif "generated templates" in given.get("action", ""):
            find_one_of_many(tools, given["requirement"], check)
        else:
            recall_from(tools, given, check)


def recall_from(tools: SpecTools, given: dict[str, Any], check: Check) -> None:
    scope = "project" if given.get("same_repo") else "global"
    ids = {add(tools, entry, scope): entry["id"] for entry in given["library"]}
    keys = [entry.key for entry in tools.library.load().entries]
    for _ in range(given.get("hit_counts", 0)):
        tools.library.count_uses(keys, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    answer = tools.recall(given["requirement"])
    recalled = [ids[shown["id"]] for shown in answer["templates"]]
    for key, wanted in check.items():
        if key == "next_step":
            expect(answer["next_step"] == wanted, f"next_step is {answer['next_step']}")
            n_questions = len(tools.triage(given["requirement"]).get("questions", ()))
            expect(n_questions == (1 if wanted == "confirm" else 0), f"{n_questions} questions")
        elif key == "recall_first":
            expect(recalled[:1] == [wanted], f"recalled are {recalled}")
        elif key == "recalled":
            expect(recalled == wanted, f"recalled are {recalled}")
        elif key == "directive_max_chars":
            decision = decide(given["requirement"])
            for text in (render_block(decision, given["requirement"]), render_note(decision)):
                expect(0 < len(text) <= wanted, f"{len(text)} characters: {text}")
                expect("spec_retro" not in text, f"a write-back is demanded: {text}")
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


def find_one_of_many(tools: SpecTools, requirement: str, check: Check) -> None:
    expect(set(check) <= {"recall_at", "raises"}, f"unknown checks {check}")
    for number in range(500):
        topic, part = MADE[number % len(MADE)], PARTS[number // len(MADE) % len(PARTS)]
        made = {"name": f"{topic}{part} 方案 {number}", "tags": [f"made{number}", topic], "trigger": f"{topic}要{part}"}
        add(tools, made)
    wanted = add(tools, {"name": "对账文件拆分加密上传", "tags": ["sftp", "对账"],
                         "trigger": "用户说「对账单按商户拆开」「加密后传到 SFTP」"})  # fmt: skip
    answer = tools.recall(requirement)
    found = [shown["id"] for shown in answer["templates"]]
    expect(wanted in found[: check["recall_at"]], f"recalled are {answer['templates']}")
    expect("方案" not in answer["context"], f"others stand in the answer: {answer['context']}")
    rounds = [seconds_of(lambda: tools.recall(requirement), 100) for _ in range(5)]
    p99 = min(sorted(times)[98] for times in rounds)  # of the calmest round
    expect(p99 < P99_SECONDS, f"the 99th of 100 recalls took {p99 * 1000:.1f} ms")


def seconds_of(call: Callable[[], object], n_calls: int) -> list[float]:
    times = []
    for _ in range(n_calls):
        start = time.process_time()  # what other processes take is not ours
        call()
        times.append(time.process_time() - start)
    return times


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "tpl-aaaaaaaa01.md": lambda good: b"---\n{name: [broken\n---\n" + good.split(b"\n---\n", 1)[1],
    "tpl-aaaaaaaa02.md": lambda good: good.split(b"\n---\n", 1)[1],
    "tpl-aaaaaaaa03.md": lambda good: b"",
    "tpl-aaaaaaaa04.md": lambda good: bytes(range(256)) * 8,
}


def read_around_broken_files(tools: SpecTools, check: Check) -> None:
    expect(set(check) <= {"ok", "raises"}, f"unknown checks {check}")
    good = {add(tools, {"name": name, "tags": tags}, "project")
            for name, tags in (("订单导出", ["excel"]), ("断点续传", ["upload"]))}  # fmt: skip
    [folder] = Path(tools.library.root).rglob("templates")
    text = next(folder.glob("*.md")).read_bytes()
    for name, broken in BROKEN.items():
        (folder / name).write_bytes(broken(text))
    library = Library(tools.cwd)
    loaded = library.load()
    expect({template.id for template in loaded.templates} >= good, f"loaded are {loaded.templates}")
    found = {os.path.basename(finding.path).removesuffix(".md"): finding.text
             for finding in examine(library) if finding.kind in ("unreadable", "broken front matter")}  # fmt: skip
    for name in BROKEN:
        expect(bool(found.get(name.removesuffix(".md"))), f"{name} is not listed with a reason: {found}")
    answer = tools.recall("订单列表支持导出 Excel")
    expect([shown["name"] for shown in answer["templates"]] == ["订单导出"], f"recalled are {answer['templates']}")
    library.close()


# --- hook


def run_hook(given: dict[str, Any], check: Check) -> None:
    """The event as it is, and with a prompt that has something to say: one document or nothing, and exit code 0."""
    expect(set(check) <= {"single_json", "raises"}, f"unknown checks {check}")
    with opened() as tools:
        event = {**given["stdin"], "cwd": tools.cwd}
        said = [document_of(event), document_of({**event, "prompt": "登录页加个按钮"})]
    wanted = [render_note(decide(prompt)) for prompt in (event["prompt"], "登录页加个按钮")]
    expect(said == wanted, f"said is {said}, not {wanted}")


def document_of(event: dict[str, Any]) -> str:
    """What the hook says for an event, as a process of its own."""
    expect(read_config(event["cwd"]).settings.pre_step_routing, "the note is off")
    done = subprocess.run([sys.executable, "-m", "gatekeeper.spec.hook"], input=json.dumps(event), text=True, cwd=ROOT,
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    if not done.stdout:
        return ""
    document = json.loads(done.stdout)
    expect(list(document) == ["hookSpecificOutput"] and len(done.stdout) <= MAX_NOTE_LENGTH, f"printed {document}")
    output = document["hookSpecificOutput"]
    expect(set(output) == {"hookEventName", "additionalContext"}, f"printed {document}")
    expect(output["hookEventName"] == "UserPromptSubmit", f"printed {document}")
    return str(output["additionalContext"])
