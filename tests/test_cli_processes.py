"""The command line in processes of its own: pipes, terminals, missing packages, full disks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import (
    ARGUMENTS,
    COMMAND,
    DEMO_FILE,
    ESCAPE,
    FOLDER,
    QUERY,
    SMALL,
    chat,
    plain_environment,
    process,
    width,
)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp936"])
def test_output_is_utf8_whatever_the_locale(encoding: str) -> None:
    result = process("select", DEMO_FILE, QUERY, PYTHONIOENCODING=encoding, LC_ALL="C")
    assert "rebase 与 merge 的区别是什么" in result.stdout.decode("utf-8")


@pytest.mark.parametrize("module", ["gatekeeper", "gatekeeper.cli"])
def test_it_runs_as_a_module(module: str) -> None:
    command = [sys.executable, "-m", module]
    result = subprocess.run([*command, "stats", "-"], input=SMALL.encode(), capture_output=True, cwd=FOLDER)
    assert result.returncode == 0
    assert b"| turns " in result.stdout
    help_text = subprocess.run([*command, "--help"], capture_output=True, cwd=FOLDER).stdout
    assert help_text.startswith(b"Usage: gatekeeper ")


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_click_or_rich_it_says_how_to_get_them(missing: str) -> None:
    code = f"import sys; sys.modules['{missing}'] = None; from gatekeeper.cli import run; run()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=FOLDER)
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr == f"error: the command needs {missing}: pip install 'context-gatekeeper[cli]'\n".encode()


def test_the_library_does_without_them() -> None:
    code = "import sys, gatekeeper.cli, gatekeeper.chat_file; print({'click', 'rich'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=FOLDER).stdout.strip() == b"set()"


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_broken_pipe_ends_quietly(name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([*COMMAND, name, *ARGUMENTS[name]], stdout=writer, stderr=subprocess.PIPE, cwd=FOLDER)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_1() -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run([*COMMAND, "stats", DEMO_FILE], stdout=full, stderr=subprocess.PIPE, cwd=FOLDER)
    assert result.returncode == 1
    assert result.stderr.decode().splitlines() == ["error: cannot write: No space left on device"]


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command shows on a terminal of 60 columns, stdout and stderr together."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60)) if hasattr(termios, "tcsetwinsize") else None
    settings = plain_environment(**{"TERM": "xterm-256color", "COLUMNS": "60", **environment})
    with subprocess.Popen([*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=FOLDER,
                          env=settings):  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return shown.decode("utf-8")


def test_a_terminal_gets_colour_unless_it_is_told_not_to() -> None:
    assert ESCAPE in on_a_terminal("stats", DEMO_FILE)
    assert ESCAPE not in on_a_terminal("stats", DEMO_FILE, NO_COLOR="1")
    assert ESCAPE not in on_a_terminal("stats", DEMO_FILE, TERM="dumb")
    assert ESCAPE not in on_a_terminal("stats", DEMO_FILE, "--color=never")
    assert ESCAPE in on_a_terminal("stats", DEMO_FILE, "--color=always", NO_COLOR="1")
    assert ESCAPE in on_a_terminal("stats", "missing.jsonl")
    assert ESCAPE not in on_a_terminal("stats", "missing.jsonl", NO_COLOR="1")


def test_tables_fit_a_terminal() -> None:
    shown = on_a_terminal("explain", DEMO_FILE, QUERY, "--color=never")
    assert max(width(line) for line in shown.splitlines() if line.startswith("|")) <= 60


def test_a_prompt_cannot_steer_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(chat({"user": "redis \x1b[31m", "assistant": ""}), encoding="utf-8")
    assert "[0 user] redis \\x1b[31m" in on_a_terminal("prompt", str(path), "redis")


def test_a_large_file_shows_its_progress_on_a_terminal_only(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    path.write_text(chat(*[{"user": "redis", "assistant": "x" * 100_000}] * 60), encoding="utf-8")
    assert "reading" in on_a_terminal("stats", str(path), "--budget", "1000000")
    assert process("stats", str(path), "--budget", "1000000").stderr == b""
