"""Chat messages in, chat messages out: `fit_messages`, and what stands behind a gatekeeper's `add_messages`."""

from __future__ import annotations

from gatekeeper.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gatekeeper.messages.selection import FittedMessages
    from gatekeeper.settings import Settings


def fit_messages(
    messages: Any,
    token_budget: int = 4000,
    *,
    tools: Any = None,
    pinned: Callable[[Any], bool] | None = None,
    prune: bool = True,
    reserved_tokens: int = 0,
    strict: bool = False,
    settings: Settings | None = None,
    count_tokens: Callable[[str], int] = estimate_tokens,
) -> FittedMessages:
    """The messages worth sending for the last user message, within the budget; docs/messages.md has the rules.

    messages: the whole conversation, in any format that `gatekeeper.messages.formats` reads. System messages, pinned
    ones and the last turn stay; of the turns before, those that help with the last user message. They are the very
    objects that came in; where text was cut they are copies, never with prune=False.

    token_budget: of all messages that come back, of `tools` (JSON schemas) and of reserved_tokens, which is for what
    is sent besides: a system prompt given apart, the answer. pinned: whether a message stays; by default one that has
    `pinned` set. strict: when the part that stays exceeds the budget raise BudgetError, instead of a warning and
    `over_budget` on the list that comes back.

    What was indexed is remembered for the last conversations of this process, so a list that has grown costs what is
    new in it; the answer is the same as without. `gatekeeper.messages.forget_all()` empties that memory;
    `gatekeeper.messages.fit.MessageFitter` has one of its own.
    """
    from gatekeeper.messages.fit import PROCESS_MEMORY, MessageFitter

    fitter = MessageFitter(token_budget, pinned=pinned, prune=prune, reserved_tokens=reserved_tokens, strict=strict,
                           settings=settings, count_tokens=count_tokens, memory=PROCESS_MEMORY)
    return fitter.fit(messages, tools=tools)


def forget_all() -> None:
    """Drop what `fit_messages` remembers of the conversations it saw."""
    from gatekeeper.messages.fit import PROCESS_MEMORY

    PROCESS_MEMORY.clear()
