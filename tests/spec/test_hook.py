"""The per-turn note as a host's hook gets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gatekeeper
from gatekeeper.spec import hook
from gatekeeper.spec.config import read_config, session_file
from gatekeeper.spec.routing import render_note
from gatekeeper.spec.settings import MAX_NOTE_LENGTH
from gatekeeper.spec.triaging import decide

FOLDER = Path(gatekeeper.__file__).parents[1]
ASKS = "登录页加个按钮"
ACTS = "把登录按钮的文案改成「立即登录」"
SILENT = ["重构订单服务", "你好", "订单模块支持按仓库拆单并同步到财务系统", ""]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / "home"))


def event(prompt: Any, cwd: Path | str = "/", **more: Any) -> dict[str, Any]:
    return {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": str(cwd), "prompt": prompt, **more}


def note(document: str) -> str:
    if not document:
        return ""
    answer = json.loads(document)
    assert set(answer) == {"hookSpecificOutput"}
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    text = output["additionalContext"]
    assert isinstance(text, str)
    return text


def ask(prompt: Any, cwd: Path | str = "/", **more: Any) -> str:
    return note(hook.answer(json.dumps(event(prompt, cwd, **more))))


def process(data: bytes, *, stdout: Any = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "gatekeeper.spec.hook"], input=data, stdout=stdout,
                          stderr=subprocess.PIPE, cwd=FOLDER, env={**os.environ, **environment},
                          timeout=60)  # fmt: skip


# --- what is said


@pytest.mark.parametrize("prompt", [ASKS, ACTS])
def test_the_note_is_that_of_the_decision(prompt: str) -> None:
    assert ask(prompt) == render_note(decide(prompt)) != ""


@pytest.mark.parametrize("prompt", SILENT)
def test_nothing_is_said_where_there_is_nothing_to_say(prompt: str) -> None:
    assert ask(prompt) == ""


@pytest.mark.parametrize("prompt", [
    "/deploy staging", "/compact", "/mcp__x__y 登录页加个按钮", f"<task-notification>{ACTS}</task-notification>",
    f"<system-reminder>{ACTS}", f"<command-name>{ACTS}",
])  # fmt: skip
def test_what_the_user_did_not_type_as_a_text_is_left_alone(prompt: str) -> None:
    assert ask(prompt) == ""


@pytest.mark.parametrize("prompt", [f"/src/pages/login.vue {ASKS}", f"/login.vue {ASKS}", f"<template> 里{ASKS}"])
def test_a_path_or_a_tag_is_no_command(prompt: str) -> None:
    assert ask(prompt) == render_note(decide(prompt)) != ""


@pytest.mark.parametrize("wrong", [
    {"hook_event_name": "PreToolUse"}, {"prompt": None}, {"prompt": 1}, {"prompt": ["x"]}, {"cwd": "/nowhere/at/all"},
])  # fmt: skip
def test_other_events_say_nothing(wrong: dict[str, Any]) -> None:
    assert bool(ask(ASKS, **wrong)) == (set(wrong) == {"cwd"}) if "prompt" not in wrong else True
    if "prompt" in wrong:
        assert note(hook.answer(json.dumps({**event(ASKS), **wrong}))) == ""


def test_the_switch_is_in_the_settings(tmp_path: Path) -> None:
    (tmp_path / ".gatekeeper/spec").mkdir(parents=True)
    (tmp_path / ".gatekeeper/spec/settings.json").write_text('{"pre_step_routing": false}')
    assert ask(ASKS, tmp_path) == ""


def test_the_words_of_the_project_count(tmp_path: Path) -> None:
    (tmp_path / ".gatekeeper/spec/words").mkdir(parents=True)
    assert ask("登录页加个按钮，马上干", tmp_path, session_id="1").count("L1") == 0
    (tmp_path / ".gatekeeper/spec/words/grading.txt").write_text("[fast]\n马上干\n", encoding="utf-8")
    assert "L1" in ask("登录页加个按钮，马上干", tmp_path, session_id="2")
    assert read_config(str(tmp_path)).words("terms") is None
    (tmp_path / ".gatekeeper/spec/words/grading.txt").write_text("[nothing]\n马上干\n", encoding="utf-8")
    assert ask(ASKS, tmp_path, session_id="3") == render_note(decide(ASKS))


# --- once a turn


def test_once_a_turn(tmp_path: Path) -> None:
    for key in ("prompt_id", "turn_id"):
        assert ask(ASKS, session_id=key, **{key: "1"})
        assert not ask(ASKS, session_id=key, **{key: "1"})
        assert ask(ACTS, session_id=key, **{key: "1"})
        assert ask(ASKS, session_id=key, **{key: "2"})
        assert ask(ASKS, session_id="other " + key, **{key: "1"})


def test_where_no_turn_is_named_the_same_text_soon_after_is_one(tmp_path: Path) -> None:
    assert ask(ASKS)
    assert not ask(ASKS)
    for path in (tmp_path / "home/turns").iterdir():
        os.utime(path, (path.stat().st_mtime - 60,) * 2)
    assert ask(ASKS)
    assert not ask(ASKS)


def test_of_several_processes_at_once_one_speaks() -> None:
    data = json.dumps(event(ASKS, prompt_id="1")).encode()
    command = [sys.executable, "-m", "gatekeeper.spec.hook"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=FOLDER) for _ in range(4)]
    answers = [process.communicate(data)[0] for process in started]
    assert sum(bool(answer) for answer in answers) == 1


def test_old_marks_are_forgotten(tmp_path: Path) -> None:
    assert ask(ASKS, prompt_id="1")
    (mark,) = (tmp_path / "home/turns").iterdir()
    os.utime(mark, (0, 0))
    assert ask(ASKS, prompt_id="2")
    assert len(list((tmp_path / "home/turns").iterdir())) == 1


def test_a_mark_that_cannot_be_written_silences_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "home").write_text("a file")
    assert ask(ASKS, prompt_id="1") == ask(ASKS, prompt_id="1") != ""
    assert "gatekeeper-hook:" in capsys.readouterr().err


def test_the_session_is_noted_for_recall(tmp_path: Path) -> None:
    ask("你好", tmp_path, transcript_path="/x/y.jsonl")
    path = session_file(read_config(str(tmp_path)).project.id)
    assert json.loads(Path(path).read_text()) == {"session_id": "s", "transcript_path": "/x/y.jsonl"}


# --- as a process


def test_it_prints_one_document_in_utf8() -> None:
    result = process(json.dumps(event(ASKS)).encode(), PYTHONIOENCODING="ascii", LC_ALL="C")
    assert result.returncode == 0
    assert result.stderr == b""
    assert note(result.stdout.decode("utf-8")) == render_note(decide(ASKS))


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"prompt": " \\n"}',
    b'{"hook_event_name": "UserPromptSubmit"}', json.dumps(event(ASKS, "\0")).encode(),
])  # fmt: skip
def test_it_ends_well_whatever_comes_in(data: bytes) -> None:
    result = process(data)
    assert result.returncode == 0
    assert result.stdout == b""
    assert b"Traceback" not in result.stderr


def test_broken_text_is_read() -> None:
    for prompt in (b"\xff", b"\\ud800"):
        result = process(b'{"session_id": "' + prompt + b'", "prompt": "' + prompt + ASKS.encode() + b'"}')
        assert (result.returncode, result.stderr) == (0, b"")
        assert note(result.stdout.decode("utf-8")) == render_note(decide(ASKS))


def test_it_ends_well_without_a_reader_a_disk_or_a_stream() -> None:
    data = json.dumps(event(ASKS)).encode()
    reader, writer = os.pipe()
    os.close(reader)
    assert process(data, stdout=writer).returncode == 0
    os.close(writer)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            assert process(data, stdout=full).returncode == 0
    code = "import sys; sys.stdin = sys.stdout = None; from gatekeeper.spec.hook import run; run()"
    assert subprocess.run([sys.executable, "-c", code], cwd=FOLDER).returncode == 0
    assert process(data, GATEKEEPER_HOME="relative").returncode == 0


def test_it_loads_nothing_it_does_not_need() -> None:
    code = (f"import sys; from gatekeeper.spec import hook; assert hook.answer({json.dumps(event(ASKS))!r})\n"
            "print(*sorted(sys.modules))")  # fmt: skip
    bare, loaded = (
        subprocess.run([sys.executable, "-c", text], cwd=FOLDER, capture_output=True, text=True, check=True).stdout
        for text in ("import sys; print(*sorted(sys.modules))", code))
    heavy = {"numpy", "scipy", "yaml", "click", "rich", "sqlite3", "filelock", "mcp", "pathlib", "subprocess",
             "gatekeeper.gatekeeper", "gatekeeper.anchor", "gatekeeper.spec.library",
             "gatekeeper.spec.matching"}  # fmt: skip
    assert not heavy & (set(loaded.split()) - set(bare.split()))


def test_the_hook_has_its_entry_point() -> None:
    pyproject = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '\ngatekeeper-hook = "gatekeeper.spec.hook:run"\n' in pyproject
    assert callable(hook.run)


# --- limits


@given(st.text(max_size=200) | st.just(ASKS).map(lambda text: text * 2000))
def test_no_note_is_longer_than_a_host_takes(prompt: str) -> None:
    document = hook.answer(json.dumps(event(prompt, prompt_id=os.urandom(8).hex())))
    assert len(document) <= MAX_NOTE_LENGTH


def test_a_long_note_is_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for line in ("中" * 80, '"' * 80, "\\" * 80):
        monkeypatch.setattr(hook, "_note", lambda event, prompt, line=line: "\n".join([line] * 300))
        document = hook.answer(json.dumps(event("x", prompt_id=line)))
        assert MAX_NOTE_LENGTH - 200 < len(document) <= MAX_NOTE_LENGTH
        assert set(note(document).split("\n")) == {line}


def test_a_byte_order_mark_is_no_part_of_the_event(tmp_path: Path) -> None:
    done = process(b"\xef\xbb\xbf" + json.dumps(event(ASKS, tmp_path)).encode())
    assert note(done.stdout.decode())
    assert done.stderr == b""
