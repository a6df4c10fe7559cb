"""OpenAI Agents SDK: a filter for the input of every model call, and a session that chooses from its items."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import FunctionTool, SQLiteSession, TResponseInputItem
from agents.memory import Session
from agents.run import CallModelData, ModelInputData

from gatekeeper.messages.fit import MessageFitter


class GatekeeperInputFilter:
    """For `RunConfig(call_model_input_filter=...)`: the model gets what `fit_messages` chooses.

    Arguments as in `MessageFitter`. Instructions and the schemas of the agent's function tools count against the
    budget; for those of MCP servers and handoffs set reserved_tokens.
    """

    def __init__(self, token_budget: int = 4000, **options: Any) -> None:
        self._fitter = MessageFitter(token_budget, **options)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        model_data = data.model_data
        items = await asyncio.to_thread(self._fitted, model_data, data.agent.tools)
        return ModelInputData(input=items, instructions=model_data.instructions)

    def _fitted(self, model_data: ModelInputData, tools: list[Any]) -> list[TResponseInputItem]:
        schemas = [{"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
                   for tool in tools if isinstance(tool, FunctionTool)]  # fmt: skip
        reserved = self._fitter.count_tokens(model_data.instructions) if model_data.instructions else 0
        return list(self._fitter.fit(model_data.input, tools=schemas, reserved_tokens=reserved))


class GatekeeperSession:
    """A session that keeps every item in a session of the SDK and chooses from them for each run.

    store: that session, by default one in memory. Give `choose` to the run, since a session by itself does not learn
    what is asked: `RunConfig(session_input_callback=session.choose)`. Other arguments as in `MessageFitter`.
    """

    def __init__(self, session_id: str, token_budget: int = 4000, *, store: Session | None = None,
                 **options: Any) -> None:
        self.session_id = session_id
        self.store = SQLiteSession(session_id) if store is None else store
        self.session_settings = self.store.session_settings
        self._fitter = MessageFitter(token_budget, **options)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self.store.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self.store.add_items(items)

    async def pop_item(self) -> TResponseInputItem | None:
        return await self.store.pop_item()

    async def clear_session(self) -> None:
        await self.store.clear_session()
        self._fitter.forget_all()

    async def choose(self, history: list[TResponseInputItem],
                     new_items: list[TResponseInputItem]) -> list[TResponseInputItem]:
        """What the run begins with: what of the history helps with the new items, and these.

        The SDK saves an item that is neither in history nor in new_items as a new one. So a cut text goes into the item
        of `history` itself, which is the SDK's copy for this call.
        """
        items = [*history, *new_items]
        fitted = await asyncio.to_thread(self._fitter.fit, [dict(item, place=i) for i, item in enumerate(items)])
        chosen = []
        for item in fitted:
            place = item.pop("place")
            items[place].update(item)
            chosen.append(items[place])
        return chosen
