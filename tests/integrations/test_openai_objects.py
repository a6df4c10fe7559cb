"""The objects of OpenAI's own client, put into the list as they came."""

from __future__ import annotations

from typing import Any

from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from gatekeeper import fit_messages


def test_chat_messages() -> None:
    function: Any = {"name": "look", "arguments": '{"q": "redis"}'}
    call = ChatCompletionMessageFunctionToolCall(id="c1", type="function", function=function)
    calling = ChatCompletionMessage(role="assistant", content=None, tool_calls=[call])
    answer = ChatCompletionMessage(role="assistant", content="Redis is fast. Truly.")
    messages = [{"role": "user", "content": "Look."}, calling,
                {"role": "tool", "tool_call_id": "c1", "content": "redis is fast"}, answer,
                {"role": "user", "content": "is redis fast"}]  # fmt: skip
    fitted = fit_messages(messages)
    assert fitted[:3] == messages[:3]
    assert fitted[1] is calling
    assert fitted[3] == ChatCompletionMessage(role="assistant", content="Redis is fast.")
    assert list(fit_messages([*messages[:2], *messages[3:]], prune=False)) == [messages[0], answer, messages[4]]


def test_response_items() -> None:
    call = ResponseFunctionToolCall(type="function_call", call_id="c1", name="look", arguments='{"q": "redis"}')
    text = ResponseOutputText(type="output_text", text="Redis is fast. Truly.", annotations=[])
    answer = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    messages = [{"role": "user", "content": "Look."}, call,
                {"type": "function_call_output", "call_id": "c1", "output": "redis is fast"}, answer,
                {"role": "user", "content": "is redis fast"}]  # fmt: skip
    fitted = fit_messages(messages)
    assert fitted[:3] == messages[:3]
    assert fitted[3].content[0].text == "Redis is fast."
    assert answer.content[0] is text
    assert text.text == "Redis is fast. Truly."
