"""How often intervals of shares and gaps cover the truth, on conversations whose cases hang together.

Tolerance: 250 draws of a true 95 % interval cover between 91 % and 99 % of the time (three standard errors of 1.4 points).
More draws: benchmarks/gate_rates.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from dsbeval.stats import Estimate, Numbers, Sums, clustered_gap, clustered_share, wilson

RUNS = 250
LEAST, MOST = 0.91, 0.99


def conversations(rng: np.random.Generator, size: int, rate: float, alike: float) -> Numbers:
    """Return the pass probability of each conversation; ``alike`` is the correlation of its cases."""
    if not alike:
        return np.full(size, rate)
    spread = (1 - alike) / alike
    return rng.beta(rate * spread, (1 - rate) * spread, size)


def covered(found: Estimate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    assert found.low <= (found.value or 0) <= found.high
    return found.low <= truth <= found.high


@pytest.mark.parametrize(
    ("size", "cases", "rate", "alike"),
    [
        (240, 4, 0.45, 0.5),
        (155, 4, 0.1, 0.5),
        (30, 4, 0.45, 0.3),
        (30, 4, 0.03, 0.3),
        (12, 4, 0.2, 0.2),
        (60, 1, 0.05, 0.0),
    ],
)
def test_a_share_is_covered(size: int, cases: int, rate: float, alike: float) -> None:
    rng = np.random.default_rng(7)
    names = np.repeat(np.arange(size), cases).tolist()
    hits = 0
    for _ in range(RUNS):
        p = np.repeat(conversations(rng, size, rate, alike), cases)
        hits += covered(clustered_share((rng.random(p.size) < p).astype(float).tolist(), names, draws=300), rate)
    assert hits / RUNS >= LEAST
    if rate * size * cases > 100:  # with few passes the interval is wide on purpose
        assert hits / RUNS <= MOST


def test_cases_counted_as_if_independent_are_covered_too_rarely() -> None:
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(RUNS):
        p = np.repeat(conversations(rng, 240, 0.45, 0.5), 4)
        hits += covered(wilson(int((rng.random(960) < p).sum()), 960), 0.45)
    assert hits / RUNS < 0.85


@pytest.mark.parametrize(
    ("size", "first", "second", "alike"), [(155, 0.45, 0.4, 0.6), (30, 0.6, 0.45, 0.3), (30, 0.97, 0.95, 0.0)]
)
def test_a_gap_is_covered(size: int, first: float, second: float, alike: float) -> None:
    rng = np.random.default_rng(9)
    one, hits = np.ones(size), 0
    for _ in range(RUNS):
        p = conversations(rng, size, first, alike)
        plus = (rng.random(size) < p).astype(float)
        minus = (rng.random(size) < p * second / first).astype(float)
        hits += covered(clustered_gap(Sums(plus, one), Sums(minus, one), draws=300), first - second)
    assert hits / RUNS >= LEAST


def test_a_gap_drawn_side_by_side_is_narrower_than_its_sides() -> None:
    """Levels of one conversation go together: drawing both at once is what makes the interval of their gap narrow."""
    rng = np.random.default_rng(10)
    p = conversations(rng, 155, 0.5, 0.8)
    plus, minus = ((rng.random(155) < p).astype(float) for _ in range(2))
    one = np.ones(155)
    paired = clustered_gap(Sums(plus, one), Sums(minus, one))
    apart = clustered_gap(
        Sums(np.append(plus, np.zeros(155)), np.append(one, np.zeros(155))),
        Sums(np.append(np.zeros(155), minus), np.append(np.zeros(155), one)),
    )
    assert paired.value == apart.value
    widths = [found.high - found.low for found in (paired, apart) if found.high is not None and found.low is not None]
    assert widths[0] < 0.75 * widths[1]
