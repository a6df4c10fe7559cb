"""Who chooses: gatekeeper by its two settings. A selector is fed a conversation turn by turn and asked on the way."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.quality.cost import cost_of, prompt_counter
from benchmarks.quality.data import Conversation
from benchmarks.quality.measures import Chosen
from gatekeeper import ContextGatekeeper, Settings

SETTINGS = {"minimal": Settings.minimal, "thorough": Settings.thorough}


class Selector:
    """name: as in the tables; begin, then grow and ask with rising `at`."""

    name = ""
    has_gate = False
    languages = ("en", "zh")

    def begin(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.cost = cost_of(conversation.language)

    def grow(self, at: int) -> None:
        """The history is now turns[:at]."""

    def ask(self, query: str, budgets: Sequence[int]) -> list[list[Chosen]]:
        """What is sent at each budget, which bounds the text of the turns alone."""
        raise NotImplementedError

    def leaves_topic(self, query: str) -> bool:
        """Whether the query is called a switch of topic."""
        raise NotImplementedError


class Gatekeeper(Selector):
    """One gate a conversation; turns are added, never indexed again."""

    has_gate = True

    def __init__(self, name: str, **changes: float) -> None:
        self.name = name
        self.settings = SETTINGS[name]().replace(**changes)

    def begin(self, conversation: Conversation) -> None:
        super().begin(conversation)
        self.gate = ContextGatekeeper(1, settings=self.settings, count_tokens=prompt_counter(conversation.language))

    def grow(self, at: int) -> None:
        turns = self.conversation.turns[len(self.gate) : at]
        self.gate.token_budget = 10**9  # none of them is over it
        self.gate.add_turns((turn.user, turn.assistant) for turn in turns)

    def ask(self, query: str, budgets: Sequence[int]) -> list[list[Chosen]]:
        answers = []
        for budget in budgets:
            self.gate.token_budget = budget
            blocks = self.gate.select(query)
            answers.append([Chosen(block["turn_id"], block["user"], block["assistant"]) for block in blocks])
        return answers

    def leaves_topic(self, query: str) -> bool:
        self.gate.token_budget = 1
        return bool(self.gate.explain(query)["gate"]["action"] == "switch")
