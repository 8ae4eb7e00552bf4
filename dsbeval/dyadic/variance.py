"""How much of a measure is the model's, how much its partner's: shares of the variance between cells.

Conventions
-----------
* ``cells[t, m, p]`` is the mean of a measure over the conversations of task t, model m and partner p (7 x 3 x 3 = 63); a
  task's own score matrix is ``cells[m, p]`` (9). Any number of tasks and models will do.
* The share of a term is eta squared: its sum of squares / the total sum of squares. The sum of squares of a main effect is
  the number of cells that one of its means averages over, times the squared deviations of the means from the grand mean:
  over 63 cells 21 for model and for partner, 9 for task. For the interaction of model and partner it is 7 times the squared
  contrasts ``mean[m, p] - mean[m] - mean[p] + grand mean``. What is left is the residual: everything that involves the
  task beyond its own mean.
* Without tasks (9 cells) the three terms are all there is, and sum to 1.
* Cells that are all equal have no variance to share out, and an empty cell makes the sums of squares overlap: both are a
  ValueError.
* Standard deviations are over bootstrap draws of the conversations within each cell.

Source: DyaFDB, variance decomposition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsbeval.stats import DRAWS, SEED, Numbers, drawn_means

TERMS = ("task", "model", "partner", "interaction", "residual")


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The share of each term, and its standard deviation where runs were drawn."""

    shares: Mapping[str, float]
    sd: Mapping[str, float] | None = None

    @property
    def leading(self) -> str:
        """The term with the largest share."""
        return max(self.shares, key=lambda term: self.shares[term])

    def as_dict(self) -> dict[str, Any]:
        """Return it as a summary holds it."""
        return {"eta2": dict(self.shares), "sd": None if self.sd is None else dict(self.sd), "leading": self.leading}


def sums_of_squares(cells: Numbers) -> dict[str, float]:
    """Return the sum of squares of each term and of all.

    Parameters
    ----------
    cells : array, shape (tasks, models, partners) or (models, partners)
    """
    _check(cells)
    sums = _sums(cells if cells.ndim == 3 else cells[None], by_task=cells.ndim == 3)
    return {term: float(value) for term, value in sums.items()}


def _sums(stack: Numbers, *, by_task: bool) -> dict[str, Numbers]:
    """Return the sums of squares of cells of shape ``(..., tasks, models, partners)``, one for each leading index."""
    tasks, models, partners = stack.shape[-3:]
    every = (-3, -2, -1)
    centred = stack - stack.mean(axis=every, keepdims=True)
    pair = centred.mean(axis=-3)
    model, partner = pair.mean(axis=-1), pair.mean(axis=-2)
    contrast = pair - model[..., :, None] - partner[..., None, :]
    total = (centred**2).sum(axis=every)
    out = {
        "model": tasks * partners * (model**2).sum(axis=-1),
        "partner": tasks * models * (partner**2).sum(axis=-1),
        "interaction": tasks * (contrast**2).sum(axis=(-2, -1)),
    }
    if by_task:
        out = {"task": models * partners * (centred.mean(axis=(-2, -1)) ** 2).sum(axis=-1), **out}
        # Rounding must not make a residual of nothing negative.
        out["residual"] = np.maximum(0.0, total - sum(out.values()))
    return out | {"total": total}


def decompose(cells: Numbers) -> Decomposition:
    """Return the share of each term. Raises ValueError for empty cells, and for cells that are all equal."""
    sums = sums_of_squares(cells)
    total = sums.pop("total")
    if total <= _nothing(cells):
        raise ValueError("all cells are equal; there is no variance to decompose")
    return Decomposition({term: value / total for term, value in sums.items()})


def _nothing(cells: Numbers) -> float:
    """Return the total sum of squares that rounding can make of equal cells."""
    return float(cells.size * (1e-12 * np.abs(cells).max()) ** 2)


def decompose_runs(
    runs: Sequence[Sequence[Sequence[float]]] | Sequence[Sequence[Sequence[Sequence[float]]]],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Decomposition:
    """Return the shares of the means of ``runs[t][m][p]`` (or ``runs[m][p]``), with standard deviations over the runs.

    Draws in which all cells are equal have no shares and are left out.
    """
    by_task = _depth(runs) == 4
    stack: Any = runs if by_task else [runs]
    shape = (len(stack), len(stack[0]), len(stack[0][0]))
    groups = [group for task in stack for model in task for group in model]
    if len(groups) != np.prod(shape):
        raise ValueError("every task needs the same models and every model the same partners")
    if not all(len(group) for group in groups):
        raise ValueError("a cell has no runs; record that pairing, or leave the model or the task out")
    means = np.array([np.mean(group) for group in groups])
    whole = decompose(means.reshape(shape if by_task else shape[1:]))
    sums = _sums(drawn_means(groups, draws=draws, seed=seed).reshape(draws, *shape), by_task=by_task)
    total = sums.pop("total")
    usable = total > _nothing(means)
    return Decomposition(
        whole.shares, {term: float((value[usable] / total[usable]).std()) for term, value in sums.items()}
    )


def _depth(runs: Any) -> int:
    depth, level = 0, runs
    while isinstance(level, (list, tuple, np.ndarray)):
        if not len(level):
            return depth + 1
        depth, level = depth + 1, level[0]
    return depth


def _check(cells: Numbers) -> None:
    if cells.ndim not in (2, 3):
        raise ValueError(f"cells have shape {cells.shape}; give (models, partners) or (tasks, models, partners)")
    if not cells.size:
        raise ValueError("there are no cells")
    if not np.isfinite(cells).all():
        raise ValueError("a cell is empty; record that pairing, or leave the model or the task out")
