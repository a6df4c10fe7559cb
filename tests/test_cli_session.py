"""The commands for sessions on disk."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, DEMO_FILE, ESCAPE, FOLDER, SMALL, call, cells, plain_environment

import gatekeeper
from gatekeeper.cli.session import session

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with the session "demo" of two turns."""
    path = str(tmp_path / "chats.db")
    with gatekeeper.open(path, session="demo", token_budget=500) as gate:
        gate.add_turns([("redis ttl", "Use a redis ttl."), ("git", "Commit.")])
        gate.constraints.language = "zh"
        gate.constraints.forbid("links")
    return path


@pytest.mark.parametrize("name", session.commands)
def test_every_command_is_documented(name: str) -> None:
    result = call("session", name, "--help")
    assert result.exit_code == 0
    assert f"gatekeeper session {name}" in result.stdout.partition("Example:")[2]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "`gatekeeper session" in readme
    assert name in readme


def test_help_of_the_group_and_of_chat_teaches() -> None:
    assert "gatekeeper session import" in call("session", "--help").stdout.partition("Example:")[2]
    assert "..." not in call("session", "--help").stdout.partition("Commands:")[2]
    assert "gatekeeper chat" in call("chat", "--help").stdout.partition("Example:")[2]


def test_list(file: str) -> None:
    lines = call("session", "list", file).stdout.splitlines()
    assert cells(lines[-1])[:3] == ["default", "demo", "2"]
    [item] = json.loads(call("session", "list", file, "--json").stdout)["sessions"]
    assert (item["session"], item["n_turns"]) == ("demo", 2)
    assert call("session", "list", file, "--user", "other").stdout == "no session\n"
    gatekeeper.open(file, user="other").close()
    assert "demo" not in call("session", "list", file, "--user", "other").stdout
    assert "other" not in call("session", "list", file).stdout
    assert "demo" in call("session", "list", file, "--all-users").stdout
    assert ESCAPE in call("session", "list", file, "--color=always").stdout


def test_show(file: str) -> None:
    shown = call("session", "show", file, "--session", "demo").stdout
    for text in ("turns 2  budget 500", "language: zh", "forbidden: links", "turn 1\nuser: git\nassistant: Commit."):
        assert text in shown
    document = json.loads(call("session", "show", file, "--session", "demo", "--json").stdout)
    assert document["turns"][0] == {"turn_id": 0, "user": "redis ttl", "assistant": "Use a redis ttl.",
                                    "forgotten": False}  # fmt: skip
    assert document["constraints"] == {"values": {"language": "zh"}, "forbidden": ["links"]}


def test_add(file: str) -> None:
    assert call("session", "add", file, "more", "text", "--session", "demo").stdout == "turn 2\n"
    added = call("session", "add", file, "问题", "-", "--session", "demo", "--json", stdin="回答\n第二行")
    assert json.loads(added.stdout) == {"session": "demo", "user": "default", "turn_id": 3}
    assert "user: 问题\nassistant: 回答\n第二行\n" in call("session", "show", file, "--session", "demo").stdout
    assert call("session", "add", file, "a", "b").stdout == "turn 0\n"
    refused = call("session", "add", file, "a", "-", stdin=b"\xff")
    assert (refused.exit_code, refused.stderr) == (1, "error: <stdin>: expected UTF-8 text, got the byte 0xff\n")


def test_export_and_import(file: str, tmp_path: Path) -> None:
    exported = call("session", "export", file, "--session", "demo").stdout
    (tmp_path / "demo.jsonl").write_text(exported, encoding="utf-8")
    new = str(tmp_path / "new.db")
    imported = call("session", "import", new, str(tmp_path / "demo.jsonl"), "--session", "demo")
    assert imported.stdout == "2 turns, from turn 0\n"
    assert call("session", "export", new, "--session", "demo").stdout.splitlines()[1:] == exported.splitlines()[1:]
    again = call("session", "import", new, "-", "--session", "demo", "--json", stdin=exported)
    assert json.loads(again.stdout) == {"session": "demo", "user": "default", "first_turn": 2, "n_turns": 2}
    assert call("stats", str(tmp_path / "demo.jsonl"), "--strict").exit_code == 0


def test_import_names_what_is_broken(file: str) -> None:
    result = call("session", "import", file, "-", stdin=SMALL + "oops\n")
    assert (result.exit_code, result.stdout) == (0, "2 turns, from turn 0\n")
    assert result.stderr.startswith("warning: <stdin>:3: expected a JSON object")
    strict = call("session", "import", file, "-", "--strict", stdin=SMALL + "oops\n")
    assert (strict.exit_code, strict.stdout) == (1, "")
    assert "turns 2" in call("session", "show", file).stdout


def test_import_takes_budget_and_settings_for_a_new_session(file: str) -> None:
    call("session", "import", file, DEMO_FILE, "--session", "new", "--budget", "77", "--settings", "thorough")
    document = json.loads(call("session", "show", file, "--session", "new", "--json").stdout)
    assert (document["token_budget"], document["settings"]["whole_blocks"]) == (77, True)


