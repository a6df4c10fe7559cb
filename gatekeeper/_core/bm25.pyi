from array import array
from collections.abc import Iterable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

_Int64: TypeAlias = array[int] | NDArray[np.int64]
_Float64: TypeAlias = array[float] | NDArray[np.float64]
# indptr and indices have one type, int32 or int64
_Index = TypeVar("_Index", array[int], NDArray[np.int32], NDArray[np.int64])

def check_indices(indptr: _Index, indices: _Index, n_minor: int) -> None: ...
def score_csc(
    indptr: _Index,
    indices: _Index,
    tf: _Float64,
    row_lengths: _Float64,
    terms: _Int64,
    idf: _Float64,
    idf_mass: float,
    average_length: float,
    k1: float,
    b: float,
    scores: _Float64,
) -> None: ...
def score_csr(
    indptr: _Index,
    indices: _Index,
    tf: _Float64,
    row_lengths: _Float64,
    terms: _Int64,
    idf: _Float64,
    n_columns: int,
    idf_mass: float,
    average_length: float,
    k1: float,
    b: float,
    scores: _Float64,
) -> None: ...
def idf_of(df: Iterable[int], n_blocks: int) -> array[float]: ...
def log_of(x: float) -> float: ...
def cost_power(cost: float) -> float: ...
