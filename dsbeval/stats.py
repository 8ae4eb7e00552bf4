"""Intervals of shares, means and gaps: thin over SciPy, imported where it is used. Tests of pairs are in :mod:`dsbeval.paired`.

Conventions
-----------
* Intervals are two-sided, 95 % unless asked otherwise. An estimate of nothing is None, never 0.
* A share of independent yes/no outcomes has a Wilson interval.
* A mean of outcomes that share scenarios has a *clustered* percentile bootstrap: whole scenarios are drawn with
  replacement, since runs of one scenario are not independent. With fewer than two clusters there is nothing to draw from, and
  where all are alike nothing tells how they vary: the interval is None.
* A percentile bootstrap of few clusters is too narrow, as an interval with the normal distribution's quantile is: its
  percentiles are taken further out, as far as Student's t and the sample's variance say (:func:`expanded`).
* A gap is the difference of two shares or means that share clusters; both sides of a cluster are drawn together.
* Where fewer than :data:`RARE` clusters hold the rarer outcome (for a gap: fewer than :data:`RARE_GAP` another difference than
  the most common one) the bootstrap is too narrow all the same, and where all are alike it has no width. A share then has
  Wilson's interval on the number of outcomes divided by the design effect, which counts as seen once more in a cluster whose
  outcomes are all alike; a gap the adjusted Wald interval: one cluster more on either side.
* Every draw comes from a seed that is given, so equal rows have equal intervals.
* A share of fewer than :data:`SMALL_N` outcomes is shown as counts: its percentage says more than is known.

References
----------
E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", Chapman and Hall (1993).
T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015): expanded percentiles.
E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small expected number of positive counts
estimated from survey data", Survey Methodology 24 (1998): the design effect and Student's t in a binomial interval.
D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on paired
data", Journal of Educational and Behavioral Statistics 37 (2012).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 1000
"""Bootstrap draws."""
SEED = 0
LEVEL = 0.95
SMALL_N = 10
"""A share of fewer outcomes is shown as counts."""
RARE = 15
"""With fewer clusters that hold the rarer outcome no bootstrap of a share is drawn (benchmarks/coverage.py)."""
RARE_GAP = 10
"""With fewer clusters whose difference is another than the most common one no bootstrap of a gap is drawn."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate from ``n`` outcomes, and its interval; None where there is none."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int = field(default=0, compare=False)
    """Clusters behind it, where there are any."""
    method: str = field(default="", compare=False)
    """How the interval was found: wilson, bootstrap, design effect, adjusted."""

    @property
    def interval(self) -> list[float] | None:
        """The two limits, or None."""
        return None if self.low is None or self.high is None else [self.low, self.high]

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
    return Estimate(share, low, 1.0 if successes == n else middle + half, n, method="wilson")


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> Estimate:
    """Return the mean of ``values`` with the percentile interval of a bootstrap over ``clusters``."""
    _check_level(level)
    sums = Sums.of(values, clusters)
    mean, size = sums.mean, len(sums.count)
    if mean is None or size < 2:
        return Estimate(mean, None, None, sums.n, size)
    low, high = percentiles(sums.drawn(draws_of(size, draws, seed)), expanded(level, size))
    if high - low <= 1e-12 * max(1.0, abs(mean)):
        return Estimate(mean, None, None, sums.n, size)
    return Estimate(mean, low, high, sums.n, size, "bootstrap")


