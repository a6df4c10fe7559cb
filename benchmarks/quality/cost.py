"""What text costs: a quarter of a token a character of English, one and a half a character of Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable

# the labels of a prompt's blocks, and the query behind its own: neither is counted, for no peer sends them
LABEL = re.compile(r"^\[\d+ (?:user|assistant)\] |^\[query\] .*\Z", re.MULTILINE | re.DOTALL)


def cost_of(language: str) -> Callable[[int], int]:
    """From characters to tokens, rounded up."""
    if language == "zh":
        return lambda n_characters: -(-3 * n_characters // 2)
    return lambda n_characters: -(-n_characters // 4)


def prompt_counter(language: str) -> Callable[[str], int]:
    """Counts a prompt as the peers' turns are counted: the text of the turns alone."""
    cost = cost_of(language)
    return lambda text: cost(len(LABEL.sub("", text).strip("\n")))
