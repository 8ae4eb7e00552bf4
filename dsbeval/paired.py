"""Tests of paired outcomes: two levels of one run, or two runs of one set of cases.

Conventions
-----------
* The null hypothesis is that the two sides of a cluster (a conversation) could change places: the same agent under another
  seed, or two prompts that it does not tell apart. Nothing is assumed about rates, nor about how the cases of a
  conversation hang together, since a conversation changes places as a whole.
* ``less`` asks whether the first side is lower, ``greater`` whether it is higher, ``two-sided`` whether they differ.
* Whole-number differences have the exact distribution. Where every cluster has one pair that is McNemar's exact test.
  Others are drawn, with a fixed seed, and p is never below ``1 / (DRAWS + 1)``.
* A test without a difference has p = 1. p-values of a family are adjusted by Holm's method.

References
----------
Q. McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947).
R. A. Fisher, "The Design of Experiments", Oliver and Boyd (1935): the exact test of paired differences.
S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dsbeval.stats import SEED, Numbers, Sums

Alternative = Literal["less", "greater", "two-sided"]

DRAWS = 9999
"""Draws of a test that is not exact."""
EXACT_SUM = 200_000
"""The exact distribution is computed up to this sum of absolute differences."""


def mcnemar(gained: int, lost: int, alternative: Alternative = "two-sided") -> float:
    """Return the exact p of McNemar's test: ``gained`` pairs passed on the first side only, ``lost`` on the second only.

    Raises ValueError for counts that cannot be.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"{gained} gained and {lost} lost pairs cannot be")
    from scipy.special import bdtr

    n = gained + lost
    less, greater = float(bdtr(gained, n, 0.5)), float(bdtr(lost, n, 0.5))
    return _p(less, greater, gained - lost, alternative)


def sign_flip(
    differences: Sequence[float] | Numbers, alternative: Alternative = "two-sided", seed: int = SEED
) -> float:
    """Return the p of the sum of clusters' differences, each of which could as well have the other sign."""
    found = np.asarray(differences, np.float64)
    found = found[found != 0]
    if not found.size:
        return 1.0
    size = np.abs(found)
    if (found == np.rint(found)).all() and size.sum() <= EXACT_SUM:
        return _exact(size.astype(np.int64), int(found.sum()), alternative)
    signs = np.random.default_rng(seed).integers(0, 2, size=(DRAWS, found.size)) * 2.0 - 1.0
    return _drawn(signs @ size, float(found.sum()), alternative)


def _exact(size: np.ndarray[tuple[int], np.dtype[np.int64]], observed: int, alternative: Alternative) -> float:
    """Add up the clusters one by one; ``chance[k]`` is that of the sum ``k - reach``."""
    reach = int(size.sum())
    chance = np.zeros(2 * reach + 1)
    chance[reach] = 1.0
    edge = 0
    for step in size.tolist():
        new = np.zeros_like(chance)
        low, high = reach - edge, reach + edge + 1
        new[low - step : high - step] += chance[low:high] / 2
        new[low + step : high + step] += chance[low:high] / 2
        chance, edge = new, edge + step
    at = reach + observed
    return _p(float(chance[: at + 1].sum()), float(chance[at:].sum()), observed, alternative)


def swap(one: Sums, other: Sums, alternative: Alternative = "two-sided", seed: int = SEED) -> float:
    """Return the p of ``mean(one) - mean(other)`` over aligned clusters whose two sides could change places.

    For shares of what differs on the two sides (only exercised cases, say). Where every cluster has as many outcomes on
    both sides this is :func:`sign_flip`, which is exact. None of nothing: p = 1.
    """
    if (one.count == other.count).all():
        return sign_flip(one.total - other.total, alternative, seed)
    if not one.n or not other.n:
        return 1.0
    rng = np.random.default_rng(seed)
    keep = rng.integers(0, 2, size=(DRAWS, len(one.total))).astype(np.float64)
    total, count = one.total - other.total, one.count - other.count
    totals = [other.total.sum() + keep @ total, one.total.sum() - keep @ total]
    counts = [other.count.sum() + keep @ count, one.count.sum() - keep @ count]
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = totals[0] / counts[0] - totals[1] / counts[1]
    observed = one.total.sum() / one.n - other.total.sum() / other.n
    return _drawn(drawn[np.isfinite(drawn)], float(observed), alternative)


def _drawn(drawn: Numbers, observed: float, alternative: Alternative) -> float:
    slack = 1e-9 * max(1.0, abs(observed))  # sums of the same parts in another order are ties
    less = (1 + int((drawn <= observed + slack).sum())) / (1 + drawn.size)
    greater = (1 + int((drawn >= observed - slack).sum())) / (1 + drawn.size)
    return _p(less, greater, observed, alternative)


def _p(less: float, greater: float, observed: float, alternative: Alternative) -> float:
    if alternative == "two-sided":
        return 1.0 if observed == 0 else min(1.0, 2 * min(less, greater))
    return min(1.0, less if alternative == "less" else greater)


def holm(values: Sequence[float]) -> list[float]:
    """Return the adjusted p-values of a family, in its order."""
    found = np.asarray(values, np.float64)
    order = np.argsort(found, kind="stable")
    steps = np.minimum(1.0, np.maximum.accumulate(found[order] * np.arange(found.size, 0, -1)))
    out = np.empty_like(found)
    out[order] = steps
    return [float(p) for p in out]
