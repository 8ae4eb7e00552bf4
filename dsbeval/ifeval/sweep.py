"""Does the order of models hang on the thresholds? The Entailment Gap at 180 settings, from stored measurements.

Conventions
-----------
* A setting is a take-turn wait, a yield/continue limit, an interrupt limit and a backchannel ceiling. As with ``dsbeval score
  --set`` it holds for every role: at a setting no role has a threshold of its own. What it is compared with, the *default*, are
  the run's own verdicts. The other thresholds (read-back coverage, overlap, silence) are never moved.
* No model and no VAD is run again: every verdict follows from the samples that a row keeps, for all settings at once.
* Kendall's tau-b compares the order of the models by gap at a setting with the default's; None with fewer than two models, or
  where one side has nothing but ties. The *top k* are the models with at least the k-th largest gap, so ties stay together.
* Gaps are fractions, rounded to 12 digits: equal shares that were subtracted differently are ties.
* *reactive* cells are those of the published sweep: its counts of settings are multiples of 12, the settings by which the
  interrupt limit and the ceiling differ, and neither moves a reactive cell. *all* cells show what these two do.
* A verdict is *near* a threshold when its edge lies inside the VAD's error of it (onsets 0.1 s, offsets 0.2 s).

Source: DSB-IFEval (arXiv 2609.03423), threshold sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsbeval.audio import RATE
from dsbeval.ifeval.metrics import EFFECTS, SUBSETS, scored
from dsbeval.ifeval.schema import Action
from dsbeval.results import Row
from dsbeval.spans import to_samples
from dsbeval.stats import Numbers, kendall_tau
from dsbeval.vad import OFFSET_ERROR_S, ONSET_ERROR_S

WAITS_S = (1.5, 2.0, 2.5)
YIELDS_MS = (200, 400, 600, 1000, 1500)
INTERRUPTS_MS = (1000, 1500, 2000)
CEILINGS_S = (0.6, 0.8, 1.0, 1.2)
CELLS = ("reactive", "all")
TOP = (1, 2)

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Setting:
    """Thresholds that hold for every role."""

    wait_s: float
    yield_ms: float
    interrupt_ms: float
    ceiling_s: float

    @property
    def overrides(self) -> dict[Action, dict[str, float]]:
        """The setting as :func:`dsbeval.ifeval.verifiers.verify` takes it."""
        return {
            Action.TAKE_TURN: {"max_wait_s": self.wait_s},
            Action.YIELD: {"max_latency_ms": self.yield_ms},
            Action.CONTINUE: {"max_latency_ms": self.yield_ms},
            Action.INTERRUPT: {"max_latency_ms": self.interrupt_ms},
            Action.BACKCHANNEL: {"bc_ceiling_s": self.ceiling_s},
        }


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(*values) for values in product(WAITS_S, YIELDS_MS, INTERRUPTS_MS, CEILINGS_S)
)


@dataclass(frozen=True)
class Measured:
    """What the swept verdicts hang on, an entry a case. Samples; :data:`_NEVER` where it did not happen."""

    action: NDArray[np.str_]
    passed: NDArray[np.bool_]
    onset: NDArray[np.int64]
    offset: NDArray[np.int64]
    longest: NDArray[np.int64]
    """Longest sound of a window in which all sounds could be backchannels, if they are short enough."""
    countable: NDArray[np.bool_]
    """Whether it is as many sounds as a backchannel may be."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Measured:
        """Read rows of the floor. Raises ValueError for a row without measurements."""
        for row in rows:
            if "samples" not in row.get("measurements", {}):
                raise ValueError(f"row {row['id']}: has no measurements; sweep a run folder, not a baseline")
        exact = [row["measurements"]["samples"] for row in rows]
        return cls(
            action=np.array([row["scored_as"] for row in rows], dtype=np.str_),
            passed=np.array([bool(row["passed"]) for row in rows], dtype=np.bool_),
            onset=_samples(found["genuine"] for found in exact),
            offset=_samples(found["first_offset"] for found in exact),
            longest=_samples(_longest(found["spans"]) for found in exact),
            countable=np.array([_countable(row) for row in rows], dtype=np.bool_),
        )

    def verdicts(self, settings: Sequence[Setting] = SETTINGS) -> NDArray[np.bool_]:
        """Return the verdicts, shape ``(settings, cases)``."""
        out = np.tile(self.passed, (len(settings), 1))

        def put(action: Action, verdict: NDArray[np.bool_]) -> None:
            out[:, self.action == action] = verdict[:, self.action == action]

        put(Action.TAKE_TURN, self.onset <= _limits(settings, "wait_s", 1))
        put(Action.INTERRUPT, self.onset <= _limits(settings, "interrupt_ms", 1000))
        yielded = self.offset <= _limits(settings, "yield_ms", 1000)
        put(Action.YIELD, yielded)
        put(Action.CONTINUE, ~yielded)
        put(Action.BACKCHANNEL, self.countable & (self.longest < _limits(settings, "ceiling_s", 1)))
        return out


