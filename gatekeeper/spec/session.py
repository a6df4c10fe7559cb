"""What a coding session did so far, read from the transcript its host keeps; for the write-back reminder and digests.

Read are the transcripts of Claude Code (one message a line) and the rollouts of Codex (one item a line).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from json import dumps, loads

from gatekeeper.spec.files import write_text
from gatekeeper.spec.settings import MAX_DIGEST_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from gatekeeper.spec.settings import SpecSettings

MAX_TRANSCRIPT_BYTES = 8_000_000  # of a longer one the end is read
MAX_NOTE_SECONDS = 43_200.0  # an older note is of a session that is over
MAX_NOTE_BYTES = 100_000
CONTINUATION_LENGTH = 40
CONTINUATIONS = ("等等", "还有", "另外", "再改", "不对", "错了", "重新来", "忘了", "补充一下", "但是")
WRITE_TOOLS = frozenset({"edit", "multiedit", "write", "notebookedit", "apply_patch", "str_replace_based_edit_tool",
                         "create_file", "insert_edit_into_file", "replace_string_in_file"})  # fmt: skip
MAX_LINE_DIGEST = 300


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. kind: user, assistant or tool; text: what was said, or the name of the tool.

    failed: a tool call or a turn that did not end well.
    """

    kind: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user said, and what followed."""

    user: str
    events: tuple[Event, ...]

    @property
    def tools(self) -> list[str]:
        return [event.text for event in self.events if event.kind == "tool"]

    @property
    def is_completed(self) -> bool:
        """Whether it was answered: the last thing in it is what the assistant said."""
        return bool(self.events) and self.events[-1].kind == "assistant" and not self.events[-1].failed


def turns_of(events: Iterable[Event]) -> list[Turn]:
    """The turns of a session, cut at what the user said."""
    turns: list[tuple[str, list[Event]]] = []
    for event in events:
        if event.kind == "user":
            turns.append((event.text, []))
        elif turns:
            turns[-1][1].append(event)
    return [Turn(user, tuple(found)) for user, found in turns]


def is_write_back_due(turns: list[Turn], settings: SpecSettings) -> bool:
    """Whether finished work of a session is still to be written back.

    turns: those since the last write-back, without the one that is asked in. Due when code was changed (where the
    settings require it), by enough tool calls, and the last turn is complete and does not announce more.
    """
    if not settings.auto_retro or not turns:
        return False
    tools = [name for turn in turns for name in turn.tools]
    has_changed = any(base_name(name) in WRITE_TOOLS for name in tools)
    if len(tools) < max(1, settings.retro_min_tool_calls) or (settings.retro_require_code_change and not has_changed):
        return False
    last = turns[-1]
    ending = last.user.strip()[-CONTINUATION_LENGTH:]
    return last.is_completed and bool(last.tools) and not any(word in ending for word in CONTINUATIONS)


def digest_of(turns: list[Turn]) -> str:
    """What the user asked and what was answered last in each turn, newest kept, at most 1,500 characters."""
    lines: list[str] = []
    n_left = MAX_DIGEST_LENGTH
    for turn in reversed(turns):
        said = [event.text for event in turn.events if event.kind == "assistant" and event.text.strip()]
        tools = sorted({base_name(name) for name in turn.tools})
        parts = [f"- {_short(turn.user)}"] + ([f"  → {_short(said[-1])}"] if said else [])
        parts += [f"  ({', '.join(tools)})"] if tools else []
        line = "\n".join(parts)
        if len(line) + 1 > n_left:
            break
        lines.append(line)
        n_left -= len(line) + 1
    return "\n".join(reversed(lines))


def base_name(name: str) -> str:
    """The name of a tool without its server."""
    return name.rpartition("__")[2].rpartition(".")[2].lower()


# --- the latest session of a project


class SessionNote:
    """Where the latest session of a project keeps its transcript, as the hook noted it, and how much was written back.

    path: the note; beside it, with `.done`, lies the mark of what was written back.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def turns(self, requirement: str = "") -> list[Turn]:
        """The turns since the last write-back, without the one that asks; none without a fresh note."""
        transcript = self._transcript()
        if not transcript:
            return []
        done = _read_note(self.path + ".done")
        start = done.get("bytes", 0) if done.get("transcript_path") == transcript else 0
        try:
            turns = turns_of(read_transcript(transcript, start=start if isinstance(start, int) else 0))
        except OSError:
            return []
        asked = turns and (not turns[-1].is_completed or requirement.strip()[:200] in turns[-1].user)
        return turns[:-1] if asked else turns

    def mark_written_back(self) -> None:
        """From here on nothing is due until more is done. A mark that cannot be written costs one more reminder."""
        transcript = self._transcript()
        if transcript:
            with suppress(OSError):
                size = os.stat(transcript).st_size
                write_text(self.path + ".done", dumps({"transcript_path": transcript, "bytes": size}))

    def _transcript(self) -> str:
        try:
            is_fresh = time.time() - os.stat(self.path).st_mtime < MAX_NOTE_SECONDS
        except OSError:
            return ""
        path = _read_note(self.path).get("transcript_path") if is_fresh else ""
        return path if isinstance(path, str) and os.path.isfile(path) else ""


def _read_note(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = loads(file.read(MAX_NOTE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# --- transcripts


def read_transcript(path: str, *, start: int = 0) -> list[Event]:
    """The events of a transcript, from a byte on; of a file that is none, none. Raises OSError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, start, size - MAX_TRANSCRIPT_BYTES))
        data = file.read(MAX_TRANSCRIPT_BYTES)
    events: list[Event] = []
    for line in data.split(b"\n"):
        if not line.startswith(b"{"):
            continue
        try:
            record = loads(line)
        except (ValueError, RecursionError):
            continue  # cut at the beginning, or being written
        events += _events_of(record)
    return events


def _events_of(record: dict[str, Any]) -> Iterator[Event]:
    kind, message, payload = record.get("type"), record.get("message"), record.get("payload")
    if kind in ("user", "assistant") and isinstance(message, dict) and not record.get("isSidechain"):
        if not (kind == "user" and (record.get("isMeta") or record.get("isCompactSummary"))):
            yield from _message_events(kind, message)
    elif kind == "response_item" and isinstance(payload, dict):
        yield from _item_events(payload)


def _message_events(kind: str, message: dict[str, Any]) -> Iterator[Event]:
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") == "tool_use":
            yield Event("tool", str(part.get("name", "")))
        elif part.get("type") == "text":
            yield from _text_events(kind, str(part.get("text", "")))


def _item_events(item: dict[str, Any]) -> Iterator[Event]:
    if item.get("type") in ("function_call", "custom_tool_call", "local_shell_call"):
        yield Event("tool", str(item.get("name", item["type"])))
    elif item.get("type") == "message" and item.get("role") in ("user", "assistant"):
        parts = item.get("content")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                yield from _text_events(item["role"], str(part.get("text", "")))


def _text_events(kind: str, text: str) -> Iterator[Event]:
    """What was said. What a host says in the user's name begins with a tag or a mark of its own."""
    start = text.lstrip()
    if kind == "assistant":
        yield Event(kind, text)
    elif start.startswith("[Request interrupted"):
        yield Event("assistant", "", failed=True)
    elif start and not start.startswith(("<", "# AGENTS.md")):
        yield Event(kind, text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE_DIGEST else line[: MAX_LINE_DIGEST - 1] + "…"
