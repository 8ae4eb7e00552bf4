"""How often the default rules of the gate err: false alarms between equal agents, and drops that are missed.

    python -m benchmarks.gate_rates [--draws 1000] [--tier full] [--all-rules]

Every figure is a share of simulated comparisons, decided by the code that decides a real one (dsbeval.gate.decide.examine, and
for limits dsbeval.gate.limits.check_limit). An agent is a chance of passing for each case of the pack; base and new run are
drawn from it, with

* ``rate``      the mean chance of passing,
* ``noise``     how much of the spread lies within a case: 0, a case always comes out the same; 1, every case is the same coin,
* ``shared``    whether the levels of a conversation share their luck (one seed, one recording) or not.

The worse agent has ``drop`` points less in every case (or in the cases of one action alone), on the floor.

With ``--all-rules`` a judge is simulated too (PAS is the mean of four draws of the case's chance, SafetyOverride one draw), and
the conversations of two agents of the main tasks against one partner, in both seats, once each: every rule and every limit of
the default file then has something to judge by, and shares alpha.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsbeval.compare.metrics import Metric, cluster, metrics_of
from dsbeval.compare.side import Side
from dsbeval.dyadic.protocol import run_matrix
from dsbeval.dyadic.rows import SCORED_BOTH
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.gate.decide import examine
from dsbeval.gate.limits import check_limit
from dsbeval.gate.rules import Rules, read_rules
from dsbeval.ifeval.pack import Case, load_pack
from dsbeval.ifeval.tiers import TIERS, tier_of
from dsbeval.stats import Numbers, Sums

Row = dict[str, Any]
Outcomes = tuple[Numbers, Numbers]
"""Of each item whether it passed, and the grade of a persona."""
Part = tuple[Metric, NDArray[np.bool_], NDArray[np.intp], int]
"""A metric, which items it is over, the conversation of each of these, and how many conversations there are."""


def floor_rows(cases: Sequence[Case]) -> list[Row]:
    """Return a row of the floor for each case."""
    return [
        {
            "id": case.id, "item": "floor", "outcome": "passed", "passed": True, "exercised": True, "role": case.role,
            "probe": case.probe, "level": case.level, "action": case.action.value, "margin": None, "margin_unit": "s",
        }
        for case in cases
    ]  # fmt: skip


def persona_rows(cases: Sequence[Case]) -> list[Row]:
    """Return a row of the persona for each case."""
    return [{**row, "item": "persona", "pas": 0, "l4_category": "hedged"} for row in floor_rows(cases)]


def dyad_rows() -> list[Row]:
    """Return a row for each conversation of the main tasks with one partner."""
    return [
        {
            "id": run.id, "item": "dyad", "outcome": "passed", "task": run.archetype, "scenario": run.scenario,
            "self_play": False, "seats": run.seats, "turn_taking": None,
            "scores": {side: {"score": 0.0} for side in (("a", "b") if run.archetype in SCORED_BOTH else ("a",))},
        }
        for run in run_matrix(load_scenarios().of(), self_play=False, repeats=1, partner="partner")
    ]  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """The items of a run, with what each metric of the rules adds up."""

    rows: list[Row]
    rules: Rules

    def members(self) -> Iterator[list[Part]]:
        """Yield, for each rule, its metrics with their items and the conversation of each."""
        known = metrics_of(self.rows)
        for rule in self.rules.rule:
            yield [self.part(one) for one in known if any(fnmatchcase(one.name, name) for name in rule.metric)]

    def part(self, metric: Metric) -> Part:
        """Return a metric with its items and the conversation of each."""
        keep = np.array([row["item"] == metric.item and metric.value(row) is not None for row in self.rows])
        own = [cluster(row) for row, kept in zip(self.rows, keep, strict=True) if kept]
        order = {name: k for k, name in enumerate(dict.fromkeys(own))}
        return metric, keep, np.array([order[name] for name in own]), len(order)


class Simulation:
    """Comparisons of two runs over one grid."""

    def __init__(self, tier: str, seed: int, *, all_rules: bool = False) -> None:
        cases = tier_of(load_pack().cases.values(), tier)
        rows = floor_rows(cases) + (persona_rows(cases) + dyad_rows() if all_rules else [])
        self.grid = Grid(rows, read_rules())
        self._members = list(self.grid.members())
        known = {metric.name: metric for metric in metrics_of(rows)}
        self._limits = [
            (one, self.grid.part(known[one.metric])) for one in self.grid.rules.limit if one.metric in known
        ]
        names = [cluster(row) for row in rows]
        place = {name: k for k, name in enumerate(dict.fromkeys(names))}
        self._conversation = np.array([place[name] for name in names])
        self._graded = np.array([row["item"] == "persona" for row in rows])
        self._rng = np.random.default_rng(seed)

    @property
    def limited(self) -> list[str]:
        """The metrics that the limits are about."""
        return [limit.metric for limit, _ in self._limits]

    def chances(self, rate: float, noise: float) -> Numbers:
        """Return the chance of passing of each item: half of what tells items apart is the conversation's."""
        size = len(self.grid.rows)
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

    def run(self, chances: Numbers, shared: bool) -> Outcomes:
        """Return the outcome of each item, and the grade of each persona, 0 to 100."""
        luck = self._rng.random(self._conversation.max() + 1)[self._conversation]
        passed = ((luck if shared else self._rng.random(chances.size)) < chances).astype(float)
        graded = np.zeros_like(passed)
        if self._graded.any():
            graded[self._graded] = 25.0 * self._rng.binomial(4, chances[self._graded])
        return passed, graded

    def regressions(self, base: Outcomes, new: Outcomes) -> list[str]:
        """Return the metrics that the rules and limits find to have got worse."""
        members = [[(part[0], self._sums(part, (new, base))) for part in rule] for rule in self._members]
        found = [one.metric.name for one in examine(self.grid.rules, members) if one.regression]
        for limit, part in self._limits:
            check = check_limit(limit, self._side(part, base), self._side(part, new))
            found += [check.what] if check is not None and check.outcome == "regression" else []
        return found

    @staticmethod
    def _values(part: Part, run: Outcomes) -> Numbers:
        return run[1 if part[0].unit == "PAS" else 0][part[1]]

    def _sums(self, part: Part, runs: tuple[Outcomes, Outcomes]) -> list[Sums]:
        _, _, at, size = part
        count = np.bincount(at, minlength=size).astype(np.float64)
        return [Sums(np.bincount(at, self._values(part, run), size).astype(np.float64), count) for run in runs]

    def _side(self, part: Part, run: Outcomes) -> Side:
        """Return the rows that a limit reads, with the outcomes of a run."""
        rows = [row for row, kept in zip(self.grid.rows, part[1], strict=True) if kept]
        wins = self._values(part, run) > 0
        if part[0].item == "dyad":
            told = [row | {"scores": {"a": {"score": float(won)}}} for row, won in zip(rows, wins, strict=True)]
        else:
            told = [
                row | {"l4_category": "persona-wins" if won else "hedged"} for row, won in zip(rows, wins, strict=True)
            ]
        return Side("", {}, (), tuple(told))

    def rate(self, draws: int, rate: float, noise: float, shared: bool, drop: float = 0.0, action: str = "") -> float:
        """Return how often the gate stops the new agent."""
        worse = np.array([row["item"] == "floor" and action in ("", row["action"]) for row in self.grid.rows])
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
    parser.add_argument("--all-rules", action="store_true", help="with a judge and conversations of two agents")
    options = parser.parse_args()
    for tier in options.tier or TIERS:
        simulation = Simulation(tier, options.seed, all_rules=options.all_rules)
        print(f"\n{tier}: {len(simulation.grid.rows)} items, {options.draws} draws a figure")
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
        if options.all_rules:
            continue
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