@dataclass(frozen=True, slots=True)
class Sums:
    """Outcomes added up by cluster: what a bootstrap draws from.

    Parameters
    ----------
    total, count : array of float, shape (clusters,)
        Sum and number of the outcomes of each cluster. A cluster without outcomes has 0 and 0.
    """

    total: Numbers
    count: Numbers

    @classmethod
    def of(cls, values: Sequence[float], clusters: Sequence[Hashable], order: Sequence[Hashable] | None = None) -> Sums:
        """Add up values by cluster. ``order`` names the clusters, where several sums must be aligned.

        Raises ValueError where values and clusters do not go together.
        """
        if len(values) != len(clusters):
            raise ValueError(f"{len(values)} values, but {len(clusters)} clusters; give one for each value")
        place = {name: index for index, name in enumerate(dict.fromkeys(clusters) if order is None else order)}
        at = np.array([place[name] for name in clusters], np.intp)
        return cls(
            np.bincount(at, np.asarray(values, np.float64), minlength=len(place)).astype(np.float64),
            np.bincount(at, minlength=len(place)).astype(np.float64),
        )

    @property
    def n(self) -> int:
        """Number of outcomes."""
        return int(self.count.sum())

    @property
    def mean(self) -> float | None:
        """Mean of all outcomes; None of nothing."""
        return float(self.total.sum() / self.count.sum()) if self.n else None

    def drawn(self, weights: Numbers) -> Numbers:
        """Return the mean of each draw of clusters, shape ``(draws,)``; NaN where a draw holds no outcome.

        ``weights`` say how often each draw holds each cluster, shape ``(draws, clusters)``.
        """
        with np.errstate(invalid="ignore"):
            return np.asarray((weights @ self.total) / (weights @ self.count))


