"""Intervals of shares and means: thin over SciPy, imported where it is used.

Conventions
-----------
* Intervals are two-sided, 95 % unless asked otherwise. An estimate of nothing is None, never 0.
* A share of independent yes/no outcomes has a Wilson interval.
* A mean of outcomes that share scenarios has a *clustered* percentile bootstrap: whole scenarios are drawn with
  replacement, since runs of one scenario are not independent. With fewer than two clusters there is nothing to draw from,
  and the interval is None.
* Every draw comes from a seed that is given, so equal rows have equal intervals.

References
----------
E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", Chapman and Hall (1993).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 1000
"""Bootstrap draws."""
SEED = 0
LEVEL = 0.95

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate from ``n`` outcomes, and its interval; None where there is none."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as a summary holds it."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


def wilson(successes: float, n: int, level: float = LEVEL) -> Estimate:
    """Return the share of successes with its Wilson interval. Raises ValueError for counts that cannot be.

    ``successes`` may be a weighted count, and then no whole number.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} cannot be")
    _check_level(level)
    if n == 0:
        return Estimate(None, None, None, 0)
    from scipy.special import ndtri

    z2 = float(ndtri((1 + level) / 2)) ** 2
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # At 0 and at n the limit is exact, whatever rounding makes of it.
    low = 0.0 if successes == 0 else middle - half
    return Estimate(share, low, 1.0 if successes == n else middle + half, n)


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> Estimate:
    """Return the mean of ``values`` with the percentile interval of a bootstrap over ``clusters``."""
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values, but {len(clusters)} clusters; give one for each value")
    _check_level(level)
    if not values:
        return Estimate(None, None, None, 0)
    sums: dict[Hashable, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster][0] += value
        sums[cluster][1] += 1
    mean = float(np.mean(values))
    if len(sums) < 2:
        return Estimate(mean, None, None, len(values))
    table = np.array(list(sums.values()))
    drawn = table[np.random.default_rng(seed).integers(len(table), size=(draws, len(table)))].sum(axis=1)
    low, high = percentiles(drawn[:, 0] / drawn[:, 1], level)
    return Estimate(mean, low, high, len(values))


def percentiles(drawn: Numbers, level: float = LEVEL) -> tuple[float, float]:
    """Return the two percentiles between which ``level`` of the draws lie."""
    _check_level(level)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def drawn_means(groups: Sequence[Sequence[float]], *, draws: int = DRAWS, seed: int = SEED) -> Numbers:
    """Return the mean of each group (the runs of a cell), drawn again with replacement; shape ``(draws, groups)``.

    Raises ValueError for an empty group.
    """
    rng = np.random.default_rng(seed)
    means = np.empty((draws, len(groups)))
    for index, group in enumerate(groups):
        if not len(group):
            raise ValueError(f"group {index} is empty; there is nothing to draw from")
        values = np.asarray(group, np.float64)
        means[:, index] = values[rng.integers(values.size, size=(draws, values.size))].mean(axis=1)
    return means


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level}")
