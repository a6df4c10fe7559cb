"""What the benchmark tools say of given figures; nothing is timed or counted here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # last, so that an installed gatekeeper stays the one that is imported

from benchmarks import compare, instructions  # noqa: E402
from benchmarks.compare import Pass, Row, line_of, mark_of, parse_pass, rows_of, seconds  # noqa: E402
from benchmarks.instructions import CannotRunError, accepted, chosen, compiler_of, count_of_dumps, key_of  # noqa: E402

FACTS = {
    "python": "3.11.7", "python_compiler": "GCC 12.2.0", "compiler": "gcc 12.2.0", "debug_information": "no",
    "machine": "x86_64", "libc": "glibc 2.36", "valgrind": "valgrind-3.19.0",
}  # fmt: skip
KEY = "python3.11-gcc12-x86_64"


def passes(a: dict[str, float], b: dict[str, float], *, why_a: dict[str, str] | None = None,
           why_b: dict[str, str] | None = None) -> tuple[Pass, Pass]:
    return Pass(a, why_a or {}), Pass(b, why_b or {})


# --- two revisions


def test_a_row_pairs_the_passes_of_a_round() -> None:
    [row] = rows_of([passes({"t": 1.0}, {"t": 1.2}), passes({"t": 2.0}, {"t": 2.2}), passes({"t": 4.0}, {"t": 4.0})])
    assert (row.a, row.b, row.note) == (2.0, 2.2, "")
    assert row.ratios == pytest.approx([1.2, 1.1, 1.0])


@pytest.mark.parametrize(
    ("ratios", "mark"),
    [
        ([1.06, 1.3, 1.1], "SLOWER"),
        ([1.05, 1.3, 1.1], ""),
        ([0.9, 1.3, 1.1], ""),
        ([0.94, 0.5, 0.9], "faster"),
        ([0.95, 0.5, 0.9], ""),
        ([1.5, 1.5], ""),  # two rounds do not tell
        ([], ""),
    ],
)
def test_only_a_whole_spread_beyond_5_percent_is_marked(ratios: list[float], mark: str) -> None:
    assert mark_of(ratios) == mark


def test_it_is_said_which_revision_cannot_run_a_benchmark() -> None:
    rows = rows_of([
        passes({"f.py::old": 1.0}, {"f.py::new[1]": 1.0, "g.py::new": 2.0},
               why_a={"f.py::new[1]": "AttributeError: no fold", "g.py": "ImportError: g", "h.py": "ImportError: h"},
               why_b={"h.py": "ImportError: h"}),
    ])  # fmt: skip
    assert {row.name: row.note for row in rows} == {
        "f.py::new[1]": "A cannot run it: AttributeError: no fold",
        "g.py::new": "A cannot run it: ImportError: g",
        "f.py::old": "B cannot run it: no figure",
        "h.py": "neither can run it: ImportError: h",
    }
    assert all(not row.ratios for row in rows)


def test_a_round_without_one_side_gives_no_ratio() -> None:
    [row] = rows_of([passes({"t": 1.0}, {"t": 2.0}), passes({"t": 1.0}, {}, why_b={"t": "it failed"})])
    assert row.ratios == [2.0]
    assert row.note == ""


def test_a_line_holds_both_medians_the_ratio_and_its_spread() -> None:
    line = line_of(Row("bench.py::t", 1.5e-6, 3e-3, [1.9, 2.0, 2.2], "SLOWER"), 12)
    assert line == "bench.py::t      1.5 µs       3 ms   2.000 [1.900..2.200] SLOWER"
    assert line_of(Row("t", None, 2.0, [], "A cannot run it: x"), 1).split(maxsplit=5)[:4] == ["t", "-", "2", "s"]


@pytest.mark.parametrize(
    ("value", "text"), [(2.5e-8, "25 ns"), (1.2344e-5, "12.34 µs"), (0.5, "500 ms"), (61.0, "61 s"), (None, "-")]
)
def test_times_have_the_unit_that_fits(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_a_pass_is_read_from_the_json_and_the_short_summary() -> None:
    report = {"benchmarks": [{"fullname": "benchmarks/bench_a.py::test_x[1]", "stats": {"median": 0.5}}]}
    output = (
        "= short test summary info =\n"
        "FAILED benchmarks/bench_a.py::test_y[a b] - TypeError: no - not so\n"
        "ERROR benchmarks/bench_b.py - ImportError: cannot import name 'z'\n"
        "FAILED benchmarks/bench_a.py::test_z\n"
    )
    assert parse_pass(report, output) == Pass(
        {"bench_a.py::test_x[1]": 0.5},
        {"bench_a.py::test_y[a b]": "TypeError: no - not so", "bench_b.py": "ImportError: cannot import name 'z'",
         "bench_a.py::test_z": "it failed"},
    )  # fmt: skip


def test_an_unknown_revision_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*command: object) -> bytes:
        raise compare.CannotCompareError("git -C ... failed:\nfatal: Needed a single revision")

    monkeypatch.setattr(compare, "_run", fail)
    assert compare.main(["nowhere", "HEAD"]) == compare.NOTHING
    assert "fatal: Needed a single revision" in capsys.readouterr().err


# --- instruction counts


@pytest.mark.parametrize(
    ("figure", "status"), [(1_000, 0), (1_030, 0), (1_031, 1), (2_000, 1), (970, 0), (969, 0), (1, 0)]
)
def test_more_than_3_percent_up_fails(figure: int, status: int) -> None:
    lines, got = instructions.compare({"top_20": figure, "append": 5}, {"top_20": 1_000, "append": 5})
    assert got == status
    assert any(line.startswith("FAILED: top_20") for line in lines) == bool(status)
    assert any(line.startswith("fewer instructions: top_20") for line in lines) == (figure < 970)


def test_a_failure_says_which_kernel_and_by_how_much() -> None:
    lines, _ = instructions.compare({"top_20": 1_250, "append": 100}, {"top_20": 1_000, "append": 100})
    assert lines == [
        "top_20                     1,250   +25.00%   MORE: the baseline is 1,000",
        "append                       100    +0.00%",
        "FAILED: top_20 +25.00%; at most +3% is allowed. If it is worth it: --accept",
    ]


def test_less_says_that_a_baseline_could_be_accepted() -> None:
    lines, status = instructions.compare({"top_20": 900}, {"top_20": 1_000})
    assert lines[-1] == "fewer instructions: top_20 -10.00%; a new baseline could be accepted with --accept"
    assert status == instructions.SAME


def test_a_kernel_without_a_baseline_is_no_success() -> None:
    lines, status = instructions.compare({"new": 5, "old": 5}, {"old": 5})
    assert (lines[-1], status) == ("no baseline for new: accept one with --accept", instructions.NO_BASELINE)
    assert instructions.compare({"new": 5, "old": 9}, {"old": 5})[1] == instructions.SLOWER


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({}, KEY),
        ({"python": "3.11.9", "compiler": "gcc 12.4.1", "libc": "glibc 2.40"}, KEY),
        ({"python": "3.12.0"}, "python3.12-gcc12-x86_64"),
        ({"compiler": "gcc 13.1.0"}, "python3.11-gcc13-x86_64"),
        ({"compiler": "clang 16.0.6"}, "python3.11-clang16-x86_64"),
        ({"machine": "aarch64"}, "python3.11-gcc12-aarch64"),
    ],
)
def test_a_key_is_python_minor_compiler_major_and_machine(change: dict[str, str], key: str) -> None:
    assert key_of({**FACTS, **change}) == key


def test_an_absent_key_is_reported() -> None:
    baselines = {KEY: {"facts": FACTS, "instructions": {"top_20": 5}}}
    lines, status = instructions.check({**FACTS, "python": "3.13.0"}, {"top_20": 5}, baselines)
    assert status == instructions.NO_BASELINE
    assert lines[-1] == (f"instructions.json has no baseline for python3.13-gcc12-x86_64 (it has {KEY}): "
                         "accept these figures with --accept")


def test_what_changed_within_a_key_is_noted() -> None:
    baselines = {KEY: {"facts": FACTS, "instructions": {"top_20": 5}}}
    lines, status = instructions.check({**FACTS, "libc": "glibc 2.41"}, {"top_20": 5}, baselines)
    assert status == instructions.SAME
    assert lines[0] == "note: libc was glibc 2.36, is glibc 2.41: small differences may come from that"


@pytest.mark.parametrize(
    ("binary", "compiler"),
    [
        (b"\0GCC: (Debian 12.2.0-14+deb12u1) 12.2.0\0\0", "gcc 12.2.0"),
        (b"GCC: (GNU) 9.4.0\0GCC: (GNU) 13.2.1 20230801\0", "gcc 13.2.1"),
        (b"GCC: (Debian 12.2.0-14) 12.2.0\0Debian clang version 16.0.6 (15)\0", "clang 16.0.6"),
        (b"", "unknown 0"),
    ],
)
def test_the_compiler_is_read_from_what_it_built(binary: bytes, compiler: str) -> None:
    assert compiler_of(binary) == compiler


def test_a_figure_is_the_third_dump_less_the_second() -> None:
    dumps = [f"desc: Trigger: x\nsummary: {n}\n\nfn=(1) summary\n" for n in (900_000, 774, 50_774)]
    assert count_of_dumps(dumps, 50) == 1_000
    with pytest.raises(CannotRunError, match="2 of 3 marks"):
        count_of_dumps(dumps[:2], 50)
    with pytest.raises(CannotRunError, match="summary"):
        count_of_dumps(["", "", ""], 50)


def test_accepting_keeps_other_keys_and_drops_kernels_that_are_gone() -> None:
    other = {"facts": FACTS, "instructions": {"a": 1}}
    baselines = {"python3.12-gcc12-x86_64": other, KEY: {"facts": FACTS, "instructions": {"a": 1, "b": 2, "gone": 3}}}
    new = accepted(baselines, FACTS, {"b": 5}, ["a", "b"])
    assert new == {KEY: {"facts": FACTS, "instructions": {"a": 1, "b": 5}}, "python3.12-gcc12-x86_64": other}
    assert list(new) == sorted(new)


def test_figures_of_two_conditions_do_not_mix() -> None:
    baselines = {KEY: {"facts": FACTS, "instructions": {"a": 1, "b": 2}}}
    newer = {**FACTS, "libc": "glibc 2.41"}
    with pytest.raises(CannotRunError, match="without --only"):
        accepted(baselines, newer, {"b": 5}, ["a", "b"])
    assert accepted(baselines, newer, {"a": 4, "b": 5}, ["a", "b"])[KEY]["facts"] == newer


def test_names_and_patterns_choose() -> None:
    known = ["extract/english", "extract/mixed", "top_20"]
    assert chosen(known, None) == known
    assert chosen(known, ["top_20", "extract/*"]) == known
    assert chosen(known, ["*/mixed"]) == ["extract/mixed"]
    with pytest.raises(CannotRunError, match=r"no kernel fits 'nothing'; there are extract/english"):
        chosen(known, ["nothing"])


def test_a_missing_valgrind_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    assert instructions.main([]) == instructions.CANNOT_RUN
    assert "apt-get install valgrind" in capsys.readouterr().err


def test_a_new_baseline_is_what_the_next_run_compares_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions, "BASELINE", tmp_path / "instructions.json")
    assert instructions.report(FACTS, {"a": 100}, ["a"], accept=False) == instructions.NO_BASELINE
    assert instructions.report(FACTS, {"a": 100}, ["a"], accept=True) == instructions.SAME
    assert instructions.report(FACTS, {"a": 102}, ["a"], accept=False) == instructions.SAME
    assert instructions.report(FACTS, {"a": 110}, ["a"], accept=False) == instructions.SLOWER
    assert "FAILED: a +10.00%" in capsys.readouterr().out


def test_the_recorded_baselines_fit_the_kernels() -> None:
    from benchmarks.kernels import KERNELS

    for key, entry in json.loads((ROOT / "benchmarks" / "instructions.json").read_text(encoding="utf-8")).items():
        assert key == key_of(entry["facts"])
        assert list(entry["instructions"]) == list(KERNELS)