def test_forget(file: str) -> None:
    assert call("session", "forget", file, "--session", "demo", "--turn", "0").stdout == "forgotten: turn 0\n"
    assert "turn 0  forgotten\n" in call("session", "show", file, "--session", "demo").stdout
    assert b"redis" not in Path(file).read_bytes()
    forgotten = call("session", "forget", file, "--session", "demo", "--all", "--json").stdout
    assert json.loads(forgotten) == {"session": "demo", "user": "default", "forgotten": "all"}
    assert call("session", "list", file).stdout == "no session\n"
    for arguments in ([], ["--all", "--turn", "0"], ["--turn", "-1"]):
        assert call("session", "forget", file, "--session", "demo", *arguments).exit_code == 2


def test_recover(file: str, tmp_path: Path) -> None:
    new, lost = str(tmp_path / "new.db"), tmp_path / "lost.db"
    whole = call("session", "recover", file, new)
    assert whole.exit_code == 0
    assert cells(whole.stdout.splitlines()[-1]) == ["default", "demo", "2", "none"]
    assert call("session", "recover", file, new).exit_code == 1
    data = Path(file).read_bytes()
    lost.write_bytes(data.replace(b"redis ttl", b"redis xxx"))
    refused = call("session", "show", str(lost), "--session", "demo")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: {lost}: is damaged (turn 0 is not as it was written)")
    result = call("session", "recover", str(lost), str(tmp_path / "saved.db"), "--json")
    assert result.exit_code == 1
    [item] = json.loads(result.stdout)["sessions"]
    assert (item["n_saved"], item["lost_turns"]) == (1, [0])
    lost.write_bytes(b"nothing at all")
    empty = call("session", "recover", str(lost), str(tmp_path / "empty.db"))
    assert (empty.exit_code, empty.stdout) == (1, "nothing was found\n")


@pytest.mark.parametrize("arguments", [
    ["list"], ["show"], ["export"], ["forget", "--all"], ["add", "a", "b"], ["import", "-"], ["recover", "new.db"],
])  # fmt: skip
def test_a_file_that_is_none_is_1_and_one_line(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    file.write_text("no database")
    name, *rest = arguments
    rest = [str(tmp_path / item) if item == "new.db" else item for item in rest]
    result = call("session", name, str(file), *rest, stdin=SMALL)
    assert result.exit_code == 1
    assert len((result.stderr or result.stdout).splitlines()) == 1
    assert str(file) in result.stderr or name == "recover"
    assert file.read_text() == "no database"


@pytest.mark.parametrize("arguments", [["list"], ["show"], ["export"], ["forget", "--all"]])
def test_a_file_that_is_not_there_is_1_and_is_not_made(arguments: list[str], tmp_path: Path) -> None:
    result = call("session", arguments[0], str(tmp_path / "none.db"), *arguments[1:])
    assert (result.exit_code, result.stderr) == (1, f"error: {tmp_path / 'none.db'}: does not exist\n")
    assert call("chat", str(tmp_path / "none.db"), stdin="redis\n").exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_session_is_1(file: str) -> None:
    for arguments in (["show"], ["export"], ["forget", "--all"], ["forget", "--turn", "0"]):
        result = call("session", arguments[0], file, *arguments[1:], "--session", "none")
        assert result.exit_code == 1
        assert "holds no session 'none' of user 'default'" in result.stderr
    result = call("chat", file, "--session", "none", stdin="redis\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holds no session 'none' of user 'default'" in result.stderr


# --- chat


def test_chat_prints_a_prompt_for_each_query(file: str) -> None:
    with gatekeeper.open(file, session="demo") as gate:
        prompts = [gate.build_prompt(query) for query in ("redis ttl?", "git")]
    result = call("chat", file, "--session", "demo", stdin="redis ttl?\n\ngit")
    assert result.exit_code == 0
    assert result.stdout == "".join(prompt + "\n\n" for prompt in prompts)
    lines = call("chat", file, "--session", "demo", "--json", stdin="redis ttl?\ngit\n").stdout.splitlines()
    assert [json.loads(line)["prompt"] for line in lines] == prompts
    assert json.loads(lines[0])["tokens"]["budget"] == 500
    short = call("chat", file, "--session", "demo", "--json", "--budget", "40", stdin="redis ttl?\n").stdout
    assert json.loads(short)["tokens"]["budget"] == 40


def test_chat_answers_before_the_next_query_is_there(file: str) -> None:
    with subprocess.Popen([*COMMAND, "chat", file, "--session", "demo", "--json"], stdin=subprocess.PIPE, cwd=FOLDER,
                          stdout=subprocess.PIPE, env=plain_environment()) as chat:  # fmt: skip
        assert chat.stdin is not None
        assert chat.stdout is not None
        for query, turn in (("redis ttl?", b"[0 user] redis"), ("git", b"[1 user] git"), ("late", b"[3 user] late")):
            chat.stdin.write(query.encode() + b"\n")
            chat.stdin.flush()
            assert turn in chat.stdout.readline()
            with gatekeeper.open(file, session="demo") as gate:  # another process goes on meanwhile
                gate.add_turn("late news", "")
        chat.stdin.close()
        assert chat.wait() == 0
