"""The wall between deciding and the disk: the core reads no file, asks no clock, and knows nothing of the library."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import gatekeeper
from gatekeeper import spec

FOLDER = Path(gatekeeper.__file__).parent / "spec"
CORE = ("asking", "classifying", "content", "decision", "distilling", "explaining", "families", "hygiene", "index",
        "inference", "matching", "model", "paths", "preparing", "rendering", "request", "routing", "scope", "secrets",
        "settings", "tokenizing", "tokens", "triaging")  # fmt: skip
DISK = {"cache", "clients", "config", "disk_bench", "files", "front_matter", "hook", "library", "maintenance",
        "markdown", "mcp_server", "project", "schemas", "seeding", "session", "state", "tools"}  # fmt: skip
OUTSIDE = {"os", "io", "pathlib", "time", "datetime", "sqlite3", "subprocess", "tempfile", "logging", "yaml",
           "filelock", "mcp", "click", "rich"}  # fmt: skip


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_every_module_stands_on_one_side() -> None:
    measuring = {"auditing", "bench", "calibrating", "__init__"}
    assert {path.stem for path in FOLDER.glob("*.py")} == {*CORE, *DISK, *measuring}


@pytest.mark.parametrize("module", CORE)
def test_the_core_is_pure(module: str) -> None:
    names = imports_of(FOLDER / f"{module}.py")
    assert not {name.partition(".")[0] for name in names} & OUTSIDE
    siblings = {name.split(".")[2] for name in names if name.startswith("gatekeeper.spec.")}
    assert not siblings & DISK
    calls = {node.func.id for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8")))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
    assert "open" not in calls


def test_every_public_name_is_there() -> None:
    assert spec.__all__ == sorted(name for names in spec._NAMES.values() for name in names.split())
    for module, names in spec._NAMES.items():
        for name in names.split():
            assert getattr(spec, name) is getattr(import_module(f"gatekeeper.spec.{module}"), name)
            assert name in dir(spec)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spec.nothing
