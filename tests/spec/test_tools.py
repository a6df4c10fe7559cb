"""The four tools as functions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from libraries import WORKSPACE, settle

from gatekeeper.errors import ArgumentTypeError, ArgumentValueError
from gatekeeper.spec.config import session_file
from gatekeeper.spec.markdown import read_template
from gatekeeper.spec.routing import RULES, render_block
from gatekeeper.spec.schemas import TOOLS
from gatekeeper.spec.tokens import estimate_tokens
from gatekeeper.spec.tools import SpecTools
from gatekeeper.spec.triaging import decide

EXPORT: dict[str, Any] = {
    "name": "订单导出", "category": "feature/export", "tags": ["export", "订单", "导出"],
    "trigger": "用户说「导出订单」",
    "clarify": ["导出哪些列？"], "approach": ["spec_recall 之后 spec_triage", "后端流式生成文件"],
    "acceptance": ["导出 1 万行不超时"],
}  # fmt: skip
ASKS_EXPORT = "订单列表加导出按钮，点击导出 Excel"
SCHEMAS = {tool.name: tool for tool in TOOLS}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("GATEKEEPER_HOME", str(home))
    return home


@pytest.fixture
def tools(tmp_path: Path) -> SpecTools:
    return SpecTools(tmp_path, settings=WORKSPACE)


def call(tools: SpecTools, name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call whose arguments and answer fit the schemas."""
    Draft202012Validator(SCHEMAS[name].input_schema).validate(arguments)
    answer = tools.call(name, arguments)
    Draft202012Validator(SCHEMAS[name].output_schema).validate(answer)
    assert isinstance(answer[SCHEMAS[name].text_field], str)
    json.dumps(answer)
    return answer


# --- the schemas


