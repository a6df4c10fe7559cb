"""A damaged file is an error that names it, never another or an empty conversation; what can be saved is saved."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from damage import LONG, SESSIONS, contents, flip, make, outcome, text_of

import gatekeeper
from gatekeeper import StoreCorruptError, StoreError
from gatekeeper.store import files
from gatekeeper.store.log_check import PAGE_BYTES
from gatekeeper.store.recovery import recover

N_TURNS = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "chat.db"
    make(path, N_TURNS)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


def saved_turns(path: Path, user: str, session: str) -> dict[int, tuple[str, str]]:
    _, turns = files.read_session(path, user=user, session=session)
    return {turn_id: turn for turn_id, turn in enumerate(turns) if turn}


# --- damage of every kind


@pytest.mark.parametrize("n_bytes", [1, 4, 64, 3000])
def test_flipped_bytes_change_nothing_or_are_an_error(whole: Path, path: Path, n_bytes: int) -> None:
    data, right = whole.read_bytes(), contents(whole)
    kinds = set()
    for seed in range(40):
        path.write_bytes(flip(data, seed * 7 + n_bytes, n_bytes))
        got = outcome(path)
        if isinstance(got, StoreError):
            assert got.path == str(path)
            assert str(path) in str(got)
            kinds.add(type(got))
        else:
            assert got == right
        for left in path.parent.glob("chat.db*"):
            left.unlink()
    assert StoreCorruptError in kinds


@pytest.mark.parametrize("page", [1, 2, 3])
def test_flipped_bytes_of_the_first_pages_too(whole: Path, path: Path, page: int) -> None:
    """The file's head, its schema and its sessions."""
    data, right = whole.read_bytes(), contents(whole)
    at = (page - 1) * PAGE_BYTES
    used = [i for i in range(at, at + PAGE_BYTES) if data[i]]
    for i in used[:: max(1, len(used) // 60)]:
        path.write_bytes(data[:i] + bytes([data[i] ^ 0x55]) + data[i + 1 :])
        got = outcome(path)
        assert isinstance(got, StoreError) or got == right
        for left in path.parent.glob("chat.db*"):
            left.unlink()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.9])
def test_a_truncated_file_is_an_error(whole: Path, path: Path, share: float) -> None:
    data = whole.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    got = outcome(path)
    assert isinstance(got, StoreCorruptError)
    assert got.path == str(path)


@pytest.mark.parametrize("data", [b"", b"\0", b"\x89PNG\r\n", b"SQLite format 3\0", b"\0" * 100_000,
                                  b'{"user": "a", "assistant": "b"}\n' * 999])  # fmt: skip
