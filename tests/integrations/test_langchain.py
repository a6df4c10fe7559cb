"""LangChain's own agent and fake model, with the middleware and the retriever."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from history import BUDGET, QUERY, SYSTEM, TURNS, chosen, pairs, slow_counter
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool

from gatekeeper import ContextGatekeeper, Settings, fit_messages
from gatekeeper.integrations.langchain import GatekeeperMiddleware, GatekeeperRetriever


class RecordingModel(GenericFakeChatModel):
    """LangChain's fake model, which takes tools and keeps what it was sent."""

    sent: list[list[AnyMessage]] = []  # noqa: RUF012  # pydantic copies it

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        self.sent.append(list(messages))
        return super()._generate(messages, *args, **kwargs)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def model_of(*answers: AIMessage | str) -> RecordingModel:
    return RecordingModel(messages=iter(AIMessage(a) if isinstance(a, str) else a for a in answers), sent=[])


def history() -> list[AnyMessage]:
    return [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in pairs()]


def said(messages: list[AnyMessage]) -> list[tuple[str, str]]:
    roles = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
    return [(roles[message.type], str(message.content)) for message in messages]


@tool
def look(q: str) -> str:
    """Look something up."""
    return f"found {q}"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("settings", [Settings.minimal(), Settings.thorough()])
def test_the_model_gets_what_the_plain_interface_chooses(is_async: bool, settings: Settings) -> None:
    model = model_of("No.")
    middleware = GatekeeperMiddleware(BUDGET, settings=settings)
    agent = create_agent(model, system_prompt=SYSTEM, middleware=[middleware])
    given = {"messages": [*history(), HumanMessage(QUERY)]}
    state = asyncio.run(agent.ainvoke(given)) if is_async else agent.invoke(given)
    assert said(model.sent[0]) == chosen(settings=settings)
    assert len(state["messages"]) == 2 * len(TURNS) + 2


def test_tools_count_and_calls_stay_with_their_results() -> None:
    call = AIMessage("", tool_calls=[{"id": "c1", "name": "look", "args": {"q": "redis"}}])
    model = model_of(call, "It is.")
    agent = create_agent(model, tools=[look], system_prompt=SYSTEM, middleware=[GatekeeperMiddleware(900)])
    agent.invoke({"messages": [*history(), HumanMessage(QUERY)]})
    assert [m.type for m in model.sent[1]][-3:] == ["human", "ai", "tool"]
    assert said(model.sent[1])[:-2] == said(model.sent[0])
    tight = create_agent(model_of("x"), tools=[look], middleware=[GatekeeperMiddleware(100, strict=True)])
    with pytest.raises(ValueError, match="the budget is 100"):
        tight.invoke({"messages": [HumanMessage("hi")]})


def test_the_loop_is_not_blocked() -> None:
    threads: list[int] = []
    agent = create_agent(model_of("No."), middleware=[GatekeeperMiddleware(BUDGET, count_tokens=slow_counter(threads))])
    asyncio.run(agent.ainvoke({"messages": [*history(), HumanMessage(QUERY)]}))
    assert threads
    assert threading.get_ident() not in threads


def test_messages_of_langchain_are_read_as_they_are() -> None:
    call = AIMessage("Let me look.", tool_calls=[{"id": "c1", "name": "look", "args": {"q": "redis"}}])
    blocks = [{"type": "text", "text": "Redis is fast. Truly."}, {"type": "image", "base64": "A" * 9999}]
    messages = [SystemMessage("s"), HumanMessage(blocks), call, ToolMessage("redis is fast", tool_call_id="c1"),
                AIMessage("Yes. Redis."), HumanMessage("is redis fast")]  # fmt: skip
    fitted = fit_messages(messages, 4000)
    assert [m.type for m in fitted] == ["system", "human", "ai", "tool", "ai", "human"]
    assert fitted[1].content == [{"type": "text", "text": "Redis is fast."}, blocks[1]]
    assert fitted[2] is call
    assert fitted[5] is messages[5]
    assert [m.type for m in fit_messages(messages[:3] + messages[4:])] == ["system", "human", "ai", "human"]
    orphan = [*messages[:2], *messages[3:]]
    assert [m.type for m in fit_messages(orphan)] == ["system", "human", "ai", "human"]


def test_ids_are_known() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_messages([HumanMessage("redis", id="1"), AIMessage("yes", id="2")])
    gate.add_messages([HumanMessage("redis", id="1"), AIMessage("no", id="2")])
    assert [(block.user, block.assistant) for block in map(gate.block, range(len(gate)))] == [("redis", "no")]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_retriever_gives_the_chosen_turns(is_async: bool) -> None:
    gate = ContextGatekeeper(BUDGET)
    gate.add_turns(TURNS)
    retriever = GatekeeperRetriever(gate=gate)
    documents = asyncio.run(retriever.ainvoke(QUERY)) if is_async else retriever.invoke(QUERY)
    assert [document.metadata for document in documents] == gate.select(QUERY)
    first = gate.select(QUERY)[0]
    assert documents[0].page_content == f"{first['user']}\n{first['assistant']}"
