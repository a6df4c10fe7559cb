"""Chats with tools, images and interruptions, in every message format, and what holds for a list of messages sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from strategies import queries, sides

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}}
Message = dict[str, Any]


class Call:
    """A tool call; result None: it was interrupted."""

    def __init__(self, call_id: str, arguments: str, result: str | None) -> None:
        self.id, self.arguments, self.result = call_id, arguments, result

    def __repr__(self) -> str:
        return f"Call({self.id!r}, {self.arguments!r}, {self.result!r})"


class Chat:
    """steps of a turn: a str is an assistant's text, calls in a list are made at once, an orphan is a tool's result."""

    def __init__(self, system: str | None, turns: Sequence[tuple[str, Sequence[Any]]]) -> None:
        self.system, self.turns = system, turns

    def __repr__(self) -> str:
        return f"Chat({self.system!r}, {self.turns!r})"


class Orphan(Call):
    """A result whose call is not there."""


# --- one chat in each format


def openai(chat: Chat) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": chat.system}] if chat.system is not None else []
    for user, steps in chat.turns:
        messages.append({"role": "user", "content": user})
        for step in steps:
            if isinstance(step, str):
                messages.append({"role": "assistant", "content": step})
            elif isinstance(step, Orphan):
                messages.append({"role": "tool", "tool_call_id": step.id, "content": step.result})
            else:
                calls = [{"id": call.id, "type": "function", "function": {"name": "look", "arguments": call.arguments}}
                         for call in step]
                messages.append({"role": "assistant", "content": None, "tool_calls": calls})
                messages += [{"role": "tool", "tool_call_id": call.id, "content": call.result}
                             for call in step if call.result is not None]
    return messages


def text_part(text: str) -> Message:
    return {"type": "text", "text": text}


def anthropic(chat: Chat) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": chat.system}] if chat.system is not None else []
    for user, steps in chat.turns:
        messages.append({"role": "user", "content": [text_part(user)]})
        for step in steps:
            if isinstance(step, str):
                messages.append({"role": "assistant", "content": [text_part(step)]})
                continue
            calls = [step] if isinstance(step, Orphan) else step
            if not isinstance(step, Orphan):
                blocks = [{"type": "tool_use", "id": call.id, "name": "look", "input": json.loads(call.arguments)}
                          for call in calls]
                messages.append({"role": "assistant", "content": blocks})
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": [text_part(call.result)]}
                       for call in calls if call.result is not None]
            if results:
                messages.append({"role": "user", "content": results})
    return messages


def responses(chat: Chat) -> list[Message]:
    """Items of OpenAI's Responses API: each call and each result is one, and reasoning leads the calls."""
    items: list[Message] = [{"role": "developer", "content": chat.system}] if chat.system is not None else []
    for user, steps in chat.turns:
        items.append({"role": "user", "content": [{"type": "input_text", "text": user}]})
        for step in steps:
            if isinstance(step, str):
                part = {"type": "output_text", "text": step, "annotations": []}
                items.append({"type": "message", "role": "assistant", "status": "completed", "content": [part]})
                continue
            calls = [step] if isinstance(step, Orphan) else step
            if not isinstance(step, Orphan):
                items.append({"type": "reasoning", "summary": [], "encrypted_content": "x"})
                items += [{"type": "function_call", "call_id": call.id, "name": "look", "arguments": call.arguments}
                          for call in calls]
            items += [{"type": "function_call_output", "call_id": call.id, "output": call.result}
                      for call in calls if call.result is not None]
    return items


def sharegpt(chat: Chat) -> list[Message]:
    """One call at a time, without ids."""
    messages: list[Message] = [{"from": "system", "value": chat.system}] if chat.system is not None else []
    for user, steps in chat.turns:
        messages.append({"from": "human", "value": user})
        for step in steps:
            if isinstance(step, str):
                messages.append({"from": "gpt", "value": step})
            elif isinstance(step, Orphan):
                messages.append({"from": "observation", "value": step.result})
            else:
                for call in step:
                    messages.append({"from": "function_call", "value": call.arguments})
                    if call.result is not None:
                        messages.append({"from": "observation", "value": call.result})
    return messages


