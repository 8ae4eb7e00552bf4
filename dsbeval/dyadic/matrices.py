"""Score matrices: rows the model that is scored, columns the partner it met, and the averages of both.

Conventions
-----------
* A cell is the mean over all conversations of a pairing in which the row model held a scored side; in self-play both sides
  of a conversation are that model's. None (an undefined score) has no part in it; ``n`` counts what has.
* Averages are means over *pairings*, each cell counting once however many conversations it has, self-play included. In
  T3-1 self-play is pinned at 0.50, whatever was spoken, and left out of the averages.
* An average over a matrix with empty cells is over the cells there are, and says how many: two models are compared
  by it only when they met the same partners. :mod:`dsbeval.dyadic.ratings` does not need that.
* The interval of a cell is a bootstrap over scenarios, since the conversations of one are not independent; a pinned cell
  has none.

Source: DyaFDB, published results (score matrices; row averages).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsbeval.dyadic.rows import TASKS, DyadRow, Seat, seats
from dsbeval.stats import LEVEL, Numbers, Sums, clustered_mean, clustered_score, draws_of, expanded, percentiles

PINNED = {"T3-1": 0.5}
"""Tasks whose self-play score is fixed by its definition, and left out of averages."""

Groups = dict[tuple[str, str], list[float]]
"""The values of each (model, partner)."""


def models_of(rows: Iterable[DyadRow]) -> tuple[str, ...]:
    """Return the models of all sides, sorted."""
    return tuple(sorted({seat.model for seat in seats(rows)}))


def group(found: Iterable[Seat], value: Callable[[Seat], float | None]) -> Groups:
    """Return the values of seats by model and partner; a seat whose value is None is left out."""
    out: Groups = defaultdict(list)
    for seat in found:
        worth = value(seat)
        if worth is not None:
            out[seat.model, seat.partner].append(float(worth))
    return dict(out)


@dataclass(frozen=True, eq=False)
class Matrix:
    """Mean and number of values of each cell; NaN where there are none."""

    models: tuple[str, ...]
    values: Numbers
    counts: Numbers
    skip_self: bool = False

    @property
    def complete(self) -> bool:
        """Whether every cell has a value."""
        return bool(self.values.size) and not bool(np.isnan(self.values).any())

    def row_average(self, model: str) -> tuple[float | None, int]:
        """Return the mean over the partners of a model, and over how many."""
        return self._average(self.models.index(model), self.values)

    def column_average(self, partner: str) -> tuple[float | None, int]:
        """Return the mean over the models that met a partner, and over how many."""
        return self._average(self.models.index(partner), self.values.T)

    def _average(self, index: int, table: Numbers) -> tuple[float | None, int]:
        kept = [
            float(value)
            for other, value in enumerate(table[index])
            if not np.isnan(value) and not (self.skip_self and other == index)
        ]
        return (sum(kept) / len(kept) if kept else None), len(kept)

    def as_dict(self) -> dict[str, Any]:
        """Return it as a summary holds it."""
        rows, columns = ([average(m) for m in self.models] for average in (self.row_average, self.column_average))
        return {
            "models": list(self.models),
            "values": [[None if np.isnan(value) else float(value) for value in row] for row in self.values],
            "n": [[int(count) for count in row] for row in self.counts],
            "row_average": [value for value, _ in rows],
            "row_cells": [cells for _, cells in rows],
            "column_average": [value for value, _ in columns],
            "column_cells": [cells for _, cells in columns],
        }


def matrix(groups: Groups, models: Sequence[str], pinned: float | None = None) -> Matrix:
    """Return the matrix of grouped values. A ``pinned`` self-play value replaces what was measured there."""
    values = np.full((len(models), len(models)), np.nan)
    counts = np.zeros_like(values)
    place = {model: index for index, model in enumerate(models)}
    for (model, partner), found in groups.items():
        cell = place[model], place[partner]
        counts[cell] = len(found)
        values[cell] = np.mean(found) if pinned is None or model != partner else pinned
    return Matrix(tuple(models), values, counts, skip_self=pinned is not None)


def intervals(
    found: Iterable[Seat],
    value: Callable[[Seat], float | None],
    models: Sequence[str],
    *,
    pinned: bool = False,
    counts: bool = False,
) -> list[list[list[float] | None]]:
    """Return the 95 % interval of each cell of a matrix of the same seats; None where fewer than two scenarios are behind it.

    ``counts``: the values are numbers of something, and 0 and 1 no shares.
    """
    cells: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for seat in found:
        worth = value(seat)
        if worth is not None and not (pinned and seat.model == seat.partner):
            cells[seat.model, seat.partner].append((float(worth), seat.row["scenario"]))

    def of(cell: list[tuple[float, str]]) -> list[float] | None:
        interval = clustered_mean if counts else clustered_score
        return interval([worth for worth, _ in cell], [scenario for _, scenario in cell]).interval

    return [[of(cells.get((model, partner), [])) for partner in models] for model in models]


def average_interval(found: Iterable[tuple[Seat, float]], *, pooled: bool = False) -> list[float] | None:
    """Return the 95 % interval of a mean over pairings, each partner counting once; ``pooled``: of the mean over seats.

    A bootstrap over scenarios, in which all pairings of a scenario are drawn together. None with fewer than two scenarios,
    and where all are alike: nothing tells how they vary.
    """
    entries = [("" if pooled else seat.partner, str(seat.row["scenario"]), value) for seat, value in found]
    scenarios = list(dict.fromkeys(scenario for _, scenario, _ in entries))
    if len(scenarios) < 2:
        return None
    sides = [
        Sums.of([v for p, _, v in entries if p == partner], [s for p, s, _ in entries if p == partner], scenarios)
        for partner in dict.fromkeys(partner for partner, _, _ in entries)
    ]
    drawn = np.stack([side.drawn(draws_of(len(scenarios))) for side in sides])
    means = drawn.sum(axis=0, where=np.isfinite(drawn)) / np.isfinite(drawn).sum(axis=0)
    low, high = percentiles(means, expanded(LEVEL, len(scenarios)))
    return [low, high] if high - low > 1e-12 else None


def row_intervals(rows: Sequence[DyadRow], task: str, models: Sequence[str]) -> list[list[float] | None]:
    """Return the intervals of the row averages of :func:`score_matrix`."""
    own = [
        (seat, seat.score)
        for seat in seats((row for row in rows if row["task"] == task), scored=True)
        if seat.score is not None and not (task in PINNED and seat.model == seat.partner)
    ]
    return [average_interval((seat, value) for seat, value in own if seat.model == model) for model in models]


def score_intervals(rows: Sequence[DyadRow], task: str, models: Sequence[str]) -> list[list[list[float] | None]]:
    """Return the intervals of :func:`score_matrix`."""
    of_task = seats((row for row in rows if row["task"] == task), scored=True)
    return intervals(of_task, lambda seat: seat.score, models, pinned=task in PINNED)


def score_groups(rows: Iterable[DyadRow], task: str) -> Groups:
    """Return the scores of a task by model and partner, with the pinned value in self-play."""
    found = group(seats((row for row in rows if row["task"] == task), scored=True), lambda seat: seat.score)
    pinned = PINNED.get(task)
    if pinned is None:
        return found
    return {key: [pinned] * len(values) if key[0] == key[1] else values for key, values in found.items()}


def score_matrix(rows: Sequence[DyadRow], task: str, models: Sequence[str] = ()) -> Matrix:
    """Return the score matrix of a task. T4-3 and T4-4 count closed runs only, and ``counts`` says how many."""
    return matrix(score_groups(rows, task), models or models_of(rows), PINNED.get(task))


def score_matrices(rows: Sequence[DyadRow]) -> Mapping[str, Matrix]:
    """Return the score matrices of the tasks that have scores, each over the models that met in it."""
    out: dict[str, Matrix] = {}
    for task in TASKS:
        of_task = [row for row in rows if row["task"] == task]
        found = score_matrix(of_task, task)
        if found.counts.any():
            out[task] = found
    return out
