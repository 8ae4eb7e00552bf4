"""One rating a model from its pairings, whoever else was recorded: Bradley-Terry, with bootstrap intervals.

A row average moves with every model that is added, because it is over other partners. Here each pairing is a contest between two
models, and a rating is what explains all contests at once, so a new model is placed by its own pairings alone.

Conventions
-----------
* One comparison a task, scenario and pairing of two different models. The share of model m against p is ``(1 + s[m, p] - s[p,
  m]) / 2``, where ``s[m, p]`` is the mean score of m in the scored role (of both its seats in a symmetric task) against p: 1
  when only m ever scores, one half when they score alike. Both hold the same roles, so no role has an advantage. For
  channel occupancy it is m's own share.
* T2 gives one score to the pair and so compares nobody; it is left out. A scenario in which one of the two has no score is
  left out too.
* ``P(m beats p) = 1 / (1 + exp(r[p] - r[m]))``; the ratings have mean 0. A difference of 1 is odds of e (a share of 0.73).
* Each pairing that was recorded gets one further comparison that ends even, so that a model that wins everything has a
  finite rating; over a hundred scenarios it moves nothing.
* Models that are not connected by pairings cannot be compared: a ValueError that names them.
* Intervals draw scenarios with replacement, the same in every pairing.

References
----------
R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block designs", Biometrika 39 (1952).

Source: the paper leaves a rating over pairings open; this is ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsbeval.dyadic.rows import TASKS, DyadRow, seats
from dsbeval.stats import DRAWS, SEED, Numbers, percentiles

EVEN = 1.0
"""Comparisons that end even, added to each recorded pairing."""
TASKS_RATED = tuple(task for task in TASKS if task != "T2")

_STEPS = 200
_CLOSE = 1e-10


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one model did against another in one scenario: a share from 0 (lost) to 1 (won)."""

    model: str
    partner: str
    scenario: str
    share: float


@dataclass(frozen=True, slots=True)
class Rating:
    """The rating of a model, its interval, and over how many comparisons it is."""

    model: str
    rating: float
    low: float
    high: float
    n: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as a summary holds it; ``share`` is what it is expected to get against an average model."""
        share = float(_expected(np.array(self.rating)))
        return {"rating": self.rating, "low": self.low, "high": self.high, "n": self.n, "share": share}


def comparisons(rows: Sequence[DyadRow], tasks: Sequence[str] = TASKS_RATED) -> list[Comparison]:
    """Return the comparisons of cross-play conversations, the models of each in order of name."""
    scores: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seat in seats((row for row in rows if row["task"] in tasks), scored=True):
        if seat.model != seat.partner and seat.score is not None:
            one, other = sorted((seat.model, seat.partner))
            scores[one, other, seat.row["scenario"]][seat.model].append(seat.score)
    return [
        Comparison(one, other, scenario, (1 + float(np.mean(found[one])) - float(np.mean(found[other]))) / 2)
        for (one, other, scenario), found in sorted(scores.items())
        if one in found and other in found
    ]


def rate(found: Sequence[Comparison], *, draws: int = DRAWS, seed: int = SEED) -> list[Rating]:
    """Return the ratings, best first. Raises ValueError when models are not connected by pairings."""
    models = sorted({name for one in found for name in (one.model, one.partner)})
    if not models:
        return []
    place = {model: index for index, model in enumerate(models)}
    scenarios = {name: index for index, name in enumerate(sorted({one.scenario for one in found}))}
    won = np.zeros((len(scenarios), len(models), len(models)))
    for one in found:
        if not 0 <= one.share <= 1:
            raise ValueError(f"{one.model} against {one.partner}: a share of {one.share} is not between 0 and 1")
        m, p, at = place[one.model], place[one.partner], scenarios[one.scenario]
        won[at, m, p] += one.share
        won[at, p, m] += 1 - one.share
    met = (won.sum(axis=0) + won.sum(axis=0).T) > 0
    _connected(met, models)
    whole = bradley_terry(won.sum(axis=0) + EVEN / 2 * met)
    weights = np.random.default_rng(seed).multinomial(
        len(scenarios), np.full(len(scenarios), 1 / len(scenarios)), size=draws
    )
    drawn = bradley_terry(np.einsum("ds,smp->dmp", weights, won) + EVEN / 2 * met)
    count = {model: sum(model in (one.model, one.partner) for one in found) for model in models}
    rated = [
        Rating(model, float(whole[index]), *percentiles(drawn[:, index]), count[model])
        for index, model in enumerate(models)
    ]
    return sorted(rated, key=lambda rating: -rating.rating)


def bradley_terry(won: Numbers) -> Numbers:
    """Return the maximum-likelihood ratings, mean 0.

    Parameters
    ----------
    won : array, shape (..., models, models)
        ``won[m, p]``: shares that m won against p, summed; whole numbers or not. Newton's method on each matrix.
    """
    met = won + np.swapaxes(won, -1, -2)
    models = won.shape[-1]
    ratings = np.zeros(won.shape[:-1])
    for _ in range(_STEPS):
        expected = _expected(ratings[..., :, None] - ratings[..., None, :])
        gradient = (won - met * expected).sum(axis=-1)
        weight = met * expected * (1 - expected)
        curvature = np.eye(models) * weight.sum(axis=-1)[..., None] - weight + 1 / models
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        # The likelihood is concave, but a long step from far away may overshoot.
        ratings = ratings + np.clip(step, -1, 1)
        if np.abs(step).max() < _CLOSE:
            break
    centred: Numbers = ratings - ratings.mean(axis=-1, keepdims=True)
    return centred


def _expected(difference: Numbers) -> Numbers:
    share: Numbers = 1 / (1 + np.exp(-difference))
    return share


def _connected(met: NDArray[np.bool_], models: Sequence[str]) -> None:
    reached, waiting = {0}, [0]
    while waiting:
        for other in np.flatnonzero(met[waiting.pop()]).tolist():
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    apart = [model for index, model in enumerate(models) if index not in reached]
    if apart:
        raise ValueError(
            f"{', '.join(apart)}: never paired with {models[0]}, not even through others; record one such pairing"
        )
