"""One row of a batch: a conversation and a query in, what was chosen out. A bad row is an answer, not an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatekeeper.settings import Settings

TURNS, QUERY = "turns", "query"  # columns in
SELECTED, PROMPT, TOKENS, ERROR = "selected", "prompt", "tokens", "error"  # columns out


class Chosen(NamedTuple):
    """What was chosen for a row: blocks in the order chosen, the prompt and its tokens; or only why there is none."""

    selected: list[dict[str, Any]] | None
    prompt: str | None
    tokens: int | None
    error: str | None


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
        """The answer for one row. turns: pairs (user, assistant); whatever is wrong with it is in `error`."""
        try:
            if turns is None:
                return Chosen(None, None, None, "turns is null")
            gate = _Gatekeeper(self.token_budget, settings=self.settings, count_tokens=self.count_tokens)
            gate.add_turns(turns)
            selection = gate._decide(query)
        except Exception as error:
            return Chosen(None, None, None, f"{type(error).__name__}: {error}")
        blocks = [step.candidate for step in selection.steps]
        return Chosen(
            [{"turn_id": block.turn_id, "user": block.user, "assistant": block.assistant, "score": block.score}
             for block in blocks], selection.prompt, selection.prompt_cost, None)  # fmt: skip
