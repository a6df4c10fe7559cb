"""A Chinese working day of several threads, labelled by hand before any selector saw it: its form, what is chosen.

The bounds leave room beside the figures of docs/quality.md: a test that fails here means that something broke, not that
one turn moved.
"""

from __future__ import annotations

import gzip
import json
import sys
from functools import cache
from pathlib import Path

import pytest

from gatekeeper import ContextGatekeeper, Settings, estimate_tokens

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # last, so that an installed gatekeeper stays the one that is imported

from benchmarks.quality.data import Conversation, read_set  # noqa: E402
from benchmarks.quality.run import ALL, GATE, Tally, balanced_accuracy, run  # noqa: E402
from benchmarks.quality.selectors import Gatekeeper  # noqa: E402

DATA = Path(__file__).parent / "data"
SET = "working_day"
BUDGET = 4000
RAW = json.loads((DATA / f"{SET}.jsonl").read_text(encoding="utf-8"))
TURNS, QUERIES = RAW["turns"], RAW["queries"]
TOPICS = [turn["topic"] for turn in TURNS]
DAY: Conversation = read_set(DATA, SET, "dev")[0]


@cache
def tallied(setting: str) -> Tally:
    tally = Tally()
    run(tally, SET, [DAY], Gatekeeper(setting))
    return tally


def value(setting: str, name: str) -> float:
    found = tallied(setting).estimate((SET, setting, BUDGET, ALL, name))
    assert found
    return found.value


# --- the form


def test_the_day_has_its_120_turns_and_about_40_queries() -> None:
    assert RAW["lang"] == "zh"
    assert len(TURNS) == 120
    assert 40 <= len(QUERIES) <= 60
    assert all(turn["user"].strip() and turn["assistant"].strip() and turn["topic"] for turn in TURNS)


def test_every_thread_is_left_and_returned_to() -> None:
    runs = [topic for i, topic in enumerate(TOPICS) if i == 0 or TOPICS[i - 1] != topic]
    assert len(set(TOPICS)) >= 5
    assert all(runs.count(topic) >= 2 for topic in set(TOPICS))


@pytest.mark.parametrize("query", QUERIES, ids=[str(query["at"]) for query in QUERIES])
def test_a_query_is_the_turn_after_its_history_and_its_labels_agree_with_the_threads(query) -> None:
    at, topic = query["at"], query["topic"]
    assert query["query"] == TURNS[at]["user"]
    assert topic == TOPICS[at]
    assert query["evidence"] == sorted(set(query["evidence"]))
    assert all(0 <= turn < at for turn in query["evidence"])
    assert query["switch"] == (topic != TOPICS[at - 1])
    known = "return" if topic in TOPICS[:at] else "new"
    assert query["category"] == (known if query["switch"] else "continue")
    assert query["category"] != "new" or query["evidence"] == []


def test_the_queries_are_of_every_kind() -> None:
    assert [query["at"] for query in QUERIES] == sorted({query["at"] for query in QUERIES})
    assert {query["category"] for query in QUERIES} == {"continue", "return", "new"}
    assert sum(not query["evidence"] for query in QUERIES) >= 10
    assert {query["topic"] for query in QUERIES if query["category"] == "return"} == set(TOPICS)


def test_a_plain_set_and_a_compressed_one_read_the_same(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "irc.dev.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write((DATA / f"{SET}.jsonl").read_text(encoding="utf-8"))
    assert read_set(tmp_path, "irc", "dev") == [DAY]
    with pytest.raises(FileNotFoundError):
        read_set(tmp_path, SET, "dev")


# --- what is chosen


def test_minimal_sends_little_and_mostly_of_the_same_thread() -> None:
    assert value("minimal", "clean") >= 0.85
    assert value("minimal", "foreign") <= 0.3
    assert value("minimal", "saved") >= 0.97


def test_thorough_finds_most_of_the_evidence() -> None:
    assert value("thorough", "recall") >= 0.75
    assert value("thorough", "recall") > value("minimal", "recall")


def test_the_gate_tells_most_switches() -> None:
    found = tallied("minimal").estimate((SET, "minimal", GATE, ALL, "switch"), balanced_accuracy)
    assert found
    assert found.value >= 0.65


def test_a_return_in_the_words_of_its_turn_finds_it() -> None:
    """Words that hardly another turn holds: the performance on Friday, the react override."""
    for at, turn in ((112, 54), (75, 52)):
        gate = ContextGatekeeper(BUDGET)
        gate.add_turns((known["user"], known["assistant"]) for known in TURNS[:at])
        assert turn in [block["turn_id"] for block in gate.select(TURNS[at]["user"])]


@pytest.mark.parametrize("budget", [60, 250, 1000])
@pytest.mark.parametrize("setting", [Settings.minimal(), Settings.thorough()], ids=["minimal", "thorough"])
def test_every_prompt_of_the_day_is_within_its_budget(setting: Settings, budget: int) -> None:
    gate = ContextGatekeeper(budget, settings=setting)
    for turn in TURNS:
        prompt = gate.build_prompt(turn["user"])
        bare = f"[query] {turn['user']}"
        assert prompt.endswith(bare)
        assert estimate_tokens(prompt) <= budget or prompt == bare
        gate.add_turns([(turn["user"], turn["assistant"])])
