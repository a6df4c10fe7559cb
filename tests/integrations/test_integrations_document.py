"""docs/integrations.md runs as it stands, each framework in it."""

from __future__ import annotations

from documents import run_blocks


def test_every_block_runs() -> None:
    assert run_blocks("docs/integrations.md") == 7
