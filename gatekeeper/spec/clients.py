"""What `init` adds to a project for coding agents: the MCP server, the per-turn hook, the resident text, the skill."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from difflib import unified_diff

from gatekeeper.errors import LibraryError
from gatekeeper.spec.files import write_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SERVER = "gatekeeper"
HOOK = "gatekeeper-hook"
HOOK_SECONDS = 10
CLIENTS = ("claude", "codex", "mcp")
BEGIN, END = "<!-- gatekeeper spec: begin -->", "<!-- gatekeeper spec: end -->"
_BLOCK = re.compile(re.escape(BEGIN) + r"\n.*?" + re.escape(END) + r"\n?", re.DOTALL)
_CODEX_TABLE = re.compile(rf"""^\s*\[\s*mcp_servers\s*\.\s*["']?{SERVER}["']?\s*\]""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it is and as it is to be. old: None when there is none."""

    path: str
    old: str | None
    new: str

    @property
    def is_needed(self) -> bool:
        return self.old != self.new

    def diff(self) -> str:
        """A unified diff, "" when nothing changes."""
        old, new = (self.old or "").splitlines(keepends=True), self.new.splitlines(keepends=True)
        name = "/dev/null" if self.old is None else self.path
        return "".join(line if line.endswith("\n") else line + "\n" for line in unified_diff(old, new, name, self.path))

    def apply(self) -> None:
        """Write the file, through a link if it is one. Raises OSError."""
        path = os.path.realpath(self.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_text(path, self.new)


@dataclass(frozen=True, slots=True)
class Commands:
    """How a client starts the server and the hook."""

    server: tuple[str, ...]
    hook: str

    @classmethod
    def find(cls) -> Commands:
        """By their names when a shell finds them, else by this interpreter."""
        if shutil.which(SERVER) and shutil.which(HOOK):
            return cls((SERVER, "mcp"), HOOK)
        return cls((sys.executable, "-m", "gatekeeper", "mcp"), f'"{sys.executable}" -m gatekeeper.spec.hook')


def plan(top: str, clients: tuple[str, ...], commands: Commands, *, resident: str, skill: str) -> list[Change]:
    """The files of a project that `init` makes or changes, without those that are right already.

    top: the project's folder. clients: of claude (Claude Code), codex (Codex) and mcp (a `.mcp.json`, which many
    others read). resident: the text for the agent's memory file; skill: the whole SKILL.md. What a user wrote stays.
    Raises LibraryError for a file that cannot be read as what it should be, OSError for one that cannot be read.
    """
    server = {"command": commands.server[0], "args": list(commands.server[1:])}
    hook = {"type": "command", "command": commands.hook, "timeout": HOOK_SECONDS}
    edits: dict[str, Callable[[str], str]] = {}
    if "claude" in clients or "mcp" in clients:
        edits[".mcp.json"] = lambda text: _with_server(text, {"type": "stdio", **server})
    if "claude" in clients:
        edits[".claude/settings.json"] = lambda text: _with_hook(text, hook)
        edits[".claude/skills/spec-recall/SKILL.md"] = lambda text: skill
        edits["CLAUDE.md"] = lambda text: _with_block(text, resident)
    if "codex" in clients:
        edits[".codex/config.toml"] = lambda text: _with_table(text, commands.server)
        edits[".codex/hooks.json"] = lambda text: _with_hook(text, hook)
        edits["AGENTS.md"] = lambda text: _with_block(text, resident)
    changes = [_change(os.path.join(top, *name.split("/")), edit) for name, edit in edits.items()]
    return [change for change in changes if change.is_needed]


def _change(path: str, edit: Callable[[str], str]) -> Change:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            old = file.read()
    except FileNotFoundError:
        return Change(path, None, edit(""))
    except UnicodeDecodeError as error:
        raise LibraryError(f"{path} is not UTF-8 at byte {error.start}") from None
    try:
        return Change(path, old, edit(old))
    except ValueError as error:
        raise LibraryError(f"{path} is left alone: {error}") from None


def _with_server(text: str, server: dict[str, Any]) -> str:
    document = _document(text)
    _mapping(document, "mcpServers")[SERVER] = server
    return _same_or_new(text, document)


def _with_hook(text: str, hook: dict[str, Any]) -> str:
    """The hook among those of a user's prompt, once: an older entry of it is replaced."""
    document = _document(text)
    hooks = _mapping(document, "hooks")
    groups = hooks.setdefault("UserPromptSubmit", [])
    if not isinstance(groups, list):
        raise ValueError("hooks.UserPromptSubmit is no list")
    for group in groups:
        entries = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(entries, list):
            continue
        for number, entry in enumerate(entries):
            if isinstance(entry, dict) and _is_own_hook(str(entry.get("command", ""))):
                entries[number] = hook
                return _same_or_new(text, document)
    groups.append({"hooks": [hook]})
    return _same_or_new(text, document)


def _is_own_hook(command: str) -> bool:
    return HOOK in command or "gatekeeper.spec.hook" in command


def _with_block(text: str, resident: str) -> str:
    """The resident text between its two marks, at the end of a memory file unless it stands elsewhere already."""
    block = f"{BEGIN}\n{resident.strip()}\n{END}\n"
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text, count=1)
    return (text.rstrip("\n") + "\n\n" if text.strip() else "") + block


def _with_table(text: str, server: tuple[str, ...]) -> str:
    """The server's table at the end of a TOML file. One that is there already is the user's and stays."""
    if _CODEX_TABLE.search(text):
        return text
    command, *arguments = (json.dumps(word, ensure_ascii=False) for word in server)  # a JSON string is a TOML one
    table = f"[mcp_servers.{SERVER}]\ncommand = {command}\nargs = [{', '.join(arguments)}]\n"
    new = (text.rstrip("\n") + "\n\n" if text.strip() else "") + table
    _check_toml(text)
    _check_toml(new)  # a table cannot be added to mcp_servers = {...}
    return new


def _check_toml(text: str) -> None:
    """Raise ValueError for what is no TOML. Python 3.10 has no reader: there the diff is all there is to judge by."""
    try:
        import tomllib
    except ImportError:
        return
    tomllib.loads(text)


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text) if text.strip() else {}
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    return document


def _mapping(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.setdefault(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} is no object")
    return value


def _same_or_new(text: str, document: dict[str, Any]) -> str:
    """The document as text; the text as it was when it says the same already."""
    if text.strip() and json.loads(text) == document:
        return text
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
