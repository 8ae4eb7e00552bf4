"""How often the 95 % intervals cover the truth, on conversations whose cases hang together.

    python -m benchmarks.coverage [--runs 4000]

Every figure is a share of simulated runs, given their intervals by the code that a summary uses (dsbeval.stats). A conversation
has a chance of passing of its own, from a beta distribution; *alike* is the correlation of its cases. Conversations have as
many cases as those of the pack; of two levels, or of one run beside another, one case each or as many as the pack's. The *naive*
interval is Wilson's over the cases, as if they were independent. A standard error is 0.35 points at 4,000 runs.
"""

from __future__ import annotations

import argparse
import functools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from dsbeval.ifeval.pack import load_pack
from dsbeval.stats import DRAWS, Estimate, Numbers, Sums, clustered_gap, clustered_share, wilson

SIZES = (240, 60, 20)
"""Conversations: the pack, a role or two, the fewest that the gate judges by."""
RATES = (0.03, 0.1, 0.3, 0.5, 0.85)
ALIKE = (0.0, 0.3, 0.7)
GAPS = ((0.45, 0.4), (0.6, 0.45), (0.9, 0.9), (0.97, 0.92))


def chances(rng: np.random.Generator, size: int, rate: float, alike: float) -> Numbers:
    """Return the chance of passing of each conversation."""
    if not alike:
        return np.full(size, rate)
    spread = (1 - alike) / alike
    return rng.beta(rate * spread, (1 - rate) * spread, size)


@functools.cache
def pack_counts() -> Numbers:
    """Return how many cases each conversation of the pack has."""
    return np.array(list(Counter(case.conversation_id for case in load_pack().cases.values()).values()), np.float64)


def cases_of(rng: np.random.Generator, size: int) -> Numbers:
    """Return how many cases each of so many conversations of the pack has."""
    return np.asarray(rng.choice(pack_counts(), size, replace=size > len(pack_counts())))


def share(
    rng: np.random.Generator, size: int, rate: float, alike: float, draws: int = DRAWS
) -> tuple[Estimate, Estimate]:
    """Return a share of a simulated run as it is given, and as if cases were independent."""
    count = cases_of(rng, size).astype(int)
    passed = rng.random(count.sum()) < np.repeat(chances(rng, size, rate, alike), count)
    names = np.repeat(np.arange(size), count).tolist()
    return clustered_share(passed.astype(float).tolist(), names, draws=draws), wilson(int(passed.sum()), passed.size)


def gap(
    rng: np.random.Generator, size: int, rates: tuple[float, float], alike: float, *, one_each: bool, draws: int = DRAWS
) -> Estimate:
    """Return the gap between two levels, or two runs, of a simulated agent: ``rates[0] - rates[1]`` in truth."""
    count = np.ones(size) if one_each else cases_of(rng, size)
    p = chances(rng, size, rates[0], alike)
    sides = [rng.binomial(count.astype(int), p * rate / rates[0]).astype(float) for rate in rates]
    return clustered_gap(Sums(sides[0], count), Sums(sides[1], count), draws=draws)


def covers(found: Estimate, truth: float) -> bool:
    """Whether an interval holds the truth."""
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def covered(make: Callable[[], Estimate], truth: float, runs: int) -> float:
    """Return how often, in percent."""
    return 100 * sum(covers(make(), truth) for _ in range(runs)) / runs


def shares(runs: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table of shares."""
    yield f"{'conversations':>13} {'alike':>6}" + "".join(f"{100 * rate:>15g} %" for rate in RATES)
    for size in SIZES:
        for alike in ALIKE:
            rng = np.random.default_rng(seed)
            line = f"{size:>13} {alike:>6g}"
            for rate in RATES:
                pairs = [share(rng, size, rate, alike) for _ in range(runs)]
                own, naive = (100 * np.mean([covers(pair[k], rate) for pair in pairs]) for k in (0, 1))
                line += f"{own:>8.1f} ({naive:.1f})".rjust(17)
            yield line


def gaps(runs: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table of gaps."""
    yield f"{'conversations':>13} {'alike':>6} {'cases':>9}" + "".join(f"{f'{a:g}, {b:g}':>13}" for a, b in GAPS)
    for size in SIZES:
        for alike in ALIKE[1:]:
            for one_each in (True, False):
                rng = np.random.default_rng(seed)
                line = f"{size:>13} {alike:>6g} {'one' if one_each else 'four, five':>9}"
                for rates in GAPS:

                    def make(size: int = size, rates: tuple[float, float] = rates) -> Estimate:
                        return gap(rng, size, rates, alike, one_each=one_each)  # noqa: B023

                    line += f"{covered(make, rates[0] - rates[1], runs):>13.1f}"
                yield line


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("shares, % of 95 % intervals that hold the truth (naive: cases as if they were independent)")
    for line in shares(options.runs, options.seed):
        print(line, flush=True)
    print("gaps of two levels or two runs, likewise")
    for line in gaps(options.runs, options.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
