"""Pydantic AI: a capability that fits the messages of every model request, also as a history processor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from gatekeeper.messages.fit import MessageFitter
from gatekeeper.messages.formats import ASSISTANT, SYSTEM, TOOL, USER, View

RETRIES = ("retry-prompt", "retry-feedback")


class GatekeeperHistory(AbstractCapability[Any]):
    """For `Agent(capabilities=[...])`: the model gets what `fit_messages` chooses, the run keeps every message.

    Arguments as in `MessageFitter`. Instructions and the schemas of the tools count against the budget. `process` by
    itself is a processor for `ProcessHistory`, which makes the choice the history of the run.
    """

    def __init__(self, token_budget: int = 4000, **options: Any) -> None:
        self._fitter = MessageFitter(token_budget, read=read_message, **options)

    async def prepare_model_request(self, ctx: RunContext[Any],
                                    request_context: ModelRequestContext) -> ModelRequestContext:
        parameters = request_context.model_request_parameters
        tools = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
                 for tool in (*parameters.function_tools, *parameters.output_tools)]  # fmt: skip
        messages = await asyncio.to_thread(self.process, request_context.messages, tools)
        return replace(request_context, messages=messages)

    def process(self, messages: list[ModelMessage], tools: Sequence[Any] = ()) -> list[ModelMessage]:
        instructions = next((m.instructions for m in reversed(messages) if isinstance(m, ModelRequest)), None)
        halves = [half for message in messages for half in _halves(message)]
        fitted = self._fitter.fit([half for half, _ in halves], tools=list(tools),
                                  reserved_tokens=self._fitter.count_tokens(instructions) if instructions else 0)
        return _joined(fitted, {id(half): whole for half, whole in halves})


def _halves(message: ModelMessage) -> list[tuple[ModelMessage, ModelMessage]]:
    """A request that holds a system prompt and a question as two, since only one of them always stays."""
    if not isinstance(message, ModelRequest):
        return [(message, message)]
    system = [part for part in message.parts if isinstance(part, SystemPromptPart)]
    rest = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    if not system or not rest:
        return [(message, message)]
    return [(replace(message, parts=system), message), (replace(message, parts=rest), message)]


def _joined(fitted: Sequence[ModelMessage], wholes: dict[int, ModelMessage]) -> list[ModelMessage]:
    """The messages with both halves of one as the message that came in, where neither is cut."""
    messages: list[ModelMessage] = []
    halves_of_last = 0
    for message in fitted:
        whole = wholes.get(id(message), message)
        if whole is not message and halves_of_last == 1 and wholes.get(id(messages[-1])) is whole:
            messages[-1], halves_of_last = whole, 2
        else:
            messages.append(message)
            halves_of_last = int(whole is not message)
    return messages


def read_message(message: ModelMessage) -> View:
    """The view of a message of Pydantic AI."""
    view = View(message, _role(message), _rewritten, _without_results)
    parts: Sequence[Any] = message.parts
    for part in parts:
        if isinstance(part, UserPromptPart):
            _read_prompt(view, part.content)
        elif isinstance(part, (SystemPromptPart, TextPart)):
            view.add_text(part.content)
        elif _is_result(part):
            view.results.append(part.tool_call_id)
            _read_result(view, part)
        elif part.part_kind in RETRIES:
            view.add_hidden(part.model_response())
        elif part.part_kind == "speech":
            view.add_fixed(part.transcript or "")
            view.n_opaque += part.audio is not None
        elif isinstance(part, ToolCallPart):
            view.add_call(part.tool_call_id, part.tool_name, part.args_as_json_str())
        elif isinstance(part, ThinkingPart):
            view.add_hidden(part.content)
        elif part.part_kind == "file":
            view.n_opaque += 1
        else:
            view.add_hidden(repr(part))  # what the framework notes down: changes of tools, of instructions
    return view


def _role(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return ASSISTANT
    kinds = {part.part_kind for part in message.parts}
    if kinds & {"user-prompt", "speech"}:
        return USER
    return TOOL if kinds & {"tool-return", *RETRIES} else SYSTEM


def _is_result(part: Any) -> bool:
    """Whether a part answers a tool's call; in older histories a retry may do so."""
    return isinstance(part, ToolReturnPart) or (part.part_kind == "retry-prompt" and bool(part.tool_name))


def _read_prompt(view: View, content: Any) -> None:
    for item in [content] if isinstance(content, str) else content:
        if isinstance(item, (str, TextContent)):
            view.add_text(item if isinstance(item, str) else item.content)
        elif not isinstance(item, CachePoint):
            view.n_opaque += 1


def _read_result(view: View, part: Any) -> None:
    """A result that is text may be cut; another goes as it is."""
    if isinstance(part, ToolReturnPart) and isinstance(part.content, str):
        view.add_text(part.content, own=False)
        return
    view.add_hidden(part.model_response_str() if isinstance(part, ToolReturnPart) else part.model_response())
    if isinstance(part, ToolReturnPart):
        view.n_opaque += len(part.files)


def _without_results(message: Any) -> Any:
    return replace(message, parts=[part for part in message.parts if not _is_result(part)])


def _rewritten(message: Any, texts: Sequence[str]) -> Any:
    left = iter(texts)
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            parts.append(replace(part, content=_with_texts(part.content, left)))
        elif isinstance(part, ToolReturnPart) and isinstance(part.content, str):
            parts.append(replace(part, content=next(left)))
        elif isinstance(part, (SystemPromptPart, TextPart)):
            text = next(left)
            parts += [_with_text(part, text)] if text else []
        else:
            parts.append(part)
    return replace(message, parts=parts)


def _with_texts(content: Any, left: Any) -> Any:
    if isinstance(content, str):
        return next(left)
    items: list[Any] = []
    for item in content:
        if isinstance(item, (str, TextContent)):
            text = next(left)
            items += [text if isinstance(item, str) else replace(item, content=text)] if text else []
        else:
            items.append(item)
    return items


def _with_text(part: Any, text: str) -> Any:
    """A cut text goes without the id under which the provider keeps the whole."""
    if text == part.content:
        return part
    return replace(part, content=text, id=None) if isinstance(part, TextPart) else replace(part, content=text)
