"""How often intervals of shares and gaps cover the truth, on conversations whose cases hang together.

Tolerance: an interval of 95 % covers the truth 95 times of a hundred, give or take 1.5 (docs/metrics.md has the figures of many
runs); where few conversations hold the rarer outcome it may be wider, and cover up to 99.5. A thousand runs say so to two
standard errors, 1.4 points.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.coverage import chances, covered, covers, gap, share
from dsbeval.stats import Sums, clustered_gap

RUNS = 1000
TOLERANCE, TWO_ERRORS = 1.5, 1.4
LEAST, MOST, WIDE = 95 - TOLERANCE - TWO_ERRORS, 95 + TOLERANCE + TWO_ERRORS, 99.5


@pytest.mark.parametrize(
    ("size", "rate", "alike", "most"),
    [
        (240, 0.5, 0.5, MOST),
        (240, 0.1, 0.3, MOST),
        (60, 0.3, 0.7, MOST),
        (60, 0.03, 0.7, WIDE),  # few conversations pass at all: a bootstrap covers half of the time
        (20, 0.45, 0.3, MOST),
        (20, 0.1, 0.7, WIDE),
    ],
)
def test_a_share_is_covered(size: int, rate: float, alike: float, most: float) -> None:
    rng = np.random.default_rng(7)
    assert LEAST <= covered(lambda: share(rng, size, rate, alike)[0], rate, RUNS) <= most


def test_cases_counted_as_if_independent_are_covered_too_rarely() -> None:
    rng = np.random.default_rng(8)
    pairs = [share(rng, 240, 0.45, 0.5) for _ in range(RUNS // 2)]
    clustered, naive = (100 * np.mean([covers(pair[k], 0.45) for pair in pairs]) for k in (0, 1))
    assert naive < 82 < LEAST < clustered


@pytest.mark.parametrize(
    ("size", "rates", "alike", "one_each", "most"),
    [
        (155, (0.45, 0.4), 0.5, True, MOST),
        (240, (0.6, 0.45), 0.5, False, MOST),
        (20, (0.6, 0.45), 0.3, False, MOST),
        (60, (0.97, 0.92), 0.3, True, WIDE),
    ],
)
def test_a_gap_is_covered(size: int, rates: tuple[float, float], alike: float, one_each: bool, most: float) -> None:
    rng = np.random.default_rng(9)
    found = covered(lambda: gap(rng, size, rates, alike, one_each=one_each), rates[0] - rates[1], RUNS)
    assert LEAST <= found <= most


def test_a_gap_drawn_side_by_side_is_narrower_than_its_sides() -> None:
    """Levels of one conversation go together: drawing both at once is what makes the interval of their gap narrow."""
    rng = np.random.default_rng(10)
    p = chances(rng, 155, 0.5, 0.8)
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
