"""Token counters: any callable from text to a whole number of tokens."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """ceil(1.5 x characters): a deliberate over-estimate that needs no tokenizer."""
    return -(-3 * len(text) // 2)