def clustered_share(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> Estimate:
    """Return the share of true ``values`` (0 or 1) whose outcomes share clusters.

    Wilson where each cluster has one outcome; else a bootstrap over clusters; else, where either outcome is in too few of them,
    Wilson with the design effect and Student's t.
    """
    _check_level(level)
    sums = Sums.of(values, clusters)
    size = len(sums.count)
    if size == sums.n:
        found = wilson(float(sums.total.sum()), sums.n, level)
        return Estimate(found.value, found.low, found.high, found.n, size, found.method)
    mean = sums.mean
    assert mean is not None
    if size < 2:
        return Estimate(mean, None, None, sums.n, size)
    rare = min(int((sums.total > 0).sum()), int((sums.total < sums.count).sum()))
    if rare < RARE:
        low, high = _wilson_clustered(sums, mean, rare, level)
        return Estimate(mean, low, high, sums.n, size, "design effect")
    low, high = percentiles(sums.drawn(draws_of(size, draws, seed)), expanded(level, size))
    return Estimate(mean, low, high, sums.n, size, "bootstrap")


def clustered_score(values: Sequence[float], clusters: Sequence[Hashable]) -> Estimate:
    """Return the mean of scores, with the interval of a share where all are yes or no, else that of a mean."""
    return (clustered_share if set(values) <= {0.0, 1.0} else clustered_mean)(values, clusters)


def _wilson_clustered(sums: Sums, mean: float, rare: int, level: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    size, n = len(sums.count), sums.n
    plain = mean * (1 - mean) / n
    residual = sums.total - mean * sums.count
    seen = size / (size - 1) * float(residual @ residual) / n**2 / plain if plain else 0.0
    # What a few clusters say of how alike outcomes are is worth as much as they are; one more says: wholly.
    wholly = float(sums.count @ sums.count) / n
    effect = max(1.0, (rare * seen + wholly) / (rare + 1))
    z2 = float(stdtrit(size - 1, (1 + level) / 2)) ** 2
    n_eff = n / effect
    middle = (mean + z2 / (2 * n_eff)) / (1 + z2 / n_eff)
    half = math.sqrt(z2 * (mean * (1 - mean) / n_eff + z2 / (4 * n_eff**2))) / (1 + z2 / n_eff)
    return (0.0 if mean == 0 else middle - half), (1.0 if mean == 1 else middle + half)


def clustered_gap(
    one: Sums,
    other: Sums,
    *,
    scale: float = 1.0,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> Estimate:
    """Return ``mean(one) - mean(other)`` of two aligned sums, with the interval of a paired bootstrap over clusters.

    ``scale`` is the largest value that a single outcome can have (1 for a share); ``n`` counts the outcomes of both sides.
    None where a side has no outcomes.
    """
    return clustered_contrast((one, other), (1, -1), scale=scale, draws=draws, seed=seed, level=level)


def clustered_contrast(
    sides: Sequence[Sums],
    signs: Sequence[int],
    *,
    scale: float | None = 1.0,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> Estimate:
    """Return the sum of the means of aligned ``sides``, each with its sign, as :func:`clustered_gap` does for two.

    ``scale`` is None where an outcome has no largest value (seconds).
    """
    _check_level(level)
    if len({side.total.shape for side in sides}) > 1:
        sizes = ", ".join(str(len(side.total)) for side in sides)
        raise ValueError(f"sides of {sizes} clusters; align them")
    seen = np.any([side.count > 0 for side in sides], axis=0)
    sides = [Sums(side.total[seen], side.count[seen]) for side in sides]
    n, size = sum(side.n for side in sides), int(seen.sum())
    means = [side.mean for side in sides]
    if None in means:
        return Estimate(None, None, None, n, size)
    value = float(sum(sign * (mean or 0) for sign, mean in zip(signs, means, strict=True)))
    if size < 2:
        return Estimate(value, None, None, n, size)
    if _uncommon(sides, signs) < RARE_GAP:
        low, high = _adjusted(sides, signs, value, scale, level)
        return Estimate(value, low, high, n, size, "adjusted")
    weights = draws_of(size, draws, seed)
    drawn = np.sum([sign * side.drawn(weights) for sign, side in zip(signs, sides, strict=True)], axis=0)
    low, high = percentiles(drawn[np.isfinite(drawn)], expanded(level, size))
    return Estimate(value, low, high, n, size, "bootstrap")


def _uncommon(sides: Sequence[Sums], signs: Sequence[int]) -> int:
    """Return how many clusters do not have the most common difference between their sides."""
    whole = np.all([side.count > 0 for side in sides], axis=0)
    if not whole.any():
        return len(whole)
    each = np.sum([s * side.total[whole] / side.count[whole] for s, side in zip(signs, sides, strict=True)], axis=0)
    return len(whole) - int(np.unique(each.round(9), return_counts=True)[1].max())


def _adjusted(
    sides: Sequence[Sums], signs: Sequence[int], value: float, scale: float | None, level: float
) -> tuple[float, float]:
    from scipy.special import stdtrit

    size = len(sides[0].count)
    moved = [s * (side.total - (side.mean or 0) * side.count) / side.n for s, side in zip(signs, sides, strict=True)]
    each = value + size * np.sum(moved, axis=0)
    most = float(np.abs(each).max()) if scale is None else scale * len(sides) / 2
    each = np.append(each, [most, -most])
    half = float(stdtrit(size + 1, (1 + level) / 2) * each.std(ddof=1) / math.sqrt(size + 2))
    low, high = min(float(each.mean()) - half, value), max(float(each.mean()) + half, value)
    return (low, high) if scale is None else (max(low, -most), min(high, most))


@functools.lru_cache(maxsize=16)
def draws_of(size: int, draws: int = DRAWS, seed: int = SEED) -> Numbers:
    """Return how often each draw of so many clusters holds each of them, shape ``(draws, size)``."""
    picks = np.random.default_rng(seed).integers(size, size=(draws, size), dtype=np.intp)
    places = (picks + size * np.arange(draws)[:, None]).ravel()
    weights = np.bincount(places, minlength=draws * size).reshape(draws, size).astype(np.float64)
    weights.flags.writeable = False
    return weights


def expanded(level: float, clusters: int) -> float:
    """Return the level at which the percentiles of a bootstrap of so many clusters hold the truth as often as ``level`` says."""
    from scipy.special import ndtr, stdtrit

    t = float(stdtrit(clusters - 1, (1 + level) / 2))
    # Of two or three clusters these are the outermost draws.
    return min(1 - 2 * float(ndtr(-math.sqrt(clusters / (clusters - 1)) * t)), math.nextafter(1, 0))


def percentiles(drawn: Numbers, level: float = LEVEL) -> tuple[float, float]:
    """Return the two percentiles between which ``level`` of the draws lie."""
    _check_level(level)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def kendall_tau(one: Sequence[float] | Numbers, other: Sequence[float] | Numbers) -> float | None:
    """Return Kendall's tau-b of two orders of the same things; None where a side has nothing but ties.

    As ``scipy.stats.kendalltau``, which takes longer to import than every setting of a sweep to compare.
    """
    orders = [np.sign(values[:, None] - values[None, :]) for values in (np.asarray(one), np.asarray(other))]
    untied = math.prod(int((order != 0).sum()) for order in orders)
    return float((orders[0] * orders[1]).sum()) / math.sqrt(untied) if untied else None


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
