"""LangChain: an agent middleware that fits the messages of every model call, and a retriever over past turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.utils.function_calling import convert_to_openai_tool

from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.messages.fit import MessageFitter


class GatekeeperMiddleware(AgentMiddleware):
    """Sends the model what `fit_messages` chooses; the agent's own state keeps every message.

    Arguments as in `MessageFitter`. The system prompt and the schemas of the tools count against the budget.
    """

    def __init__(self, token_budget: int = 4000, **options: Any) -> None:
        super().__init__()
        self._fitter = MessageFitter(token_budget, **options)

    def wrap_model_call(self, request: ModelRequest[Any],
                        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> ModelResponse[Any]:
        return handler(self._fitted(request))

    async def awrap_model_call(self, request: ModelRequest[Any],
                               handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
                               ) -> ModelResponse[Any]:
        return await handler(await asyncio.to_thread(self._fitted, request))

    def _fitted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        system = [request.system_message] if request.system_message else []
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        fitted = self._fitter.fit([*system, *request.messages], tools=tools)
        return request.override(messages=fitted[len(system) :])


class GatekeeperRetriever(BaseRetriever):
    """Past turns of one conversation as documents, in the order chosen; the metadata are those of `select`."""

    gate: ContextGatekeeper

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document("\n".join(filter(None, (block["user"], block["assistant"]))), metadata=block)
            for block in self.gate.select(query)
        ]
