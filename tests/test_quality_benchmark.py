"""The quality benchmark on conversations whose measures are known by hand."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # last, so that an installed gatekeeper stays the one that is imported

from benchmarks.quality.__main__ import main  # noqa: E402
from benchmarks.quality.bootstrap import estimate, ratio  # noqa: E402
from benchmarks.quality.cost import cost_of, prompt_counter  # noqa: E402
from benchmarks.quality.data import Conversation, Query, Turn, read_set  # noqa: E402
from benchmarks.quality.measures import Chosen, measure  # noqa: E402
from benchmarks.quality.run import ALL, GATE, Tally, balanced_accuracy, run, switch_f1  # noqa: E402
from benchmarks.quality.selectors import Selector  # noqa: E402

TURNS = [("redis eviction", "Keys go. LRU it is!", "redis"), ("pasta sauce", "Add tomato.", "food"),
         ("redis cluster", "Six nodes.", "redis")]  # fmt: skip


def asked(at: int, query: str, evidence: list[int] | None, *, switch: bool | None = None, **labels: object) -> dict:
    return {"at": at, "query": query, "evidence": evidence, "switch": switch, "category": None, **labels}


QUERIES = [
    asked(1, "redis eviction", [0], switch=False, topic="redis", category="kept",
          evidence_text=["Keys go. LRU it is!"]),
    asked(1, "pasta sauce", [], switch=True, topic="food"),
    asked(3, "cluster of redis", [0, 2], thread=[0, 1, 2], topic="redis"),
]


def written(folder: Path, name: str, queries: list[dict], *, half: str = "dev", n_conversations: int = 1) -> Path:
    turns = [{"user": user, "assistant": assistant, "topic": topic} for user, assistant, topic in TURNS]
    line = json.dumps({"id": "1", "lang": "en", "turns": turns, "queries": queries})
    with gzip.open(folder / f"{name}.{half}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(f"{line}\n" * n_conversations)
    return folder


def conversation(folder: Path) -> Conversation:
    [read] = read_set(written(folder, "locomo", QUERIES), "locomo", "dev")
    return read


def sent(*turn_ids: int) -> list[Chosen]:
    return [Chosen(i, *TURNS[i][:2]) for i in turn_ids]


def values_of(folder: Path, query: int, chosen: Sequence[Chosen]) -> dict[str, tuple[float, float]]:
    read = conversation(folder)
    return measure(read, read.queries[query], chosen, cost_of("en"))


def test_recall_precision_and_foreign_turns(tmp_path: Path) -> None:
    found = values_of(tmp_path, 2, sent(0, 1))
    assert found["recall"] == (0.5, 1.0)
    assert found["precision"] == (2, 2)  # all of the thread
    assert found["foreign"] == (1, 2)
    assert (found["clean"], found["clean answers"], found["silent"]) == ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
    assert found["turns"] == (2, 1.0)
    n_all = sum(len(user) + len(assistant) for user, assistant, _ in TURNS)
    n_sent = n_all - len("redis clusterSix nodes.")
    assert found["tokens"] == (-(-n_sent // 4), 1.0)
    assert found["saved"] == (-(-n_all // 4) - -(-n_sent // 4), -(-n_all // 4))
    assert found["user text"] == (13 / 25, 1.0)  # of "rediseviction" and "rediscluster"
    assert "nothing" not in found
    assert "far recall" not in found


def test_nothing_sent(tmp_path: Path) -> None:
    found = values_of(tmp_path, 2, [])
    assert (found["recall"], found["precision"]) == ((0.0, 1.0), (0, 0))
    assert (found["clean"], found["silent"]) == ((1.0, 1.0), (1.0, 1.0))
    assert "foreign" not in found
    assert "clean answers" not in found
    assert values_of(tmp_path, 1, [])["nothing"] == (1.0, 1.0)
    assert values_of(tmp_path, 1, sent(0))["nothing"] == (0.0, 1.0)
    assert "recall" not in values_of(tmp_path, 1, sent(0))


@pytest.mark.parametrize(("assistant", "share"), [
    ("Keys go. LRU it is!", 1.0), ("Keys\n go.", 7 / 15), ("LRU it is!", 8 / 15), ("Keys", 0.0), ("", 0.0),
])  # fmt: skip
def test_evidence_text_counts_by_whole_sentences_without_blanks(tmp_path: Path, assistant: str, share: float) -> None:
    assert values_of(tmp_path, 0, [Chosen(0, "", assistant)])["evidence text"] == (pytest.approx(share), 1.0)


def test_far_recall_is_that_of_evidence_more_than_20_turns_back() -> None:
    read = Conversation("1", "en", [Turn(*turn) for turn in TURNS * 10], [])
    for evidence, is_far in ((8, True), (9, True), (10, False)):
        query = Query(30, "q", frozenset([evidence]), None, (), None, None, None)
        assert ("far recall" in measure(read, query, [], cost_of("en"))) == is_far


@pytest.mark.parametrize(("language", "n_tokens"), [("en", [0, 1, 1, 2]), ("zh", [0, 2, 6, 8])])
def test_costs_round_up(language: str, n_tokens: list[int]) -> None:
    assert [cost_of(language)(n) for n in (0, 1, 4, 5)] == n_tokens


def test_a_prompt_counts_the_text_of_its_turns_alone() -> None:
    assert prompt_counter("en")("[0 user] abcd\n[0 assistant] efgh\n[query] ijkl\nmnop") == 3  # and one line break
    assert prompt_counter("en")("[query] ijkl") == 0


class Fixed(Selector):
    """Sends the first turns and calls a query with a word in it a switch."""

    name = "fixed"
    has_gate = True

    def ask(self, query: str, budgets: Sequence[int]) -> list[list[Chosen]]:
        return [sent(0) for _ in budgets]

    def leaves_topic(self, query: str) -> bool:
        return "sauce" in query


def test_a_run_sums_every_measure_of_a_conversation(tmp_path: Path) -> None:
    read, tally = conversation(tmp_path), Tally()
    run(tally, "locomo", [read, read], Fixed())
    recall = tally.estimate(("locomo", "fixed", 250, ALL, "recall"))
    assert (recall.value, recall.low, recall.high, recall.n_queries) == (0.75, 0.75, 0.75, 4)
    assert tally.estimate(("locomo", "fixed", 250, "kept", "recall")).value == 1.0
    assert tally.categories("locomo") == ["kept"]
    assert tally.estimate(("locomo", "fixed", 4000, ALL, "precision")).value == 1.0
    assert tally.estimate(("locomo", "fixed", 4000, ALL, "foreign")).value == pytest.approx(1 / 3)
    assert tally.estimate(("locomo", "fixed", 4000, ALL, "clean")).value == pytest.approx(2 / 3)
    assert tally.estimate(("locomo", "fixed", 250, ALL, "far recall")) is None
    switch = tally.estimate(("locomo", "fixed", GATE, ALL, "switch"), balanced_accuracy)
    assert (switch.value, switch.n_queries) == (1.0, 4)


def test_balanced_accuracy_is_the_mean_of_both_recalls() -> None:
    cells = np.array([3.0, 2.0, 1.0, 6.0])  # called and true, false alarms, missed, neither
    assert balanced_accuracy(cells) == pytest.approx((3 / 4 + 6 / 8) / 2)
    assert switch_f1(cells) == pytest.approx(6 / 9)


def test_the_interval_of_one_conversation_is_its_value() -> None:
    found = estimate(np.array([[1.0, 4.0]]), 4, ratio)
    assert (found.value, found.low, found.high) == (0.25, 0.25, 0.25)
    assert str(found) == ".250 [.250, .250]"


def test_an_interval_is_the_same_each_time_and_holds_the_value() -> None:
    sums = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
    found = estimate(sums, 4, ratio)
    assert found == estimate(sums, 4, ratio)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    assert str(estimate(np.zeros((1, 2)), 1, ratio)) == "- [-, -]"


# --- the command


def printed(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> str:
    main(["--data", str(folder), "--sets", "locomo", "--no-peers", *arguments])
    return capsys.readouterr().out


def row(text: str, *cells: str) -> list[str]:
    """The other cells of the one line of a table that begins with these."""
    [found] = {line for line in text.splitlines()
               if [cell.strip() for cell in line.strip("| ").split("|")][: len(cells)] == [*cells]}
    return [cell.strip() for cell in found.strip("| ").split("|")][len(cells) :]


def test_the_tables_hold_what_the_gatekeeper_chose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, written(tmp_path, "locomo", QUERIES[:2], n_conversations=3))
    for setting, kept in (("minimal", ".467 [.467, .467]"), ("thorough", "1.00 [1.00, 1.00]")):  # 7 of 15 characters
        assert row(text, "locomo", "recall", setting)[0] == "1.00 [1.00, 1.00]"
        assert row(text, "locomo", "precision", setting)[0] == "1.00 [1.00, 1.00]"
        assert row(text, "locomo", "evidence text", setting)[0] == kept
        of_gate = text.split("## switch")[1].split("## ")[0]
        assert row(of_gate, "locomo", setting)[:4] == ["1.00 [1.00, 1.00]"] * 4
    assert row(text, "locomo", "kept", "3") == ["1.00 [1.00, 1.00]"] * 2
    assert "dev halves of locomo" in text


def test_changed_settings_change_the_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, "locomo", QUERIES[:2], half="test")
    text = printed(capsys, folder, "--half", "test", "--settings", "minimal",
                   "--change", "coverage_stop=0", "stems=false", "n_covers=1")
    assert row(text, "locomo", "recall", "minimal")[0] == ".000 [.000, .000]"
    assert "thorough" not in text.split("## evidence")[1].split("## text")[0]


@pytest.mark.parametrize(("arguments", "said"), [
    (["--change", "loudness=11"], "Settings has no 'loudness'"), (["--change", "k1=-1"], "k1 must be 0.0 to"),
    (["--change", "k1=fast"], "NAME=VALUE is expected"), (["--change", "k1"], "NAME=VALUE is expected"),
    (["--sets", "nowhere"], "invalid choice: 'nowhere'"), (["--half", "third"], "locomo.third.jsonl.gz"),
    (["--half", "empty"], "holds no conversation"), (["--half", "broken"], "lacks 'queries'"),
    (["--change", "k1=1", "--write"], "not for --change"),
])  # fmt: skip
def test_what_does_not_fit_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    written(tmp_path, "locomo", QUERIES)
    written(tmp_path, "locomo", QUERIES, half="empty", n_conversations=0)
    with gzip.open(tmp_path / "locomo.broken.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"id": "1", "lang": "en", "turns": []}\n')
    with pytest.raises(SystemExit) as left:
        printed(capsys, tmp_path, *arguments)
    assert left.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
