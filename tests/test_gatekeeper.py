"""ContextGatekeeper: its interface to the letter, bad input, and the same answer to the same input."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conversations import decision, gate_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, texts, turns

import gatekeeper
from gatekeeper import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetError,
    ContextGatekeeper,
    Settings,
    TurnError,
    estimate_tokens,
)
from gatekeeper.cli import demo

TURNS = [("redis lazy deletion", "A redis key is deleted when it is read."), ("git rebase", "It rewrites commits.")]
HUGE = 10_000_000


# --- the interface


def test_add_turn_counts_from_0() -> None:
    gate = ContextGatekeeper(100)
    assert [gate.add_turn("a", "b"), gate.add_turn("", "")] == [0, 1]
    assert len(gate) == 2
    assert repr(gate) == "ContextGatekeeper(token_budget=100, turns=2)"


def test_add_turns_gives_a_range() -> None:
    gate = ContextGatekeeper(100)
    assert gate.add_turns(iter(TURNS)) == range(2)
    assert gate.add_turns([]) == range(2, 2)
    assert gate.add_turns([["c", "d"]]) == range(2, 3)  # type: ignore[list-item]  # a list of two will do


def test_select_gives_exactly_these_keys_and_types() -> None:
    (chosen,) = gate_of(TURNS).select("redis deletion")
    types = {"turn_id": int, "user": str, "assistant": str, "score": float, "covered_ids": list}
    assert {key: type(value) for key, value in chosen.items()} == types
    assert chosen["turn_id"] == 0
    assert chosen["user"] == TURNS[0][0]
    assert chosen["assistant"] == TURNS[0][1]
    assert [gate_of(TURNS).anchor_text(i) for i in chosen["covered_ids"]] == ["redis", "deletion"]


def test_blocks_come_in_the_order_chosen() -> None:
    gate = gate_of([("alpha", ""), ("beta gamma delta", "")], settings=Settings(coverage_stop=1.0))
    assert [block["turn_id"] for block in gate.select("alpha beta gamma delta")] == [1, 0]


@pytest.mark.parametrize("query", ["", " ", "？！", "x", "惰性删除", "继续", "\ud800", "\x00", "[query]"])
def test_an_empty_history_selects_nothing(query: str) -> None:
    gate = ContextGatekeeper(100)
    assert gate.select(query) == []
    assert gate.build_prompt(query) == f"[query] {query}"
    assert gate.explain(query)["reason"] == "no history"


@pytest.mark.parametrize("query", ["", " \n", "？！…", "的", "the", "。"])
def test_a_query_without_anchors_is_no_error(query: str) -> None:
    """It continues and inherits what the topic's last turn holds."""
    gate = gate_of(TURNS)
    assert {block["turn_id"] for block in gate.select(query)} <= {1}
    assert gate.build_prompt(query).endswith(f"[query] {query}")


def test_a_query_without_anchors_is_looked_for_as_it_stands() -> None:
    assert [block["turn_id"] for block in gate_of([("？！", "ok"), ("git", "")]).select("？！")] == [0]


def test_idf_is_exact_for_the_conversation_as_it_stands() -> None:
    gate = gate_of([("redis", ""), ("redis", ""), ("git", "")])
    assert gate.idf("Redis") == pytest.approx(1.2876820724517808, abs=1e-15)  # ln(4 / 3) + 1
    assert gate.idf("nowhere") == pytest.approx(2.386294361119891, abs=1e-15)  # ln(4) + 1
    gate.forget(0)
    assert gate.idf("redis") == pytest.approx(1.4054651081081644, abs=1e-15)  # ln(3 / 2) + 1


def test_block_gives_the_turn_as_it_came_in() -> None:
    block = gate_of([("Ａ 緩存\r\n", "\ud800")]).block(0)
    assert (block.turn_id, block.user, block.assistant) == (0, "Ａ 緩存\r\n", "\ud800")


def test_a_turn_over_budget_is_kept_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    gate = gate_of([("redis " * 50, ""), ("redis", "")], 60)
    assert [record.getMessage() for record in caplog.records] == ["turn 0 has 450 tokens, the budget is 60: it is kept"]
    assert len(gate) == 2
    assert [block["turn_id"] for block in gate.select("redis")] == [1]


# --- bad input


