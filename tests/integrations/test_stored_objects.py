"""Messages of each framework in a session: they come back from the file as messages that say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem

import gatekeeper

CALLS = [{"id": "c1", "type": "function", "function": {"name": "ttl", "arguments": '{"k": 1}'}}]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}}
QUESTION = [{"type": "text", "text": "a redis lock?"}, IMAGE]
CANONICAL: list[dict[str, Any]] = [
    {"role": "system", "content": "brief"},
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": "let me see", "tool_calls": CALLS},
    {"role": "tool", "content": "redis says 30 s", "tool_call_id": "c1"},
    {"role": "assistant", "content": "the redis lock holds 30 s"},
]  # fmt: skip
LANGCHAIN = [
    SystemMessage("brief"), HumanMessage(QUESTION),  # type: ignore[arg-type]  # a str is content
    AIMessage([{"type": "text", "text": "let me see"}, {"type": "tool_use", "id": "c1", "name": "ttl",
                                                        "input": {"k": 1}}],
              tool_calls=[{"name": "ttl", "args": {"k": 1}, "id": "c1"}]),
    ToolMessage("redis says 30 s", tool_call_id="c1"), AIMessage("the redis lock holds 30 s"),
]  # fmt: skip
LLAMA_INDEX = [
    ChatMessage(role="system", content="brief"),
    ChatMessage(role="user", blocks=[TextBlock(text="a redis lock?"), ImageBlock(image=b"abc",
                                                                                image_mimetype="image/png")]),
    ChatMessage(role="assistant", blocks=[TextBlock(text="let me see"),
                                          ToolCallBlock(tool_call_id="c1", tool_name="ttl", tool_kwargs={"k": 1})]),
    ChatMessage(role="tool", content="redis says 30 s", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role="assistant", content="the redis lock holds 30 s"),
]  # fmt: skip
OPENAI = [CANONICAL[0], CANONICAL[1], ChatCompletionMessage.model_validate(CANONICAL[2]), CANONICAL[3],
          ChatCompletionMessage.model_validate(CANONICAL[4])]  # fmt: skip


@pytest.mark.parametrize("messages", [LANGCHAIN, LLAMA_INDEX, OPENAI], ids=["langchain", "llama_index", "openai"])
def test_objects_come_back_as_openai_messages(messages: list[Any], tmp_path: Path) -> None:
    with gatekeeper.open(tmp_path / "a.db") as gate:
        gate.add_messages(messages)
        assert gate.select_messages("redis lock", prune=False) == messages
    with gatekeeper.open(tmp_path / "a.db") as gate:
        head = gate.session.head()
        gate.add_messages(messages)  # without ids the same list again is the same conversation
        assert gate.session.head() == head
        assert gate.select_messages("redis lock", prune=False) == CANONICAL


def test_response_items_come_back_as_items(tmp_path: Path) -> None:
    reasoning = {"id": "r1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "a thought"}]}
    call = {"type": "function_call", "call_id": "c1", "name": "ttl", "arguments": "{}", "id": "f1"}
    text = {"type": "output_text", "text": "the redis lock holds 30 s", "annotations": []}
    answer = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    items = [{"role": "user", "content": "a redis lock?"}, ResponseReasoningItem.model_validate(reasoning),
             ResponseFunctionToolCall.model_validate(call),
             {"type": "function_call_output", "call_id": "c1", "output": "redis says 30 s"},
             ResponseOutputMessage.model_validate(answer)]  # fmt: skip
    with gatekeeper.open(tmp_path / "a.db") as gate:
        gate.add_messages(items)
    with gatekeeper.open(tmp_path / "a.db") as gate:
        assert gate.select_messages("redis lock", prune=False) == [items[0], reasoning, call, items[3], answer]