FORMATS: dict[str, Callable[[Chat], list[Message]]] = {
    "openai": openai, "anthropic": anthropic, "responses": responses, "sharegpt": sharegpt,
}  # fmt: skip

# --- what a provider checks


def calls_and_results(message: Message) -> tuple[list[str], list[str]]:
    """The ids that a message calls and those that it answers, in any of the formats."""
    calls = [call["id"] for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"]] if message.get("role") == "tool" else []
    if message.get("type") == "function_call":
        calls.append(message["call_id"])
    if message.get("type") == "function_call_output":
        results.append(message["call_id"])
    calls += [""] * (message.get("from") == "function_call")
    results += [""] * (message.get("from") == "observation")
    for part in message.get("content") or () if isinstance(message.get("content"), list) else ():
        calls += [part["id"]] if part["type"] == "tool_use" else []
        results += [part["tool_use_id"]] if part["type"] == "tool_result" else []
    return calls, results


def assert_valid(messages: Sequence[Message]) -> None:
    """Each call has its results right behind it, each result its call, reasoning what it led to; a user begins."""
    pending: list[str] = []
    leads = False
    for message in messages:
        calls, results = calls_and_results(message)
        for result in results:
            assert result in pending, f"an orphan: {message}"
            pending.remove(result)
        assert results or not pending or message.get("type") in ("function_call", "reasoning"), "a call lacks a result"
        pending += calls
        assert not leads or role_of(message) == "assistant", "reasoning without what it led to"
        leads = message.get("type") == "reasoning"
    assert not pending, "a call without a result ends the list"
    assert not leads
    first = next((role_of(m) for m in messages if role_of(m) not in ("system", "developer")), "user")
    assert first == "user", f"it begins with {first}"


def role_of(message: Message) -> str:
    names = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool",
             "reasoning": "assistant", "function_call_output": "tool"}
    name = str(message.get("role") or message.get("from") or message.get("type"))
    return names.get(name, name)


def text_of(message: Message) -> str:
    """All text that pruning may cut."""
    content = message.get("content") or message.get("value") or message.get("output") or ""
    if isinstance(content, str):
        return content
    return "\n".join(text_of(part) if part["type"] == "tool_result" else part.get("text", "") for part in content)


def places(sent: Sequence[Message], messages: Sequence[Message]) -> list[int]:
    """Where the messages that were sent stand in the list they came from: the same object, or a cut copy of it.

    Fails unless they come in order and each says, in order, a part of what its original says.
    """
    found: list[int] = []
    for message in sent:
        start = found[-1] + 1 if found else 0
        place = next((i for i in range(start, len(messages)) if messages[i] is message), None)
        if place is None:
            place = next(i for i in range(start, len(messages)) if is_cut_from(message, messages[i]))
        found.append(place)
    return found


def is_cut_from(message: Message, original: Message) -> bool:
    same = role_of(message) == role_of(original) and calls_and_results(message) == calls_and_results(original)
    left = iter(text_of(original))
    return same and message.keys() == original.keys() and all(character in left for character in text_of(message))


# --- chats at random


def calls(n_call: int, results: Sequence[str | None]) -> list[Call]:
    return [Call(f"c{n_call}.{i}", json.dumps({"q": f"redis {i}"}), result) for i, result in enumerate(results)]


texts_of_tools = st.one_of(sides, st.just(""), st.just('{"a": 1}'))
steps = st.one_of(
    sides, sides,
    st.builds(calls, st.integers(0, 3), st.lists(texts_of_tools, min_size=1, max_size=3)),
    st.builds(calls, st.integers(0, 3), st.lists(st.one_of(texts_of_tools, st.none()), min_size=1, max_size=3)),
    st.builds(lambda n: Orphan(f"c{n}.0", "{}", "redis orphan"), st.integers(0, 3)),
)  # fmt: skip
chat_turns = st.tuples(queries, st.lists(steps, max_size=4))
chats = st.builds(Chat, st.one_of(st.none(), sides), st.lists(chat_turns, min_size=1, max_size=6))