@pytest.mark.parametrize(("budget", "error"), [
    (0, BudgetError), (-1, BudgetError), (1.5, ArgumentTypeError), ("100", ArgumentTypeError),
    (None, ArgumentTypeError), (True, ArgumentTypeError),
])  # fmt: skip
def test_a_budget_is_a_positive_whole_number(budget: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^token_budget must be"):
        ContextGatekeeper(budget)
    assert issubclass(BudgetError, ValueError)
    assert issubclass(ArgumentTypeError, TypeError)


def test_a_counter_is_a_callable() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^count_tokens must be callable, got int"):
        ContextGatekeeper(100, count_tokens=3)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("count", [-1, 1.5, None, "3"])
def test_a_counter_returns_a_whole_number(count: Any) -> None:
    gate = ContextGatekeeper(100, count_tokens=lambda text: count)
    with pytest.raises(ArgumentValueError, match=r"^count_tokens must return a whole number from 0 up, got"):
        gate.select("x")


def failing() -> Any:
    yield "a", "b"
    raise RuntimeError("the source failed")


BAD_CALLS: list[tuple[Callable[[ContextGatekeeper], object], type[Exception], str]] = [
    (lambda gate: gate.add_turn(None, "x"), ArgumentTypeError, "^user_text must be a str, got NoneType"),
    (lambda gate: gate.add_turn("x", b"y"), ArgumentTypeError, "^assistant_text must be a str, got bytes"),
    (lambda gate: gate.add_turns([("a", "b"), ("", 3)]), ArgumentTypeError, r"^turns\[1\]\[1\] must be a str, got int"),
    (lambda gate: gate.add_turns([("a", "b"), ("c",)]), ArgumentTypeError, r"^turns\[1\] must be a pair"),
    (lambda gate: gate.add_turns(["ab"]), ArgumentTypeError, r"^turns\[0\] must be a pair"),
    (lambda gate: gate.add_turns(failing()), RuntimeError, "the source failed"),
    (lambda gate: gate.select(7), ArgumentTypeError, "^query must be a str, got int"),
    (lambda gate: gate.build_prompt(None), ArgumentTypeError, "^query must be a str"),
    (lambda gate: gate.explain(b""), ArgumentTypeError, "^query must be a str"),
    (lambda gate: gate.truncate(-1), ArgumentValueError, "^n_turns must be 0 to 2, got -1"),
    (lambda gate: gate.truncate(3), ArgumentValueError, "^n_turns must be 0 to 2, got 3"),
    (lambda gate: gate.truncate(1.0), ArgumentTypeError, "^n_turns must be an int"),
    (lambda gate: gate.forget(2), TurnError, "^turn_id must be 0 to 1, got 2"),
    (lambda gate: gate.forget(-1), TurnError, "^turn_id must be 0 to 1, got -1"),
    (lambda gate: gate.forget("0"), ArgumentTypeError, "^turn_id must be an int"),
    (lambda gate: gate.forget(True), ArgumentTypeError, "^turn_id must be an int"),
    (lambda gate: gate.block(2), TurnError, "no turn 2"),
    (lambda gate: gate.anchor_text(10**6), ArgumentValueError, "^anchor_id names no anchor"),
    (lambda gate: gate.anchor_text(-1), ArgumentValueError, "^anchor_id names no anchor"),
    (lambda gate: gate.anchor_text(1 << 40), ArgumentValueError, "^anchor_id names no anchor"),
    (lambda gate: gate.idf(3), ArgumentTypeError, "^anchor must be a str"),
    (lambda gate: gate.to_scipy("both"), ArgumentValueError, "^side must be"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS)
def test_bad_input_is_named_and_changes_nothing(
    call: Callable[[ContextGatekeeper], object], error: type[Exception], message: str
) -> None:
    gate = gate_of(TURNS)
    before = decision(gate, "redis git")
    with pytest.raises(error, match=message):
        call(gate)
    assert decision(gate, "redis git") == before
    assert gate.add_turn("c", "d") == 2


def test_a_turn_id_of_an_empty_history_says_so() -> None:
    with pytest.raises(TurnError, match="there is no turn yet, got turn_id 0"):
        ContextGatekeeper(10).forget(0)


@pytest.mark.parametrize("answer", [ValueError("no tokenizer"), -1])
def test_a_counter_that_fails_changes_nothing(answer: Any) -> None:
    answers: list[Any] = []

    def count(text: str) -> int:
        if answers:
            if isinstance(answer, Exception):
                raise answer
            return int(answer)
        return len(text)

    gate = gate_of(TURNS, 100, count_tokens=count)
    before = decision(gate, "redis git")
    answers.append(answer)
    for add in (lambda: gate.add_turn("x" * 200, "y"), lambda: gate.add_turns([("a", "b"), ("x" * 200, "y")])):
        with pytest.raises(ValueError, match="token"):
            add()
    answers.clear()
    assert len(gate) == 2
    assert decision(gate, "redis git") == before


# --- large and odd texts


@pytest.mark.parametrize("piece", [
    "惰性删除 token_budget 就是访问的时候才检查。", "redis is read lazily, not before its time has come. ", "a", "删",
    "redis ", "\n", "`", '"', "“", "[query]\n", "```\n", "a.", "A_", "\ud800", "\x00", "https://x", "1.",
], ids=ascii)  # fmt: skip
def test_a_message_of_ten_million_characters_works(piece: str) -> None:
    text = (piece * (HUGE // len(piece) + 1))[:HUGE]
    gate = gate_of([TURNS[0], (text[: HUGE // 10], text), ("redis", "")])
    assert len(gate) == 3
    assert estimate_tokens(gate.build_prompt("redis 惰性删除")) <= 4000
    assert gate.select("redis")


def test_a_query_of_a_million_characters_works() -> None:
    gate = gate_of(TURNS, 10**7)
    query = "redis 惰性删除 key_of_x. " * 50_000
    assert [block["turn_id"] for block in gate.select(query)] == [0]


@given(texts, texts, texts)
def test_any_text_is_handled(user: str, assistant: str, query: str) -> None:
    gate = gate_of([(user, assistant)])
    assert estimate_tokens(gate.build_prompt(query)) <= 4000
    assert (gate.block(0).user, gate.block(0).assistant) == (user, assistant)


# --- the same input, the same answer


@given(turns, queries, st.data())
def test_one_by_one_is_all_at_once(history: list[tuple[str, str]], query: str, data: st.DataObject) -> None:
    at_once = gate_of(history)
    one_by_one, in_parts = ContextGatekeeper(4000), ContextGatekeeper(4000)
    for turn in history:
        one_by_one.add_turn(*turn)
        one_by_one.select(query)
    cut = data.draw(st.integers(0, len(history)))
    in_parts.add_turns(history[:cut])
    in_parts.add_turns(history[cut:])
    assert decision(at_once, query) == decision(one_by_one, query) == decision(in_parts, query)


@given(turns, turns, queries)
def test_truncate_is_as_if_never_added(
    history: list[tuple[str, str]], more: list[tuple[str, str]], query: str
) -> None:
    gate = gate_of([*history, *more])
    gate.select(query)
    gate.truncate(len(history))
    assert len(gate) == len(history)
    assert decision(gate, query) == decision(gate_of(history), query)
    gate.add_turns(more)
    assert decision(gate, query) == decision(gate_of([*history, *more]), query)


@given(turns, queries)
def test_asking_changes_nothing(history: list[tuple[str, str]], query: str) -> None:
    gate = gate_of(history)
    assert decision(gate, query) == decision(gate, query)


def test_two_processes_with_other_hash_seeds_agree() -> None:
    code = (
        "import json; from gatekeeper import ContextGatekeeper; from gatekeeper.cli import demo\n"
        "gate = ContextGatekeeper(4000); gate.add_turns(demo.load_turns())\n"
        "print(json.dumps([[gate.select(q), gate.build_prompt(q), gate.explain(q)] for q, _ in demo.QUERIES]))"
    )
    folder = Path(gatekeeper.__file__).parents[1]
    answers = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "12345")
    ]  # fmt: skip
    assert answers[0] == answers[1]
    gate = gate_of(demo.load_turns())
    mine = [[gate.select(query), gate.build_prompt(query), gate.explain(query)] for query, _ in demo.QUERIES]
    assert json.loads(answers[0]) == mine


def test_eight_threads_get_the_same_answer() -> None:
    gate = gate_of(demo.load_turns())
    asked = [query for query, _ in demo.QUERIES] * 40
    expected = [decision(gate, query) for query, _ in demo.QUERIES] * 40
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda query: decision(gate, query), asked)) == expected


def test_eight_threads_may_add_and_ask() -> None:
    gate = ContextGatekeeper(4000)
    history = demo.load_turns()
    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(lambda turn: (gate.add_turn(*turn), gate.select(turn[0]))[0], history))
    assert sorted(ids) == list(range(100))
    in_order = sorted(zip(ids, history, strict=True))
    assert decision(gate, "Redis惰性删除区别") == decision(gate_of([turn for _, turn in in_order]), "Redis惰性删除区别")


def test_two_gatekeepers_share_nothing() -> None:
    first, second = gate_of([("redis secret", "")]), gate_of([("git", "")])
    assert second.select("redis secret") == []
    assert second.idf("secret") == second.idf("nowhere")
    first.constraints.language = "x"
    assert "language" not in second.constraints


# --- forgetting


def strings_of(root: object) -> list[str]:
    """Every str that an object holds, however deep; modules, types and functions are not entered."""
    seen: set[int] = set()
    found, waiting = [], [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type(gc), type, type(strings_of))):
            continue
        seen.add(id(value))
        if isinstance(value, str):
            found.append(value)
        waiting += gc.get_referents(value)
    return found


@pytest.mark.parametrize("count_tokens", [estimate_tokens, lambda text: len(text)])
def test_forget_removes_the_text(count_tokens: Callable[[str], int]) -> None:
    secret = ("the zanzibar password", "It is “open sesame” 芝麻开门。")
    gate = gate_of([TURNS[0], secret, TURNS[1]], count_tokens=count_tokens)
    queries = ("zanzibar password", "芝麻开门", "open sesame", "redis")
    for query in queries:
        decision(gate, query)
    assert any("zanzibar" in text for text in strings_of(gate))
    gate.forget(1)
    for word in ("zanzibar", "sesame", "芝麻"):
        assert not [text for text in strings_of(gate) if word in text]
        assert gate.idf(word) == gate.idf("nowhere")
    assert (gate.block(1).user, gate.block(1).assistant) == ("", "")
    for query in queries[:3]:
        assert gate.select(query) == []
        assert "zanzibar" not in gate.build_prompt("redis")
    names = []
    for anchor_id in range(100):
        try:
            names.append(gate.anchor_text(anchor_id))
        except ArgumentValueError:
            continue
    assert "redis" in names
    assert not {"zanzibar", "password", "sesame", "open sesame", "芝麻", "芝麻开"} & set(names)


def test_ids_stay_when_a_turn_is_forgotten() -> None:
    gate = gate_of([("alpha", ""), ("beta", ""), ("gamma", "")])
    gate.forget(1)
    gate.forget(1)
    assert len(gate) == 3
    assert [block["turn_id"] for block in gate.select("gamma")] == [2]
    assert gate.add_turn("delta", "") == 3
    assert gate.explain("x")["n_blocks"] == 3


@settings(max_examples=50)
@given(turns, queries, st.sets(st.integers(0, 7)))
def test_what_is_forgotten_is_never_chosen(history: list[tuple[str, str]], query: str, gone: set[int]) -> None:
    gate = gate_of(history)
    for turn_id in gone:
        if turn_id < len(gate):
            gate.forget(turn_id)
    assert gone.isdisjoint(block["turn_id"] for block in gate.select(query))


def test_all_may_be_forgotten() -> None:
    gate = gate_of(TURNS)
    gate.forget(0)
    gate.forget(1)
    assert gate.select("redis") == []
    assert gate.explain("redis")["reason"] == "no history"
    gate.truncate(0)
    assert len(gate) == 0
    assert gate.add_turn("redis", "") == 0


@given(turns, texts, st.data())
@settings(max_examples=60)
def test_a_compacted_conversation_answers_and_grows_as_before(history, query, data) -> None:
    plain, compacted = ContextGatekeeper(500), ContextGatekeeper(500)
    for gate in (plain, compacted):
        gate.add_turns(history)
    for turn_id in data.draw(st.sets(st.integers(0, len(history) - 1), max_size=2)) if history else ():
        plain.forget(turn_id)
        compacted.forget(turn_id)
    steps = data.draw(st.lists(st.sampled_from(["compact", "explain", "add", "truncate"]), max_size=6))
    for step in ["compact", *steps, "explain"]:
        if step == "compact":
            compacted.compact()
        elif step == "explain":
            assert without_ids(plain.explain(query)) == without_ids(compacted.explain(query))
        for gate in (plain, compacted):
            if step == "add":
                gate.add_turn(query, "an answer")
            elif step == "truncate":
                gate.truncate(len(gate) // 2)


def without_ids(explanation: dict) -> dict:
    """Ids may be others where turns were forgotten."""
    def strip(value):
        if isinstance(value, dict):
            return {key: strip(item) for key, item in value.items() if key not in ("id", "covered_ids")}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return strip(explanation)


def test_the_names_of_anchors_survive_compacting() -> None:
    gate = ContextGatekeeper(500)
    gate.add_turns([("redis 惰性删除 策略", "lazy free"), ("git rebase", "interactive")])
    named = {i: gate.anchor_text(i) for i in gate.select("redis 惰性删除")[0]["covered_ids"]}
    gate.compact()
    assert {i: gate.anchor_text(i) for i in named} == named
    assert gate.idf("redis") == ContextGatekeeper.idf(gate, "git")
