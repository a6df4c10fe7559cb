"""What is shipped, and what a missing build says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

import gatekeeper

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gatekeeper"
KERNELS = sorted(path.stem for path in (ROOT / "_core").glob("*.pyx"))
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
BUILT = ("*.py", "*.pyc", "*.so", "*.pyd")


def test_the_version_is_that_of_the_project() -> None:
    found = re.search(r'^version = "([^"]+)"$', PYPROJECT, re.MULTILINE)
    assert found
    assert gatekeeper.__version__ == found[1]


def test_types_are_shipped() -> None:
    installed = Path(gatekeeper.__file__).parent
    assert (installed / "py.typed").is_file()
    assert KERNELS
    for kernel in KERNELS:
        assert (installed / "_core" / f"{kernel}.pyi").is_file()


def test_every_data_file_is_package_data() -> None:
    tomllib = pytest.importorskip("tomllib")
    patterns = tomllib.loads(PYPROJECT)["tool"]["setuptools"]["package-data"]
    data = [path for path in PACKAGE.rglob("*")
            if path.is_file() and not any(fnmatch(path.name, pattern) for pattern in BUILT)]
    assert data
    for path in data:
        package = ".".join(path.parent.relative_to(ROOT).parts)
        assert any(fnmatch(path.name, pattern) for pattern in patterns.get(package, [])), f"{path} is not shipped"


@pytest.mark.parametrize("folder", ["_core", "tests", "benchmarks", "docs"])
def test_the_source_distribution_holds(folder: str) -> None:
    assert f"graft {folder}" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()


def test_every_kernel_is_built_by_setup() -> None:
    listed = re.search(r"KERNELS = \(([^)]*)\)", (ROOT / "setup.py").read_text(encoding="utf-8"))
    assert listed
    assert sorted(re.findall(r'"(\w+)"', listed[1])) == KERNELS


def test_the_command_has_its_entry_point() -> None:
    found = re.search(r'^gatekeeper = "([\w.]+):(\w+)"$', PYPROJECT, re.MULTILINE)
    assert found
    assert callable(getattr(import_module(found[1]), found[2]))


def test_a_missing_core_says_how_to_build(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "gatekeeper", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    run = subprocess.run([sys.executable, "-c", "import gatekeeper"], cwd=tmp_path, capture_output=True, text=True)
    last_line = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1
    assert last_line.startswith("ImportError: the compiled core of gatekeeper is missing (gatekeeper._core.")
    assert "pip install -e ." in last_line
