"""The per-turn note: `gatekeeper-hook` reads a host's event on standard input and answers for `UserPromptSubmit`.

It prints one JSON document, or nothing when there is nothing to say. Whatever happens it ends with 0, so that no turn
fails through it; what went wrong goes to standard error.
"""

from __future__ import annotations

import os
import sys
import time
from hashlib import sha256
from json import dumps, loads

from gatekeeper.spec.settings import MAX_NOTE_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVENT = "UserPromptSubmit"
TURN_KEYS = ("prompt_id", "turn_id")  # Claude Code, Codex
SAME_TURN_SECONDS = 10.0  # where a host names no turn: twice the same text within this is one turn
KEEP_SECONDS = 86_400.0
# what is submitted in the user's name, but not by the user
NOT_TYPED = ("<task-notification", "<system-reminder", "<command-", "<local-command", "<bash-", "<teammate-message")


def run() -> None:
    """The entry point. Ends with 0 always."""
    try:
        text = answer(sys.stdin.buffer.read().decode("utf-8-sig", "replace")) if sys.stdin else ""
        if text:
            sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
            sys.stdout.flush()
    except BaseException as error:
        log(f"{type(error).__name__}: {error}")
        _quiet_end()
    raise SystemExit(0)


def answer(event_text: str) -> str:
    """The JSON document for an event, "" for nothing to say. Raises what any part of it raises."""
    event = loads(event_text)
    if not isinstance(event, dict) or event.get("hook_event_name", EVENT) != EVENT:
        return ""
    prompt = event.get("prompt")
    if not isinstance(prompt, str) or not is_typed(prompt):
        return ""
    note = _note(event, prompt)
    if not note or not claim(event, prompt):
        return ""
    output = {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": ""}}
    room = MAX_NOTE_LENGTH - len(dumps(output, ensure_ascii=False))
    while len(dumps(note, ensure_ascii=False)) - 2 > room:  # an escape takes more than its character
        note = note[: min(len(note) - 1, room)].rpartition("\n")[0]
    output["hookSpecificOutput"]["additionalContext"] = note
    return dumps(output, ensure_ascii=False) if note else ""


def is_typed(prompt: str) -> bool:
    """Whether a prompt was typed as a text: no command of the host, and nothing that a host submits by itself."""
    start = prompt.lstrip()
    if not start or start.startswith(NOT_TYPED):
        return False
    first = start.split(None, 1)[0]
    return not (start[0] == "/" and first.count("/") == 1 and first.isascii() and "." not in first)


def _note(event: dict[str, Any], prompt: str) -> str:
    from gatekeeper.spec.config import read_config

    config = read_config(str(event.get("cwd") or os.getcwd()))
    for warning in config.warnings:
        log(warning)
    if config.settings.auto_retro:
        remember_session(config.project.id, event)
    if not config.settings.pre_step_routing:
        return ""
    from gatekeeper.spec.routing import render_note
    from gatekeeper.spec.triaging import decide

    try:
        words = config.words("grading")
    except ValueError as error:
        log(str(error))
        words = None
    return render_note(decide(prompt, words))


def claim(event: dict[str, Any], prompt: str) -> bool:
    """Whether this is the first note for this text in this turn; of two processes at once one gets True.

    Where the mark cannot be written, twice is better than not at all.
    """
    from gatekeeper.spec.config import home_folder

    turn = next((str(event[key]) for key in TURN_KEYS if event.get(key)), "")
    session = str(event.get("session_id") or "")
    key = f"{sha256(f'{session} {turn}'.encode('utf-8', 'replace')).hexdigest()[:12]}-{text_digest(prompt)}"
    folder = os.path.join(home_folder(), "turns")
    path = os.path.join(folder, key)
    try:
        os.makedirs(folder, exist_ok=True)
        if _make(path):
            _forget_old(folder)
            return True
        age = time.time() - os.stat(path).st_mtime
        if turn or age <= SAME_TURN_SECONDS:
            return False
        os.utime(path)
    except OSError as error:
        log(f"{path}: {error.strerror or error}")
    return True


def remember_session(project_id: str, event: dict[str, Any]) -> None:
    """Keep where the transcript of the project's latest session lies: recall looks there for what is to write back."""
    from gatekeeper.spec.config import session_file

    transcript = event.get("transcript_path")
    if not isinstance(transcript, str) or not transcript:
        return
    path = session_file(project_id)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(dumps({"session_id": str(event.get("session_id") or ""), "transcript_path": transcript}))
    except OSError as error:
        log(f"{path}: {error.strerror or error}")


def text_digest(text: str) -> str:
    """12 hex digits that stand for a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def log(message: str) -> None:
    """One line on standard error."""
    if sys.stderr is not None:
        line = "gatekeeper-hook: " + " ".join(message.split()) + "\n"
        sys.stderr.write(line.encode("ascii", "backslashreplace").decode())


def _make(path: str) -> bool:
    """Make a file that is not there yet."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def _forget_old(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > KEEP_SECONDS:
                os.unlink(entry.path)


def _quiet_end() -> None:
    """Nothing more can be written where the reader has gone: not by the interpreter either, when it flushes."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    run()
