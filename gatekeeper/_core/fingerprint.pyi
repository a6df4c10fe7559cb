from array import array
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Int32: TypeAlias = array[int] | NDArray[np.int32]
_Int64: TypeAlias = array[int] | NDArray[np.int64]
_Float64: TypeAlias = array[float] | NDArray[np.float64]

def score_rows(
    indptr: _Int64,
    rows: _Int32,
    weights: _Float64,
    norms: _Float64,
    terms: _Int64,
    query: _Float64,
    counted: _Float64,
    points: _Int32,
    query_norm: float,
    counted_mass: float,
    cosine_share: float,
    coverage_share: float,
    scores: _Float64,
    evidence: _Int32,
) -> None: ...
def rows_from(scores: _Float64, least: float) -> array[int]: ...
def columns_of(
    indptr: _Int64, terms: _Int32, weights: _Float64, n_terms: int
) -> tuple[array[int], array[int], array[float], array[float]]: ...
