"""Many requests with what is right for each: the cases of `cases/`, run as `run_cases.py` runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import run_cases

FOLDER = Path(__file__).with_name("cases")
CASES = [json.loads(line) for line in (FOLDER / "cases.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True, scope="module")
def libraries() -> None:
    run_cases.LIBRARIES.update(json.loads((FOLDER / "spec_library.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    run_cases.RUNNERS[case["stage"]](case["input"], case["expected"])


def test_no_id_stands_twice() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
