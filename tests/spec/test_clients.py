"""What `init` writes for coding agents."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gatekeeper.errors import LibraryError
from gatekeeper.spec.clients import BEGIN, CLIENTS, END, Commands, plan

COMMANDS = Commands(("gatekeeper", "mcp"), "gatekeeper-hook")


def apply(top: Path, *clients: str, resident: str = "the rules", skill: str = "the skill\n") -> list[str]:
    changes = plan(str(top), clients or CLIENTS, COMMANDS, resident=resident, skill=skill)
    for change in changes:
        assert change.diff().startswith("--- ")
        change.apply()
    return [Path(change.path).relative_to(top).as_posix() for change in changes]


def test_a_new_project_gets_every_file_once(tmp_path: Path) -> None:
    assert apply(tmp_path) == [".mcp.json", ".claude/settings.json", ".claude/skills/spec-recall/SKILL.md", "CLAUDE.md",
                               ".codex/config.toml", ".codex/hooks.json", "AGENTS.md"]  # fmt: skip
    assert apply(tmp_path) == []
    assert json.loads((tmp_path / ".mcp.json").read_text()) == {
        "mcpServers": {"gatekeeper": {"type": "stdio", "command": "gatekeeper", "args": ["mcp"]}}}
    hook = {"type": "command", "command": "gatekeeper-hook", "timeout": 10}
    for name in (".claude/settings.json", ".codex/hooks.json"):
        assert json.loads((tmp_path / name).read_text()) == {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    assert (tmp_path / "CLAUDE.md").read_text() == f"{BEGIN}\nthe rules\n{END}\n"
    assert (tmp_path / ".codex/config.toml").read_text() == (
        '[mcp_servers.gatekeeper]\ncommand = "gatekeeper"\nargs = ["mcp"]\n')


@pytest.mark.parametrize(("client", "files"), [
    ("mcp", [".mcp.json"]), ("codex", [".codex/config.toml", ".codex/hooks.json", "AGENTS.md"]),
])  # fmt: skip
def test_only_the_clients_asked_for(tmp_path: Path, client: str, files: list[str]) -> None:
    assert apply(tmp_path, client) == files


def test_what_the_user_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".codex").mkdir()
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "mine"}]}], "Stop": []}
    theirs = {"hooks": hooks, "x": "中"}
    (tmp_path / ".claude/settings.json").write_text(json.dumps(theirs))
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    (tmp_path / ".codex/config.toml").write_text('model = "x"')
    (tmp_path / "CLAUDE.md").write_text("# Mine\n")
    apply(tmp_path)
    settings = json.loads((tmp_path / ".claude/settings.json").read_text())
    assert settings["x"] == "中"
    groups = settings["hooks"]["UserPromptSubmit"]
    assert [group["hooks"][0]["command"] for group in groups] == ["mine", "gatekeeper-hook"]
    assert set(json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]) == {"other", "gatekeeper"}
    assert (tmp_path / ".codex/config.toml").read_text().startswith('model = "x"\n\n[mcp_servers.gatekeeper]\n')
    assert (tmp_path / "CLAUDE.md").read_text() == f"# Mine\n\n{BEGIN}\nthe rules\n{END}\n"


def test_a_newer_text_replaces_the_older_where_it_stands(tmp_path: Path) -> None:
    apply(tmp_path)
    text = (tmp_path / "CLAUDE.md").read_text()
    (tmp_path / "CLAUDE.md").write_text("before\n" + text + "after\n")
    assert apply(tmp_path, resident="other rules \\1", skill="other\n") == [
        ".claude/skills/spec-recall/SKILL.md", "CLAUDE.md", "AGENTS.md"]
    assert (tmp_path / "CLAUDE.md").read_text() == f"before\n{BEGIN}\nother rules \\1\n{END}\nafter\n"


def test_an_own_hook_is_replaced_and_a_table_is_left(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    old = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "/x/gatekeeper-hook"}]}]}}
    (tmp_path / ".codex/hooks.json").write_text(json.dumps(old))
    (tmp_path / ".codex/config.toml").write_text('[mcp_servers."gatekeeper"]\ncommand = "mine"\n')
    assert apply(tmp_path, "codex") == [".codex/hooks.json", "AGENTS.md"]
    document = json.loads((tmp_path / ".codex/hooks.json").read_text())
    assert len(document["hooks"]["UserPromptSubmit"]) == 1


def test_a_file_that_says_the_same_is_not_reformatted(tmp_path: Path) -> None:
    text = '{"mcpServers":{"gatekeeper":{"args":["mcp"],"command":"gatekeeper","type":"stdio"}}}'
    (tmp_path / ".mcp.json").write_text(text)
    assert apply(tmp_path, "mcp") == []
    assert (tmp_path / ".mcp.json").read_text() == text


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "[" * 100_000, "// comment\n{}", "\xff"])
def test_a_file_that_is_none_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(LibraryError, match=r"\.mcp\.json"):
        apply(tmp_path)
    assert (tmp_path / ".mcp.json").read_bytes() == text.encode("latin-1")
    assert [path.name for path in tmp_path.iterdir()] == [".mcp.json"]


def test_a_linked_file_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("mine\n")
    (tmp_path / "top").mkdir()
    (tmp_path / "top/AGENTS.md").symlink_to(tmp_path / "real.md")
    apply(tmp_path / "top", "codex")
    assert (tmp_path / "top/AGENTS.md").is_symlink()
    assert BEGIN in (tmp_path / "real.md").read_text()


def test_paths_with_quotes_are_toml(tmp_path: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    commands = Commands(('/a "b"\\c/python', "-m", "gatekeeper", "mcp"), "x")
    (change, *_) = plan(str(tmp_path), ("codex",), commands, resident="", skill="")
    assert tomllib.loads(change.new)["mcp_servers"]["gatekeeper"] == {
        "command": '/a "b"\\c/python', "args": ["-m", "gatekeeper", "mcp"]}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no reader of TOML")
@pytest.mark.parametrize("text", ["model = [\n", "x = 1\nx = 2\n", 'mcp_servers = { other = { command = "y" } }\n'])
def test_toml_that_cannot_take_a_table_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / ".codex").mkdir()
    path = tmp_path / ".codex/config.toml"
    path.write_text(text)
    with pytest.raises(LibraryError, match="left alone"):
        apply(tmp_path, "codex")
    assert path.read_text() == text
