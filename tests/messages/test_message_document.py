"""docs/messages.md runs as it stands."""

from __future__ import annotations

from documents import run_blocks


def test_every_block_runs() -> None:
    assert run_blocks("docs/messages.md") == 3
