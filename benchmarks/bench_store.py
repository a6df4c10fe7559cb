"""Sessions on disk: open one of 10,000 turns, open it and ask, add to it."""

from __future__ import annotations

from itertools import islice

import pytest

import gatekeeper
from benchmarks.texts import Turn, conversation, queries, stream

N_TURNS = 10_000
SIZES = {"short": 1, "ordinary": 3, "long": 10}  # turns of `benchmarks.texts` in one: 90, 290, 960 characters
ASK = queries("mixed")[0]


def turns_of(script: str, n_joined: int) -> list[Turn]:
    """N_TURNS turns, each n_joined turns of the stream in one."""
    turns = stream(script, N_TURNS * n_joined)
    groups = iter(lambda: list(islice(turns, n_joined)), [])
    return [("".join(user for user, _ in group), "".join(assistant for _, assistant in group)) for group in groups]


@pytest.fixture(scope="module")
def path(request, tmp_path_factory):
    script, size = request.param
    path = tmp_path_factory.mktemp("store") / "chats.db"
    with gatekeeper.open(path, token_budget=10**9) as gate:
        gate.add_turns(turns_of(script, SIZES[size]))
    return path


@pytest.mark.parametrize("path", [("mixed", "ordinary")], indirect=True, ids=["ordinary"])
def test_open(benchmark, path):
    benchmark.pedantic(lambda: gatekeeper.open(path).close(), rounds=50)


@pytest.mark.parametrize("path", [("mixed", size) for size in SIZES] + [("english", "short")], indirect=True,
                         ids=[*SIZES, "english"])
def test_open_and_select(benchmark, path):
    """What the first question to a session costs: its index is made of its texts."""

    def ask():
        with gatekeeper.open(path) as gate:
            return gate.select(ASK)

    benchmark.pedantic(ask, rounds=10)


@pytest.mark.parametrize("path", [("mixed", "ordinary")], indirect=True, ids=["ordinary"])
def test_add_turn_and_select(benchmark, path):
    """A turn to disk and a question, in a session that is held open."""
    with gatekeeper.open(path) as gate:
        gate.select(ASK)
        [turn] = conversation("mixed", 1, seed=3)

        def add_and_ask():
            gate.add_turn(*turn)
            return gate.select(ASK)

        benchmark.pedantic(add_and_ask, rounds=100)


def test_first_messages_of_an_opened_session(benchmark, tmp_path):
    """10,000 turns that came as messages: open, choose messages for a question."""
    path = tmp_path / "chats.db"
    messages = [{"role": role, "content": text, "id": f"{role}{i}"} for i, turn in enumerate(turns_of("mixed", 3))
                for role, text in zip(("user", "assistant"), turn, strict=True)]  # fmt: skip
    with gatekeeper.open(path, token_budget=10**9) as gate:
        gate.add_messages(messages)

    def ask():
        with gatekeeper.open(path, token_budget=10**9) as gate:
            return gate.select_messages(ASK)

    benchmark.pedantic(ask, rounds=5)
