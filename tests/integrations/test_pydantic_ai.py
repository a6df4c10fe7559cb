"""Pydantic AI's own agent with its function model, and the capability."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from history import BUDGET, QUERY, SYSTEM, TURNS, chosen, slow_counter
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SpeechPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from gatekeeper import Settings
from gatekeeper.integrations.pydantic_ai import GatekeeperHistory

Sent = list[list[ModelMessage]]


def model_of(sent: Sent, *answers: ModelResponse) -> FunctionModel:
    left = iter(answers)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        sent.append(list(messages))
        return next(left, ModelResponse(parts=[TextPart("No.")]))

    return FunctionModel(answer)


def history() -> list[ModelMessage]:
    """As a run leaves it: the system prompt stands in the first request, beside the first question."""
    messages: list[ModelMessage] = []
    for user, assistant in TURNS:
        messages += [ModelRequest(parts=[UserPromptPart(user)]), ModelResponse(parts=[TextPart(assistant)])]
    first = messages[0]
    return [ModelRequest(parts=[SystemPromptPart(SYSTEM), *first.parts]), *messages[1:]]


def said(messages: list[ModelMessage]) -> list[tuple[str, Any]]:
    names = {"system-prompt": "system", "user-prompt": "user", "text": "assistant"}
    return [(names[part.part_kind], part.content) for message in messages for part in message.parts]


@pytest.mark.parametrize("settings", [Settings.minimal(), Settings.thorough()])
@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_gets_what_the_plain_interface_chooses(is_async: bool, settings: Settings) -> None:
    sent: Sent = []
    agent = Agent(model_of(sent), capabilities=[GatekeeperHistory(BUDGET, settings=settings)])
    if is_async:
        result = asyncio.run(agent.run(QUERY, message_history=history()))
    else:
        result = agent.run_sync(QUERY, message_history=history())
    assert said(sent[0]) == chosen(settings=settings)
    assert len(result.all_messages()) == 2 * len(TURNS) + 2


def test_as_a_history_processor_the_choice_is_the_history() -> None:
    sent: Sent = []
    agent = Agent(model_of(sent), capabilities=[ProcessHistory(GatekeeperHistory(BUDGET).process)])
    result = agent.run_sync(QUERY, message_history=history())
    assert said(sent[0]) == chosen()
    assert said(result.all_messages()) == [*chosen(), ("assistant", "No.")]


def test_tools_instructions_and_thoughts() -> None:
    sent: Sent = []
    call = ModelResponse(parts=[ThinkingPart("hm"), TextPart("Wait."), ToolCallPart("look", {"q": "redis"}, "c1")])
    capability = GatekeeperHistory(700)
    agent = Agent(model_of(sent, call), instructions="Be brief.", capabilities=[capability])

    @agent.tool_plain
    def look(q: str) -> str:
        return f"found {q}"

    agent.run_sync(QUERY, message_history=history())
    kinds = [part.part_kind for message in sent[1][-2:] for part in message.parts]
    assert kinds == ["thinking", "text", "tool-call", "tool-return"]
    assert said(sent[1][:-2]) == said(sent[0])
    tight = Agent(model_of([]), instructions="Be brief. " * 50, capabilities=[GatekeeperHistory(300, strict=True)])
    with pytest.raises(ValueError, match="the budget is 300"):
        tight.run_sync("hi")


def test_the_loop_is_not_blocked() -> None:
    threads: list[int] = []
    capability = GatekeeperHistory(BUDGET, count_tokens=slow_counter(threads))
    asyncio.run(Agent(model_of([]), capabilities=[capability]).run(QUERY, message_history=history()))
    assert threads
    assert threading.get_ident() not in threads


def test_messages_that_are_whole_are_those_that_came_in() -> None:
    image = BinaryContent(b"0" * 9999, media_type="image/png")
    first = ModelRequest(parts=[SystemPromptPart("s"), UserPromptPart(["Redis is fast.", image])])
    call = ModelResponse(parts=[ToolCallPart("look", "{}", "c1")])
    result = ModelRequest(parts=[ToolReturnPart("look", "redis is fast", "c1")])
    answer = ModelResponse(parts=[TextPart("Yes. Sure.", id="m1", provider_name="x")])
    query = ModelRequest(parts=[UserPromptPart("is redis fast")])
    messages: list[ModelMessage] = [first, call, result, answer, query]
    fitted = GatekeeperHistory(4000).process(messages)
    assert [id(m) for m in fitted[:3]] == [id(first), id(call), id(result)]
    assert fitted[3].parts == [TextPart("Yes.", provider_name="x")]
    assert fitted[4] is query
    assert GatekeeperHistory(4000).process([first, call, answer, query])[1].parts == fitted[3].parts
    unrelated = ModelRequest(parts=[UserPromptPart("bananas")])
    assert GatekeeperHistory(4000).process([*messages[:4], unrelated])[0].parts == first.parts[:1]


def test_speech_asks_and_is_found() -> None:
    spoken = ModelRequest(parts=[SpeechPart(speaker="user", transcript="Is redis fast?")])
    answer = ModelResponse(parts=[SpeechPart(speaker="assistant", transcript="Redis is.")])
    messages: list[ModelMessage] = [spoken, answer, ModelRequest(parts=[UserPromptPart("bananas")]),
                                    ModelResponse(parts=[TextPart("ok")]), spoken]  # fmt: skip
    assert GatekeeperHistory(4000).process(messages) == [spoken, answer, spoken]


def test_a_question_beside_an_orphaned_result_stays() -> None:
    mixed = ModelRequest(parts=[ToolReturnPart("look", "x", "gone"), UserPromptPart("is redis fast")])
    fitted = GatekeeperHistory(4000).process([ModelRequest(parts=[UserPromptPart("hi")]), mixed])
    assert [part.part_kind for part in fitted[-1].parts] == ["user-prompt"]
