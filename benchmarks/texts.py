"""Text for the benchmarks, made from a seed: conversations in English, Chinese and both mixed.

Words are drawn by Zipf's law from vocabularies that are made up once, so that anchors repeat and new ones keep
coming as in real chats: a turn has 150 to 300 bytes, one term in seven to one in four is new in a conversation, and
the terms of a query are held by a tenth to a half as many sides as there are turns. The mixed text is Chinese with
English words, identifiers, paths and versions in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from gatekeeper import lexicon

Turn = tuple[str, str]
SCRIPTS = ("english", "chinese", "mixed")
SEED = 20240229
N_WORDS = 20_000
TOPIC_TURNS = 12
TOPIC_WORDS = 50
CONSONANTS = "bcdfghklmnprstvw"
VOWELS = "aeiou"


@cache
def _zipf(n: int) -> list[float]:
    """Cumulative weights 1 / (rank + 2)."""
    return list(accumulate(1.0 / (rank + 2) for rank in range(n)))


def _draw(rng: random.Random, words: list[str], n: int) -> list[str]:
    return rng.choices(words, cum_weights=_zipf(len(words)), k=n)


def _latin_word(rng: random.Random) -> str:
    syllables = [rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
    return "".join(syllables) + rng.choice(("", "n", "s", "t"))


@cache
def _english_words() -> list[str]:
    """Function words first: four tokens in ten are among them, as in print."""
    rng = random.Random(SEED)
    return list(lexicon.english_words())[:120] + [_latin_word(rng) for _ in range(N_WORDS)]


@cache
def _chinese_words() -> list[str]:
    """Words of one to four characters, most of two; one token in six is a function character, as in print."""
    rng = random.Random(SEED)
    characters = sorted(set("".join(lexicon.protected_words()) + lexicon.traditional_pairs()[1][:2500]))
    rng.shuffle(characters)
    lengths = rng.choices((1, 2, 3, 4), (10, 70, 14, 6), k=N_WORDS)
    words = ["".join(_draw(rng, characters, length)) for length in lengths]
    function_characters = lexicon.chinese_function_characters()[:40]
    for rank in range(0, 60, 3):
        words.insert(rank, function_characters[rank // 3])
    return words


@cache
def _identifiers() -> list[str]:
    rng = random.Random(SEED)
    makers: tuple[Callable[[], str], ...] = (
        lambda: _latin_word(rng) + _latin_word(rng).capitalize(),
        lambda: f"{_latin_word(rng)}_{_latin_word(rng)}",
        lambda: f"{_latin_word(rng)}.{_latin_word(rng)}()",
        lambda: f"{_latin_word(rng)} v{rng.randint(0, 9)}.{rng.randint(0, 20)}",
        lambda: f"{_latin_word(rng).upper()}",
    )
    return [rng.choice(makers)() for _ in range(2000)]


class _Speaker:
    """Draws words: four in ten from those of the topic, which changes every TOPIC_TURNS turns."""

    def __init__(self, script: str, seed: int) -> None:
        self.rng = random.Random(f"{script} {seed}")
        self.words = _english_words() if script == "english" else _chinese_words()
        self.change_topic()

    def change_topic(self) -> None:
        self.topic = self.rng.choices(self.words, k=TOPIC_WORDS)
        self.names = _draw(self.rng, _identifiers(), 6) + _draw(self.rng, _english_words()[120:], 6)

    def draw(self, n: int) -> list[str]:
        n_topic = sum(self.rng.random() < 0.4 for _ in range(n))
        words = _draw(self.rng, self.topic, n_topic) + _draw(self.rng, self.words, n - n_topic)
        self.rng.shuffle(words)
        return words


def _english_sentence(speaker: _Speaker, n_words: int) -> str:
    return " ".join(speaker.draw(2 * n_words)).capitalize() + ". "


def _chinese_sentence(speaker: _Speaker, n_words: int) -> str:
    words = speaker.draw(n_words)
    words.insert(len(words) // 2, "，")
    return "".join(words) + "。"


def _mixed_sentence(speaker: _Speaker, n_words: int) -> str:
    words = speaker.draw(n_words)
    words.insert(len(words) // 2, "，")
    words.insert(speaker.rng.randint(0, n_words), f" {speaker.rng.choice(speaker.names)} ")
    return "".join(words).strip() + "。"


SENTENCES = {"english": _english_sentence, "chinese": _chinese_sentence, "mixed": _mixed_sentence}


def stream(script: str, n_turns: int, seed: int = SEED) -> Iterator[Turn]:
    """n_turns turns, one at a time: a short sentence of the user, one to four longer ones of the assistant."""
    speaker = _Speaker(script, seed)
    rng, sentence = speaker.rng, SENTENCES[script]
    for i in range(n_turns):
        if i % TOPIC_TURNS == 0:
            speaker.change_topic()
        answer = "".join(sentence(speaker, rng.randint(5, 11)) for _ in range(rng.randint(1, 4)))
        yield sentence(speaker, rng.randint(3, 7)).strip(), answer.strip()


def conversation(script: str, n_turns: int, seed: int = SEED) -> list[Turn]:
    return list(stream(script, n_turns, seed))


def conversations(script: str, n: int, n_turns: int = 100) -> list[list[Turn]]:
    """n different conversations of one script."""
    return [conversation(script, n_turns, seed=SEED + i) for i in range(n)]


@cache
def queries(script: str) -> list[str]:
    """What the user says in eight turns that no other conversation holds."""
    return [user for user, _ in conversation(script, 8, seed=7)]


def n_utf8_bytes(turns: list[Turn]) -> int:
    return sum(len(text.encode()) for turn in turns for text in turn)
