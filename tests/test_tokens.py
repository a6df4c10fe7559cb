"""Token counters: what each says, and that a budget holds under each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from strategies import queries, texts, turns

from gatekeeper import ArgumentTypeError, ContextGatekeeper, estimate_tokens, fit_messages
from gatekeeper.tokens import estimate_tokens_by_script, tiktoken_counter, tokenizers_counter

ENGLISH = "The lock expires when its holder does not renew it in time, so choose a generous timeout."
CHINESE = "锁的过期时间取决于业务耗时，建议留出三到五倍的余量，同时要有续期机制。"
CODE = "def count(self, text: str) -> int:\n    return len(self.encoding.encode_ordinary(text))\n"


def words(text: str) -> int:
    return len(text.split())


def tiktoken_of_bytes() -> Callable[[str], int]:
    """tiktoken without the network: an encoding of single bytes and a few pairs."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([i]): i for i in range(256)}
    ranks |= {pair: 256 + i for i, pair in enumerate((b"th", b"re", b"in", b"is"))}
    encoding = tiktoken.Encoding("tiny", pat_str=r"\s*\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 300})
    return tiktoken_counter(encoding)


def tokenizers_of_words() -> Callable[[str], int]:
    """A BPE tokenizer that is trained here, with tokens added at both ends that do not count."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=["?", "<s>", "</s>"])
    tokenizer.train_from_iterator([ENGLISH, CHINESE, CODE], trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizers_counter(tokenizer)


COUNTERS: dict[str, Callable[[], Callable[[str], int]]] = {
    "characters": lambda: estimate_tokens, "script": lambda: estimate_tokens_by_script, "words": lambda: words,
    "tiktoken": tiktoken_of_bytes, "tokenizers": tokenizers_of_words,
}  # fmt: skip


@pytest.mark.parametrize(("text", "n_tokens"), [("", 0), ("a", 2), ("ab", 3), ("惰性删除", 6), ("\ud800", 2)])
def test_the_estimate_by_characters(text: str, n_tokens: int) -> None:
    assert estimate_tokens(text) == n_tokens


@pytest.mark.parametrize(("text", "least", "most"), [
    ("", 0, 0),
    (" ", 0, 0),
    (ENGLISH, 19, 26),  # 19 under cl100k and o200k
    (CHINESE, 45, 60),  # 45 under cl100k, 30 under o200k
    (CODE, 19, 32),  # 19 under cl100k
    ("退款流程怎么走" * 10, 40, 140),
    ("1234567890", 4, 10),
    ("😀🎉🚀", 3, 15),
    ("\ud800\x00", 1, 4),
])  # fmt: skip
def test_the_estimate_by_script(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens_by_script(text) <= most


@given(texts, texts)
def test_the_estimate_by_script_never_falls_as_text_grows(text: str, more: str) -> None:
    assert estimate_tokens_by_script(text) <= estimate_tokens_by_script(text + more) + 1
    assert estimate_tokens_by_script(text) >= 0


def test_a_mixed_text_costs_more_than_its_english_half() -> None:
    assert estimate_tokens_by_script(ENGLISH + CHINESE) > estimate_tokens_by_script(ENGLISH) + 40


def test_tiktoken_takes_special_tokens_and_surrogates_as_text() -> None:
    count = tiktoken_of_bytes()
    assert count("redis") == 3
    assert count("<|end|>") == 7
    assert count("\ud800") > 0


def test_tokenizers_count_without_what_they_add_at_the_ends() -> None:
    count = tokenizers_of_words()
    assert count("") == 0
    assert count("the") == count("the the") - count(" the") >= 1
    assert count("\ud800") > 0
    with pytest.raises(ArgumentTypeError, match="tokenizer must have encode"):
        tokenizers_counter(3)


def test_a_tokenizer_file_is_loaded(tmp_path: Any) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"redis": 0, "?": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert tokenizers_counter(str(tmp_path / "tokenizer.json"))("redis redis git") == 3


@pytest.mark.parametrize("name", COUNTERS)
@given(history=turns, query=queries)
def test_a_budget_holds_under_each(name: str, history: list[tuple[str, str]], query: str) -> None:
    count = COUNTERS[name]()
    for budget in (30, 60, 200):
        gate = ContextGatekeeper(budget, count_tokens=count)
        gate.add_turns(history)
        assert count(gate.build_prompt(query)) <= max(budget, count(f"[query] {query}"))
        messages: list[dict[str, Any]] = []
        for user, assistant in history:
            messages += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        sent = fit_messages([*messages, {"role": "user", "content": query}], budget, count_tokens=count)
        assert sum(count(message["content"]) + 5 for message in sent) + 5 == sent.n_tokens
        assert sent.over_budget or sent.n_tokens <= budget


def test_a_turn_is_counted_once() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    gate = ContextGatekeeper(4000, count_tokens=count)
    for i in range(20):
        gate.add_messages([{"role": "user", "content": f"redis {i}"}])
        gate.add_messages([{"role": "assistant", "content": f"answer {i}"}])
        gate.select_messages("redis")
        gate.select_messages("redis", prune=False)
    assert len(counted) == len(set(counted))
