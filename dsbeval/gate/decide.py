"""The decision: has the new run got worse than its baseline, has it not, or is there too little to tell?

Conventions
-----------
* A *regression* needs both: the metric is worse by the rule's drop or more, and the one-sided exact test over conversations
  (:mod:`dsbeval.paired`) is below the rule's part of alpha, adjusted by Holm's method over the metrics of the rule. Rules
  share alpha by weight, among those that there is something to judge by; so all together err with a chance of alpha at most.
* Limits and ``must_pass`` hold by themselves (:mod:`dsbeval.gate.limits`).
* A required rule wants its conversations wherever either run has the item that it is about; where no required rule applies (a
  run of conversations of two agents, a file without one), some metric of the other rules must have as many.
* Errors and missing cases are never failures: too many of them, or too few conversations behind a required rule, are *not
  enough evidence*. A regression that is found all the same is a regression.
* A case that the agent has skipped, and that the baseline has a verdict on, counts as one without a verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from dsbeval import paired
from dsbeval.compare.compare import SCALE, Change, Pair, change, compare, p_of, pairs_of, sums_of
from dsbeval.compare.metrics import Metric, item_of, metrics_of
from dsbeval.compare.side import Side
from dsbeval.errors import OptionError
from dsbeval.gate.limits import Check, Outcome, check_limit, check_must_pass, is_primary
from dsbeval.gate.rules import Rule, Rules
from dsbeval.stats import Sums

STATUS: dict[Outcome, int] = {"pass": 0, "regression": 1, "not enough evidence": 2}
"""Exit status of each outcome."""
POWER_Z = 0.8416
"""Quantile of the normal distribution at a power of 80 %."""


@dataclass(frozen=True)
class Decision:
    """What the gate says, and why."""

    checks: tuple[Check, ...]
    comparison: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """A regression if there is one, else not enough evidence if there is, else a pass."""
        found = {check.outcome for check in self.checks}
        worst: Sequence[Outcome] = ("regression", "not enough evidence")
        return next((outcome for outcome in worst if outcome in found), "pass")

    @property
    def status(self) -> int:
        """The exit status."""
        return STATUS[self.outcome]


@dataclass(frozen=True, slots=True)
class MaxErrors:
    """``--max-errors``: a number of items, or a share of them."""

    count: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> MaxErrors:
        """Parse ``12`` or ``2%``. Raises :class:`OptionError`."""
        found = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?)%", text.strip())
        if found is None or (found[2] and float(found[2]) > 100):
            raise OptionError(f"--max-errors: {text!r} is not a number of items (12) or a share of them (2%)")
        return cls(count=int(found[1])) if found[1] else cls(share=float(found[2]) / 100)

    def most(self, items: int) -> int:
        """Return how many errors may be among so many items."""
        return self.count if self.count is not None else math.floor((self.share or 0.0) * items)


def decide(
    rules: Rules, base: Side | None, new: Side, *, max_errors: MaxErrors | None = None, allow_unlike: bool = False
) -> Decision:
    """Judge a run by the rules. Without a baseline only limits and ``must_pass`` can be.

    Raises :class:`~dsbeval.errors.RunError` where the runs are unlike.
    """
    comparison = compare(base, new, allow_unlike=allow_unlike) if base is not None else {}
    checks = [
        *_evidence(rules, base, new, max_errors),
        *(_rules(rules, base, new) if base is not None else ()),
        *(check for limit in rules.limit if (check := check_limit(limit, base, new)) is not None),
        *(check_must_pass(pattern, new) for pattern in rules.must_pass),
    ]
    return Decision(tuple(checks), comparison)


# Is there something to judge by?


def _evidence(rules: Rules, base: Side | None, new: Side, max_errors: MaxErrors | None) -> Iterator[Check]:
    items = len(new.rows)
    errors = sum(row["outcome"] == "error" for row in new.rows)
    most = (max_errors or MaxErrors(share=rules.evidence.max_error_rate)).most(items)
    said = f"{errors} of {items} items ended in an error; at most {most}"
    yield Check("errors", "not enough evidence" if errors > most else "pass", said, "evidence")

    judged = _ids(new, "passed", "failed")
    before = _ids(base, "passed", "failed") if base is not None else set()
    skipped = _ids(new, "skipped") - before
    wanted = [case for case in new.cases if case not in skipped]
    have = sum(case in judged for case in wanted)
    least = rules.evidence.min_coverage
    covered = bool(wanted) and have >= least * len(wanted)
    said = f"{have} of {len(wanted)} cases have a verdict; at least {100 * least:g} %"
    yield Check("coverage", "pass" if covered else "not enough evidence", said, "evidence")


def _ids(side: Side, *outcomes: str) -> set[str]:
    return {str(row["id"]) for row in side.rows if is_primary(row) and row["outcome"] in outcomes}


# Rules


Member = tuple[Metric, list[Sums]]


@dataclass(frozen=True, slots=True)
class Tested:
    """What a rule finds in one metric."""

    rule: Rule
    metric: Metric
    sums: list[Sums]
    fallen: float
    """By how much it is worse; negative where it is better."""
    drop: float
    p: float
    alpha: float
    """The rule's part of alpha, which p, adjusted over the rule's metrics, is held against."""

    @property
    def big(self) -> bool:
        """Whether it is worse by the rule's drop or more."""
        return self.fallen > 0 and self.fallen >= self.drop - 1e-9

    @property
    def sure(self) -> bool:
        """Whether it is surely worse at all."""
        return self.fallen > 0 and self.p <= self.alpha

    @property
    def regression(self) -> bool:
        """Whether it has got worse by enough, and surely."""
        return self.big and self.sure


