"""Run a file of field reports: faults that users of neighbouring tools met, each with what must hold here.

    python tests/run_field_reports.py FILE [--only ID ...]

FILE holds JSON lines of {"id", "input": {"op", ...}, "expected": {"text", "check": {...}}}. Prints each failing
case and, last, `N passed, M failed, K skipped`; exits 1 when one fails. `budget_tokens` is room for the selected
texts alone: the gate gets that much plus what query, constraints and labels cost.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import field_reports_spec
import field_reports_store
from chats import assert_valid, calls_and_results, role_of, text_of

import gatekeeper
from gatekeeper import ContextGatekeeper, Settings, estimate_tokens
from gatekeeper.prompt import LABEL
from gatekeeper.pruning import split_sentences
from gatekeeper.tokens import estimate_tokens_by_script

ROOM = 4000
Check = dict[str, Any]


def decoded(value: Any) -> Any:
    """Turn a written-out escape of a lone surrogate into the code point itself, everywhere in a value."""
    if isinstance(value, str):
        return re.sub(r"\\u(d[89a-f][0-9a-f]{2})", lambda m: chr(int(m[1], 16)), value, flags=re.IGNORECASE)
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return {key: decoded(item) for key, item in value.items()} if isinstance(value, dict) else value


def gate_for(
    turns: list[Any], query: str, room: int, constraints: Sequence[str] = (), **settings: Any
) -> ContextGatekeeper:
    """A gatekeeper with the turns, and `room` for the selected texts."""
    labels = sum(len(f"[{i} user] \n[{i} assistant] \n") for i in range(len(turns)))
    probe = ContextGatekeeper(1)
    for i, text in enumerate(constraints):
        probe.constraints[f"rule {i + 1}"] = text
    fixed = estimate_tokens(probe.constraints.render() + f"[query] {query}" + "x" * labels)
    gate = ContextGatekeeper(room + fixed, settings=Settings(**settings))
    for key, value in probe.constraints.items():
        gate.constraints[key] = value
    gate.add_turns([tuple(turn) for turn in turns])
    return gate


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


# --- checks of a selection


def check_selection(gate: ContextGatekeeper, query: str, check: Check) -> None:
    chosen = gate.select(query)
    explained = gate.explain(query)
    ids = [block["turn_id"] for block in chosen]
    scores = {turn["turn_id"]: turn["score"] for turn in explained["turns"]}
    for key, wanted in check.items():
        if key == "include_turns":
            expect(set(wanted) <= set(ids), f"turns {wanted} are to be selected, got {ids}")
            expect(all(scores[i] > 0 for i in wanted), f"scores {scores}")
        elif key == "exclude_turns":
            expect(not set(wanted) & set(ids), f"turns {wanted} are not to be selected, got {ids}")
        elif key == "selection":
            expect(ids == wanted, f"selection is to be {wanted}, got {ids}")
        elif key == "rank_above":
            for above, below in wanted:
                expect(scores[above] > scores[below], f"turn {above} is to rank above {below}: {scores}")
        elif key == "non_negative":
            expect(min(scores.values(), default=0.0) >= 0, f"scores {scores}")
        elif key == "gate":
            expect(explained["gate"]["action"] == wanted, f"gate is to say {wanted}, says {explained['gate']}")
        elif key == "verbatim":
            expect(all(is_verbatim(gate, block) for block in chosen), f"not verbatim: {chosen}")
        elif key == "max_turns":
            expect(len(ids) <= wanted, f"at most {wanted} turns, got {ids}")
        elif key not in ("raises", "scope"):
            raise AssertionError(f"unknown check {key!r}")


def is_verbatim(gate: ContextGatekeeper, chosen: dict[str, Any]) -> bool:
    """Whether every sentence of a chosen block is a slice of the text that came in."""
    block = gate.block(chosen["turn_id"])
    sides = ((chosen["user"], block.user), (chosen["assistant"], block.assistant))
    return all(sentence.strip() in whole for text, whole in sides for sentence in split_sentences(text))


def run_select(given: dict[str, Any], check: Check) -> None:
    settings = {"max_candidates": given["max_turns"]} if "max_turns" in given else {}
    gate = gate_for(given["turns"], given["query"], given.get("budget_tokens", ROOM), **settings)
    check_selection(gate, given["query"], check)


# --- the other operations


def check_text(text: str, whole: str, check: Check) -> None:
    for key, wanted in check.items():
        if key == "contains":
            expect(all(part in text for part in wanted), f"{wanted} must be in {text!r}")
        elif key == "not_contains":
            expect(not any(part in text for part in wanted), f"{wanted} must not be in {text!r}")
        elif key == "balanced":
            fences = re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)
            unclosed = len(re.findall(r"^\s*(?:```|~~~)", whole, re.MULTILINE)) % 2
            expect(len(fences) % 2 in (0, unclosed), f"unbalanced fences in {text!r}")
        elif key == "verbatim":
            expect(all(s.strip() in whole for s in split_sentences(text)), f"not whole sentences of the text: {text!r}")
        elif key == "max_tokens":
            expect(estimate_tokens(text) <= wanted, f"{estimate_tokens(text)} tokens, at most {wanted}")
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


def run_prune(given: dict[str, Any], check: Check) -> None:
    gate = gate_for([[given["text"], ""]], given["query"], given.get("keep_tokens", ROOM))
    chosen = gate.select(given["query"])
    expect(bool(chosen), "nothing is kept")
    check_text(chosen[0]["user"], given["text"], check)


def run_tokenize(given: dict[str, Any], check: Check) -> None:
    anchors = list(gatekeeper.extract_anchors(given["text"]))
    for key, wanted in check.items():
        if key in ("contains", "include", "include_tokens", "tokens_include"):
            expect(set(wanted) <= set(anchors), f"{wanted} must be among {anchors}")
        elif key in ("not_contains", "exclude", "exclude_tokens", "tokens_exclude"):
            expect(not set(wanted) & set(anchors), f"{wanted} must not be among {anchors}")
        elif key in ("tokens", "equals"):
            expect(sorted(anchors) == sorted(wanted), f"expected {wanted}, got {anchors}")
        elif key in ("non_empty", "not_empty"):
            expect(bool(anchors) == bool(wanted), f"got {anchors}")
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


def run_count(given: dict[str, Any], check: Check) -> None:
    n_tokens = estimate_tokens(given["text"])
    for key, wanted in check.items():
        if key == "min_tokens":
            expect(n_tokens >= wanted, f"{n_tokens} tokens, at least {wanted}")
        elif key == "max_tokens":
            expect(n_tokens <= wanted, f"{n_tokens} tokens, at most {wanted}")
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


def run_prompt(given: dict[str, Any], check: Check) -> None:
    made = [[f"Redis 的第 {i} 个问题是过期策略", f"第 {i} 个回答：惰性删除与定期删除"] for i in range(30)]
    turns = given.get("turns") or made
    queries = given.get("queries") or [given.get("query") or f"Redis 过期策略的第 {i} 点" for i in range(20)]
    gate = gate_for(turns, queries[0], given.get("budget_tokens", ROOM), given.get("constraints") or ["只用中文回答"])
    head = gate.constraints.render()
    prompts = [gate.build_prompt(query) for query in queries]
    for key in check:
        if key == "prefix_identical":
            expect(all(p.startswith(head) for p in prompts), "the prompts differ before the recalled text")
            expect(all(p.endswith(q) for p, q in zip(prompts, queries, strict=True)), "the query is not last")
        elif key == "no_delimiter_escape":
            for prompt, query in zip(prompts, queries, strict=True):
                n_sides = sum(bool(b[side]) for b in gate.select(query) for side in ("user", "assistant"))
                labels = re.findall(LABEL, prompt, re.IGNORECASE)
                expect(n_sides > 0, "nothing was recalled")
                expect(len(labels) == n_sides + 2, f"a forged label stands in {prompt!r}")
        elif key in ("contains", "not_contains"):
            check_text(prompts[0], prompts[0], {key: check[key]})
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


def run_explain(given: dict[str, Any], check: Check) -> None:
    gate = gate_for(given["turns"], given["query"], given.get("budget_tokens", ROOM))
    explained = gate.explain(given["query"])
    expect(set(check) <= {"complete", "raises"}, f"unknown checks {check}")
    expect([turn["turn_id"] for turn in explained["turns"]] == list(range(len(given["turns"]))), "a turn is missing")
    expect(all(turn["decision"] for turn in explained["turns"]), "a turn without a decision")
    for candidate in explained["candidates"]:
        parts = candidate["parts"]
        total = parts["user"] + parts["assistant"] + parts["exact"] + parts["recency"]
        expect(total == candidate["score"], f"parts {parts} do not add up to {candidate['score']}")
        for side in ("user", "assistant"):
            part = 0.0
            for term in candidate["terms"]:
                part += term[side]
            expect(part / explained["idf_mass"] == candidate[f"lex_{side}"], f"terms do not add up on {side}")
    for step in explained["steps"]:
        expect(step["gain"] > 0 and step["cost"] > 0 and step["budget_left"] >= 0, f"step {step}")


def run_constraints(given: dict[str, Any], check: Check) -> None:
    gate = gate_for([], given.get("query", ""), given.get("budget_tokens", ROOM), given.get("constraints", []))
    for op, *rest in given.get("ops", []):
        if op == "set":
            gate.constraints[rest[0]] = rest[1]
        elif op == "forbid":
            gate.constraints.forbid(rest[0])
        elif op in ("remove", "delete", "unset"):
            del gate.constraints[rest[0]]
        else:
            raise AssertionError(f"unknown operation on constraints {op!r}")
    gate.add_turns([(f"第 {i} 个问题", f"第 {i} 个回答") for i in range(given.get("turns_added", 0))])
    prompt = gate.build_prompt(given.get("query", ""))
    for key, wanted in check.items():
        if key == "all_present":
            expect(all(text in prompt for text in given["constraints"]), f"a constraint is missing in {prompt!r}")
        elif key == "active":
            expect(dict(gate.constraints) == wanted, f"expected {wanted}, got {dict(gate.constraints)}")
            expect(all(prompt.count(value) == 1 for value in wanted.values()), f"not once in {prompt!r}")
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


def run_incremental(given: dict[str, Any], check: Check) -> None:
    expect(set(check) <= {"equals_rebuild", "raises"}, f"unknown checks {check}")
    grown, built = ContextGatekeeper(ROOM), ContextGatekeeper(ROOM)
    for batch in given["batches"]:
        for user, assistant in batch:
            grown.add_turn(user, assistant)
    built.add_turns([tuple(turn) for batch in given["batches"] for turn in batch])
    expect(grown.explain(given["query"]) == built.explain(given["query"]), "explanations differ")
    expect(grown.select(given["query"]) == built.select(given["query"]), "selections differ")


DETERMINISM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from run_field_reports import gate_for
given = json.load(sys.stdin)
gate = gate_for(given["turns"], given["query"], given.get("budget_tokens", 4000))
answers = {json.dumps([gate.select(given["query"]), gate.explain(given["query"])]) for _ in range(given.get("runs", 5))}
print(len(answers), *answers)
"""