def _samples(values: Iterable[int | None]) -> NDArray[np.int64]:
    return np.array([_NEVER if value is None else value for value in values], dtype=np.int64)


def _longest(spans: Sequence[Sequence[Any]]) -> int | None:
    if not spans or not all(in_turn and resumes for _, _, in_turn, resumes in spans):
        return None
    return max(int(end) - int(start) for start, end, _, _ in spans)


def _countable(row: Row) -> bool:
    exact = row["measurements"]["samples"]
    length = exact["window"][1] - exact["window"][0]
    onsets = sum(0 <= start < length for start, *_ in exact["spans"])
    return bool(1 <= onsets <= int(row["thresholds"].get("bc_window_max", 0)))


def _limits(settings: Sequence[Setting], name: str, per_second: float) -> NDArray[np.int64]:
    return np.array([[to_samples(getattr(one, name) / per_second, RATE)] for one in settings], dtype=np.int64)


def gaps(
    rows: Sequence[Row], cells: str, settings: Sequence[Setting] = SETTINGS
) -> tuple[float | None, Numbers | None]:
    """Return the Entailment Gap of a run by its own verdicts, and at each setting; None where a level has no cases."""
    own = [row for row in scored(rows) if SUBSETS[cells](row)]
    sides = [[row for row in own if row["level"] == level] for level in EFFECTS["entailment_gap"]]
    if not all(sides):
        return None, None
    measured = [Measured.of(side) for side in sides]
    default = measured[0].passed.mean() - measured[1].passed.mean()
    at = measured[0].verdicts(settings).mean(axis=1) - measured[1].verdicts(settings).mean(axis=1)
    return round(float(default), 12), np.asarray(at.round(12), np.float64)


# The order of the models


def compare_orders(default: Sequence[float], at: Numbers) -> dict[str, Any]:
    """Return how the order of models at each setting stands to the default's.

    Parameters
    ----------
    default : sequence of float, (models,)
    at : array, (settings, models)

    Returns
    -------
    dict
        ``tau`` of each setting (None where there is none), its ``mean``, ``median``, ``min``, ``max``, ``sd`` (of the
        sample) over those that have one, and the number of settings that keep ``top_1``, ``top_2`` and the ``full_order``.
    """
    base = np.asarray(default, np.float64)
    taus = [kendall_tau(base, row) for row in at]
    known = np.array([tau for tau in taus if tau is not None])
    stats: dict[str, float | None] = dict.fromkeys(("mean", "median", "min", "max", "sd"))
    if known.size:
        stats = {
            "mean": float(known.mean()),
            "median": float(np.median(known)),
            "min": float(known.min()),
            "max": float(known.max()),
            "sd": float(known.std(ddof=1)) if known.size > 1 else None,
        }
    kept = {f"top_{k}": sum(_top(base, k) == _top(row, k) for row in at) for k in TOP if k <= base.size}
    full = int(sum((_order(base) == _order(row)).all() for row in at))
    return {"settings": len(at), "with_tau": int(known.size), **stats, **kept, "full_order": full, "tau": taus}


