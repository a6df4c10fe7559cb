"""Running the command, within this process and in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from inspect import signature
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import gatekeeper
from gatekeeper.cli import demo
from gatekeeper.cli.commands import main

DEMO_FILE = str(demo.CONVERSATION)
QUERY = "Git rebase/merge区别"
ARGUMENTS = {
    "demo": [], "select": [DEMO_FILE, QUERY], "prompt": [DEMO_FILE, QUERY], "explain": [DEMO_FILE, QUERY],
    "stats": [DEMO_FILE],
}  # fmt: skip
OTHERS = {"batch", "chat", "session"}  # tested on their own
ESCAPE = "\x1b["
COMMAND = [sys.executable, "-m", "gatekeeper"]
FOLDER = Path(gatekeeper.__file__).parents[1]
# before click 8.2 stderr goes into stdout unless this is said
RUNNER = CliRunner(**({"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}))


def call(*arguments: str, stdin: str | bytes | None = None, **environment: str) -> Result:
    return RUNNER.invoke(main, list(arguments), input=stdin, env=environment, prog_name="gatekeeper")


def plain_environment(**changes: str) -> dict[str, str]:
    dropped = ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "PYTHONUTF8", "COLORTERM")
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, **changes}


def process(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, cwd=FOLDER,
                          env=plain_environment(**environment), timeout=60)  # fmt: skip


def chat(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


REDIS = {"user": "redis ttl", "assistant": "Use a redis ttl."}
SMALL = chat(REDIS, {"user": "git", "assistant": "Commit."})


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
