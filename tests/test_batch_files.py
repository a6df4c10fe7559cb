"""From file to file: each row as a gatekeeper decides it, the same bytes after a kill, bad rows beside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, FOLDER, call, plain_environment

from gatekeeper import ArgumentValueError, BatchError, ContextGatekeeper, Settings
from gatekeeper.batch import files
from gatekeeper.batch.files import select_file

TURNS = [["Redis 惰性删除是什么", "访问时才检查键是否过期。"], ["Git rebase 怎么用", "先切到功能分支。"]]
FORMS = ["jsonl", pytest.param("parquet", marks=pytest.mark.engines)]


def row_of(number: int) -> dict[str, Any]:
    turns = [{"user": user, "assistant": assistant} for user, assistant in TURNS[: number % 3]]
    return {"id": number, "turns": turns, "query": f"惰性删除 {number}"}


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        import pyarrow as arrow
        from pyarrow import parquet

        turn = arrow.struct([("user", arrow.string()), ("assistant", arrow.string())])
        schema = arrow.schema([("id", arrow.int64()), ("turns", arrow.list_(turn)), ("query", arrow.string())])
        parquet.write_table(arrow.Table.from_pylist(rows, schema), path, **options)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def answer_of(row: dict[str, Any], budget: int = 4000) -> dict[str, Any]:
    gate = ContextGatekeeper(budget)
    gate.add_turns([(turn["user"], turn["assistant"]) for turn in row["turns"]])
    selected = [{key: block[key] for key in ("turn_id", "user", "assistant", "score")} for block in
                gate.select(row["query"])]  # fmt: skip
    return {"id": row["id"], "query": row["query"], "selected": selected, "prompt": gate.build_prompt(row["query"]),
            "tokens": gate.explain(row["query"])["tokens"]["prompt"]}  # fmt: skip


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROWS_A_PART", 16)
    monkeypatch.setattr(files, "ROWS_A_BATCH", 4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_rows", [0, 1, 16, 17, 50])
@pytest.mark.parametrize("threads", [1, 3])
def test_each_row_is_answered_in_order(tmp_path: Path, form: str, n_rows: int, threads: int) -> None:
    rows = [row_of(number) for number in range(n_rows)]
    source = write(tmp_path / f"in.{form}", rows)
    seen: list[tuple[int, float]] = []
    totals = select_file(source, tmp_path / f"out.{form}", threads=threads, token_budget=300,
                         on_progress=lambda *done: seen.append(done))  # fmt: skip
    assert totals == (n_rows, 0, "")
    assert read(tmp_path / f"out.{form}") == [answer_of(row, 300) for row in rows]
    assert sorted(item.name for item in tmp_path.iterdir()) == [f"in.{form}", f"out.{form}"]
    assert [done for done, _ in seen] == [min(at + 16, n_rows) for at in range(0, n_rows, 16)]
    assert not seen or seen[-1][1] == 1.0


def test_whatever_else_a_line_has_goes_through(tmp_path: Path) -> None:
    line = '{"a": [1, {"b": null}], "turns": [["\\ud800 redis", "x"]], "query": "redis", "é": 1e400, "n": 12345678901}'
    (tmp_path / "in.jsonl").write_text(line + "\n\n   \n")
    assert select_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl") == (1, 0, "")
    [row] = read(tmp_path / "out.jsonl")
    assert (row["a"], row["é"], row["n"]) == ([1, {"b": None}], float("inf"), 12345678901)
    assert row["selected"][0]["user"] == "\ud800 redis"
    assert "turns" not in row


# --- bad rows


BAD_LINES = {
    "{trunc": "expected a JSON object, got", "7": "expected an object", "[" * 100_000: "expected a JSON object",
    '{"query": "x"}': 'expected an object with "turns" and "query"', '{"turns": 7, "query": "x"}': "expected a list",
    '{"turns": [], "query": 7}': "query must be a str", '{"turns": [{"user": "a"}], "query": "x"}': "turns[0][1]",
    '{"turns": [["a"]], "query": "x"}': "turns[0] must", '{"turns": [], "query": "x", "prompt": 1}': "rename it",
}  # fmt: skip


def test_bad_lines_go_aside_with_their_number_and_reason(tmp_path: Path) -> None:
    good = json.dumps(row_of(2))
    text = "".join(f"{good}\n{bad}\n" for bad in BAD_LINES)
    (tmp_path / "in.jsonl").write_bytes(text.encode() + b"\xff\n" + good.encode())
    totals = select_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", threads=2)
    assert totals == (len(BAD_LINES) + 1, len(BAD_LINES) + 1, str(tmp_path / "out.jsonl.bad.jsonl"))
    assert read(tmp_path / "out.jsonl") == [answer_of(row_of(2))] * totals.n_rows
    bad = read(tmp_path / "out.jsonl.bad.jsonl")
    assert [item["row"] for item in bad] == [2 * (i + 1) for i in range(len(BAD_LINES))] + [2 * len(BAD_LINES) + 1]
    for item, (line, reason) in zip(bad, BAD_LINES.items(), strict=False):
        assert item["line"] == line
        assert reason in item["reason"]
    assert bad[-1]["line"] == "\\xff"


@pytest.mark.engines
def test_bad_rows_of_parquet_go_aside_too(tmp_path: Path) -> None:
    rows = [row_of(2), {**row_of(1), "turns": None}, {**row_of(1), "query": None}, row_of(2)] * 9
    source = write(tmp_path / "in.parquet", rows)
    totals = select_file(source, tmp_path / "out.parquet")
    assert (totals.n_rows, totals.n_bad) == (18, 18)
    assert read(tmp_path / "out.parquet") == [answer_of(row_of(2))] * 18
    bad = read(tmp_path / "out.parquet.bad.jsonl")
    assert [item["row"] for item in bad] == [i + 1 for i in range(36) if i % 4 in (1, 2)]
    assert bad[0]["reason"] == "turns is null"


@pytest.mark.parametrize("form", FORMS)
def test_strict_ends_at_the_first_bad_row(tmp_path: Path, form: str) -> None:
    source = write(tmp_path / f"in.{form}", [row_of(1), {**row_of(1), "query": None}, {**row_of(1), "turns": None}])
    with pytest.raises(BatchError, match=rf"in\.{form}:2: .*query must be a str"):
        select_file(source, tmp_path / f"out.{form}", strict=True)
    assert not (tmp_path / f"out.{form}").exists()


# --- going on


class Stop(Exception):
    pass


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path: Path, form: str, stop_at: int) -> None:
    rows = [row_of(number) if number % 5 else {**row_of(number), "query": None} for number in range(50)]
    options = {"row_group_size": 7} if form == "parquet" else {}
    source, target = write(tmp_path / f"in.{form}", rows, **options), tmp_path / f"out.{form}"
    n_calls = 0

    def stop(*_: object) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == stop_at:
            raise Stop

    with pytest.raises(Stop):
        select_file(source, target, on_progress=stop)
    assert not target.exists()
    with pytest.raises(BatchError, match="--resume"):
        select_file(source, target)
    with pytest.raises(BatchError, match="token_budget was 4000, is 5"):
        select_file(source, target, token_budget=5, resume=True)
    seen: list[int] = []
    select_file(source, target, resume=True, on_progress=lambda done, _: seen.append(done))
    assert seen[0] == min(16 * (stop_at + 1), 50)
    select_file(source, tmp_path / f"whole.{form}")
    assert target.read_bytes() == (tmp_path / f"whole.{form}").read_bytes()
    bad = [(tmp_path / f"{name}.{form}.bad.jsonl").read_bytes() for name in ("out", "whole")]
    assert bad[0] == bad[1]
    assert select_file(source, target, resume=True) == (40, 10, f"{target}.bad.jsonl")  # nothing is left to do
    with pytest.raises(BatchError, match="exists"):
        select_file(source, target)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_may_end_wherever_a_file_gets_its_name(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row_of(number) if number % 5 else {**row_of(number), "query": None} for number in range(40)]
    source, target = write(tmp_path / f"in.{form}", rows), tmp_path / f"out.{form}"
    select_file(source, tmp_path / f"whole.{form}")
    replace = os.replace
    n_left = 0

    def replace_some(*names: str) -> None:
        nonlocal n_left
        if n_left == 0:
            raise Stop
        n_left -= 1
        replace(*names)

    for n_calls in range(9):  # a plan, 3 parts of 2 files, the bad rows, OUT
        n_left = n_calls
        with monkeypatch.context() as patched:
            patched.setattr(files.os, "replace", replace_some)
            with pytest.raises(Stop):
                select_file(source, target)
        assert select_file(source, target, resume=True).n_rows == 32
        assert target.read_bytes() == (tmp_path / f"whole.{form}").read_bytes()
        for name in (target, tmp_path / f"out.{form}.bad.jsonl"):
            name.unlink()


def test_an_input_that_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.jsonl", [row_of(1)] * 20), tmp_path / "out.jsonl"

    def stop(*_: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        select_file(source, target, on_progress=stop)
    write(source, [row_of(1)] * 21)
    with pytest.raises(BatchError, match="bytes was"):
        select_file(source, target, resume=True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [row_of(2)] * 30_000)
    command = [*COMMAND, "batch", str(source), str(tmp_path / "out.jsonl"), "--resume"]
    with subprocess.Popen(command, cwd=FOLDER, env=plain_environment()) as run:
        while run.poll() is None and not list(tmp_path.glob("out.jsonl.parts/0000000[0-9]")):
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out.jsonl").exists()
    done = subprocess.run(command, cwd=FOLDER, env=plain_environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"30000 rows")
    assert (tmp_path / "out.jsonl").read_text().count("\n") == 30_000
    assert set((tmp_path / "out.jsonl").read_text().splitlines()) == {
        json.dumps(answer_of(row_of(2)), ensure_ascii=False)}  # fmt: skip


# --- what is refused


@pytest.mark.parametrize(("source", "target", "message"), [
    ("in.txt", "out.txt", r"expected a name that ends in \.jsonl, \.ndjson, \.parquet"),
    ("in.jsonl", "out.parquet", "is JSON lines, so it must be too"),
    ("none.jsonl", "out.jsonl", r"none\.jsonl: No such file"),
    ("in.jsonl", "none/out.jsonl", "No such file"),
    pytest.param("bad.parquet", "out.parquet", "cannot be read as Parquet", marks=pytest.mark.engines),
])  # fmt: skip
def test_files_that_do_not_fit_are_refused_by_name(tmp_path: Path, source: str, target: str, message: str) -> None:
    write(tmp_path / "in.jsonl", [row_of(1)])
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(BatchError, match=message):
        select_file(tmp_path / source, tmp_path / target)
    with pytest.raises(ArgumentValueError, match="threads"):
        select_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", threads=0)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.engines
def test_parquet_without_the_columns_is_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "in.parquet")
    with pytest.raises(ArgumentValueError, match="one column 'turns'"):
        select_file(tmp_path / "in.parquet", tmp_path / "out.parquet")


def test_parquet_without_pyarrow_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BatchError, match=r"pip install 'context-gatekeeper\[arrow\]'"):
        select_file(tmp_path / "in.parquet", tmp_path / "out.parquet")


# --- the command


def test_the_command(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [row_of(1), {**row_of(1), "query": None}])
    result = call("batch", str(source), str(tmp_path / "out.jsonl"), "--json", "--budget", "300", "--threads", "2")
    assert result.exit_code == 0
    bad_file = str(tmp_path / "out.jsonl.bad.jsonl")
    assert json.loads(result.stdout) == {"rows": 1, "bad": 1, "bad_file": bad_file}
    assert result.stderr == f"warning: 1 bad rows: {bad_file}\n"
    assert read(tmp_path / "out.jsonl") == [answer_of(row_of(1), 300)]
    again = call("batch", str(source), str(tmp_path / "out.jsonl"))
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr.startswith(f"error: {tmp_path}/out.jsonl: exists")
    assert call("batch", str(source), str(tmp_path / "out.jsonl"), "--resume").stdout.startswith("1 rows  1 bad")
    strict = call("batch", str(source), str(tmp_path / "strict.jsonl"), "--strict")
    assert strict.exit_code == 1
    assert strict.stderr.startswith(f"error: {source}:2: ArgumentTypeError: query must be a str")
    thorough = call("batch", str(source), str(tmp_path / "thorough.jsonl"), "--settings", "thorough")
    assert thorough.exit_code == 0
    gate = ContextGatekeeper(4000, settings=Settings.thorough())
    gate.add_turns([tuple(turn) for turn in TURNS[:1]])
    assert read(tmp_path / "thorough.jsonl")[0]["prompt"] == gate.build_prompt(row_of(1)["query"])


def test_the_command_is_documented() -> None:
    result = call("batch", "--help")
    assert "gatekeeper batch chats.jsonl" in result.stdout.partition("Example:")[2]
    assert "`gatekeeper batch" in (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_what_is_left_of_a_write_that_failed_is_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with files.whole(str(tmp_path / "a")) as stream:
            stream.write(b"x")
            raise Stop

    with pytest.raises(Stop):
        fail()
    assert os.listdir(tmp_path) == []


CHAT = [
    {"role": "user", "content": "Redis 惰性删除是什么"}, {"role": "assistant", "content": "访问时才检查键是否过期。"},
    {"role": "user", "content": [{"type": "text", "text": "Git rebase 怎么用"}]},
]  # fmt: skip


@pytest.mark.parametrize("as_text", [False, True])
def test_a_row_may_hold_messages(tmp_path: Path, as_text: bool) -> None:
    rows = [{"id": i, "messages": json.dumps(CHAT[:i]) if as_text else CHAT[:i], "query": "惰性删除"} for i in range(4)]
    bad = [{"messages": [], "turns": [], "query": "x"}, {"messages": None, "query": "x"},
           {"messages": [{"role": "x"}], "query": "x"}, {"messages": "[", "query": "x"}]  # fmt: skip
    totals = select_file(write(tmp_path / "in.jsonl", [*rows, *bad]), tmp_path / "out.jsonl", threads=2)
    assert totals[:2] == (4, 4)
    for row, answer in zip(rows, read(tmp_path / "out.jsonl"), strict=True):
        gate = ContextGatekeeper(4000)
        gate.add_messages(CHAT[: row["id"]])
        assert answer["prompt"] == gate.build_prompt("惰性删除")
        assert set(answer) == {"id", "query", "selected", "prompt", "tokens"}
    reasons = [line["reason"] for line in read(Path(totals.bad_file))]
    assert reasons[0] == 'expected an object with "turns" and "query", or with "messages" and "query"'
    assert reasons[1] == "messages is null"
    assert reasons[2].startswith("ArgumentValueError: messages[0]: a role is one of")
    assert reasons[3].startswith("ArgumentValueError: messages must be a JSON list")
