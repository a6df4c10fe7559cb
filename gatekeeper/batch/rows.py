"""One row of a batch: a conversation and a query in, what was chosen out. A bad row is an answer, not an error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from gatekeeper.errors import ArgumentValueError
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.messages.formats import messages_of
from gatekeeper.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gatekeeper.settings import Settings

TURNS, MESSAGES, QUERY = "turns", "messages", "query"  # columns in: one of the first two, and the query
SELECTED, PROMPT, TOKENS, ERROR = "selected", "prompt", "tokens", "error"  # columns out


class Chosen(NamedTuple):
    """What was chosen for a row: blocks in the order chosen, the prompt and its tokens; or only why there is none."""

    selected: list[dict[str, Any]] | None
    prompt: str | None
    tokens: int | None
    error: str | None


class Messages:
    """A conversation that comes as chat messages: a list of them, or that list as JSON text, or None."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def listed(self) -> list[Any]:
        """The messages. Raises ArgumentTypeError or ArgumentValueError."""
        value = self.value
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise ArgumentValueError(f"messages must be a JSON list, got {error}: {self.value!r:.80}") from None
        return messages_of([_filled(message) for message in value] if isinstance(value, list) else value)


def _filled(value: Any) -> Any:
    """JSON data without null fields: in Arrow every message of a column has the fields of all."""
    if isinstance(value, dict):
        return {key: _filled(item) for key, item in value.items() if item is not None}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def conversation_of(names: Collection[str]) -> str | None:
    """The name of the column, of those, that holds the conversation; None unless it is exactly one."""
    found = [name for name in (TURNS, MESSAGES) if name in names]
    return found[0] if len(found) == 1 else None


class _Gatekeeper(ContextGatekeeper):
    """Without a warning for each turn that alone exceeds the budget: a batch has millions of turns."""

    def _over_budget(self, turns: list[tuple[str, str]]) -> list[tuple[int, int]]:
        return []


class Chooser:
    """Answers rows, each by a gatekeeper of its own; any number of threads may call it.

    Raises ArgumentTypeError or BudgetError for arguments that do not fit.
    """

    def __init__(self, *, token_budget: int = 4000, settings: Settings | None = None,
                 count_tokens: Callable[[str], int] = estimate_tokens) -> None:
        ContextGatekeeper(token_budget, settings=settings, count_tokens=count_tokens)
        self.token_budget = token_budget
        self.settings = settings
        self.count_tokens = count_tokens

    def __call__(self, index: int, turns: Any, query: Any) -> Chosen:
        """The answer for one row. turns: pairs (user, assistant), or Messages; what is wrong with it is in `error`."""
        try:
            if turns is None or (isinstance(turns, Messages) and turns.value is None):
                return Chosen(None, None, None, f"{TURNS if turns is None else MESSAGES} is null")
            gate = _Gatekeeper(self.token_budget, settings=self.settings, count_tokens=self.count_tokens)
            if isinstance(turns, Messages):
                gate.add_messages(turns.listed())
            else:
                gate.add_turns(turns)
            selection = gate._decide(query)
        except Exception as error:
            return Chosen(None, None, None, f"{type(error).__name__}: {error}")
        blocks = [step.candidate for step in selection.steps]
        return Chosen(
            [{"turn_id": block.turn_id, "user": block.user, "assistant": block.assistant, "score": block.score}
             for block in blocks], selection.prompt, selection.prompt_cost, None)  # fmt: skip
