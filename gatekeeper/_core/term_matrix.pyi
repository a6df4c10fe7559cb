from array import array
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

from gatekeeper._core.vocabulary import Vocabulary

_Int32: TypeAlias = array[int] | NDArray[np.int32]
_Float64: TypeAlias = array[float] | NDArray[np.float64]
_Postings: TypeAlias = Sequence[tuple[int, int, int]]

@disjoint_base
class Formula:
    def __new__(
        cls,
        *,
        k1: float,
        b: float,
        weight_user: float,
        weight_assistant: float,
        weight_exact: float,
        weight_recency: float,
        recency_window: float,
        joint: bool = False,
    ) -> Self: ...
    @property
    def joint(self) -> bool: ...
    @property
    def k1(self) -> float: ...
    @property
    def b(self) -> float: ...
    @property
    def weight_user(self) -> float: ...
    @property
    def weight_assistant(self) -> float: ...
    @property
    def weight_exact(self) -> float: ...
    @property
    def weight_recency(self) -> float: ...
    @property
    def recency_window(self) -> float: ...

@disjoint_base
class TermMatrix:
    def __new__(cls, vocabulary: Vocabulary) -> Self: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def n_turns(self) -> int: ...
    @property
    def n_blocks(self) -> int: ...
    @property
    def total_tokens(self) -> tuple[int, int]: ...
    def append(
        self, *, n_ages: int, ngram_floor: float, ngram_weight: float = 1.0, unseen_weight: float = 1.0
    ) -> array[float]: ...
    def forget(self, turn: int) -> None: ...
    def truncate(self, n_turns: int) -> None: ...
    def weigh(self, term_ids: _Int32) -> tuple[array[int], array[float], array[int]]: ...
    def idf(self, df: int) -> float: ...
    def side_terms(self, turn: int, side: int) -> array[int]: ...
    def sentence_ends(self, turn: int, side: int) -> array[int]: ...
    def top(
        self,
        term_ids: _Int32,
        idf: _Float64 | None,
        formula: Formula,
        *,
        k: int,
        extra_postings: Sequence[_Postings] = (),
        groups: _Int32 | None = None,
        allowed: _Int32 | None = None,
    ) -> tuple[array[int], array[float], array[float], array[float], array[int]]: ...
    def top_in_context(
        self,
        term_ids: _Int32,
        idf: _Float64,
        formula: Formula,
        *,
        k: int,
        weight_neighbours: float,
        neighbour_window: int,
        recency_share: float,
        extra_postings: Sequence[_Postings] = (),
        groups: _Int32 | None = None,
    ) -> tuple[array[int], array[float], array[float], array[float], array[float], float]: ...
    def parts(
        self,
        turn: int,
        term_ids: _Int32,
        idf: _Float64,
        *,
        k1: float,
        b: float,
        joint: bool = False,
        extra_postings: Sequence[_Postings] = (),
    ) -> tuple[array[int], array[int], array[float], array[float]]: ...
    def coverage(
        self,
        turns: _Int32,
        term_ids: _Int32,
        idf: _Float64,
        *,
        k1: float,
        b: float,
        length: float,
        extra_postings: Sequence[_Postings] = (),
        groups: _Int32 | None = None,
    ) -> array[float]: ...
    def held(
        self, turns: _Int32, term_ids: _Int32, *, extra_postings: Sequence[_Postings] = (), groups: _Int32 | None = None
    ) -> tuple[array[int], array[int]]: ...
    def holds_any(self, turn: int, term_ids: _Int32) -> bool: ...
    def turns_with(self, term_ids: _Int32, group_ends: _Int32) -> array[int]: ...
    def best_sentences(
        self,
        turns: _Int32,
        term_ids: _Int32,
        idf: _Float64,
        *,
        max_sentences: int,
        searched: _Int32 | None = None,
    ) -> tuple[array[int], array[int], array[int], array[int], array[int]]: ...
    def csc(self, side: int) -> tuple[array[int], array[int], array[float]]: ...
    def lengths(self, side: int) -> array[int]: ...
