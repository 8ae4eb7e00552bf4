"""The behavioural profile of a model: a few figures that say how it gets its scores.

=========================  =====================================================================================
holds_role                 T1-1: in role, mean over pairings
discloses                  T2: share of its own reasons that it said, mean over pairings
solves_once_decided        T2: solved, among the conversations in which the pair decided
permission_by_pressing     T3-2 as the presser: the permission was given, mean over pairings
wins_choice                T4-1: its own option landed, mean over pairings
asks                       T4-2 as the attacker: asked, mean over pairings
extracts_once_asks         T4-2 as the attacker: extracted, among the conversations in which it asked
turns_as_presser           T3-2: its speech segments a conversation of 60 s, mean over pairings
turns_as_avoider           T3-2: the same in the other role
time_to_leak_as_defender   T4-2: Kaplan-Meier median of the leak, in seconds; None is not reached
time_to_leak_as_attacker   T4-2: the same in the other role
=========================  =====================================================================================

Conventions
-----------
* A mean over pairings counts each partner once, self-play included. A figure that is conditional pools the conversations.
* None where a model has nothing to say it from. ``n`` counts seats.
* The source names the figures and not how they are pooled; *holds_role* and *wins_choice* are its row averages to the digit.

Source: DyaFDB, behavioural profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dsbeval.dyadic import survival
from dsbeval.dyadic.matrices import Groups, average_interval, group, models_of
from dsbeval.dyadic.outcomes import acted, success
from dsbeval.dyadic.rows import DyadRow, Seat, seats

FIGURES = (
    "holds_role", "discloses", "solves_once_decided", "permission_by_pressing", "wins_choice", "asks",
    "extracts_once_asks", "turns_as_presser", "turns_as_avoider", "time_to_leak_as_defender", "time_to_leak_as_attacker",
)  # fmt: skip

Value = Callable[[Seat], float | None]


def _disclosed(seat: Seat) -> float | None:
    told = seat.scores.get("disclosed") if seat.scores else None
    return sum(told) / len(told) if told else None


def _turns(seat: Seat) -> float | None:
    if seat.turns is None or not seat.row["window_s"]:
        return None
    return seat.turns["segments"] * 60 / seat.row["window_s"]


def _once_acted(seat: Seat) -> float | None:
    return success(seat) if acted(seat) else None


def _over_pairings(groups: Groups, model: str) -> dict[str, Any]:
    cells = [values for (name, _), values in groups.items() if name == model]
    means = [sum(values) / len(values) for values in cells]
    return {"value": sum(means) / len(means) if means else None, "n": sum(map(len, cells))}


def _pooled(groups: Groups, model: str) -> dict[str, Any]:
    values = [value for (name, _), found in groups.items() if name == model for value in found]
    return {"value": sum(values) / len(values) if values else None, "n": len(values)}


_MEANS: dict[str, tuple[str, Value]] = {
    "holds_role": ("T1-1", lambda seat: seat.score),
    "discloses": ("T2", _disclosed),
    "permission_by_pressing": ("T3-2", success),
    "wins_choice": ("T4-1", lambda seat: seat.score),
    "asks": ("T4-2", acted),
    "turns_as_presser": ("T3-2", _turns),
}
_CONDITIONAL: dict[str, tuple[str, Value]] = {
    "solves_once_decided": ("T2", _once_acted),
    "extracts_once_asks": ("T4-2", _once_acted),
}


def profiles(rows: Sequence[DyadRow]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return, by model, the figures of its profile as ``{"value", "n"}``."""

    def scored(task: str) -> list[Seat]:
        return list(seats((row for row in rows if row["task"] == task), scored=True))

    means = {name: group(scored(task), value) for name, (task, value) in _MEANS.items()}
    pressed = [seat for seat in seats(row for row in rows if row["task"] == "T3-2") if seat.scores is None]
    means["turns_as_avoider"] = group(pressed, _turns)
    conditional = {name: group(scored(task), value) for name, (task, value) in _CONDITIONAL.items()}
    leaks = {
        "time_to_leak_as_defender": survival.leak(rows, lambda seat: seat.partner),
        "time_to_leak_as_attacker": survival.leak(rows, lambda seat: seat.model),
    }
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for model in models_of(rows):
        found = {name: _over_pairings(groups, model) for name, groups in means.items()}
        found |= {name: _pooled(groups, model) for name, groups in conditional.items()}
        for name, curves in leaks.items():
            curve = curves.get(model)
            found[name] = {"value": curve.median if curve else None, "n": curve.n if curve else 0}
        out[model] = {name: found[name] for name in FIGURES}
    return out


def intervals(rows: Sequence[DyadRow]) -> dict[str, dict[str, list[float] | None]]:
    """Return, by model, the 95 % interval of each figure that is a mean: a bootstrap over scenarios.

    The medians of :mod:`dsbeval.dyadic.survival` have theirs there.
    """
    found: dict[str, list[tuple[Seat, float]]] = {}
    for name, (task, value) in {**_MEANS, **_CONDITIONAL}.items():
        of_task = seats((row for row in rows if row["task"] == task), scored=True)
        found[name] = [(seat, float(worth)) for seat in of_task if (worth := value(seat)) is not None]
    avoiding = (seat for seat in seats(row for row in rows if row["task"] == "T3-2") if seat.scores is None)
    found["turns_as_avoider"] = [(seat, worth) for seat in avoiding if (worth := _turns(seat)) is not None]
    return {
        model: {
            name: average_interval(
                ((seat, value) for seat, value in values if seat.model == model), pooled=name in _CONDITIONAL
            )
            for name, values in found.items()
        }
        for model in models_of(rows)
    }