def examine(rules: Rules, members: Sequence[Sequence[Member]]) -> list[Tested]:
    """Return what each rule finds in its metrics; ``members`` are in the order of the rules, empty where there is nothing."""
    total = sum(rule.weight for rule, mine in zip(rules.rule, members, strict=True) if mine)
    out = []
    for rule, mine in zip(rules.rule, members, strict=True):
        ways = [_worse(rule, metric) for metric, _ in mine]
        p = [p_of(sums, "less" if way < 0 else "greater") for way, (_, sums) in zip(ways, mine, strict=True)]
        for (metric, sums), way, adjusted in zip(mine, ways, paired.holm(p), strict=True):
            means = [side.mean or 0.0 for side in sums]
            delta = sum(sign * mean for sign, mean in zip((1, -1, -1, 1), means, strict=False))
            drop = rule.drop / 100 if metric.unit == "points" else rule.drop
            out.append(Tested(rule, metric, sums, delta * way, drop, adjusted, rules.alpha * rule.weight / total))
    return out


def _rules(rules: Rules, base: Side, new: Side) -> Iterator[Check]:
    pairs = pairs_of(base, new)
    known = metrics_of([row for pair in pairs for row in pair])
    members = [_members(rule, known, pairs) for rule in rules.rule]
    items = {str(row["item"]) for side in (base, new) for row in side.rows}
    least = rules.evidence.min_conversations
    wanted = [rule.required and bool(items & {item_of(name) for name in rule.metric}) for rule in rules.rule]
    for rule, mine, want in zip(rules.rule, members, wanted, strict=True):
        if want and not mine:
            yield Check(", ".join(rule.metric), "not enough evidence", "no pair of cases to compare")
    sizes = {id(rule): len(mine) for rule, mine in zip(rules.rule, members, strict=True)}
    most = 0
    for found in examine(rules, members):
        check = _check(found, least, found.alpha / sizes[id(found.rule)])
        most = max(most, check.change.clusters if check.change is not None else 0)
        yield check
    if rules.rule and most < least and not any(wanted):
        said = f"no metric of the rules has more than {most} conversations in both runs; at least {least} (min_conversations)"
        yield Check("conversations", "not enough evidence", said, "evidence")


def _members(rule: Rule, known: Sequence[Metric], pairs: Sequence[Pair]) -> list[Member]:
    chosen = [metric for metric in known if any(fnmatchcase(metric.name, pattern) for pattern in rule.metric)]
    measured = [(metric, sums_of(metric, pairs)) for metric in chosen]
    return [(metric, sums) for metric, sums in measured if all(side.n for side in sums)]


def _check(found: Tested, least: int, alone: float) -> Check:
    one = change(found.metric, found.sums)
    outcome: Outcome = "pass"
    tested = f"p {found.p:.3g} at {found.alpha:.3f}"
    why = tested
    if found.regression:
        outcome, why = "regression", f"worse by {_amount(found.fallen, found.metric)}, {tested}"
    elif found.rule.required and one.clusters < least:
        outcome, why = "not enough evidence", f"{one.clusters} conversations; at least {least}"
    elif found.big:
        why = f"worse by {_amount(found.fallen, found.metric)}, but not surely: {tested}"
    elif found.sure:
        why = f"surely worse, but by less than {_amount(found.drop, found.metric)}"
    one = replace(one, p_holm=found.p, verdict="worse" if found.regression else "no evidence")
    return Check(
        found.metric.name, outcome, why, "rule", one, found.drop, _detectable(found.metric, one, found.drop, alone)
    )


def _worse(rule: Rule, metric: Metric) -> int:
    """Return the sign of a change to the worse."""
    if rule.worse is not None:
        return 1 if rule.worse == "rise" else -1
    return -metric.direction


def _amount(value: float, metric: Metric) -> str:
    words = {"points": f"{100 * value:.1f} points", "PAS": f"{value:.1f} points of PAS", "s": f"{value:.3f} s"}
    return words.get(metric.unit, f"{value:.2f}")


def _detectable(metric: Metric, found: Change, drop: float, alpha: float) -> float | None:
    """Return the drop that is found with a power of 80 %, from the width of the interval; at least what the rule asks for.

    None where that is not known, or more than there is to lose.
    """
    if found.ci95 is None:
        return None
    from scipy.special import ndtri

    error = (found.ci95[1] - found.ci95[0]) / (2 * float(ndtri(0.975)))
    least = max(drop, (float(ndtri(1 - alpha)) + POWER_Z) * error)
    return least if least <= SCALE.get(metric.unit, math.inf) else None  # no run can lose as much
