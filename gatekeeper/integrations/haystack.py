"""Haystack: a component that fits chat messages before they reach a generator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage, ReasoningContent, TextContent, ToolCall, ToolCallResult
from haystack.tools import ToolsType, flatten_tools_or_toolsets

from gatekeeper.messages.fit import MessageFitter
from gatekeeper.messages.formats import ANY_CALL, ROLES, TOOL, View
from gatekeeper.settings import Settings


@component
class GatekeeperMessages:
    """Messages in, those that `fit_messages` chooses out.

    Arguments as in `MessageFitter`; only token_budget, prune, reserved_tokens, strict and settings are serialized.
    """

    def __init__(self, token_budget: int = 4000, *, prune: bool = True, reserved_tokens: int = 0, strict: bool = False,
                 settings: dict[str, Any] | None = None, **options: Any) -> None:
        self._parameters = {"token_budget": token_budget, "prune": prune, "reserved_tokens": reserved_tokens,
                            "strict": strict, "settings": settings}  # fmt: skip
        self._fitter = MessageFitter(token_budget, prune=prune, reserved_tokens=reserved_tokens, strict=strict,
                                     settings=Settings(**settings or {}), read=read_message, **options)

    @component.output_types(messages=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: ToolsType | None = None) -> dict[str, list[ChatMessage]]:
        """tools: those that the generator is given; their schemas count against the budget."""
        schemas = [tool.tool_spec for tool in flatten_tools_or_toolsets(tools)]
        return {"messages": list(self._fitter.fit(messages, tools=schemas))}

    @component.output_types(messages=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage],
                        tools: ToolsType | None = None) -> dict[str, list[ChatMessage]]:
        return await asyncio.to_thread(self.run, messages, tools)

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self, **self._parameters)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GatekeeperMessages:
        return default_from_dict(cls, data)


def read_message(message: ChatMessage) -> View:
    """The view of a Haystack message."""
    view = View(message, ROLES[message.role.value], _rewritten)
    for part in message._content:
        if isinstance(part, TextContent):
            view.add_text(part.text)
        elif isinstance(part, ToolCall):
            view.add_call(part.id, part.tool_name, part.arguments)
        elif isinstance(part, ToolCallResult):
            view.results.append(part.origin.id or ANY_CALL)
            _read_result(view, part.result)
        elif isinstance(part, ReasoningContent):
            view.add_hidden(part.reasoning_text)
        else:
            view.n_opaque += 1
    if view.role == TOOL:
        view.own_text = ""
    return view


def _read_result(view: View, result: Any) -> None:
    for part in [TextContent(result)] if isinstance(result, str) else result:
        if isinstance(part, TextContent):
            view.add_text(part.text, own=False)
        else:
            view.n_opaque += 1


def _rewritten(message: ChatMessage, texts: Sequence[str]) -> ChatMessage:
    left = iter(texts)
    parts: list[Any] = []
    for part in message._content:
        if isinstance(part, TextContent):
            text = next(left)
            parts += [TextContent(text)] if text else []
        elif isinstance(part, ToolCallResult) and isinstance(part.result, str):
            parts.append(replace(part, result=next(left)))
        elif isinstance(part, ToolCallResult):
            kept: list[Any] = [TextContent(next(left)) if isinstance(item, TextContent) else item
                               for item in part.result]  # fmt: skip
            parts.append(replace(part, result=[item for item in kept if item != TextContent("")]))
        else:
            parts.append(part)
    return replace(message, _content=parts)
