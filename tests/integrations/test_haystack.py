"""Haystack's own pipeline and mock generator, with the component."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent, ToolCall
from haystack.tools import create_tool_from_function
from history import BUDGET, QUERY, SYSTEM, chosen, pairs, slow_counter

from gatekeeper import Settings
from gatekeeper.integrations.haystack import GatekeeperMessages


def history() -> list[ChatMessage]:
    made = {"user": ChatMessage.from_user, "assistant": ChatMessage.from_assistant}
    return [ChatMessage.from_system(SYSTEM), *(made[role](text) for role, text in pairs())]


def said(messages: list[ChatMessage]) -> list[tuple[str, str | None]]:
    return [(message.role.value, message.text) for message in messages]


def pipeline_of(component: Any, sent: list[list[ChatMessage]]) -> Pipeline:
    def answer(messages: list[ChatMessage]) -> str:
        sent.append(messages)
        return "No."

    pipeline = Pipeline()
    pipeline.add_component("fit", component)
    pipeline.add_component("model", MockChatGenerator(response_fn=answer))
    pipeline.connect("fit.messages", "model.messages")
    return pipeline


@pytest.mark.parametrize("settings", [Settings.minimal(), Settings.thorough()])
def test_the_generator_gets_what_the_plain_interface_chooses(settings: Settings) -> None:
    sent: list[list[ChatMessage]] = []
    pipeline = pipeline_of(GatekeeperMessages(BUDGET, settings=settings.as_dict()), sent)
    result = pipeline.run({"fit": {"messages": [*history(), ChatMessage.from_user(QUERY)]}})
    assert result["model"]["replies"][0].text == "No."
    assert said(sent[0]) == chosen(settings=settings)


def test_the_loop_is_not_blocked() -> None:
    threads: list[int] = []
    component = GatekeeperMessages(BUDGET, count_tokens=slow_counter(threads))
    messages = [*history(), ChatMessage.from_user(QUERY)]
    assert asyncio.run(component.run_async(messages)) == component.run(messages)
    sent: list[list[ChatMessage]] = []
    threads.clear()
    pipeline = pipeline_of(GatekeeperMessages(BUDGET, count_tokens=slow_counter(threads)), sent)
    asyncio.run(pipeline.run_async({"fit": {"messages": messages}}))
    assert said(sent[0]) == chosen(count_tokens=len)
    assert threads
    assert threading.get_ident() not in threads


def test_it_is_serialized() -> None:
    component = GatekeeperMessages(BUDGET, prune=False, settings=Settings.thorough().as_dict())
    pipeline = pipeline_of(component, [])
    pipeline.remove_component("model")
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["gatekeeper.integrations.haystack"])
    messages = [*history(), ChatMessage.from_user(QUERY)]
    assert again.run({"fit": {"messages": messages}}) == {"fit": component.run(messages)}


def test_tools_images_and_results_are_read() -> None:
    call = ChatMessage.from_assistant(tool_calls=[ToolCall("look", {"q": "redis"}, id="c1")])
    result = ChatMessage.from_tool("Redis is fast. Truly.", origin=call.tool_calls[0])
    image = ImageContent(base64_image="A" * 9999, mime_type="image/png", validation=False)
    messages = [ChatMessage.from_user(content_parts=["Look. Now.", image]), call, result,
                ChatMessage.from_assistant("Yes."), ChatMessage.from_user("is redis fast")]  # fmt: skip
    fitted = GatekeeperMessages(4000).run(messages)["messages"]
    assert [m.role.value for m in fitted] == ["user", "assistant", "tool", "assistant", "user"]
    assert (fitted[0].texts, fitted[0].images) == (["Look."], [image])
    assert fitted[1] is call
    assert fitted[2].tool_call_results[0].result == "Redis is fast."
    torn = GatekeeperMessages(4000).run([messages[0], call, *messages[3:]])["messages"]
    assert [m.role.value for m in torn] == ["user"]
    tool = create_tool_from_function(look)
    assert len(GatekeeperMessages(150).run(messages, tools=[tool])["messages"]) == 1


def look(q: str) -> str:
    """Look something up."""
    return q
