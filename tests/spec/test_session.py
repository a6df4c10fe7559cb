"""What a session did so far: the write-back reminder and the digest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.spec.session import Event, Turn, base_name, digest_of, is_write_back_due, read_transcript, turns_of
from gatekeeper.spec.settings import MAX_DIGEST_LENGTH, SpecSettings

SETTINGS = SpecSettings()


def turn(user: str, *names: str, answered: bool = True) -> Turn:
    events = [Event("tool", name) for name in names] + ([Event("assistant", "做好了")] if answered else [])
    return Turn(user, tuple(events))


# --- when a reminder is due


def test_finished_work_is_due() -> None:
    assert is_write_back_due([turn("改文案", "Read", "Edit")], SETTINGS)
    assert is_write_back_due([turn("改文案", "mcp__gatekeeper__spec_recall", "apply_patch")], SETTINGS)


@pytest.mark.parametrize("turns", [
    [],
    [turn("这是什么？")],
    [turn("看看代码", "Read", "Grep", "Read")],
    [turn("改文案", "Edit")],
    [turn("改文案", "Read", "Edit", answered=False)],
    [turn("改文案", "Read", "Edit"), turn("好的")],
    [turn("改文案，还有", "Read", "Edit")],
    [turn("改文案", "Read", "Edit"), turn("不对，重新来", "Read", "Edit")],
])  # fmt: skip
def test_it_is_not_due(turns: list[Turn]) -> None:
    assert not is_write_back_due(turns, SETTINGS)


def test_a_continuation_word_counts_at_the_end_only() -> None:
    assert is_write_back_due([turn("另外" + "改一下登录页的标题文案" * 5, "Read", "Edit")], SETTINGS)


def test_settings_decide() -> None:
    read_only = [turn("看看代码", "Read", "Grep")]
    assert is_write_back_due(read_only, SETTINGS.replace(retro_require_code_change=False))
    assert not is_write_back_due([turn("改", "Read", "Edit")], SETTINGS.replace(auto_retro=False))
    assert not is_write_back_due([turn("改", "Read", "Edit")], SETTINGS.replace(retro_min_tool_calls=3))
    assert not is_write_back_due([turn("好", answered=True)], SETTINGS.replace(
        retro_min_tool_calls=0, retro_require_code_change=False))  # fmt: skip


def test_tool_names_lose_their_server() -> None:
    assert [base_name(name) for name in ("mcp__gatekeeper__spec_retro", "gatekeeper.spec_retro", "Edit")] == [
        "spec_retro", "spec_retro", "edit"]  # fmt: skip


# --- digests


def test_a_digest_says_what_was_asked_and_answered() -> None:
    assert digest_of([turn("改\n文案", "Edit", "Read", "Edit"), turn("好")]) == (
        "- 改 文案\n  → 做好了\n  (edit, read)\n- 好\n  → 做好了")
    assert digest_of([]) == ""


def test_a_digest_is_short_and_keeps_the_newest() -> None:
    turns = [turn(f"第 {n} 条" + "长" * 500, "Edit") for n in range(50)]
    digest = digest_of(turns)
    assert len(digest) <= MAX_DIGEST_LENGTH
    assert "第 49 条" in digest
    assert "第 0 条" not in digest


# --- transcripts


def write(path: Path, records: list[Any]) -> str:
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return str(path)


def said(kind: str, *parts: Any, **more: Any) -> dict[str, Any]:
    content: Any = parts[0] if len(parts) == 1 and isinstance(parts[0], str) else list(parts)
    return {"type": kind, "message": {"role": kind, "content": content}, **more}


def test_a_claude_code_transcript(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [
        '"half of a line', {"type": "summary", "summary": "x"},
        said("user", "改一下登录页文案"),
        said("user", "注意事项", isMeta=True),
        said("assistant", {"type": "thinking", "thinking": "…"}, {"type": "tool_use", "name": "Read", "input": {}}),
        said("user", {"type": "tool_result", "content": "file"}),
        said("assistant", {"type": "tool_use", "name": "Edit", "input": {}}, isSidechain=True),
        said("assistant", {"type": "tool_use", "name": "Edit", "input": {}}),
        said("assistant", {"type": "text", "text": "改好了"}),
        said("user", {"type": "text", "text": "<system-reminder>x</system-reminder>"}),
        said("user", "[Request interrupted by user]"),
        "[]", "{", {"type": "user"}, {"type": "user", "message": {"content": [1]}},
    ])  # fmt: skip
    (only,) = turns_of(read_transcript(path))
    assert only.user == "改一下登录页文案"
    assert only.tools == ["Read", "Edit"]
    assert not only.is_completed
    assert Turn(only.user, only.events[:-1]).is_completed


def test_a_codex_rollout(tmp_path: Path) -> None:
    def item(**payload: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": payload}

    path = write(tmp_path / "rollout.jsonl", [
        {"type": "session_meta", "payload": {}},
        item(type="message", role="user", content=[{"type": "input_text", "text": "<environment_context>"}]),
        item(type="message", role="user", content=[{"type": "input_text", "text": "加一列手机号"}]),
        item(type="function_call", name="shell"), item(type="custom_tool_call", name="apply_patch"),
        item(type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    ])  # fmt: skip
    (only,) = turns_of(read_transcript(path))
    assert (only.user, only.tools, only.is_completed) == ("加一列手机号", ["shell", "apply_patch"], True)
    assert is_write_back_due([only], SETTINGS)


def test_a_file_that_is_none_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x00\xff" * 1000)
    assert read_transcript(str(tmp_path / "x")) == []
