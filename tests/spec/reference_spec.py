"""Slow, obviously right twins of the matching side, written from the rules alone."""

from __future__ import annotations

import math
from collections.abc import Mapping


def lexical(query: Mapping[str, float], template: Mapping[str, float], paths: frozenset[str]) -> float:
    """0.6 cosine over all tokens + 0.4 coverage of the query's tokens that are no path."""
    dot = sum(query[token] * template[token] for token in query if token in template)
    length = math.sqrt(sum(w * w for w in query.values())) * math.sqrt(sum(w * w for w in template.values()))
    total = sum(weight for token, weight in query.items() if token not in paths)
    covered = sum(min(w, template[token]) for token, w in query.items() if token in template and token not in paths)
    return (0.6 * dot / length if length else 0.0) + (0.4 * covered / total if total and length else 0.0)


def grams_of(text: str, stop: frozenset[str]) -> list[str]:
    """Overlapping 2-grams without a stop character."""
    return [text[i : i + 2] for i in range(len(text) - 1) if not set(text[i : i + 2]) & stop]


def outermost_blocks(text: str) -> list[tuple[int, int]]:
    """Pairs of brackets that close each other and lie in no other such pair; strings are not looked at."""
    pairs, waiting = [], []
    for i, character in enumerate(text):
        if character in "{[":
            waiting.append(i)
        elif character in "}]" and waiting and text[waiting[-1]] == {"}": "{", "]": "["}[character]:
            pairs.append((waiting.pop(), i + 1))
    return sorted(pair for pair in pairs if not any(a < pair[0] and pair[1] < b for a, b in pairs))
