"""What a run must keep by itself, whatever changed: limits of metrics, and cases that may not fail.

Conventions
-----------
* A strict limit and ``must_pass`` hold without a test, and where nothing is measured there is not enough evidence.
* A limit that is not strict is broken where the interval of :data:`LIMIT_LEVEL` lies wholly beyond it and the baseline was not
  beyond it already: from there on the rules judge whether it is worse. It says nothing where nothing is measured. Its level is
  that high so that an agent that has not changed is stopped by it less than once in a hundred runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from dsbeval.compare.compare import SCALE, Change
from dsbeval.compare.metrics import Metric, cluster, metrics_of
from dsbeval.compare.side import Side
from dsbeval.gate.rules import Limit
from dsbeval.results import Row
from dsbeval.stats import Sums, clustered_contrast, clustered_share

Outcome = Literal["pass", "regression", "not enough evidence"]
LIMIT_LEVEL = 0.99
"""Level of the interval that a limit which is not strict is held against."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the gate's table."""

    what: str
    outcome: Outcome
    why: str
    kind: Literal["rule", "limit", "must pass", "evidence"] = "rule"
    change: Change | None = None
    drop: float | None = None
    detectable: float | None = None
    """The smallest drop that would have been found four times of five; None where that is not known."""


def is_primary(row: Row) -> bool:
    """Whether a row is of the item that every case has: the floor, or the conversation."""
    return bool(row["item"] != "persona")


def check_limit(limit: Limit, base: Side | None, new: Side) -> Check | None:
    """Hold a run against a limit; None where it is not strict and nothing is measured."""
    bound = limit.min if limit.min is not None else limit.max
    assert bound is not None  # a limit has one of them
    what = f"{limit.metric} {'>=' if limit.min is not None else '<='} {bound:g}"
    metric = next((metric for metric in metrics_of(new.rows) if metric.name == limit.metric), None)
    value, n = (None, 0) if metric is None else _measured(metric, new)
    if metric is None or value is None:
        if not limit.strict:
            return None
        return Check(what, "not enough evidence", "nothing in the run to measure it by", "limit")

    def beyond(found: float) -> bool:
        return found < bound if limit.min is not None else found > bound

    said = f"is {value:.3f} over {n}"
    if limit.strict or not beyond(value):
        return Check(what, "regression" if beyond(value) else "pass", said, "limit")
    before = None if base is None else _measured(metric, base)[0]
    if before is not None and beyond(before):
        return Check(what, "pass", f"{said}; the baseline is beyond it too, with {before:.3f}", "limit")
    ends = _interval(metric, new)
    if ends is not None and all(map(beyond, ends)):
        return Check(what, "regression", f"{said}, {ends[0]:.3f} to {ends[1]:.3f} at {100 * LIMIT_LEVEL:g} %", "limit")
    return Check(what, "pass", f"{said}: beyond it, but not surely", "limit")


def _outcomes(metric: Metric, side: Side) -> list[list[tuple[float, str]]]:
    """Return the values of a metric in one run with their clusters; of an effect also those that are subtracted."""
    rows = [row for row in side.rows if row["item"] == metric.item and ("passed" in row or "scores" in row)]
    return [[(known, cluster(row)) for row in rows if (known := value(row)) is not None] for value in metric.values]


def _measured(metric: Metric, side: Side) -> tuple[float | None, int]:
    """Return the value of a metric in one run, and over how many outcomes; shares are fractions."""
    found = _outcomes(metric, side)
    if not all(found):
        return None, 0
    means = [sum(value for value, _ in own) / len(own) for own in found]
    return means[0] - sum(means[1:]), sum(map(len, found))


def _interval(metric: Metric, side: Side) -> list[float] | None:
    found = [([value for value, _ in own], [name for _, name in own]) for own in _outcomes(metric, side)]
    if len(found) == 1 and metric.unit == "points":
        return clustered_share(*found[0], level=LIMIT_LEVEL).interval
    order = list(dict.fromkeys(name for _, names in found for name in names))
    sums = [Sums.of(values, names, order) for values, names in found]
    return clustered_contrast(sums, (1, -1)[: len(sums)], scale=SCALE.get(metric.unit), level=LIMIT_LEVEL).interval


_PROBE = re.compile(r"^IFD-[^-]+-(?P<probe>[^-]+)-")


def _names(case: str) -> Iterator[str]:
    yield case
    found = _PROBE.match(case)
    if found:
        yield found["probe"]
        yield "_".join(found["probe"].split("_")[:2])


def check_must_pass(pattern: str, new: Side) -> Check:
    """Hold a run against a pattern of cases or probes of which none may fail."""
    wanted = {case for case in new.cases if any(fnmatchcase(name, pattern) for name in _names(case))}
    rows = [row for row in new.rows if row["id"] in wanted and is_primary(row)]
    failed = [row for row in rows if row["outcome"] == "failed"]
    if failed:
        return Check(pattern, "regression", f"{len(failed)} of {len(rows)} failed: {_listed(failed)}", "must pass")
    unknown = len(wanted - {row["id"] for row in rows if row["outcome"] == "passed"})
    if not wanted or unknown:
        why = f"{unknown} of {len(wanted)} cases without a verdict" if wanted else "no case of the run has this name"
        return Check(pattern, "not enough evidence", why, "must pass")
    return Check(pattern, "pass", f"all of {len(rows)} passed", "must pass")


def _listed(rows: Iterable[Row], most: int = 3) -> str:
    names = [str(row["id"]) for row in rows]
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")
