"""The Python blocks of a document, run one after the other as a reader would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run_blocks(document: str) -> int:
    """Run every ```python block of a document in one namespace, in order; how many there were."""
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "document"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for block in blocks:
        before = text[: block.start(1)].count("\n")
        exec(compile("\n" * before + block[1], str(path), "exec"), namespace)
    return len(blocks)
