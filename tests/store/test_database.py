"""The file itself: durable, shared by threads, processes and forks, never in the way of a reader, with a version."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import gatekeeper
from gatekeeper import StoreBusyError, StoreCorruptError, StoreError, StoreVersionError
from gatekeeper.store import database as module
from gatekeeper.store.database import create
from gatekeeper.store.gate import open_database

FOLDER = Path(gatekeeper.__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=FOLDER, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip


# --- durable


def test_a_commit_waits_for_the_disk_and_deleted_bytes_are_overwritten(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn("a", "b")
        writer = gate.session.database._connection("writer")
        values = {name: writer.execute(f"PRAGMA {name}").fetchone()[0] for name in
                  ("journal_mode", "synchronous", "secure_delete", "temp_store", "page_size")}  # fmt: skip
    assert values == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "temp_store": 2, "page_size": 16384}


def test_a_turn_is_in_the_file_when_add_turn_returns(path: Path) -> None:
    code = "import sys, os, gatekeeper\ng = gatekeeper.open(sys.argv[1])\ng.add_turn('a', 'b')\nos._exit(9)"
    for n_turns in (1, 2):
        assert python(code, path).wait() == 9
        with gatekeeper.open(path) as gate:
            assert len(gate) == n_turns


def test_a_turn_is_whole_or_not_there(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn("a", "b")

        def turns() -> Any:
            yield "c", "d"
            raise RuntimeError("the caller's own")

        with pytest.raises(RuntimeError):
            gate.add_turns(turns())
        assert len(gate) == 1
        assert gate.add_turn("c", "d") == 1


def test_a_file_appears_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEPS", (*module.STEPS, ("NO SUCH STATEMENT",)))
    with pytest.raises(StoreError):
        gatekeeper.open(path)
    assert list(path.parent.iterdir()) == []


def test_who_makes_a_file_at_the_same_time_gets_the_same_file(path: Path) -> None:
    ready = threading.Barrier(8)
    gates: list[Any] = []

    def work() -> None:
        ready.wait()
        gates.append(gatekeeper.open(path))
        gates[-1].add_turn("a", "b")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(gate) for gate in gates] == [8] * 8
    for gate in gates:
        gate.close()
    assert [item.name for item in path.parent.iterdir()] == ["chat.db"]


def test_a_file_system_without_hard_links_will_do(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(module.os, "link", refuse)
    with gatekeeper.open(path) as gate:
        gate.add_turn("a", "b")
    create(str(path))
    with gatekeeper.open(path) as gate:
        assert len(gate) == 1


# --- shared


def test_a_reader_waits_for_no_writer(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn("redis ttl", "ok")
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE session SET n_turns = 7")
        assert [block["turn_id"] for block in gate.select("redis")] == [0]
        with gatekeeper.open(path) as other:
            assert [block["turn_id"] for block in other.select("redis")] == [0]
        blocked = threading.Thread(target=gate.add_turn, args=("git", "ok"))
        blocked.start()  # it waits for the writer; readers of the same gatekeeper still go on
        for _ in range(20):
            assert [block["turn_id"] for block in gate.select("redis")] == [0]
            assert len(gate) == 1
        assert blocked.is_alive()
        writer.execute("ROLLBACK")
        blocked.join()
        assert len(gate) == 2
        writer.close()


def test_a_writer_that_waits_too_long_says_so_and_has_changed_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    with gatekeeper.open(path) as gate:
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError) as caught:
            gate.add_turn("a", "b")
        assert caught.value.path == str(path)
        writer.execute("ROLLBACK")
        writer.close()
        assert gate.add_turn("a", "b") == 0


def test_a_reader_that_holds_the_log_makes_forget_say_that_bytes_are_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    with gatekeeper.open(path) as gate:
        gate.add_turn("secret", "")
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM turn").fetchall()
        with pytest.raises(StoreBusyError, match="forget again"):
            gate.forget(0)
        assert gate.select("secret") == []
        reader.execute("ROLLBACK")
        reader.close()
        gate.forget(0)
    assert b"secret" not in path.read_bytes()


WRITER = """
import sys, threading, gatekeeper
path, number, n_threads, n_turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def work(thread):
    with gatekeeper.open(path) as gate:
        for i in range(n_turns):
            turn_id = gate.add_turn(f"writer {number}.{thread} turn {i}", "ok")
            assert gate.block(turn_id).user == f"writer {number}.{thread} turn {i}"
