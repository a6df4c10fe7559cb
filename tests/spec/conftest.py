"""The tests that need the extra `mcp`: only collected when they are asked for, and then nothing may be missing."""

from __future__ import annotations

from pathlib import Path

import pytest

NEED_MCP = ("test_mcp_server.py",)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    chosen = config.getoption("markexpr")
    is_asked_for = "mcp" in chosen and "not mcp" not in chosen
    return True if collection_path.name in NEED_MCP and not is_asked_for else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in NEED_MCP:
            item.add_marker(pytest.mark.mcp)