def objects_of(schema: Any) -> list[dict[str, Any]]:
    found = [schema] if isinstance(schema, dict) and schema.get("type") == "object" else []
    below = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return found + [one for part in below for one in objects_of(part)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_object_is_closed_or_says_what_it_takes(name: str) -> None:
    for schema in (SCHEMAS[name].input_schema, SCHEMAS[name].output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert all("additionalProperties" in found for found in objects_of(schema))
        assert set(schema["required"]) <= set(schema["properties"])


def test_the_definitions_cost_at_most_2000_tokens() -> None:
    cost = sum(estimate_tokens(json.dumps([tool.name, tool.description, tool.input_schema, tool.output_schema],
                                          ensure_ascii=False)) for tool in TOOLS)  # fmt: skip
    assert cost <= 2000


@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("spec_recall", {}, "needs 'requirement'"), ("spec_recall", {"requirement": "x", "y": 1}, "does not take 'y'"),
    ("spec_triage", {"requirement": "x", "cwd": "/"}, "does not take 'cwd'"),
    ("spec_recall", {"requirement": 1}, "must be a str"), ("spec_retro", {"name": "x", "tags": "a"}, "list of str"),
    ("spec_retro", {"name": "x", "tags": [1]}, "must be a str"),
    ("spec_distill", {"requirement": "x", "files": "a"}, "list of str"),
])  # fmt: skip
def test_what_a_tool_does_not_take_is_an_error(
    tools: SpecTools, name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        tools.call(name, arguments)


def test_unknown_tools_scopes_and_templates(tools: SpecTools) -> None:
    with pytest.raises(ArgumentValueError, match="there are spec_recall, spec_triage, spec_distill, spec_retro"):
        tools.call("spec_store", {})
    with pytest.raises(ArgumentValueError, match="scope must be project or global"):
        tools.call("spec_retro", {"name": "x", "scope": "team"})
    with pytest.raises(ArgumentValueError, match="no template 'x'"):
        tools.explain("订单导出", "x")


# --- recall


def test_a_miss_is_short(tools: SpecTools) -> None:
    answer = call(tools, "spec_recall", requirement="支付模块支持按仓库拆单，金额按行分摊，尾差放最后一行")
    assert (answer["matched"], answer["templates"], answer["next_step"]) == (False, [], "implement")
    assert estimate_tokens(answer["context"]) <= 150
    assert "必须" not in answer["context"]


def test_a_hit_is_in_the_answer_and_counted(tools: SpecTools) -> None:
    call(tools, "spec_retro", **EXPORT)
    answer = call(tools, "spec_recall", requirement=ASKS_EXPORT)
    assert answer["matched"]
    (found,) = answer["templates"]
    assert found["name"] == "订单导出"
    assert found["hit"]
    assert "后端流式生成文件" in answer["context"]
    (key,) = tools.library.state.usage()
    assert key.endswith(found["id"])
    call(tools, "spec_recall", requirement="支付模块支持按仓库拆单")
    assert tools.library.state.usage()[key][0] == 1


def test_only_what_is_shown_is_counted(tmp_path: Path) -> None:
    tools = SpecTools(tmp_path, settings=WORKSPACE.replace(max_inject_templates=1))
    for number in range(3):
        call(tools, "spec_retro", **{**EXPORT, "name": f"订单导出 {'甲乙丙'[number]}"})
    answer = call(tools, "spec_recall", requirement=ASKS_EXPORT)
    assert len(answer["templates"]) == 1
    assert sum(hits for hits, _ in tools.library.state.usage().values()) == 1


@pytest.mark.parametrize(("requirement", "step", "gap"), [
    ("登录页加个按钮", "confirm", ["button"]), ("重构订单服务", "triage", []), ("你好", "none", []),
    ("把登录按钮的文案改成「立即登录」", "implement", []),
])  # fmt: skip
def test_the_next_step_is_that_of_the_decision(tools: SpecTools, requirement: str, step: str, gap: list[str]) -> None:
    answer = call(tools, "spec_recall", requirement=requirement)
    assert (answer["next_step"], answer["content_gap"]) == (step, gap)
    assert answer["context"].startswith(render_block(decide(requirement), requirement))


def test_a_short_text_is_graded_and_not_matched(tools: SpecTools) -> None:
    call(tools, "spec_retro", **EXPORT)
    answer = call(tools, "spec_recall", requirement="加个按钮")
    assert answer["skipped"] == "skipped: too short"
    assert (answer["matched"], answer["next_step"]) == (False, "confirm")


def test_redlines_of_the_project_are_in_every_answer(tools: SpecTools) -> None:
    tools.library.add_redlines(["不改公共请求封装"], "2025-01-01")
    for requirement in ("登录页加个按钮", "支付模块支持按仓库拆单"):
        answer = call(tools, "spec_recall", requirement=requirement)
        assert answer["redlines"] == ["不改公共请求封装"]
        assert "- 不改公共请求封装" in answer["context"]


def test_another_folder_has_another_library(tools: SpecTools, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    call(tools, "spec_retro", **EXPORT, cwd="other")
    assert call(tools, "spec_recall", requirement=ASKS_EXPORT, cwd=str(tmp_path / "other"))["matched"]
    assert not call(tools, "spec_recall", requirement=ASKS_EXPORT)["matched"]


def test_a_broken_file_is_logged_once_and_blocks_nothing(tools: SpecTools, caplog: pytest.LogCaptureFixture) -> None:
    path = Path(call(tools, "spec_retro", **EXPORT)["file"])
    (path.parent / "tpl-broken000.md").write_text("---\n")
    for _ in range(3):
        assert call(tools, "spec_recall", requirement=ASKS_EXPORT)["matched"]
    (record,) = caplog.records
    assert "tpl-broken000: no front matter" in record.getMessage()


def test_recall_can_be_switched_off(tmp_path: Path) -> None:
    tools = SpecTools(tmp_path, settings=WORKSPACE.replace(auto_recall=False))
    call(tools, "spec_retro", **EXPORT)
    assert not call(tools, "spec_recall", requirement=ASKS_EXPORT)["matched"]


def test_any_text_is_answered(tools: SpecTools) -> None:
    for text in ("", "\ud800\0", "{" * 100_000, "订单" * 100_000, "```\n" * 1000):
        call(tools, "spec_recall", requirement=text)
        call(tools, "spec_triage", requirement=text)
        call(tools, "spec_distill", requirement=text)
        assert tools.explain(text)["templates"] == []


# --- triage and distill


def test_triage_answers_for_any_level(tools: SpecTools) -> None:
    answer = call(tools, "spec_triage", requirement="把库存模块重构拆分成独立服务")
    assert (answer["level"], answer["mode"], answer["needs_clarify"]) == (3, "clarify", True)
    assert answer["questions"]
    answer = call(tools, "spec_triage", requirement="把登录按钮的文案改成「立即登录」")
    assert (answer["level"], answer["mode"], "questions" in answer) == (1, "fast-track", False)
    answer = call(tools, "spec_triage", requirement="登录页加个按钮")
    assert answer["classification"]["content_gap"] == "button"


def test_distill_warns_of_no_constraint_when_strict(tools: SpecTools, tmp_path: Path) -> None:
    answer = call(tools, "spec_distill", requirement="拆分库存服务")
    assert answer["missing_constraints"]
    full = {"requirement": "拆分库存服务", "constraints": ["不改对外接口"], "acceptance": ["npm test 通过"],
            "stack": "vue"}  # fmt: skip
    answer = call(tools, "spec_distill", **full)
    assert not answer["missing_constraints"]
    assert "- [ ] npm test 通过" in answer["prompt"]
    loose = SpecTools(tmp_path, settings=WORKSPACE.replace(strict_distill=False))
    assert not call(loose, "spec_distill", requirement="拆分库存服务")["missing_constraints"]


# --- retro


def stored(answer: dict[str, Any]) -> Any:
    return read_template(Path(answer["file"]).read_text(encoding="utf-8"), id=answer["id"])


def test_an_update_unites_lists_and_replaces_the_approach(tools: SpecTools) -> None:
    first = call(tools, "spec_retro", **EXPORT)
    created = stored(first).template.created
    second = call(tools, "spec_retro", name=" 订单导出 ", clarify=["谁能导出？"], approach=["改成异步任务"],
                  acceptance=["导出 1 万行不超时", "失败能重试"])  # fmt: skip
    assert (second["id"], second["updated"], first["updated"]) == (first["id"], True, False)
    template = stored(second).template
    assert template.clarify == ("谁能导出？", "导出哪些列？")
    assert template.approach == ("改成异步任务",)
    assert template.acceptance == ("导出 1 万行不超时", "失败能重试")
    assert (template.tags, template.category) == (("export", "订单", "导出"), "feature/export")
    assert template.created == created
    for letter in "abcdefghijklmnopqrst":
        answer = call(tools, "spec_retro", name="订单导出", clarify=[f"{letter * 9}？"])
    assert len(stored(answer).template.clarify) == 12


def test_redlines_go_where_they_belong(tools: SpecTools) -> None:
    answer = call(tools, "spec_retro", **EXPORT, redlines=[
        "本次只动 lib/cache.py，不碰 app.py", "不改公共 API 的调用逻辑", "导出文件名固定带日期"])  # fmt: skip
    assert answer["dropped"] == ["本次只动 lib/cache.py，不碰 app.py"]
    assert answer["hoisted"] == ["不改公共 API 的调用逻辑"]
    assert stored(answer).template.redlines == ("导出文件名固定带日期",)
    assert tools.library.load().redlines == ("不改公共 API 的调用逻辑",)
    for word in ("本次只动 lib/cache.py", "不改公共 API 的调用逻辑"):
        assert word in answer["message"]


def test_redlines_stay_out_of_the_profile_when_asked(tools: SpecTools) -> None:
    answer = call(tools, "spec_retro", **EXPORT, redlines=["不改公共 API 的调用逻辑"], persist_redlines=False)
    assert answer["hoisted"] == []
    assert tools.library.load().redlines == ()


def test_secrets_never_reach_the_disk(tools: SpecTools, tmp_path: Path) -> None:
    key = "sk-" + "abcdefghijklmnopqrstuvwxyz012345"
    answer = call(tools, "spec_retro", name=f"部署 {key}", trigger=f"日志里有 {key}", approach=[f"用 {key}"],
                  tags=[key], redlines=[f"后端接口不外传 {key}"], prompt=f"Authorization: Bearer {key}",
                  acceptance=[key], clarify=[key], category=key, digest=f"password={key}")  # fmt: skip
    assert answer["saved"]
    assert answer["masked"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
    assert key not in json.dumps(answer)


def test_scope_of_a_template(tools: SpecTools) -> None:
    answer = call(tools, "spec_retro", **EXPORT, scope="global")
    assert (answer["scope"], "/global/templates/" in answer["file"]) == ("global", True)
    assert stored(answer).template.repo == ""
    assert len(stored(answer).template.fingerprint.weights) > len(stored(
        call(tools, "spec_retro", **EXPORT)).template.fingerprint.weights)  # fmt: skip


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_without_a_name_nothing_is_saved(tools: SpecTools, name: str, tmp_path: Path) -> None:
    answer = call(tools, "spec_retro", name=name)
    assert (answer["saved"], answer["reason"]) == (False, "the name is empty")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_says_so(tools: SpecTools, tmp_path: Path) -> None:
    (tmp_path / ".gatekeeper").write_text("a file where the folder should be")
    answer = call(tools, "spec_retro", **EXPORT)
    assert not answer["saved"]
    assert answer["reason"]
    assert answer["message"] == f"not saved: {answer['reason']}"


def test_a_broken_template_is_not_written_over(tools: SpecTools) -> None:
    path = Path(call(tools, "spec_retro", **EXPORT)["file"])
    path.write_bytes(b"\xff")
    answer = call(tools, "spec_retro", **EXPORT)
    assert not answer["saved"]
    assert "left alone" in answer["reason"]
    assert path.read_bytes() == b"\xff"


def test_any_text_is_written_and_read(tools: SpecTools) -> None:
    for text in ("\ud800\0", "```\n## 禁区\n- x", "---\nid: y", "（暂无）", "x" * 5000):
        answer = call(tools, "spec_retro", name=text, trigger=text, tags=[text], clarify=[text], approach=[text],
                      redlines=[text], prompt=text, acceptance=[text])  # fmt: skip
        assert answer["saved"], answer
    settle(Path(tools.library.root))
    assert len(SpecTools(tools.cwd, settings=WORKSPACE).library.load().templates) == 5


# --- the write-back reminder


def session(home: Path, tools: SpecTools, requirement: str, *names: str) -> Path:
    """A transcript in which the project's session did something and now asks again."""
    uses = [{"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "name": name, "input": {}}]}} for name in names]  # fmt: skip
    records = [{"type": "user", "message": {"role": "user", "content": "改一下登录页文案"}}, *uses,
               {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "改好了"}]}},
               {"type": "user", "message": {"role": "user", "content": requirement}}]  # fmt: skip
    path = home / "transcript.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    note = Path(session_file(tools.library.project.id))
    note.parent.mkdir(exist_ok=True)
    note.write_text(json.dumps({"session_id": "s", "transcript_path": str(path)}))
    return path


def test_finished_work_is_reminded_of_until_it_is_written_back(tools: SpecTools, home: Path) -> None:
    requirement = "订单列表加一列手机号"
    session(home, tools, requirement, "Read", "Edit")
    rule = next(rule.text for rule in RULES if rule.name == "write-back")
    assert rule.zh in call(tools, "spec_recall", requirement=requirement)["notice"]
    assert rule.en in call(tools, "spec_recall", requirement="add a phone column to the order list")["notice"]
    assert call(tools, "spec_recall", requirement="你好")["notice"] == ""
    assert not call(tools, "spec_retro", name="")["saved"]
    assert call(tools, "spec_recall", requirement=requirement)["notice"]
    answer = call(tools, "spec_retro", **EXPORT)
    assert "改一下登录页文案" in stored(answer).digest
    assert call(tools, "spec_recall", requirement=requirement)["notice"] == ""


def test_reading_alone_is_not_reminded_of(tools: SpecTools, home: Path) -> None:
    session(home, tools, "订单列表加一列手机号", "Read", "Grep", "Read")
    assert call(tools, "spec_recall", requirement="订单列表加一列手机号")["notice"] == ""


def test_an_old_or_broken_note_is_none(tools: SpecTools, home: Path) -> None:
    session(home, tools, "订单列表加一列手机号", "Read", "Edit")
    note = Path(session_file(tools.library.project.id))
    os.utime(note, (0, 0))
    assert call(tools, "spec_recall", requirement="订单列表加一列手机号")["notice"] == ""
    for text in ("", "[]", '{"transcript_path": 1}', '{"transcript_path": "/nowhere"}'):
        note.write_text(text)
        assert call(tools, "spec_recall", requirement="订单列表加一列手机号")["notice"] == ""


# --- explain


def test_explain_says_why(tools: SpecTools) -> None:
    call(tools, "spec_retro", **EXPORT)
    call(tools, "spec_retro", name="登录报错", tags=["login", "登录"])
    explained = tools.explain('订单列表加导出按钮 {"orderId": 1, "amount": 2}')
    assert explained["prepared"]["fields"] == ["orderId", "amount"]
    assert explained["prepared"]["removed"]["json"] == 1
    first, second = explained["templates"]
    assert (first["name"], first["verdict"]) == ("订单导出", "hit")
    assert (second["name"], second["verdict"]) == ("登录报错", "below threshold")
    assert "导出" in first["topic_evidence"]
    assert [one["name"] for one in tools.explain("订单导出", "登录报错")["templates"]] == ["登录报错"]
    assert tools.explain("订单导出", first["template_id"])["templates"][0]["template_id"] == first["template_id"]
    assert tools.explain("加个按钮")["skipped"]
    assert tools.library.state.usage() == {}


def test_a_template_too_large_to_be_read_is_not_written(tools: SpecTools) -> None:
    call(tools, "spec_retro", **EXPORT)
    for large in ({**EXPORT, "trigger": "长" * 400_000}, {"name": "另一个", "trigger": "x" * 1_000_000}):
        answer = call(tools, "spec_retro", **large)
        assert not answer["saved"]
        assert "1000000 are read" in answer["reason"]
    snapshot = tools.library.load()
    assert [template.name for template in snapshot.templates] == ["订单导出"]
    assert snapshot.problems == ()
