"""How often the default rules of the gate err: false alarms between equal agents, and drops that are missed.

    python -m benchmarks.gate_rates [--draws 1000] [--tier full]

Every figure is a share of simulated comparisons, decided by the code that decides a real one (dsbeval.gate.decide.examine).
An agent is a chance of passing for each case of the pack; base and new run are drawn from it, with

* ``rate``      the mean chance of passing,
* ``noise``     how much of the spread lies within a case: 0, a case always comes out the same; 1, every case is the same coin,
* ``shared``    whether the levels of a conversation share their luck (one seed, one recording) or not.

The worse agent has ``drop`` points less in every case (or in the cases of one action alone).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from dsbeval.compare.metrics import Metric, metrics_of
from dsbeval.gate.decide import examine
from dsbeval.gate.rules import Rules, read_rules
from dsbeval.ifeval.pack import Case, load_pack
from dsbeval.ifeval.tiers import TIERS, tier_of
from dsbeval.stats import Numbers, Sums

Part = tuple[Metric, NDArray[np.bool_], NDArray[np.intp], int]
"""A metric, which cases it is over, the conversation of each of these, and how many conversations there are."""


@dataclass(frozen=True)
class Grid:
    """The cases of a tier, with what each metric of the rules adds up."""

    cases: list[Case]
    rules: Rules

    def members(self) -> Iterator[list[Part]]:
        """Yield, for each rule, its metrics with their cases and the conversation of each."""
        rows = [
            {
                "id": case.id, "item": "floor", "outcome": "passed", "passed": True, "exercised": True, "role": case.role,
                "probe": case.probe, "level": case.level, "action": case.action.value, "margin": None, "margin_unit": "s",
            }
            for case in self.cases
        ]  # fmt: skip
        names = [case.conversation_id for case in self.cases]
        for rule in self.rules.rule:
            found = []
            for metric in metrics_of(rows):
                if any(fnmatchcase(metric.name, pattern) for pattern in rule.metric):
                    keep = np.array([metric.value(row) is not None for row in rows])
                    own = [name for name, kept in zip(names, keep, strict=True) if kept]
                    order = {name: k for k, name in enumerate(dict.fromkeys(own))}
                    found.append((metric, keep, np.array([order[name] for name in own]), len(order)))
            yield found


class Simulation:
    """Comparisons of two runs over one grid."""

    def __init__(self, tier: str, seed: int) -> None:
        self.grid = Grid(tier_of(load_pack().cases.values(), tier), read_rules())
        self._members = list(self.grid.members())
        names = list(dict.fromkeys(case.conversation_id for case in self.grid.cases))
        place = {name: k for k, name in enumerate(names)}
        self._conversation = np.array([place[case.conversation_id] for case in self.grid.cases])
        self._rng = np.random.default_rng(seed)

    def chances(self, rate: float, noise: float) -> Numbers:
        """Return the chance of passing of each case: half of what tells cases apart is the conversation's."""
        size = len(self.grid.cases)
        if noise >= 1:
            return np.full(size, rate)
        if noise <= 0:
            return (self._latent(size) < rate).astype(float)
        spread = noise / (1 - noise)  # variance of the chances is rate (1 - rate) (1 - noise)
        from scipy.special import betaincinv

        return np.asarray(betaincinv(rate * spread, (1 - rate) * spread, self._latent(size)))

    def _latent(self, size: int) -> Numbers:
        from scipy.special import ndtr

        common = self._rng.normal(size=self._conversation.max() + 1)[self._conversation]
        return np.asarray(ndtr(np.sqrt(0.5) * (common + self._rng.normal(size=size))))

    def run(self, chances: Numbers, shared: bool) -> Numbers:
        """Return the outcome of each case."""
        luck = self._rng.random(self._conversation.max() + 1)[self._conversation]
        return ((luck if shared else self._rng.random(chances.size)) < chances).astype(float)

    def regressions(self, base: Numbers, new: Numbers) -> list[str]:
        """Return the metrics that the rules find to have got worse."""
        members = [[(part[0], self._sums(part, (new, base))) for part in rule] for rule in self._members]
        return [found.metric.name for found in examine(self.grid.rules, members) if found.regression]

    @staticmethod
    def _sums(part: Part, runs: tuple[Numbers, Numbers]) -> list[Sums]:
        _, keep, at, size = part
        count = np.bincount(at, minlength=size).astype(np.float64)
        return [Sums(np.bincount(at, run[keep], size).astype(np.float64), count) for run in runs]

    def rate(self, draws: int, rate: float, noise: float, shared: bool, drop: float = 0.0, action: str = "") -> float:
        """Return how often the gate stops the new agent."""
        worse = np.array([not action or case.action == action for case in self.grid.cases])
        stopped = 0
        for _ in range(draws):
            chances = self.chances(rate, noise)
            after = np.where(worse, self.dropped(chances, drop, worse), chances)
            stopped += bool(self.regressions(self.run(chances, shared), self.run(after, shared)))
        return stopped / draws

    def dropped(self, chances: Numbers, drop: float, worse: NDArray[np.bool_]) -> Numbers:
        """Return chances that are lower by ``drop`` in the mean: all by one factor, or, of chances of 0 and 1, some ones."""
        if not drop:
            return chances
        keep = max(0.0, 1 - drop / max(float(chances[worse].mean()), 1e-9))
        if set(np.unique(chances)) <= {0.0, 1.0}:
            return chances * (self._rng.random(chances.size) < keep)
        return chances * keep


RATES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
NOISES = (0.1, 0.5, 1.0)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    print("  ".join(f"{cell:>12}" for cell in head))
    for row in rows:
        print("  ".join(f"{cell:>12}" for cell in row))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tier", choices=TIERS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for tier in options.tier or TIERS:
        simulation = Simulation(tier, options.seed)
        print(f"\n{tier}: {len(simulation.grid.cases)} cases, {options.draws} draws a figure")
        print("false alarms, % of comparisons of equal agents")
        rows = [
            [
                f"{rate:g}",
                *(
                    f"{100 * simulation.rate(options.draws, rate, noise, shared):.1f}"
                    for noise in NOISES
                    for shared in (False, True)
                ),
            ]
            for rate in RATES
        ]
        table(["rate", *(f"noise {n:g}{' shared' if s else ''}" for n in NOISES for s in (False, True))], rows)
        print("stopped, % of comparisons with an agent that is worse by so many points (rate 0.5)")
        rows = [
            [
                f"{100 * drop:g}",
                *(f"{100 * simulation.rate(options.draws, 0.5, noise, False, drop):.1f}" for noise in (0.0, *NOISES)),
            ]
            for drop in (0.03, 0.05, 0.1, 0.2)
        ]
        table(["drop", *(f"noise {n:g}" for n in (0.0, *NOISES))], rows)
        print("stopped, % of comparisons with an agent whose YIELD alone is worse by so many points (rate 0.9)")
        rows = [
            [
                f"{100 * drop:g}",
                *(
                    f"{100 * simulation.rate(options.draws, 0.9, noise, False, drop, 'YIELD'):.1f}"
                    for noise in (0.0, *NOISES)
                ),
            ]
            for drop in (0.3, 0.6, 0.9)
        ]
        table(["drop", *(f"noise {n:g}" for n in (0.0, *NOISES))], rows)


if __name__ == "__main__":
    main()
