"""Several processes on one library, and writers that are killed: short runs of `stress.py`."""

from __future__ import annotations

from pathlib import Path

import stress


def test_processes_that_write_and_read_at_once_lose_and_tear_nothing(tmp_path: Path) -> None:
    assert stress.together(str(tmp_path), 1.5) == []


def test_a_killed_writer_leaves_the_library_whole(tmp_path: Path) -> None:
    assert stress.killed(str(tmp_path), 6) == []
