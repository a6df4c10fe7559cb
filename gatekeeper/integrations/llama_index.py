"""LlamaIndex: a chat memory that gives what a query needs, and a postprocessor that cuts nodes to a budget."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory.types import BaseMemory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.messages.fit import MessageFitter
from gatekeeper.settings import Settings
from gatekeeper.tokens import estimate_tokens


class GatekeeperMemory(BaseMemory):
    """Keeps every message and gives those that `fit_messages` chooses.

    Arguments of the constructor and of `from_defaults` as in `MessageFitter`. The asynchronous doors of the base class
    work in a thread.
    """

    messages: list[ChatMessage] = Field(default_factory=list)
    token_budget: int = 4000
    _fitter: MessageFitter = PrivateAttr()

    def __init__(self, token_budget: int = 4000, *, messages: list[ChatMessage] | None = None, **options: Any) -> None:
        fields: dict[str, Any] = {"token_budget": token_budget, "messages": list(messages or [])}
        super().__init__(**fields)
        self._fitter = MessageFitter(token_budget, **options)

    @classmethod
    def class_name(cls) -> str:
        return "GatekeeperMemory"

    @classmethod
    def from_defaults(cls, chat_history: list[ChatMessage] | None = None, **options: Any) -> GatekeeperMemory:
        return cls(messages=chat_history, **options)

    def get(self, input: str | None = None, initial_token_count: int = 0, **_: Any) -> list[ChatMessage]:
        """The messages to send. input: what the user asks; without it the last user message asks.

        initial_token_count: tokens of what the engine sends besides. A question that is not among the messages yet is
        not in the result either: the engine adds it.
        """
        asked = self._last_question()
        if input is None or (asked is not None and asked.content == input):
            return list(self._fitter.fit(self.messages, reserved_tokens=initial_token_count))
        question = ChatMessage(role=MessageRole.USER, content=input)
        fitted = self._fitter.fit([*self.messages, question], reserved_tokens=initial_token_count)
        return [message for message in fitted if message is not question]

    def _last_question(self) -> ChatMessage | None:
        return next((message for message in reversed(self.messages) if message.role == MessageRole.USER), None)

    def get_all(self) -> list[ChatMessage]:
        return list(self.messages)

    def put(self, message: ChatMessage) -> None:
        self.messages.append(message)

    def set(self, messages: list[ChatMessage]) -> None:
        self.messages = list(messages)

    def reset(self) -> None:
        self.messages = []
        self._fitter.forget_all()


class GatekeeperPostprocessor(BaseNodePostprocessor):
    """Keeps of the retrieved nodes the fewest that cover the query, cut to the sentences that hold its words.

    The nodes keep their order and scores; a cut node is a copy. Without a query nothing is left out.
    """

    token_budget: int = 4000
    _settings: Settings = PrivateAttr()
    _count_tokens: Any = PrivateAttr()

    def __init__(self, token_budget: int = 4000, *, settings: Settings | None = None,
                 count_tokens: Any = estimate_tokens) -> None:
        fields: dict[str, Any] = {"token_budget": token_budget}
        super().__init__(**fields)
        self._settings, self._count_tokens = settings or Settings(), count_tokens

    @classmethod
    def class_name(cls) -> str:
        return "GatekeeperPostprocessor"

    def _postprocess_nodes(self, nodes: list[NodeWithScore],
                           query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        if query_bundle is None:
            return nodes
        gate = ContextGatekeeper(self.token_budget, settings=self._settings, count_tokens=self._count_tokens)
        newest_first = nodes[::-1]  # so that of two equal nodes the better ranked one wins
        gate.add_turns((node.node.get_content(MetadataMode.NONE), "") for node in newest_first)
        kept = {block["turn_id"]: block["user"] for block in gate.select(query_bundle.query_str)}
        return [_cut(newest_first[turn_id], kept[turn_id]) for turn_id in sorted(kept, reverse=True)]


def _cut(node: NodeWithScore, text: str) -> NodeWithScore:
    if text == node.node.get_content(MetadataMode.NONE).strip():
        return node
    copied = node.node.model_copy(deep=True)
    copied.set_content(text)
    return NodeWithScore(node=copied, score=node.score)
