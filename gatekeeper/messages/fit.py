"""What `fit_messages` remembers between two calls: the last conversations, each known by what it says."""

from __future__ import annotations

from _thread import allocate_lock

from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.messages.formats import View, messages_of, read_all, read_message
from gatekeeper.messages.log import MessageLog
from gatekeeper.messages.selection import FittedMessages, Request, fit_last_turn
from gatekeeper.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_CONVERSATIONS = 32
MAX_CHARACTERS = 16_000_000  # of all conversations together; one alone may exceed it
NO_BUDGET = 1 << 62  # the gatekeepers here only index: each call brings its own budget


class Fitter:
    """One conversation that was seen: its gatekeeper, which has every turn but the last, and its messages."""

    def __init__(self, settings: Settings, read: Callable[[Any], View]) -> None:
        self.made_for = (settings, read)
        self.gate = ContextGatekeeper(NO_BUDGET, settings=settings)
        self.log = MessageLog(read)
        self.n_characters = 0

    def fit(self, views: list[View], request: Request, count_tokens: Callable[[str], int]) -> FittedMessages:
        if count_tokens != self.gate._count_tokens:
            self.gate._count_tokens = count_tokens
            self.log.forget_counts()
        self.log.update(self.gate, views, hold_last=True, durable=False)
        self.n_characters = sum(len(text) for view in views for text in view.texts)
        return fit_last_turn(self.gate, self.log, request)


class Fitters:
    """The fitters of the last conversations, newest last.

    A fitter serves a list of messages only if the list begins with every turn that the fitter has indexed, compared
    text by text. Its index then is what a new one would hold, so no answer depends on what else was asked, nor by
    whom. While it works it is out of this store: no other call can reach it.
    """

    def __init__(self) -> None:
        self._fitters: list[Fitter] = []
        self._lock = allocate_lock()

    def fit(self, messages: Any, request: Request, settings: Settings | None, count_tokens: Callable[[str], int],
            read: Callable[[Any], View] = read_message) -> FittedMessages:
        """Arguments and errors as in `fit_messages`. A call that fails leaves nothing behind."""
        new = Fitter(settings or Settings(), read)
        ContextGatekeeper(request.token_budget, settings=settings, count_tokens=count_tokens)  # refuse bad arguments
        listed = messages_of(messages)
        known, views = self._take(new.made_for, listed)
        fitter = known or new
        fitted = fitter.fit(list(read_all(listed, read)) if views is None else views, request, count_tokens)
        self._put(fitter)
        return fitted

    def clear(self) -> None:
        with self._lock:
            self._fitters.clear()

    def _take(self, made_for: tuple[object, ...], messages: Sequence[Any]) -> tuple[Fitter | None, list[View] | None]:
        """The newest fitter that has indexed the beginning of these messages, out of the store, and their views."""
        with self._lock:
            for fitter in reversed(self._fitters):
                if fitter.made_for == made_for:
                    views = fitter.log.matched(messages)
                    if views is not None:
                        self._fitters.remove(fitter)
                        return fitter, views
        return None, None

    def _put(self, fitter: Fitter) -> None:
        with self._lock:
            self._fitters.append(fitter)
            n_characters = sum(other.n_characters for other in self._fitters)
            while len(self._fitters) > 1 and (len(self._fitters) > MAX_CONVERSATIONS or n_characters > MAX_CHARACTERS):
                n_characters -= self._fitters.pop(0).n_characters


FITTERS = Fitters()
