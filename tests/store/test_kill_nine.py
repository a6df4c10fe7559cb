"""kill -9 loses nothing that was acknowledged; `python tests/store/kill_nine.py` does it 200 times."""

from __future__ import annotations

import sys
from pathlib import Path

import kill_nine
import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    n_acknowledged, n_under_way = kill_nine.run(12, 1, tmp_path)
    assert n_acknowledged > 20
    assert n_under_way > 0