def test_a_file_of_something_else_is_an_error_and_stays_as_it_is(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(StoreCorruptError) as caught:
        gatekeeper.open(path)
    assert caught.value.path == str(path)
    assert path.read_bytes() == data


def test_the_database_of_another_program_is_an_error(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE session (id)")
    connection.execute("INSERT INTO session VALUES (zeroblob(100000))")
    connection.commit()
    connection.close()
    data = path.read_bytes()
    with pytest.raises(StoreCorruptError, match="is not a session file"):
        gatekeeper.open(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize("change", [
    "DELETE FROM turn WHERE turn_id = 3", "DELETE FROM turn WHERE turn_id = 59", "DELETE FROM session",
    "UPDATE session SET n_turns = 0", "UPDATE session SET n_turns = n_turns - 1", "UPDATE session SET user = x'75'",
    "UPDATE turn SET user = x'80' WHERE turn_id = 0", "UPDATE turn SET assistant = 'text' WHERE turn_id = 0",
    "UPDATE turn SET user = NULL, assistant = NULL WHERE turn_id = 0", "UPDATE session SET constraints = x'7b7d'",
    "UPDATE turn SET user = 7 WHERE turn_id = 0", "DROP TABLE turn", "DROP TABLE session",
])  # fmt: skip
def test_rows_that_are_not_as_they_were_written_are_an_error(whole: Path, path: Path, change: str) -> None:
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    assert isinstance(outcome(path), StoreCorruptError)


# --- what can be saved


def test_a_whole_file_is_recovered_whole(whole: Path, tmp_path: Path) -> None:
    report = recover(whole, tmp_path / "new.db")
    assert [(item["user"], item["session"], item["n_turns"], item["n_saved"], item["lost_turns"]) for item in
            sorted(report, key=lambda item: (item["user"], item["session"]))] == [
        ("u1", "git", 60, 60, []), ("u1", "redis", 60, 60, []), ("u2", "redis", 60, 60, [])]  # fmt: skip
    assert [lines[1:] for lines in contents(tmp_path / "new.db").values()] == [
        lines[1:] for lines in contents(whole).values()]  # fmt: skip
    with gatekeeper.open(tmp_path / "new.db", user="u1", session="git") as gate:
        assert dict(gate.constraints) == {"language": "zh"}


def test_the_turns_of_a_log_that_was_never_copied_are_recovered(path: Path, tmp_path: Path) -> None:
    gate = gatekeeper.open(path, token_budget=10**6)
    for i in range(40):
        gate.add_turn(f"question {i}", LONG if i == 7 else "ok")
    for name in ("", "-wal"):
        shutil.copy(f"{path}{name}", tmp_path / f"copy.db{name}")
    gate.close()
    data = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").write_bytes(b"\xff" * len(data))
    [item] = recover(tmp_path / "copy.db", tmp_path / "new.db")
    assert (item["n_turns"], item["n_saved"]) == (40, 40)
    with gatekeeper.open(tmp_path / "new.db") as gate:
        assert gate.block(7).assistant == LONG


@pytest.mark.parametrize("seed", range(12))
def test_what_a_destroyed_stretch_leaves_is_saved_and_nothing_else(whole: Path, path: Path, seed: int) -> None:
    path.write_bytes(flip(whole.read_bytes(), seed, 20_000))
    new = path.with_name("new.db")
    report = recover(path, new)
    n_lost = 0
    for item in report:
        assert len(item["lost_turns"]) == item["n_turns"] - item["n_saved"]
        n_lost += len(item["lost_turns"])
        if item["user"] == "recovered":
            continue
        for turn_id, turn in saved_turns(new, item["user"], item["session"]).items():
            assert turn == text_of(item["user"], item["session"], turn_id)
    assert n_lost < 3 * N_TURNS / 2


def test_a_page_whose_head_is_destroyed_still_gives_its_turns(whole: Path, path: Path) -> None:
    data = bytearray(whole.read_bytes())
    n_heads = 0
    for at in range(PAGE_BYTES, len(data), PAGE_BYTES):
        if data[at] == 0x0A:
            data[at : at + 8] = b"\xee" * 8
            n_heads += 1
    path.write_bytes(bytes(data))
    assert n_heads > 3
    assert isinstance(outcome(path), StoreCorruptError)
    report = recover(path, path.with_name("new.db"))
    assert sum(item["n_saved"] for item in report) == 3 * N_TURNS


def test_sessions_whose_rows_are_lost_keep_their_turns_under_a_name_of_their_own(whole: Path, path: Path) -> None:
    data = whole.read_bytes()
    at = next(at for at in range(PAGE_BYTES, len(data), PAGE_BYTES) if data[at] == 0x0D)
    path.write_bytes(data[:at] + b"\0" * PAGE_BYTES + data[at + PAGE_BYTES :])
    assert isinstance(outcome(path), StoreCorruptError)
    report = recover(path, path.with_name("new.db"))
    assert {item["user"] for item in report} == {"recovered"}
    assert [item["n_saved"] for item in report] == [N_TURNS] * len(SESSIONS)
    texts = {turn[0].split(" question")[0] for item in report
             for turn in saved_turns(path.with_name("new.db"), item["user"], item["session"]).values()}
    assert texts == {f"{user} {session}" for user, session in SESSIONS}


def test_forgotten_and_dropped_turns_do_not_come_back(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        for i in range(50):
            gate.add_turn(f"first {i}", "ok")
        gate.truncate(20)
        for i in range(20, 30):
            gate.add_turn(f"second {i}", "ok")
        gate.forget(3)
    [item] = recover(path, path.with_name("new.db"))
    assert (item["n_turns"], item["n_saved"]) == (30, 30)
    turns = saved_turns(path.with_name("new.db"), "default", "default")
    assert {turn_id: turn[0] for turn_id, turn in turns.items()} == {
        i: f"first {i}" if i < 20 else f"second {i}" for i in range(30) if i != 3}  # fmt: skip


def test_recover_only_reads_the_damaged_file_and_writes_no_file_over(whole: Path, path: Path) -> None:
    before = whole.read_bytes()
    with pytest.raises(StoreError, match="exists"):
        recover(whole, whole)
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="exists"):
        recover(whole, path)
    with pytest.raises(StoreError, match="No such file"):
        recover(path.with_name("none"), path.with_name("new.db"))
    assert not path.with_name("new.db").exists()
    with gatekeeper.open(path.with_name("open.db")), pytest.raises(StoreError, match="open in this process"):
        recover(path.with_name("open.db"), path.with_name("new.db"))
    recover(whole, path.with_name("new.db"))
    assert whole.read_bytes() == before


def test_an_export_line_is_json(whole: Path) -> None:
    for lines in contents(whole).values():
        assert all(isinstance(json.loads(line), dict) for line in lines)
