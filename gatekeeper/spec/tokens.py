"""The token estimate of spec recall's texts."""

from __future__ import annotations

import re

_WIDE = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
    r"|[\u2018-\u201d\u2026\u00b7]"
)


def estimate_tokens(text: str) -> float:
    """CJK characters and full-width punctuation 1.0, any other character 0.25."""
    n_wide = len(_WIDE.findall(text))
    return n_wide + 0.25 * (len(text) - n_wide)
