"""LlamaIndex's own engines, workflow and mock model, with the memory and the postprocessor."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from history import BUDGET, QUERY, SYSTEM, TURNS, chosen, pairs, slow_counter
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockFunctionCallingLLMWithChatMemoryOfLastCall
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from gatekeeper import ContextGatekeeper, Settings, fit_messages
from gatekeeper.integrations.llama_index import GatekeeperMemory, GatekeeperPostprocessor


def model() -> MockFunctionCallingLLMWithChatMemoryOfLastCall:
    return MockFunctionCallingLLMWithChatMemoryOfLastCall()


def history() -> list[ChatMessage]:
    return [ChatMessage(role=role, content=text) for role, text in pairs()]


def said(messages: Any) -> list[tuple[str, str | None]]:
    return [(message.role.value, message.content) for message in messages]


@pytest.mark.parametrize("settings", [Settings.minimal(), Settings.thorough()])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_chat_engine_sends_what_the_plain_interface_chooses(is_async: bool, settings: Settings) -> None:
    llm = model()
    memory = GatekeeperMemory.from_defaults(history(), token_budget=BUDGET, settings=settings)
    prefix = [ChatMessage(role=MessageRole.SYSTEM, content=SYSTEM)]
    engine = SimpleChatEngine(llm=llm, memory=memory, prefix_messages=prefix)
    asyncio.run(engine.achat(QUERY)) if is_async else engine.chat(QUERY)
    wanted = chosen(settings=settings, system=None)
    assert said(llm.last_chat_messages) == [("system", SYSTEM), *wanted]
    assert len(memory.get_all()) == 2 * len(TURNS) + 2


def test_an_agent_sends_what_the_plain_interface_chooses() -> None:
    llm = model()
    agent = FunctionAgent(llm=llm, tools=[], system_prompt=SYSTEM)
    memory = GatekeeperMemory(BUDGET, messages=history())

    async def run() -> None:
        await agent.run(QUERY, memory=memory)

    asyncio.run(run())
    assert said(llm.last_chat_messages) == [("system", SYSTEM), *chosen(system=None)]
    assert len(memory.get_all()) == 2 * len(TURNS) + 2


def test_a_question_that_is_not_put_yet_is_not_given() -> None:
    memory = GatekeeperMemory(BUDGET, messages=history())
    assert said(memory.get(QUERY)) == chosen(system=None)[:-1]
    memory.put(ChatMessage(QUERY))
    assert said(memory.get(QUERY)) == said(memory.get()) == chosen(system=None)
    assert len(memory.get(QUERY, initial_token_count=BUDGET - 90)) < len(memory.get(QUERY))


def test_the_memory_is_set_and_reset() -> None:
    memory = GatekeeperMemory(BUDGET)
    memory.set(history())
    assert memory.get_all() == history()
    assert len(memory.get_all()) == 2 * len(TURNS)
    memory.reset()
    assert memory.get_all() == memory.get() == memory.get("x") == []


def test_the_loop_is_not_blocked() -> None:
    threads: list[int] = []
    memory = GatekeeperMemory(BUDGET, messages=history(), count_tokens=slow_counter(threads))
    asyncio.run(memory.aget(QUERY))
    assert threads
    assert threading.get_ident() not in threads


def test_messages_of_llama_index_are_read_as_they_are() -> None:
    call = ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="c", tool_name="look", tool_kwargs={})])
    older = ChatMessage(role="assistant", additional_kwargs={"tool_calls": [
        {"id": "d", "type": "function", "function": {"name": "look", "arguments": "{}"}}]})  # fmt: skip
    blocks = [TextBlock(text="Redis is fast. Truly."), ImageBlock(url="https://example.org/a.png")]
    messages = [
        ChatMessage(role="user", blocks=blocks), call,
        ChatMessage(role="tool", content="redis is fast", additional_kwargs={"tool_call_id": "c"}), older,
        ChatMessage(role="tool", content="redis too", additional_kwargs={"tool_call_id": "d"}),
        ChatMessage(role="assistant", content="Yes."), ChatMessage(role="user", content="is redis fast"),
    ]  # fmt: skip
    fitted = fit_messages(messages, 4000)
    assert [m.role.value for m in fitted] == ["user", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    assert fitted[0].blocks == [TextBlock(text="Redis is fast."), blocks[1]]
    assert fitted[1] is call
    torn = fit_messages([*messages[:4], *messages[5:]])
    assert [m.role.value for m in torn] == ["user", "assistant", "tool", "assistant", "user"]


def nodes() -> list[NodeWithScore]:
    texts = [f"{user} {assistant}" for user, assistant in TURNS[:4]]
    return [NodeWithScore(node=TextNode(text=text, id_=str(i)), score=1 - i / 10) for i, text in enumerate(texts)]


class Everything(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes()


def test_the_postprocessor_keeps_what_covers_the_query() -> None:
    given = nodes()
    kept = GatekeeperPostprocessor(BUDGET).postprocess_nodes(given, query_str="lazily deletes a key in Redis")
    gate = ContextGatekeeper(BUDGET)
    gate.add_turns((node.node.get_content(), "") for node in given[::-1])
    wanted = [block["user"] for block in gate.select("lazily deletes a key in Redis")]
    assert [node.node.get_content() for node in kept] == wanted
    text = kept[0].node.get_content()
    assert text.startswith("How does Redis expire keys? Redis deletes a key lazily when it is read.")
    assert "Ask more." not in text
    assert (kept[0].score, kept[0].node.node_id) == (1.0, "0")
    assert given[0].node.get_content().endswith("Ask more.")
    assert GatekeeperPostprocessor(BUDGET).postprocess_nodes(given) == given


def test_the_postprocessor_in_a_query_engine() -> None:
    processors = [GatekeeperPostprocessor(BUDGET)]
    engine = RetrieverQueryEngine.from_args(Everything(), llm=model(), node_postprocessors=processors)
    response = asyncio.run(engine.aquery("git rebase of shared branches"))
    assert [node.node.node_id for node in response.source_nodes] == ["1"]
