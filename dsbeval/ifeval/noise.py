"""The noise floor: how large an effect of the prompt comes out for an agent that does not hear its prompt.

Conventions
-----------
* The *control* is a run of a persona-blind agent. Whatever effects it shows are noise; so is its difference between trials.
* The *floor* of an effect is what the noise stays below 95 times of a hundred: 1.96 standard deviations of a difference of two
  levels, from the variance of a verdict between the trials of a case. With one trial the variance is that between the levels of a
  conversation, which a blind agent does not tell apart.
* An agent that takes its seed gives the same at every level of a conversation, so one trial of it says nothing about noise: the
  floor is then None, and the control wants more trials (``--trials``). A run of K trials has a floor lower by the root of K.
* An effect *clears* the floor when it is larger than the floor and than the same effect of the control.
* Cells are all and reactive; rates and floors are fractions.

Source: DSB-IFEval (arXiv 2609.03423): the persona-blind control (Moshi) and its largest effect, 5.1 points.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.ifeval.metrics import EFFECTS, SUBSETS, effects, ias, scored
from dsbeval.ifeval.trials import Z95, split_trial, trials_in
from dsbeval.results import Row

CELLS = ("all", "reactive")


def floor_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the noise floor of the rows of a control, by cells and effect, for a run of one trial.

    ``{CELLS: {"effects", "largest", "floor": {EFFECT: x}, "n": {EFFECT: [n, n]}}, "trials", "reason"}``; ``reason`` says why
    there is no floor.
    """
    floor = [row for row in scored(rows) if row["item"] == "floor"]
    trials = trials_in(str(row["id"]) for row in floor)
    out: dict[str, Any] = {"trials": trials, "reason": None}
    for cells in CELLS:
        own = [row for row in floor if SUBSETS[cells](row)]
        found = effects(ias(own))
        known = [abs(found[name]) for name in EFFECTS if found[name] is not None]
        out[cells] = {
            "effects": {name: found[name] for name in EFFECTS},
            "n": found["n"],
            "largest": max(known, default=None),
            "floor": {name: _floor(own, levels, trials) for name, levels in EFFECTS.items()},
        }
    if not any(value is not None for cells in CELLS for value in out[cells]["floor"].values()):
        out["reason"] = "no two of the levels L1, L2, L3 have a verdict; run it with --levels=L1,L2,L3"
    elif trials < 2 and not any(value for cells in CELLS for value in out[cells]["floor"].values()):
        for cells in CELLS:
            out[cells]["floor"] = dict.fromkeys(EFFECTS)
        out["reason"] = (
            "the control gave the same at every level: it takes its seed, so one trial says nothing about noise; "
            "run it with --trials 3"
        )
    return out


def _floor(rows: Sequence[Row], levels: tuple[str, str], trials: int) -> float | None:
    cases: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        if row["level"] in levels:
            name, _ = split_trial(str(row["id"]))
            conversation = name.rpartition("-")[0]
            cases[conversation, row["level"] if trials > 1 else ""].append(bool(row["passed"]))
    sizes = [len({split_trial(str(row["id"]))[0] for row in rows if row["level"] == level}) for level in levels]
    spread = [_variance(found) for found in cases.values() if len(found) > 1]
    if not all(sizes) or not spread:
        return None
    within = sum(spread) / len(spread)
    return Z95 * math.sqrt(within * sum(1 / size for size in sizes))


def _variance(values: Sequence[bool]) -> float:
    n, passed = len(values), sum(values)
    return passed * (n - passed) / (n * (n - 1))


def cleared(control: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the effects of a run beside the floor, and whether each clears it; None where that is not known."""
    floor = [row for row in scored(rows) if row["item"] == "floor"]
    trials = trials_in(str(row["id"]) for row in floor)
    out: dict[str, Any] = {"trials": trials}
    for cells in CELLS:
        found = effects(ias([row for row in floor if SUBSETS[cells](row)]))
        told = {}
        for name in EFFECTS:
            noise = control[cells]["floor"][name]
            least = None if noise is None else noise / math.sqrt(trials)
            told[name] = {
                "value": found[name],
                "n": found["n"][name],
                "floor": least,
                "clears": clears(found[name], least, control[cells]["effects"][name]),
            }
        out[cells] = told
    return out


def clears(value: float | None, floor: float | None, control: float | None) -> bool | None:
    """Return whether an effect is larger than the noise floor and than the effect of the control; None where one is missing.

    Where the floor alone is not known the control's effect stands for it, as in the published tables.
    """
    bounds = [abs(bound) for bound in (floor, control) if bound is not None]
    if value is None or not bounds:
        return None
    return abs(value) > max(bounds) + 1e-12
