"""The whole path: add turns, select, build a prompt, import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.texts import SCRIPTS, conversation, conversations, queries
from gatekeeper import ContextGatekeeper, Settings

QUERIES = {script: queries(script)[0] for script in SCRIPTS}
SIZES = [100, 1_000, 10_000]


def filled(script: str, n_turns: int, **settings) -> ContextGatekeeper:
    gate = ContextGatekeeper(4000, **settings)
    gate.add_turns(conversation(script, n_turns))
    return gate


@pytest.mark.parametrize("n_turns", SIZES)
def test_append_and_select(benchmark, n_turns):
    """Add one turn, select once, take the turn back outside the clock."""
    gate = filled("mixed", n_turns)
    turn = conversation("mixed", 1, seed=3)[0]

    def append_and_select():
        gate.add_turn(*turn)
        return gate.select(QUERIES["mixed"])

    benchmark.pedantic(append_and_select, setup=lambda: gate.truncate(n_turns), rounds=200, warmup_rounds=5)


@pytest.mark.parametrize("n_turns", SIZES)
def test_add_turn(benchmark, n_turns):
    gate = filled("mixed", n_turns)
    turn = conversation("mixed", 1, seed=3)[0]
    benchmark.pedantic(lambda: gate.add_turn(*turn), setup=lambda: gate.truncate(n_turns), rounds=200, warmup_rounds=5)


@pytest.mark.parametrize("settings", ["minimal", "thorough"])
@pytest.mark.parametrize("n_turns", SIZES)
def test_select(benchmark, n_turns, settings):
    gate = filled("mixed", n_turns, settings=getattr(Settings, settings)())
    benchmark(gate.select, QUERIES["mixed"])


@pytest.mark.parametrize("script", SCRIPTS)
def test_select_by_script(benchmark, script):
    gate = filled(script, 100)
    benchmark(gate.select, QUERIES[script])


@pytest.mark.parametrize("script", SCRIPTS)
def test_index_and_select(benchmark, script):
    """One 100-turn conversation after another: add all turns, select once."""
    pool = conversations(script, 10)

    def batch():
        for turns in pool:
            gate = ContextGatekeeper(4000)
            gate.add_turns(turns)
            gate.select(QUERIES[script])

    benchmark(batch)


def test_build_prompt(benchmark):
    benchmark(filled("mixed", 100).build_prompt, QUERIES["mixed"])


def test_import(benchmark):
    """A fresh process that imports ContextGatekeeper; compare with test_bare_python."""
    command = [sys.executable, "-c", "from gatekeeper import ContextGatekeeper"]
    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=20)


def test_bare_python(benchmark):
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), rounds=20)
