"""The command line: what each command prints, its options and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ARGUMENTS, DEMO_FILE, ESCAPE, OTHERS, QUERY, SMALL, call, cells, chat, process, width
from conversations import gate_of

import gatekeeper
from gatekeeper import ContextGatekeeper, Settings, estimate_tokens, printable
from gatekeeper.chat_file import read_chat_file
from gatekeeper.cli import demo, output
from gatekeeper.cli.commands import chosen_blocks, main

ROOT = Path(__file__).resolve().parents[1]


# --- every command


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_command_is_documented(name: str) -> None:
    result = call(name, "--help")
    assert result.exit_code == 0
    assert f"gatekeeper {name}" in result.stdout.partition("Example:")[2]
    for option in ("--json", "--color", "--strict", "--budget", "--settings"):
        assert option in result.stdout
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{name}`" in readme or f"`gatekeeper {name}`" in readme
    assert f"gatekeeper {name}" in readme


def test_no_command_is_missing_here() -> None:
    assert set(main.commands) == {*ARGUMENTS, *OTHERS, "spec", "mcp"}  # these two: tests/spec/test_spec_cli.py
    result = call("--help")
    assert "Example:" in result.stdout
    assert "..." not in result.stdout.partition("Commands:")[2]
    assert gatekeeper.__version__ in call("--version").stdout


@pytest.mark.parametrize("name", ARGUMENTS)
def test_json_is_one_document(name: str) -> None:
    result = call(name, *ARGUMENTS[name], "--json", "--color=always")
    assert result.exit_code == 0
    assert ESCAPE not in result.stdout
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    assert "\\u" not in result.stdout


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_colour_in_a_pipe_and_colour_when_asked(name: str) -> None:
    assert ESCAPE not in call(name, *ARGUMENTS[name]).stdout
    coloured = call(name, *ARGUMENTS[name], "--color=always", NO_COLOR="1", TERM="dumb")
    assert (ESCAPE in coloured.stdout) == (name != "prompt")
    assert coloured.exit_code == 0


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("arguments", [
    ["--budget", "0"], ["--budget", "x"], ["--settings", "best"], ["--color", "red"], ["--nope"],
])  # fmt: skip
def test_wrong_usage_is_2(name: str, arguments: list[str]) -> None:
    result = call(name, *ARGUMENTS[name], *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["select", DEMO_FILE], ["stats"], ["nope"]])
def test_missing_arguments_are_2(arguments: list[str]) -> None:
    assert call(*arguments).exit_code == 2


@pytest.mark.parametrize("name", ["select", "prompt", "explain", "stats"])
def test_a_file_that_cannot_be_read_is_1(name: str, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    refused = {f"{tmp_path}/none": "No such file", str(tmp_path): "cannot be read", str(binary): "UTF-8"}
    for file, message in refused.items():
        result = call(name, *[file, *ARGUMENTS[name][1:]])
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr.startswith(f"error: {file}")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["select", "prompt", "explain", "stats"])
def test_an_empty_file_is_no_history(name: str) -> None:
    result = call(name, *["-", *ARGUMENTS[name][1:]], stdin="")
    assert result.exit_code == 0
    assert "<stdin>: no history" in result.stderr
    if name != "prompt":
        assert "no history" in result.stdout
    assert call(name, *["-", *ARGUMENTS[name][1:]], "--json", stdin="").exit_code == 0


@pytest.mark.parametrize("name", ["select", "prompt", "explain", "stats"])
def test_a_broken_line_is_a_warning_and_under_strict_an_error(name: str) -> None:
    arguments = [name, *["-", *ARGUMENTS[name][1:]]]
    result = call(*arguments, stdin=SMALL + "oops\n")
    assert result.exit_code == 0
    problem = "<stdin>:3: expected a JSON object, got invalid JSON at column 1 (Expecting value)\n"
    assert result.stderr == f"warning: {problem}"
    assert result.stdout == call(*arguments, stdin=SMALL).stdout or name == "stats"
    strict = call(*arguments, "--strict", stdin=SMALL + "oops\n")
    assert strict.exit_code == 1
    assert strict.stdout == ""
    assert strict.stderr == f"error: {problem}"


# --- select


def test_select_prints_the_turns_with_what_they_cover() -> None:
    result = call("select", "-", "redis ttl", stdin=SMALL)
    (chosen,) = gate_of([("redis ttl", "Use a redis ttl."), ("git", "Commit.")]).select("redis ttl")
    assert result.stdout == (
        f"turn 0  score {chosen['score']:.3f}  covers redis, ttl\nuser: redis ttl\nassistant: Use a redis ttl.\n\n")
    assert result.stderr == ""


def test_select_is_the_librarys() -> None:
    document = json.loads(call("select", DEMO_FILE, QUERY, "--json").stdout)
    gate = gate_of(read_chat_file(DEMO_FILE))
    expected = gate.select(QUERY)
    for block in expected:
        block["covered"] = [gate.anchor_text(i) for i in block["covered_ids"]]
    assert document["turns"] == expected
    assert document["tokens"]["budget"] == 4000


def test_select_highlights_the_anchors() -> None:
    coloured = call("select", "-", '惰性删除 ttl "lazy  free" key', "--color=always",
                    stdin=chat({"user": "惰性删除与TTL", "assistant": "lazy free keys, a key."})).stdout  # fmt: skip
    red, green, blue = (int(output.PALETTE["highlight"][i : i + 2], 16) for i in (1, 3, 5))
    hits = re.findall(rf"\x1b\[38;2;{red};{green};{blue}m(.*?)\x1b\[0m", coloured)
    assert hits == ["惰性删除", "TTL", "lazy free", "keys", "key"]


def test_nothing_selected_says_why() -> None:
    assert call("select", "-", "zebra", stdin=SMALL).stdout == "nothing selected: no turn is a candidate\n"


# --- prompt


def test_prompt_is_the_librarys_byte_for_byte() -> None:
    gate = gate_of(read_chat_file(DEMO_FILE))
    assert process("prompt", DEMO_FILE, QUERY).stdout.decode("utf-8") == gate.build_prompt(QUERY) + "\n"
    document = json.loads(call("prompt", DEMO_FILE, QUERY, "--json").stdout)
    assert document["prompt"] == gate.build_prompt(QUERY)
    assert document["tokens"]["prompt"] == estimate_tokens(document["prompt"])


def test_budget_and_settings_reach_the_library() -> None:
    thorough = ContextGatekeeper(900, settings=Settings.thorough())
    thorough.add_turns(read_chat_file(DEMO_FILE))
    shown = call("prompt", DEMO_FILE, QUERY, "--budget", "900", "--settings", "thorough").stdout
    assert shown == thorough.build_prompt(QUERY) + "\n"
    assert shown != call("prompt", DEMO_FILE, QUERY).stdout


def test_what_the_library_logs_is_one_line_on_stderr() -> None:
    result = call("prompt", "-", "redis", "--budget", "5", stdin=SMALL)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines[0] == "warning: turn 0 has 38 tokens, the budget is 5: it is kept"
    assert lines[-1].startswith("warning: the constraints and the query take")


# --- explain


def test_explain_prints_every_part() -> None:
    gate = gate_of(read_chat_file(DEMO_FILE))
    explained = gate.explain("Redis惰性删除区别")
    text = call("explain", DEMO_FILE, "Redis惰性删除区别").stdout
    lines = text.splitlines()
    assert "gate      switch  anchor_overlap_ratio 0.000  new_token_ratio 1.000  deictic no" in text
    assert f"tokens    {explained['tokens']['prompt']} of 4000" in text
    for anchor in explained["anchors"]:
        assert [anchor["text"], str(anchor["df"]), f"{anchor['idf']:.3f}", anchor["origin"]] in map(cells, lines)
    rows = {tuple(cells(line)) for line in lines}
    decisions = {turn["turn_id"]: turn["decision"] for turn in explained["turns"]}
    for candidate in explained["candidates"]:
        parts = [f"{candidate['parts'][part]:.3f}" for part in ("user", "assistant", "exact", "recency")]
        score, cost, turn_id = f"{candidate['score']:.3f}", str(candidate["cost"]), candidate["turn_id"]
        coverage = f"{candidate['coverage']:.0%}"
        assert (str(turn_id), score, *parts, coverage, cost, decisions[turn_id]) in rows
    step = explained["steps"][0]
    assert ("1", str(step["turn_id"]), f"{step['gain']:.4f}", str(step["cost"]), "100.0%", str(step["budget_left"]),
            "redis, 惰性, 惰性删, 性删, 性删除, 删除") in rows  # fmt: skip
    left_out = [decision for decision in decisions.values() if decision != "chosen"]
    for decision in set(left_out):
        assert (decision, str(left_out.count(decision))) in rows


def test_explain_all_lists_each_turn_left_out() -> None:
    brief = call("explain", DEMO_FILE, QUERY).stdout
    full = call("explain", DEMO_FILE, QUERY, "--all").stdout
    assert full.startswith(brief)
    listed = [int(row[0]) for row in map(cells, full[len(brief) :].splitlines()) if row[0].isdigit()]
    chosen = [block["turn_id"] for block in gate_of(read_chat_file(DEMO_FILE)).select(QUERY)]
    assert sorted(listed + chosen) == list(range(100))


def test_explain_json_is_the_librarys() -> None:
    document = json.loads(call("explain", DEMO_FILE, QUERY, "--json").stdout)
    assert document == gate_of(read_chat_file(DEMO_FILE)).explain(QUERY)


@pytest.mark.parametrize("columns", ["20", "80", "500"])
def test_tables_align_and_are_never_cut_in_a_pipe(columns: str) -> None:
    long_word = "惰性删除" * 60
    text = call("explain", "-", f'"{long_word[:60]}" {"x" * 250} redis', "--all", COLUMNS=columns,
                stdin=chat({"user": f"{long_word} {'x' * 250} redis", "assistant": "一二三"})).stdout  # fmt: skip
    assert "…" not in text
    assert "x" * 250 in text
    assert long_word[:60] in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({width(line) for line in table.splitlines()}) == 1
        assert re.fullmatch(r"\|(-+\|)+", table.splitlines()[1])


# --- stats


def test_stats_counts() -> None:
    records = [{"role": "system", "content": "s"}, {"role": "user", "content": "redis"},
               {"role": "tool", "content": "t"}, {"role": "assistant", "content": "ttl"}, 7,
               {"user": "git merge rebase", "assistant": "rebase"}]  # fmt: skip
    result = call("stats", "-", "--json", stdin=chat(*records))
    assert json.loads(result.stdout) == {
        "turns": 2, "characters": 30, "tokens": 8 + 5 + 24 + 9, "anchors": 5, "topics": 2, "topic_switches": 1,
        "skipped": {"system": 1, "tool": 1, "broken": 1},
    }  # fmt: skip
    assert result.stderr.splitlines()[-1] == "<stdin>: 1 system and 1 tool messages skipped: they are no turns"
    rows = [cells(line) for line in call("stats", "-", stdin=chat(*records)).stdout.splitlines()]
    for name, value in (("turns", "2"), ("topic switches", "1"), ("skipped system messages", "1")):
        assert [name, value] in rows


def test_many_turns_go_in_by_batches() -> None:
    content = chat(*[{"user": f"redis {i}", "assistant": "ok"} for i in range(2500)])
    assert json.loads(call("stats", "-", "--json", stdin=content).stdout)["turns"] == 2500


# --- demo


def test_the_demo_holds() -> None:
    result = call("demo", "--json")
    figures = json.loads(result.stdout)
    assert result.exit_code == 0
    assert figures["foreign_turns"] == 0
    assert figures["git_coverage"] == 1.0
    assert figures["tokens_saved_ratio_mean"] >= figures["tokens_saved_ratio"] >= 0.977
    assert (figures["alternation_clean"], figures["alternation_queries"]) == (5, 5)
    assert figures["window_recall"] == {"git": 1.0, "redis": 1.0}
    assert [answer["query"] for answer in figures["queries"]] == [query for query, _ in demo.QUERIES]
    assert all(answer["select_microseconds"] > 0 for answer in figures["queries"])


def test_the_demo_prints_a_row_a_query_and_a_row_a_claim() -> None:
    rows = [cells(line) for line in call("demo").stdout.splitlines()]
    for query, topic in demo.QUERIES:
        assert any(row[:2] == [query, topic] for row in rows)
    assert ["alternating queries answered clean", "5/5", "5/5", "yes"] in rows


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_the_demo_is_1_when_a_claim_fails(arguments: list[str]) -> None:
    result = call("demo", "--budget", "60", *arguments)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["git_coverage"] == 0.0 if arguments else "| NO" in result.stdout


# --- odd text


def test_lone_surrogates_and_control_characters_are_shown_not_sent() -> None:
    odd = {"user": "redis \ud800\x1b[31m\u202e", "assistant": "a\x07"}
    content = json.dumps(odd) + "\n"
    shown = call("select", "-", "redis", stdin=content).stdout
    assert "user: redis \\ud800\\x1b[31m\\u202e\nassistant: a\\x07\n" in shown
    for name in ("explain", "prompt", "select"):
        for arguments in ([], ["--json"], ["--color=always"]):
            result = process(name, "-", "redis", *arguments, stdin=content.encode())
            assert result.returncode == 0, result.stderr
            result.stdout.decode("utf-8")
    document = json.loads(process("prompt", "-", "redis", "--json", stdin=content.encode()).stdout)
    assert document["prompt"].startswith("[0 user] redis \ud800\x1b[31m\u202e\n[0 assistant] a\x07\n")
    assert printable.printable("a\r\nb\rc\td") == "a\nb\\x0dc\td"
    assert printable.one_line("a\nb\t") == "a\\nb\\t"


def test_markup_is_text() -> None:
    content = chat({"user": "[red]redis[/red] :smile:", "assistant": ""})
    assert "user: [red]redis[/red] :smile:\n" in call("select", "-", "redis", stdin=content).stdout


def test_what_select_prints_is_what_the_library_selects() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("redis ttl", "expires keys"), ("git rebase", "replays commits"), ("redis lock", "set nx")])
    for query in ("redis ttl lock", "git rebase", "nothing of this", "go on"):
        explained = gate.explain(query)
        assert chosen_blocks(explained) == gate.select(query)
        assert explained["prompt"] == gate.build_prompt(query)


def test_a_query_over_the_budget_is_warned_of_once() -> None:
    chat = '{"user": "redis ttl", "assistant": "x"}\n'
    for command in (["select"], ["prompt"], ["prompt", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "gatekeeper", *command, "-", "a long query about redis", "--budget", "5"],
            input=chat, capture_output=True, text=True, check=True)  # fmt: skip
        assert done.stderr.count("nothing is selected") == 1
