"""docs/sessions.md runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import run_blocks


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_blocks("docs/sessions.md") == 2