threads = [threading.Thread(target=work, args=(t,)) for t in range(n_threads)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def test_processes_and_threads_lose_nothing_of_each_other(path: Path) -> None:
    processes = [python(WRITER, path, number, 3, 12) for number in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with gatekeeper.open(path) as gate:
        texts = [gate.block(i).user for i in range(len(gate))]
    assert sorted(texts) == sorted(f"writer {p}.{t} turn {i}" for p in range(3) for t in range(3) for i in range(12))
    for p in range(3):
        for t in range(3):  # each writer's turns in its order
            own = [text for text in texts if text.startswith(f"writer {p}.{t} ")]
            assert own == [f"writer {p}.{t} turn {i}" for i in range(12)]


def add_in_child(gate: Any, number: int) -> None:
    for i in range(10):
        gate.add_turn(f"child {number} turn {i}", "ok")
        assert gate.select(f"child {number}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_may_go_on_with_the_gatekeeper_of_its_parent(path: Path) -> None:
    gate = gatekeeper.open(path)
    gate.add_turn("parent", "ok")
    stop = threading.Event()

    def keep_writing() -> None:
        while not stop.is_set():
            gate.add_turn("parent", "ok")
            time.sleep(0.002)

    thread = threading.Thread(target=keep_writing)
    thread.start()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=add_in_child, args=(gate, number)) for number in range(3)]
    for child in children:
        child.start()
    gate.add_turn("parent", "ok")
    for child in children:
        child.join()
    stop.set()
    thread.join()
    gate.close()  # the last one to close: the log is copied into the file
    assert [child.exitcode for child in children] == [0, 0, 0]
    with gatekeeper.open(path) as gate:
        texts = [gate.block(i).user for i in range(len(gate))]
    for number in range(3):
        assert [text for text in texts if text.startswith(f"child {number}")] == [
            f"child {number} turn {i}" for i in range(10)]  # fmt: skip


# --- version


def test_an_older_file_migrates_with_all_that_it_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn("a", "b")
    step = ("ALTER TABLE session ADD COLUMN note BLOB", "CREATE TABLE more (id INTEGER PRIMARY KEY)")
    monkeypatch.setattr(module, "STEPS", (*module.STEPS, step))
    for _ in range(2):
        with gatekeeper.open(path) as gate:
            assert gate.block(0).user == "a"
            assert gate.session.database.fetch("PRAGMA user_version") == [(len(module.STEPS),)]
            assert gate.session.database.fetch("SELECT * FROM more") == []


def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn("a", "b")
    with monkeypatch.context() as patched:
        patched.setattr(module, "STEPS", (*module.STEPS, ("CREATE TABLE more (id)", "NO SUCH STATEMENT")))
        with pytest.raises(StoreError, match="NO"):
            gatekeeper.open(path)
    with gatekeeper.open(path) as gate:
        assert gate.block(0).user == "a"
        assert gate.session.database.fetch("SELECT name FROM sqlite_master WHERE name = 'more'") == []


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    gatekeeper.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreVersionError, match="schema version 99, this version reads up to 2"):
        gatekeeper.open(path)


# --- paths


@pytest.mark.parametrize("name", ["chat ?#%41.db", "聊天.db", ":memory:", "a'b\"c.db"])
def test_any_name_is_a_file_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with gatekeeper.open(name) as gate:
        gate.add_turn("a", "b")
    assert [item.name for item in tmp_path.iterdir()] == [name]
    with gatekeeper.open(tmp_path / name) as gate:
        assert len(gate) == 1


def test_a_path_that_cannot_be_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="its folder does not exist"):
        gatekeeper.open(tmp_path / "none" / "chat.db")
    with pytest.raises(StoreError, match=f"{tmp_path}: is a folder"):
        gatekeeper.open(tmp_path)
    with pytest.raises(StoreError, match="NUL"):
        gatekeeper.open(f"{tmp_path}/a\0b")
    with pytest.raises(StoreError, match="does not exist"):
        open_database(tmp_path / "none.db")
    with pytest.raises(gatekeeper.ArgumentTypeError, match="path must be a str or a path, got int"):
        gatekeeper.open(7)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_goes_while_it_is_open_is_an_error(path: Path, replaced: bool) -> None:
    """What would be written, or read, is no longer what the path names."""
    gate = gatekeeper.open(path)
    gate.add_turn("a", "b")
    shutil.move(path, path.with_name("moved.db"))
    if replaced:
        gatekeeper.open(path).close()
    for call in (lambda: gate.add_turn("c", "d"), lambda: gate.select("a"), lambda: len(gate)):
        with pytest.raises(StoreError, match="was moved, removed or replaced"):
            call()
    gate.close()
    assert path.exists() == replaced


def test_a_full_disk_is_an_error_and_nothing_is_changed(path: Path) -> None:
    with gatekeeper.open(path, token_budget=10**9) as gate:
        gate.add_turn("a", "b")
        writer = gate.session.database._connection("writer")
        [n_pages] = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {n_pages + 2}")
        with pytest.raises(StoreError, match="full"):
            gate.add_turns([("c", "d"), ("x" * 100_000, "")])
        assert len(gate) == 1
        assert gate.add_turn("c", "d") == 1


def test_errors_can_be_sent_to_another_process() -> None:
    import pickle

    for kind in (StoreError, StoreBusyError, StoreCorruptError, StoreVersionError):
        again = pickle.loads(pickle.dumps(kind("/a/b.db", "is broken")))
        assert (type(again), str(again), again.path, again.problem) == (
            kind, "/a/b.db: is broken", "/a/b.db", "is broken")  # fmt: skip
