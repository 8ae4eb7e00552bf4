"""Two-way tables and latencies of DSB-IFEval over result rows: what a report shows beside the metrics.

Conventions
-----------
* As in :mod:`dsbeval.ifeval.metrics`: a rate counts rows with a verdict and nothing else, and has its n.
* By action is the *base* action, under which a case is counted; a latency belongs to the action that was *verified* (they differ
  for R2_B at L4b only), because it is drawn beside that action's limit.
* The latency of TAKE_TURN and INTERRUPT is the onset of the first speech that starts in the window; of YIELD and CONTINUE the
  first offset after the barge-in, over the cases in which the agent was speaking then (*exercised*). An agent that gave no
  onset or offset has no latency: it is counted in ``none`` and in no quantile.
* Quantiles are interpolated linearly, in seconds, unrounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.ifeval.metrics import rate, scored
from dsbeval.ifeval.pack import LEVELS
from dsbeval.ifeval.schema import Action
from dsbeval.results import Row

ONSETS = (Action.TAKE_TURN, Action.INTERRUPT)
OFFSETS = (Action.YIELD, Action.CONTINUE)
QUANTILES = {"p10_s": 0.1, "p25_s": 0.25, "median_s": 0.5, "p75_s": 0.75, "p90_s": 0.9}


def by_action_level(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the pass rate of each base action at each level that has cases of it."""
    out: dict[str, dict[str, Any]] = {}
    for action in sorted(Action):
        of_action = [row for row in rows if row["action"] == action]
        if of_action:
            found = {level: rate([row for row in of_action if row["level"] == level]) for level in LEVELS}
            out[action.value] = {level: cell for level, cell in found.items() if cell["n"]}
    return out


def by_role_probe(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the pass rate of each cell of the grid, with its base action."""
    out: dict[str, dict[str, Any]] = {}
    cells = sorted({(str(row["role"]), str(row["probe"])) for row in rows}, key=lambda cell: (len(cell[0]), cell))
    for role, probe in cells:
        found = [row for row in rows if row["role"] == role and row["probe"] == probe]
        out.setdefault(role, {})[probe] = {"action": found[0]["action"], **rate(found)}
    return out


def latency_of(row: Row) -> float | None:
    """Return the latency of a row in seconds, or None where it has none; a row of another action has none either."""
    measurements = row.get("measurements", {})
    found: float | None = None
    if row["scored_as"] in ONSETS:
        found = measurements.get("genuine_s")
    elif row["scored_as"] in OFFSETS and row["exercised"]:
        found = measurements.get("first_offset_s")
    return found


def limit_of(row: Row) -> float | None:
    """Return the limit that a latency of the row is held against, in seconds, or None where there is no such limit."""
    thresholds: Mapping[str, float] = row.get("thresholds", {})
    if "max_wait_s" in thresholds:
        return float(thresholds["max_wait_s"])
    return float(thresholds["max_latency_ms"]) / 1000 if "max_latency_ms" in thresholds else None


def latency(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the quantiles of the latency by verified action, with what they are over and the limits that applied."""
    import numpy as np

    out: dict[str, dict[str, Any]] = {}
    for action in (*ONSETS, *OFFSETS):
        of_action = [row for row in rows if row["scored_as"] == action and (action in ONSETS or row["exercised"])]
        if not of_action:
            continue
        values = [value for row in of_action if (value := latency_of(row)) is not None]
        out[action.value] = {
            "n": len(of_action),
            "measured": len(values),
            "none": len(of_action) - len(values),
            "limits_s": sorted({limit for row in of_action if (limit := limit_of(row)) is not None}),
            **{name: float(np.quantile(values, share)) if values else None for name, share in QUANTILES.items()},
        }
    return out


def tables(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the tables of floor rows, as ``summary.json`` has them."""
    judged = scored(rows)
    return {
        "by_action_level": by_action_level(judged),
        "by_role_probe": by_role_probe(judged),
        "latency": latency(judged),
    }
