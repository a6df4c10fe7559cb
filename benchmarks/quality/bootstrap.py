"""Means over queries with 95% intervals by bootstrap over conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float
    n_queries: int

    def __str__(self) -> str:
        return f"{_short(self.value)} [{_short(self.low)}, {_short(self.high)}]"


def estimate(sums: NDArray[np.float64], n_queries: int,
             statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Estimate:
    """A statistic of sums over all conversations, and the middle 95% of it over conversations drawn with replacement.

    sums: float64[conversations, k]; statistic: float64[..., k] to float64[...].
    """
    n = len(sums)
    draws = np.random.default_rng(20).multinomial(n, np.full(n, 1.0 / n), N_RESAMPLES).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(sums.sum(axis=0)))
        drawn = statistic(draws @ sums)
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.percentile(drawn, [2.5, 97.5]) if drawn.size else (value, value)
    return Estimate(value, float(low), float(high), n_queries)


def ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numerator over denominator."""
    return sums[..., 0] / sums[..., 1]


def _short(value: float) -> str:
    if value != value:
        return "-"
    if value >= 2.0:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return f"{value:.3f}".removeprefix("0") if value < 1.0 else f"{value:.2f}"
