"""Extraction and search in the kernels."""

from __future__ import annotations

import pytest

from benchmarks.kernels import FORMULA, QUERY
from benchmarks.texts import SCRIPTS, conversation, conversations, n_utf8_bytes
from gatekeeper._core.term_matrix import TermMatrix
from gatekeeper._core.vocabulary import Vocabulary, sentence_ends
from gatekeeper.anchor import LEXICON


@pytest.mark.parametrize("script", SCRIPTS)
def test_extract_anchors(benchmark, script):
    """Anchors and sentence bounds of one 100-turn conversation after another, a vocabulary each."""
    pool = conversations(script, 20)
    texts = [tuple(text for turn in turns for text in turn) for turns in pool]

    def extract():
        for conversation_texts in texts:
            Vocabulary(LEXICON).add(conversation_texts)

    n_bytes = sum(n_utf8_bytes(turns) for turns in pool)
    benchmark.extra_info["utf8_bytes"] = n_bytes
    benchmark(extract)
    if benchmark.stats is not None:
        benchmark.extra_info["mb_per_s"] = round(n_bytes / benchmark.stats.stats.median / 1e6, 1)


@pytest.mark.parametrize("script", SCRIPTS)
def test_sentence_ends(benchmark, script):
    text = "".join(text for turn in conversation(script, 200) for text in turn)
    benchmark(sentence_ends, text)


@pytest.mark.parametrize("n_turns", [100, 1_000, 10_000, 100_000])
def test_top_20(benchmark, n_turns):
    """BM25 over the user's and the assistant's side, the 20 best turns."""
    vocabulary = Vocabulary(LEXICON)
    matrix = TermMatrix(vocabulary)
    for user, assistant in conversation("mixed", n_turns):
        vocabulary.add((user, assistant))
        matrix.append(n_ages=8, ngram_floor=1.5)
    query = Vocabulary(LEXICON)
    query.add((QUERY,))
    ids = vocabulary.find(query)
    benchmark(lambda: matrix.top(ids, None, FORMULA, k=20))
