"""Text for the benchmarks, made from a seed: conversations in English, Chinese and both mixed.

English words and Chinese characters are drawn by Zipf's law, so that terms repeat as they do in real
text; the mixed conversations are sentences of the shipped demo conversation in another order.
"""

from __future__ import annotations

import json
import random
from functools import cache
from importlib.resources import files

from gatekeeper import lexicon
from gatekeeper.pruning import split_sentences

Turn = tuple[str, str]
SCRIPTS = ("english", "chinese", "mixed")
SEED = 20240229
CONSONANTS = "bcdfghklmnprstvw"
VOWELS = "aeiou"


def _zipf(n: int) -> list[float]:
    return [1.0 / (rank + 2) for rank in range(n)]


@cache
def _english_words() -> list[str]:
    rng = random.Random(SEED)
    words = []
    for _ in range(6000):
        syllables = [rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
        words.append("".join(syllables) + rng.choice(("", "n", "s", "t")))
    function_words = list(lexicon.english_words())
    return function_words[:120] + words


@cache
def _chinese_characters() -> list[str]:
    rng = random.Random(SEED)
    common = sorted(set("".join(lexicon.protected_words()) + lexicon.traditional_pairs()[1][:1500]))
    rng.shuffle(common)
    return common


@cache
def _mixed_sentences() -> list[str]:
    lines = files("gatekeeper.cli").joinpath("demo_conversation.jsonl").read_text(encoding="utf-8").splitlines()
    turns = [json.loads(line) for line in lines]
    return [sentence for turn in turns for side in ("user", "assistant") for sentence in split_sentences(turn[side])]


def _english_sentence(rng: random.Random) -> str:
    words = rng.choices(_english_words(), _zipf(len(_english_words())), k=rng.randint(6, 16))
    return " ".join(words).capitalize() + ". "


def _chinese_sentence(rng: random.Random) -> str:
    characters = rng.choices(_chinese_characters(), _zipf(len(_chinese_characters())), k=rng.randint(10, 28))
    for i in range(0, len(characters), 6):  # about one character in six is a function character, as in print
        characters[i] = rng.choice(lexicon.chinese_function_characters()[:40])
    characters.insert(len(characters) // 2, "，")
    return "".join(characters) + "。"


def conversation(script: str, n_turns: int, seed: int = SEED) -> list[Turn]:
    """n_turns turns: one or two sentences of the user, two to four of the assistant."""
    rng = random.Random(f"{script} {n_turns} {seed}")
    makers = {"english": _english_sentence, "chinese": _chinese_sentence,
              "mixed": lambda rng: rng.choice(_mixed_sentences())}
    make = makers[script]

    def side(least: int, most: int) -> str:
        return "".join(make(rng) for _ in range(rng.randint(least, most))).strip()

    return [(side(1, 2), side(2, 4)) for _ in range(n_turns)]


def conversations(script: str, n: int, n_turns: int = 100) -> list[list[Turn]]:
    """n different conversations of one script."""
    return [conversation(script, n_turns, seed=SEED + i) for i in range(n)]


def n_utf8_bytes(turns: list[Turn]) -> int:
    return sum(len(text.encode()) for turn in turns for text in turn)
