"""`gatekeeper spec` and `gatekeeper mcp`: what each command prints, its options and exit codes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import ESCAPE, call

from gatekeeper.cli import spec_setup
from gatekeeper.cli.commands import main
from gatekeeper.cli.spec_commands import spec
from gatekeeper.spec.routing import resident_text, skill_text
from gatekeeper.spec.tools import SpecTools

ROOT = Path(__file__).resolve().parents[2]
ASK = "订单列表加个导出按钮，点击下载 Excel"
EXPORT = {"name": "订单导出", "tags": ["export", "订单", "导出"], "trigger": "用户说「导出订单」",
          "approach": ["后端流式生成"]}  # fmt: skip
ARGUMENTS: dict[str, list[str]] = {
    "recall": [ASK], "triage": [ASK], "explain": [ASK], "distill": [ASK], "retro": ["export.json"], "doctor": [],
    "rebuild": [], "rebuild-project-scope": ["--hoist"], "seed": ["export.json"], "calibrate": [], "audit": [],
    "init": ["--yes"], "text": ["skill"],
}  # fmt: skip
SLOW = {"bench"}  # it measures: run once below, without an opinion on its times


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / "home"))
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "export.json").write_text(json.dumps(EXPORT), encoding="utf-8")
    return folder


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return call("spec", *arguments, stdin=stdin)


def document(*arguments: str, code: int = 0, stdin: str | None = None) -> Any:
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


# --- every command


@pytest.mark.parametrize("name", [*ARGUMENTS, *SLOW])
def test_every_command_is_documented(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"gatekeeper spec {name}" in result.stdout.partition("Example:")[2]
    for option in ("--json", "--color", "--cwd"):
        assert option in result.stdout
    assert f"`{name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_command_is_missing_here() -> None:
    assert set(spec.commands) == {*ARGUMENTS, *SLOW}
    assert {"spec", "mcp"} <= set(main.commands)
    assert "..." not in run("--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_json_is_one_document(name: str) -> None:
    result = run(name, *ARGUMENTS[name], "--json", "--color=always")
    assert result.exit_code == 0
    assert isinstance(json.loads(result.stdout), dict)
    assert ESCAPE not in result.stdout


@pytest.mark.parametrize("name", ARGUMENTS)
def test_people_get_text_without_colour_in_a_pipe(name: str) -> None:
    result = run(name, *ARGUMENTS[name])
    assert result.exit_code == 0
    assert result.stdout.strip()
    assert ESCAPE not in result.stdout


@pytest.mark.parametrize("name", [*ARGUMENTS, *SLOW])
@pytest.mark.parametrize("arguments", [["--nope"], ["--color", "red"], ["--cwd", "nowhere"]])
def test_wrong_usage_is_2(name: str, arguments: list[str]) -> None:
    result = run(name, *ARGUMENTS.get(name, []), *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["recall", "explain", "triage", "distill"])
def test_a_text_may_come_from_stdin(name: str) -> None:
    assert document(name, "-", stdin=ASK) == document(name, ASK)
    assert run(name, "-", stdin=b"\xff\x00").exit_code == 0


def test_another_folder_is_another_library(shop: Path) -> None:
    (shop / "other").mkdir()
    run("retro", "export.json", "--cwd", "other")
    assert document("recall", ASK, "--cwd", "other")["matched"]
    assert not document("recall", ASK)["matched"]


# --- the tools


def test_the_commands_print_what_the_tools_answer(shop: Path) -> None:
    run("retro", "export.json")
    tools = SpecTools(shop)
    assert document("recall", ASK) == tools.recall(ASK)
    assert run("recall", ASK).stdout.strip() == tools.recall(ASK)["context"].strip()
    assert document("triage", ASK) == tools.triage(ASK)
    assert run("triage", ASK).stdout.strip() == tools.triage(ASK)["report"].strip()
    assert document("explain", ASK, "订单导出")["templates"] == tools.explain(ASK, "订单导出")["templates"]
    options = ["--constraint", "不改接口", "--constraint", "不改库表", "--file", "a.js", "--acceptance", "npm test",
               "--clarified", "全部列", "--stack", "vue"]  # fmt: skip
    assert document("distill", ASK, *options) == tools.distill(
        ASK, constraints=["不改接口", "不改库表"], files=["a.js"], acceptance=["npm test"], clarifications=["全部列"],
        stack="vue")  # fmt: skip


def test_explain_shows_every_number_of_one_template() -> None:
    run("retro", "export.json")
    shown = run("explain", ASK, "订单导出").stdout
    for word in ("cleaned", "query", "cosine", "coverage", "priors", "same_category", "shared", "ignored", "hit"):
        assert word in shown
    result = run("explain", ASK, "没有的模板")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no template '没有的模板'" in result.stderr


def test_retro_says_what_it_did_and_fails_when_nothing_is_saved(shop: Path) -> None:
    assert document("retro", "-", stdin=json.dumps(EXPORT))["saved"]
    assert document("retro", "export.json", "--scope", "global")["scope"] == "global"
    assert run("retro", "export.json").stdout.startswith("updated tpl-")
    assert document("retro", "-", stdin='{"name": ""}', code=1)["reason"] == "the name is empty"
    for text, message in (("{", "Expecting"), ("[]", "expected a JSON object"), ('{"x": 1}', "does not take 'x'"),
                          ('{"name": 1}', "must be a str")):  # fmt: skip
        result = run("retro", "-", stdin=text)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    result = run("retro", "nowhere.json")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert "nowhere.json" in result.stderr


# --- maintenance


def test_doctor_ends_with_1_when_it_finds_something(shop: Path) -> None:
    assert document("doctor")["findings"] == []
    saved = document("retro", "-", stdin='{"name": "登录报错", "tags": ["login"]}')
    (finding,) = document("doctor", code=1)["findings"]
    assert (finding["kind"], finding["text"]) == ("no trigger", "登录报错")
    assert finding["path"].endswith(saved["id"])
    shown = run("doctor")
    assert shown.exit_code == 1
    assert "no trigger" in shown.stdout


def test_rebuild_says_what_changes(shop: Path) -> None:
    path = Path(document("retro", "export.json")["file"])
    assert run("rebuild").stdout == "nothing to rebuild\n"
    path.write_text(path.read_text(encoding="utf-8").replace('fingerprint: ["', 'fingerprint: ["别的|1", "'))
    before = path.read_bytes()
    (planned,) = document("rebuild", "--dry-run")["templates"]
    assert (planned["removed"], path.read_bytes()) == (["别的"], before)
    assert "would be rebuilt" in run("rebuild-project-scope", "--dry-run").stdout
    assert document("rebuild")["templates"] == [planned]
    assert document("rebuild")["templates"] == []


def test_seed_loads_many_and_names_those_it_did_not_write(shop: Path) -> None:
    (shop / "many.jsonl").write_text('{"name": "甲"}\n{"name": ""}\n{"name": "乙"}\n', encoding="utf-8")
    answers = document("seed", "many.jsonl", "--scope", "global", code=1)["templates"]
    assert [answer["saved"] for answer in answers] == [True, False, True]
    assert {answer["scope"] for answer in answers} == {"global"}
    assert run("seed", "many.jsonl").exit_code == 1
    assert run("seed", "nowhere.jsonl").exit_code == 1
    assert run("seed").exit_code == 2


def test_calibrate_proposes_a_threshold() -> None:
    assert "nothing to compare" in run("calibrate").stdout
    run("seed", "export.json")
    found = document("calibrate")
    assert (found["templates"], found["threshold"]) == (1, 0.15)
    assert sum(found["own"]) + sum(found["other"]) == found["pairs"] > 0
    assert "proposed" in run("calibrate").stdout


def test_audit_and_bench_print_figures_beside_their_targets() -> None:
    figures = document("audit")["figures"]
    assert all(set(figure) == {"name", "value", "target", "holds"} for figure in figures)
    result = run("bench", "--json")
    figures = json.loads(result.stdout)["figures"]
    assert {figure["name"].partition(":")[0].partition(" over")[0] for figure in figures} >= {
        "16 requests", "ten everyday requests", "recall", "hook process"}  # fmt: skip
    assert result.exit_code == (0 if all(figure["holds"] for figure in figures) else 1)


def test_settings_that_are_not_used_are_announced(shop: Path) -> None:
    (shop / ".gatekeeper" / "spec").mkdir(parents=True)
    (shop / ".gatekeeper" / "spec" / "settings.json").write_text('{"matchThreshold": 0.35}')
    result = run("recall", ASK)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: match_threshold 0.35")


def test_a_library_that_cannot_lie_anywhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", "relative")
    result = run("recall", ASK)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "GATEKEEPER_HOME must be an absolute path" in result.stderr


# --- setting up


def test_init_shows_the_difference_and_writes_only_when_agreed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(shop.iterdir())
    result = run("init", "--client", "codex")
    assert result.exit_code == 1
    assert "+[mcp_servers.gatekeeper]" in result.stdout
    assert "--yes" in result.stderr
    assert set(shop.iterdir()) == before
    planned = document("init", "--client", "codex", code=1)
    assert not planned["applied"]
    monkeypatch.setattr(spec_setup, "_agreed", lambda run: True)
    assert "written: 3 files" in run("init", "--client", "codex").stdout
    assert run("init", "--client", "codex").stdout == "nothing to change: all of it is there\n"
    assert document("init", "--client", "codex") == {"files": [], "applied": False}
    assert resident_text(True) in (shop / "AGENTS.md").read_text(encoding="utf-8")


def test_init_writes_at_the_top_of_the_project_in_the_language_asked_for(shop: Path) -> None:
    (shop / ".git").mkdir()
    (shop / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (shop / "src").mkdir()
    assert document("init", "--cwd", "src", "--language", "zh", "--yes")["applied"]
    assert (shop / ".claude/skills/spec-recall/SKILL.md").read_text(encoding="utf-8") == skill_text(False)
    assert resident_text(False) in (shop / "CLAUDE.md").read_text(encoding="utf-8")
    assert os.listdir(shop / "src") == []


def test_init_leaves_a_file_that_it_cannot_read(shop: Path) -> None:
    (shop / ".mcp.json").write_text("{")
    result = run("init", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert ".mcp.json is left alone" in result.stderr
    assert not (shop / "CLAUDE.md").exists()


@pytest.mark.parametrize(("language", "is_english"), [("en", True), ("zh", False)])
def test_standing_texts(language: str, is_english: bool) -> None:
    assert run("text", "skill", "--language", language).stdout == skill_text(is_english)
    assert run("text", "resident", "--language", language).stdout == resident_text(is_english) + "\n"


def test_mcp_is_documented_and_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Example:" in call("mcp", "--help").stdout
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.delitem(sys.modules, "gatekeeper.spec.mcp_server", raising=False)
    result = call("mcp")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "pip install 'context-gatekeeper[mcp]'" in result.stderr


@pytest.mark.mcp
def test_mcp_refuses_a_library_that_cannot_lie_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", "relative")
    result = call("mcp")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "GATEKEEPER_HOME must be an absolute path" in result.stderr


def test_a_broken_file_is_a_warning(shop: Path) -> None:
    path = Path(document("retro", "export.json")["file"])
    (path.parent / "tpl-broken000.md").write_text("---\n")
    result = run("recall", ASK)
    assert result.exit_code == 0
    assert "订单导出" in result.stdout
    assert "tpl-broken000: no front matter" in result.stderr


@pytest.mark.parametrize("missing", ["filelock", "yaml"])
def test_a_missing_package_is_named_where_it_is_needed(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    answer = document("retro", "export.json", code=1 if missing == "filelock" else 0)
    assert answer["saved"] == (missing != "filelock")
    if missing == "filelock":
        assert "pip install 'context-gatekeeper[spec]'" in answer["reason"]
        return
    Path(answer["file"]).write_text("---\nname: 甲\n---\n", encoding="utf-8")  # YAML that is no JSON
    (finding,) = document("doctor", code=1)["findings"]
    assert (finding["kind"], "yaml" in finding["text"]) == ("unreadable", True)