def run_determinism(given: dict[str, Any], check: Check) -> None:
    expect(set(check) <= {"identical", "raises"}, f"unknown checks {check}")
    answers = {
        subprocess.run(
            [sys.executable, "-c", DETERMINISM, str(Path(__file__).parent)], input=json.dumps(given), text=True,
            capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in given.get("hash_seeds", [0, 1])
    }  # fmt: skip
    expect(len(answers) == 1 and answers.pop().startswith("1 "), "answers differ between runs or processes")


# --- performance


def number_in(text: str, default: int) -> int:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return max(numbers, default=default)


def seconds_to_add(n_turns: int, text_length: int) -> float:
    turns = [(f"turn {i} " + "lorem ipsum dolor sit amet "[: text_length - 10] * 3, "ok") for i in range(n_turns)]
    turns = [(user[:text_length], assistant) for user, assistant in turns]
    gate = ContextGatekeeper(ROOM)
    start = time.process_time()
    for user, assistant in turns:
        gate.add_turn(user, assistant)
    spent = time.process_time() - start
    gate.select("turn 17 lorem")
    return spent


def check_linear(given: dict[str, Any]) -> None:
    n_turns, length = number_in(given["action"], 20000), given.get("text_len", 60)
    ratios = [seconds_to_add(n_turns, length) / seconds_to_add(n_turns // 2, length) for _ in range(5)]
    expect(statistics.median(ratios) <= 2.5, f"twice the turns take {ratios} times as long")


def check_counter_calls(given: dict[str, Any], limit: int) -> None:
    n_turns = number_in(given["action"], 1000)
    calls: list[str] = []

    def slow_counter(text: str) -> int:
        calls.append(text)
        time.sleep(0.001)
        return len(text) // 4 + 1

    gate = ContextGatekeeper(given.get("budget_tokens", ROOM), count_tokens=slow_counter)
    gate.add_turns([(f"question {i} about the retry queue", f"answer {i}: worker/retry.py") for i in range(n_turns)])
    gate.select("which file holds the retry queue?")
    per_turn = [text.split("]")[0] for text in calls if text.startswith("[") and "[query]" not in text]
    expect(max((per_turn.count(turn) for turn in per_turn), default=0) <= limit, "a turn was counted more than once")
    expect(len(calls) <= limit * n_turns, f"{len(calls)} calls for {n_turns} turns")


FIRST_SELECT = """
import gatekeeper
gate = gatekeeper.ContextGatekeeper(4000)
gate.add_turn("如何设计一个 Redis 分布式锁？", "分布式锁需要满足互斥性、避免死锁。")
assert gate.select("分布式锁怎么设计")
"""


def milliseconds(code: str, folder: str) -> tuple[float, str]:
    """Median wall time of a fresh process that runs `code`, and what it printed."""
    times, printed = [], ""
    for _ in range(7):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True,
                              env={**os.environ, "TMPDIR": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"})
        times.append((time.perf_counter() - start) * 1000)
        printed += done.stdout + done.stderr
    return statistics.median(times), printed


def check_first_select(limit: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, printed = milliseconds(FIRST_SELECT, folder)
        numpy, _ = milliseconds("import numpy", folder)
        expect(ours - numpy <= limit, f"{ours:.0f} ms, import numpy {numpy:.0f} ms")
        expect(printed == "" and not os.listdir(folder), f"printed {printed!r}, wrote {os.listdir(folder)}")


def run_perf(given: dict[str, Any], check: Check) -> None:
    for key, wanted in check.items():
        if key == "linear":
            check_linear(given)
        elif key == "max_counter_calls_per_turn":
            check_counter_calls(given, wanted)
        elif key == "max_ms_over_numpy":
            check_first_select(wanted)
        elif key != "raises":
            raise AssertionError(f"unknown check {key!r}")


NO_NETWORK = """
import socket, sys
def refuse(*args, **kwargs): raise AssertionError("a socket was opened")
socket.socket = refuse
""" + FIRST_SELECT


def run_env(given: dict[str, Any], check: Check) -> None:
    if set(check) != {"no_network"}:
        field_reports_store.run_installs(given, check)
        return
    with tempfile.TemporaryDirectory() as folder:
        _, printed = milliseconds(NO_NETWORK, folder)
        expect(printed == "" and not os.listdir(folder), f"printed {printed!r}, wrote {os.listdir(folder)}")


def run_isolation(given: dict[str, Any], check: Check) -> None:
    field_reports_store.run_isolation(given, check, ROOM, check_selection)


# --- chat messages


def counters() -> dict[str, Any]:
    return {"characters x 1.5": estimate_tokens, "by script": estimate_tokens_by_script, "words": _count_words}


def _count_words(text: str) -> int:
    return len(text.split())


def check_sent(sent: Any, given: dict[str, Any], count: Any, budget: int) -> None:
    """What holds for every list that comes back."""
    assert_valid(sent)
    texts = [text_of(message) for message in sent]
    sources = [text_of(message) for message in given["messages"]]
    for sentence in (sentence for text in texts for sentence in split_sentences(text)):
        expect(any(sentence.strip() in source for source in sources), f"not verbatim: {sentence}")
    for message in given["messages"]:
        stays = role_of(message) in ("system", "developer") or message.get("pinned")
        expect(not stays or any(kept is message for kept in sent), f"{message} is missing")
    asked = [m for m in given["messages"] if role_of(m) == "user" and not calls_and_results(m)[1]]
    if "query" not in given and asked:
        expect(any(kept is asked[-1] for kept in sent), "the last user message is missing")
    tools = json.dumps(given["tools"], ensure_ascii=False) if given.get("tools") else ""
    total = sum(map(count, texts)) + count(tools) + given.get("reserved_tokens", 0)
    expect(total <= sent.n_tokens, f"{total} tokens are sent, {sent.n_tokens} are said")
    expect(sent.over_budget or sent.n_tokens <= budget, f"{sent.n_tokens} tokens of {budget}")
    expect(sent.over_budget == (sent.n_fixed_tokens > budget), "over_budget is not what it says")


def run_messages(given: dict[str, Any], check: Check) -> None:
    """As one line and as a gatekeeper that grows, under every counter, at the budget and with room for what stays."""
    logging.getLogger("gatekeeper").setLevel(logging.CRITICAL)  # small budgets are what is tried
    fits = 0
    for count in counters().values():
        fixed = _selected(given, 1, count).n_fixed_tokens
        for budget in (given.get("budget_tokens", ROOM), given.get("budget_tokens", ROOM) + fixed):
            sent = _selected(given, budget, count)
            check_sent(sent, given, count, budget)
            fits += not sent.over_budget
            for key, wanted in check.items():
                check_messages(key, wanted, given, sent, count, budget)
    expect(fits > 0, "no counter leaves room within the budget")


def _selected(given: dict[str, Any], budget: int, count: Any, *, strict: bool = False) -> Any:
    arguments = {"strict": strict, **{key: given[key] for key in ("tools", "prune", "reserved_tokens") if key in given}}
    if "query" not in given:
        return gatekeeper.fit_messages(given["messages"], budget, count_tokens=count, **arguments)
    gate = ContextGatekeeper(budget, count_tokens=count)
    for message in given["messages"]:
        gate.add_messages([message])
    return gate.select_messages(given["query"], **arguments)


def check_messages(key: str, wanted: Any, given: dict[str, Any], sent: Any, count: Any, budget: int) -> None:
    if key == "typed_error_only_if_strict":
        try:
            _selected(given, budget, count, strict=True)
        except gatekeeper.BudgetError as error:
            expect(sent.over_budget, "an error, though it fits")
            expect(str(sent.n_fixed_tokens) in str(error), f"the size is missing in {error}")
        else:
            expect(not sent.over_budget, "no error under strict")
    elif key == "pairs_valid":
        if "query" in given and budget > sent.n_fixed_tokens + given.get("budget_tokens", ROOM) - 1:
            expect(bool(sent), "the selection is empty")
    elif key == "include_turns":
        heads = [message for message in given["messages"] if role_of(message) == "user"]
        for turn in wanted if not sent.over_budget else ():
            text = text_of(heads[turn])
            expect(any(role_of(m) == "user" and text_of(m) in text for m in sent), f"turn {turn} is missing in {sent}")
    elif key in ("contains", "not_contains"):
        whole = json.dumps(list(sent), ensure_ascii=False)
        expect(all((part in whole) == (key == "contains") for part in wanted), f"{key} {wanted}: {whole}")
    elif key not in ("total_le_budget", "raises"):  # the budget holds for every case: see check_sent
        raise AssertionError(f"unknown check {key!r}")


RUNNERS = {
    "messages": run_messages,
    "select": run_select, "tokenize": run_tokenize, "count": run_count, "prune": run_prune, "prompt": run_prompt,
    "explain": run_explain, "constraints": run_constraints, "incremental": run_incremental,
    "determinism": run_determinism, "perf": run_perf, "env": run_env, "isolation": run_isolation,
    "store": field_reports_store.run_store, "concurrency": field_reports_store.run_concurrency,
    "spec": field_reports_spec.run_spec, "hook": field_reports_spec.run_hook,
}  # fmt: skip


def run_case(case: dict[str, Any]) -> None:
    """Raise AssertionError when what must hold does not."""
    given, check = decoded(case["input"]), case["expected"]["check"]
    op = given["op"]
    if op not in RUNNERS:
        raise AssertionError(f"unknown operation {op!r}")
    RUNNERS[op](given, check)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="*", help="ids of the cases to run")
    arguments = parser.parse_args()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for line in arguments.file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if arguments.only and case["id"] not in arguments.only:
            continue
        try:
            run_case(case)
            counts["passed"] += 1
        except Exception as error:
            counts["failed"] += 1
            print(f"FAILED {case['id']}: {type(error).__name__}: {error}\n    expected: {case['expected']['text']}")
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
