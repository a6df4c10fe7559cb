"""The engines for real, on little data: the same rows as one process, also when a worker is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.engines
SCRIPT = Path(__file__).with_name("at_scale.py")
N_RUNS = {"file": 1, "datasets": 1, "ray": 2, "spark": 2}  # undisturbed, with a worker killed


@pytest.mark.parametrize("engine", N_RUNS)
def test_the_rows_are_those_of_one_process(engine: str) -> None:
    pytest.importorskip("pyarrow")
    if engine != "file":
        pytest.importorskip("pyspark" if engine == "spark" else engine)
    command = [sys.executable, str(SCRIPT), "--rows", "1500", "--only", engine]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    assert run.stdout.count("  the same\n") == N_RUNS[engine]