def _top(values: Numbers, k: int) -> frozenset[int]:
    least = np.sort(values)[-k]
    return frozenset(np.flatnonzero(values >= least).tolist())


def _order(values: Numbers) -> NDArray[np.float64]:
    return np.sign(values[:, None] - values[None, :])


# Verdicts within the VAD's error


def near(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return, by action and swept threshold, how many verdicts lie inside the VAD's error of it."""
    own = scored(rows)
    if not own:
        return {}
    m = Measured.of(own)
    swept: tuple[tuple[Action, NDArray[np.int64], Sequence[float], float, str, float], ...] = (
        (Action.TAKE_TURN, m.onset, WAITS_S, 1, "s", ONSET_ERROR_S),
        (Action.INTERRUPT, m.onset, INTERRUPTS_MS, 1000, "ms", ONSET_ERROR_S),
        (Action.YIELD, m.offset, YIELDS_MS, 1000, "ms", OFFSET_ERROR_S),
        (Action.CONTINUE, m.offset, YIELDS_MS, 1000, "ms", OFFSET_ERROR_S),
        (Action.BACKCHANNEL, m.longest, CEILINGS_S, 1, "s", OFFSET_ERROR_S),
    )
    out: dict[str, dict[str, int]] = {}
    for action, edge, values, per_second, unit, error in swept:
        mine = edge[(m.action == action) & (edge != _NEVER)]
        if (m.action == action).any():
            out[str(action)] = {
                f"{value:g} {unit}": int((np.abs(mine - to_samples(value / per_second, RATE)) < error * RATE).sum())
                for value in values
            }
    return out


def borderline(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the verdicts whose margin lies inside the VAD's error, and what IAS would be if all of them were wrong."""
    own = scored(rows)
    ids = [row for row in own if row["borderline"]]
    passed = sum(bool(row["passed"]) for row in own)
    up, down = (sum(bool(row["passed"]) is way for row in ids) for way in (False, True))
    by_action: dict[str, int] = {}
    for row in ids:
        by_action[row["action"]] = by_action.get(row["action"], 0) + 1
    return {
        "n": len(own),
        "borderline": len(ids),
        "by_action": dict(sorted(by_action.items())),
        "ias": passed / len(own) if own else None,
        "ias_range": [(passed - down) / len(own), (passed + up) / len(own)] if own else None,
        "ids": [str(row["id"]) for row in ids],
    }


def sweep(runs: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Return the sweep of several runs, by label: gaps at every setting, the orders, and what lies near a threshold."""
    floors = {label: [row for row in rows if row["item"] == "floor"] for label, rows in runs.items()}
    cells: dict[str, Any] = {}
    for name in CELLS:
        found = {label: gaps(rows, name) for label, rows in floors.items()}
        whole = {label: at for label, (_, at) in found.items() if at is not None}
        default = {label: gap for label, (gap, _) in found.items() if gap is not None}
        orders = compare_orders(list(default.values()), np.stack(list(whole.values()), axis=1)) if whole else None
        cells[name] = {
            "default": {label: gap for label, (gap, _) in found.items()},
            "gap": {label: None if at is None else at.tolist() for label, (_, at) in found.items()},
            "orders": orders,
        }
    return {
        "settings": [
            {"wait_s": s.wait_s, "yield_ms": s.yield_ms, "interrupt_ms": s.interrupt_ms, "ceiling_s": s.ceiling_s}
            for s in SETTINGS
        ],
        "cells": cells,
        "near": {label: near(rows) for label, rows in floors.items()},
        "borderline": {label: borderline(rows) for label, rows in floors.items()},
    }
