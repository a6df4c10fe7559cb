"""Fitting a list of messages again and again: what is remembered of a conversation between two calls."""

from __future__ import annotations

from _thread import allocate_lock

from gatekeeper.errors import require_whole_number
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.messages.formats import View, messages_of, read_all, read_message
from gatekeeper.messages.log import MessageLog
from gatekeeper.messages.selection import FittedMessages, Request, fit_last_turn
from gatekeeper.settings import Settings
from gatekeeper.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_CONVERSATIONS = 32
MAX_CHARACTERS = 16_000_000  # of all conversations together; one alone may exceed it
NO_BUDGET = 1 << 62  # the gatekeepers here only index: each call brings its own budget


class Conversation:
    """One conversation that was seen: its gatekeeper, which has every turn but the last, and its messages."""

    def __init__(self, settings: Settings, read: Callable[[Any], View]) -> None:
        self.made_for = (settings, read)
        self.gate = ContextGatekeeper(NO_BUDGET, settings=settings)
        self.log = MessageLog(read)
        self.n_characters = 0

    def fit(self, views: list[View], request: Request, count_tokens: Callable[[str], int]) -> FittedMessages:
        if count_tokens != self.gate._count_tokens:
            self.gate._count_tokens = count_tokens
            self.gate._counts.clear()
            self.log.forget_counts()
        self.log.update(self.gate, views, hold_last=True, durable=False)
        self.n_characters = sum(len(text) for view in views for text in view.texts)
        return fit_last_turn(self.gate, self.log, request)


class Memory:
    """The last conversations that were seen, newest last.

    A conversation serves a list of messages only if the list begins with every turn that it has indexed, compared text
    by text. Its index then is what a new one would hold, so no answer depends on what else was asked, nor by whom.
    While it works it is out of the memory: no other call can reach it.
    """

    def __init__(self) -> None:
        self._conversations: list[Conversation] = []
        self._lock = allocate_lock()

    def __len__(self) -> int:
        return len(self._conversations)

    def fit(self, messages: Any, request: Request, settings: Settings | None, count_tokens: Callable[[str], int],
            read: Callable[[Any], View]) -> FittedMessages:
        """Arguments and errors as in `fit_messages`. A call that fails leaves nothing behind."""
        ContextGatekeeper(request.token_budget, settings=settings, count_tokens=count_tokens)  # refuse bad arguments
        new = Conversation(settings or Settings(), read)
        listed = messages_of(messages)
        known, views = self._take(new.made_for, listed)
        conversation = known or new
        fitted = conversation.fit(list(read_all(listed, read)) if views is None else views, request, count_tokens)
        self._put(conversation)
        return fitted

    def clear(self) -> None:
        with self._lock:
            self._conversations.clear()

    def _take(self, made_for: tuple[object, ...],
              messages: Sequence[Any]) -> tuple[Conversation | None, list[View] | None]:
        """The newest conversation that these messages go on from, out of the memory, and their views."""
        with self._lock:
            for conversation in reversed(self._conversations):
                if conversation.made_for == made_for:
                    views = conversation.log.matched(messages)
                    if views is not None:
                        self._conversations.remove(conversation)
                        return conversation, views
        return None, None

    def _put(self, conversation: Conversation) -> None:
        with self._lock:
            kept = self._conversations
            kept.append(conversation)
            n_characters = sum(other.n_characters for other in kept)
            while len(kept) > 1 and (len(kept) > MAX_CONVERSATIONS or n_characters > MAX_CHARACTERS):
                n_characters -= kept.pop(0).n_characters


PROCESS_MEMORY = Memory()  # of `fit_messages`


class MessageFitter:
    """`fit_messages` with its arguments given once, and a memory of its own.

    Arguments and errors are those of `fit_messages`; read: how a message of a further format is read.
    """

    def __init__(self, token_budget: int = 4000, *, pinned: Callable[[Any], bool] | None = None, prune: bool = True,
                 reserved_tokens: int = 0, strict: bool = False, settings: Settings | None = None,
                 count_tokens: Callable[[str], int] = estimate_tokens,
                 read: Callable[[Any], View] = read_message, memory: Memory | None = None) -> None:
        require_whole_number("reserved_tokens", reserved_tokens)
        self.token_budget = token_budget
        self.count_tokens = count_tokens
        self._options = {"pinned": pinned, "prune": prune, "strict": strict}
        self._reserved_tokens = reserved_tokens
        self._settings = settings
        self._read = read
        self._memory = Memory() if memory is None else memory
        ContextGatekeeper(token_budget, settings=settings, count_tokens=count_tokens)  # refuse bad arguments now
        self._request(None, 0)

    def fit(self, messages: Any, *, tools: Any = None, reserved_tokens: int = 0) -> FittedMessages:
        """The messages worth sending; reserved_tokens: for what is sent besides this once."""
        request = self._request(tools, reserved_tokens)
        return self._memory.fit(messages, request, self._settings, self.count_tokens, self._read)

    def forget_all(self) -> None:
        """Drop what is remembered of the conversations seen."""
        self._memory.clear()

    def _request(self, tools: Any, reserved_tokens: int) -> Request:
        return Request(self.token_budget, tools=tools, reserved_tokens=self._reserved_tokens + reserved_tokens,
                       **self._options)  # type: ignore[arg-type]  # one dict of three types
