"""The texts of a run, and the same anchors spelled out for peers that take tokens."""

from __future__ import annotations

import re

from benchmarks.texts import queries, stream
from gatekeeper._core.vocabulary import Vocabulary
from gatekeeper.anchor import LEXICON

N_EXTRA = 512  # turns at hand for appending


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
        self.queries = queries(script)
        self.query_tokens = [list(dict.fromkeys(speller.tokens((query,)))) for query in self.queries]

    def __len__(self) -> int:
        return len(self.turns)
