"""The ``dyadic`` block of ``summary.json``: every analysis of the conversations of a run, or of several together.

Conventions
-----------
* Conversations in text have a block of their own, since neither their scores nor their times mean the same.
* Windows are not mixed: everything but ``windows`` is over one window, named in ``window_s``: 60 s, or the one with most
  conversations where there are none of 60 s.
* What cannot be computed is given as ``{"reason": ...}``: a decomposition with empty cells, ratings without pairings.
* Published figures stand beside ours under the published names, and nothing is compared with them here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dsbeval.dyadic import garble, outcomes, profiles, published, ratings, robustness, survival, variance
from dsbeval.dyadic.matrices import (
    Groups,
    group,
    intervals,
    matrix,
    models_of,
    row_intervals,
    score_groups,
    score_intervals,
    score_matrices,
)
from dsbeval.dyadic.rows import MAIN_TASKS, DyadRow, Seat, seats, validate

WINDOW_S = 60.0
TURN_TAKING = ("tor_pause", "tor_end", "backchannels", "barge_in", "occupancy")
DECOMPOSED = ("tor_pause", "tor_end", "backchannels", "barge_in")


def summarise(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the block of the rows of a run; rows of other items, errors and skips are passed over.

    Raises ValueError for a row that no run writes.
    """
    found = validate(rows)
    spoken = [row for row in found if row["medium"] == "speech"]
    text = [row for row in found if row["medium"] == "text"]
    out: dict[str, Any] = {"conversations": len(found), "models": list(models_of(found))}
    watched = garble.counted(spoken)
    if watched is not None:
        out["garble"] = watched
    if spoken:
        window = _window(spoken)
        chosen = [row for row in spoken if row["window_s"] == window]
        out |= {"window_s": window, **_scores(chosen), **_speech(chosen), "windows": outcomes.by_window(spoken)}
    if text:
        out["text"] = {"conversations": len(text), **_scores(text), "published": published.TEXT_PAIRS}
    return out


def _window(rows: Sequence[DyadRow]) -> float:
    counts = Counter(row["window_s"] for row in rows)
    return WINDOW_S if WINDOW_S in counts else max(counts, key=lambda window: (counts[window], -window))


def _scores(rows: Sequence[DyadRow]) -> dict[str, Any]:
    """Return what needs no audio."""
    return {
        "counts": {task: sum(row["task"] == task for row in rows) for task in dict.fromkeys(r["task"] for r in rows)},
        "matrices": {
            task: {
                **found.as_dict(),
                "ci95": score_intervals(rows, task, found.models),
                "row_ci95": row_intervals(rows, task, found.models),
            }
            for task, found in score_matrices(rows).items()
        },
        "factors": outcomes.factors_by_model(rows),
        "balance": outcomes.balance(rows),
        "profiles": profiles.profiles(rows),
        "profiles_ci95": profiles.intervals(rows),
        "ratings": _ratings(rows),
    }


def _speech(rows: Sequence[DyadRow]) -> dict[str, Any]:
    return {
        "variance": {"tasks": _task_variance(rows), "turn_taking": _turn_variance(rows)},
        "turn_taking": _turn_taking(rows),
        "survival": {
            "entry": _curves(survival.entry(rows)),
            "deviation": _curves(survival.deviation(rows)),
            "leak_by_attacker": _curves(survival.leak(rows, lambda seat: seat.model)),
            "leak_by_defender": _curves(survival.leak(rows, lambda seat: seat.partner)),
        },
        "robustness": robustness.sweep(rows),
        "published": _published(),
    }


def _curves(curves: Mapping[str, survival.Curve]) -> dict[str, Any]:
    return {name: curve.as_dict() for name, curve in curves.items()}


def _ratings(rows: Sequence[DyadRow]) -> Any:
    def rated(tasks: Sequence[str]) -> Any:
        try:
            found = ratings.rate(ratings.comparisons(rows, tasks))
        except ValueError as error:
            return {"reason": str(error)}
        return {one.model: one.as_dict() for one in found} or {"reason": "no two models were paired in these tasks"}

    def part(letters: tuple[str, ...]) -> Any:
        return rated([task for task in ratings.TASKS_RATED if task.startswith(letters)])

    return {"all": rated(ratings.TASKS_RATED), "coordination": part(("T1",)), "conflict": part(("T3", "T4"))}


def _turn_value(name: str) -> Callable[[Seat], float | None]:
    def value(seat: Seat) -> float | None:
        found: Any = seat.turns
        return None if found is None else found[name]

    return value


def _turn_taking(rows: Sequence[DyadRow]) -> dict[str, Any]:
    """Return the mean of each measure by model and partner, over all tasks together."""
    models = models_of(rows)
    return {
        name: matrix(group(seats(rows), _turn_value(name)), models).as_dict()
        | {"ci95": intervals(seats(rows), _turn_value(name), models, counts=name == "backchannels")}
        for name in TURN_TAKING
    }


def _task_variance(rows: Sequence[DyadRow]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for task in dict.fromkeys(row["task"] for row in rows):
        groups = score_groups(rows, task)
        models = models_of(row for row in rows if row["task"] == task)
        out[task] = _decomposed(_nested(groups, models), len(models))
    return out


def _turn_variance(rows: Sequence[DyadRow]) -> dict[str, Any]:
    models = models_of(rows)
    tasks = [task for task in MAIN_TASKS if any(row["task"] == task for row in rows)]
    by_task = {task: [row for row in rows if row["task"] == task] for task in tasks}
    out: dict[str, Any] = {}
    for name in DECOMPOSED:
        groups = [group(seats(by_task[task]), _turn_value(name)) for task in tasks]
        out[name] = _decomposed([_nested(found, models) for found in groups], len(models))
    return out


def _nested(groups: Groups, models: Sequence[str]) -> list[list[list[float]]]:
    return [[groups.get((model, partner), []) for partner in models] for model in models]


def _decomposed(runs: Any, models: int) -> dict[str, Any]:
    if models < 2 or not runs:
        return {"reason": "needs two models or more"}
    try:
        return variance.decompose_runs(runs).as_dict()
    except ValueError as error:
        return {"reason": str(error)}


def _published() -> dict[str, Any]:
    return {
        "models": list(published.MODELS),
        "scores": {task: [list(row) for row in table] for task, table in published.SCORES.items()},
        "turn_taking_eta2": published.TURN_TAKING,
        "model_term": published.MODEL_TERM,
        "profiles": published.PROFILES,
    }
