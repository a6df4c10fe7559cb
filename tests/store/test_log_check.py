"""A log that a crash has left and that is damaged: an error that names it, never an older conversation."""

from __future__ import annotations

import logging
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gatekeeper
from gatekeeper import StoreCorruptError
from gatekeeper.store.log_check import FRAME_HEADER, PAGE_BYTES, WAL_HEADER, read_log
from gatekeeper.store.recovery import recover

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="descriptors cannot be listed")
FRAME = FRAME_HEADER + PAGE_BYTES
N_TURNS = 20
WRITER = """
import sys, time, gatekeeper
gate = gatekeeper.open(sys.argv[1])
for i in range(int(sys.argv[2])):
    gate.add_turn(f"question {i} " + "x" * 300, "ok")
print("done", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the log of a process that was killed."""
    path = tmp_path_factory.mktemp("crashed") / "chat.db"
    folder = Path(gatekeeper.__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(N_TURNS)], stdout=subprocess.PIPE,
                          cwd=folder) as writer:
        assert writer.stdout
        writer.stdout.readline()
        writer.kill()
    return path


def copy_of(crashed: Path, folder: Path, *, with_index: bool = True) -> Path:
    for suffix in ("", "-wal", "-shm") if with_index else ("", "-wal"):
        shutil.copy(f"{crashed}{suffix}", folder / f"chat.db{suffix}")
    return folder / "chat.db"


def damage(path: Path, at: int) -> bytes:
    log = Path(f"{path}-wal")
    data = bytearray(log.read_bytes())
    data[at] ^= 0x55
    log.write_bytes(data)
    return bytes(data)


def ends_of_writes(path: Path) -> list[int]:
    return [place for place, (_, is_end) in enumerate(read_log(str(path)).frames) if is_end]


@pytest.mark.parametrize("with_index", [True, False])
def test_a_log_that_is_whole_is_taken(crashed: Path, tmp_path: Path, with_index: bool) -> None:
    with gatekeeper.open(copy_of(crashed, tmp_path, with_index=with_index)) as gate:
        assert len(gate) == N_TURNS


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_damage_in_its_midst_is_an_error_each_time_and_everything_else_is_recovered(
        crashed: Path, tmp_path: Path, with_index: bool, seed: int) -> None:
    path = copy_of(crashed, tmp_path, with_index=with_index)
    last_write = WAL_HEADER + FRAME * (ends_of_writes(path)[-2] + 1)
    at = random.Random(seed).randrange(last_write) if seed else 20  # the head of the log, too
    data = damage(path, at)
    for _ in range(2):
        with pytest.raises(StoreCorruptError, match=r"has a damaged log, chat\.db-wal \(its (head|frame)") as caught:
            gatekeeper.open(path)
        assert caught.value.path == str(path)
        assert Path(f"{path}-wal").read_bytes() == data
    [item] = recover(path, tmp_path / "saved.db")
    assert item["n_saved"] >= N_TURNS - 1


def test_a_last_write_that_is_not_whole_is_left_out_with_a_warning(crashed: Path, tmp_path: Path,
                                                                  caplog: pytest.LogCaptureFixture) -> None:
    path = copy_of(crashed, tmp_path)
    damage(path, WAL_HEADER + FRAME * ends_of_writes(path)[-1] - 100)
    with caplog.at_level(logging.WARNING), gatekeeper.open(path) as gate:
        assert len(gate) == N_TURNS - 1
    assert "the last write in chat.db-wal is not whole (its frame 4" in caplog.text


@pytest.mark.parametrize("n_bytes", [1, 10, 1000, FRAME - 1])
def test_a_write_that_was_never_finished_is_no_damage(crashed: Path, tmp_path: Path, n_bytes: int,
                                                      caplog: pytest.LogCaptureFixture) -> None:
    path = copy_of(crashed, tmp_path)
    with open(f"{path}-wal", "ab") as log:
        log.write(b"\x01" * n_bytes)
    with gatekeeper.open(path) as gate:
        assert len(gate) == N_TURNS
    assert not caplog.text


def test_other_processes_that_write_are_no_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "chat.db"
    folder = Path(gatekeeper.__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), "400"], stdout=subprocess.PIPE,
                          cwd=folder) as writer:
        seen = 0
        while seen < 400:
            if path.exists():
                with gatekeeper.open(path) as gate:
                    assert len(gate) >= seen
                    seen = len(gate)
        writer.kill()
    assert not caplog.text


def test_what_aborted_writes_have_left_behind_each_other_is_no_damage(crashed: Path, tmp_path: Path) -> None:
    """A write that was torn at its end, over the rest of a longer one that was torn at its end before."""
    path = copy_of(crashed, tmp_path)
    log = bytearray(Path(f"{path}-wal").read_bytes())
    ends = ends_of_writes(path)
    taken = ends[-4] + 1  # frames of writes that are whole
    start = WAL_HEADER + FRAME * taken
    other = bytes(log[start : start + FRAME])
    log[start : start + FRAME] = other[:4] + (9).to_bytes(4, "big") + other[8:16] + bytes(8) + bytes(PAGE_BYTES)
    del log[WAL_HEADER + FRAME * (ends[-3] + 1) :]
    Path(f"{path}-wal").write_bytes(log)
    with gatekeeper.open(path) as gate:
        assert len(gate) == N_TURNS - 3
