"""The texts of a run, and the same anchors spelled out for peers that take tokens."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

from benchmarks.texts import SEED, Turn, conversation
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import LEXICON
from gatekeeper.pruning import split_sentences

BASE_TURNS = 200
N_QUERIES = 8
N_EXTRA = 512  # turns at hand for appending


def stream(script: str, n_turns: int, seed: int = SEED) -> Iterator[Turn]:
    """n_turns turns, one at a time. Mixed: `conversation` by the thousand. English and Chinese: turns of it with

    the words or characters of each text in another order, which is quicker to make and as rich in new anchors.
    """
    if script == "mixed":
        for first in range(0, n_turns, 1000):
            yield from conversation(script, min(1000, n_turns - first), seed=seed + first)
        return
    base = _base(script)
    rng = random.Random(f"{script} {seed}")
    for i in range(n_turns):
        user, assistant = base[i % BASE_TURNS]
        yield _shuffled(rng, script, user), _shuffled(rng, script, assistant)


@cache
def _base(script: str) -> list[Turn]:
    return conversation(script, BASE_TURNS)


def _shuffled(rng: random.Random, script: str, text: str) -> str:
    units = text.split() if script == "english" else list(text)
    rng.shuffle(units)
    return (" " if script == "english" else "").join(units)


@cache
def queries() -> list[str]:
    """One sentence each, of 10 to 40 characters, from turns that no corpus holds as such."""
    texts = (sentence.strip() for user, _ in conversation("mixed", 200, seed=7) for sentence in split_sentences(user))
    return list(dict.fromkeys(text for text in texts if 10 <= len(text) <= 40))[:N_QUERIES]


class Speller:
    """The anchors of texts, with repetitions, as words of letters and digits only: every peer keeps them whole."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary(LEXICON)
        self._words: dict[int, str] = {}

    def tokens(self, texts: tuple[str, ...]) -> list[str]:
        self._vocabulary.add(texts)
        return [self._words.get(i) or self._spell(i) for i in self._vocabulary.token_ids()]

    def _spell(self, term_id: int) -> str:
        word = self._words[term_id] = re.sub(r"[\W_]", "x", self._vocabulary.text(term_id))
        return word


class Corpus:
    """n_turns mixed turns; tokens: the anchors of each turn, both sides in one; extra: turns to append."""

    def __init__(self, n_turns: int, script: str = "mixed") -> None:
        everything = list(stream(script, n_turns + N_EXTRA))
        self.turns, self.extra = everything[:n_turns], everything[n_turns:]
        speller = Speller()
        all_tokens = [speller.tokens(turn) for turn in everything]
        self.tokens, self.extra_tokens = all_tokens[:n_turns], all_tokens[n_turns:]
        self.queries = queries()
        self.query_tokens = [list(dict.fromkeys(speller.tokens((query,)))) for query in self.queries]

    def __len__(self) -> int:
        return len(self.turns)
