"""How a score comes about: did the model act, and what came of it; by window; and which role a game favours.

Conventions
-----------
* *acted* is decided (T2, T4-1) or asked (T3-2, T4-2). *Success* is solved (T2), the permission given (T3-2), the own option
  landed (T4-1), the secret extracted (T4-2): in T3-2 it is not the score of the matrix, which is channel occupancy.
* ``p_success = p_acted x p_success_given_acted + (1 - p_acted) x p_success_without``. The last term is 0 in T2 and T4-1,
  where nothing can be won undecided; in T4-2 a secret may slip out unasked.
* Means are over seats, so that a model's self-play weighs as much as each of its cross-play pairings. ``n`` counts
  conversations; intervals are by scenario, since the conversations of one are not independent (:mod:`dsbeval.stats`).
* A seat that the judge could not judge is in neither.
* A game is balanced when the mean score of the role that is scored is near one half, over all pairings: T3-2 and T4-2 over all
  conversations, T4-3 and T4-4 over the closed ones.

Source: DyaFDB, analyses (score = p(acted) x p(score | acted); windows; game balance).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dsbeval.dyadic.matrices import models_of
from dsbeval.dyadic.rows import TASKS, VERDICTS, DyadRow, Seat, seats
from dsbeval.stats import Estimate, clustered_score

ACTS = {"T2": "decided", "T3-2": "asked", "T4-1": "decided", "T4-2": "asked"}
BALANCE = {"T3-2": "all", "T4-2": "all", "T4-3": "closed", "T4-4": "closed"}


def success(seat: Seat) -> bool | None:
    """Return whether what the model acted for was reached; None when it is not known."""
    scores = seat.scores
    if scores is None:
        return None
    if seat.row["task"] == "T3-2":
        return scores.get("agreement")
    return None if scores["score"] is None else scores["score"] >= 1


def acted(seat: Seat) -> bool | None:
    """Return whether the model, or in T2 and T4-1 the pair, acted; None when it is not known."""
    scores = seat.scores
    return None if scores is None else scores.get("acted")


def conversations(found: Iterable[Seat]) -> int:
    """Return how many conversations seats come from. Ids will not do: runs of several folders may share them."""
    return len({id(seat.row) for seat in found})


def share_of(found: Sequence[tuple[Seat, bool]]) -> Estimate:
    """Return the share of seats, with its interval by scenario; ``n`` counts conversations."""
    return mean_of([(seat, float(value)) for seat, value in found])


def mean_of(found: Sequence[tuple[Seat, float]]) -> Estimate:
    """Return the mean over seats, with its interval by scenario; ``n`` counts conversations."""
    estimate = clustered_score([value for _, value in found], [seat.row["scenario"] for seat, _ in found])
    return Estimate(estimate.value, estimate.low, estimate.high, conversations(seat for seat, _ in found))


def factors(found: Iterable[Seat]) -> dict[str, Any]:
    """Return the factors of the success of seats of one task."""
    known = [(seat, a, s) for seat in found if (a := acted(seat)) is not None and (s := success(seat)) is not None]
    return {
        "p_acted": share_of([(seat, a) for seat, a, _ in known]).as_dict(),
        "p_success_given_acted": share_of([(seat, s) for seat, a, s in known if a]).as_dict(),
        "p_success_without": share_of([(seat, s) for seat, a, s in known if not a]).as_dict(),
        "p_success": share_of([(seat, s) for seat, _, s in known]).as_dict(),
    }


def factors_by_model(rows: Sequence[DyadRow]) -> dict[str, dict[str, Any]]:
    """Return the factors by task and model."""
    return {
        task: {"acted": name, **_by_model([row for row in rows if row["task"] == task], factors)}
        for task, name in ACTS.items()
        if any(row["task"] == task for row in rows)
    }


def _by_model(rows: Sequence[DyadRow], measure: Any) -> dict[str, Any]:
    found = list(seats(rows, scored=True))
    return {
        model: measure([seat for seat in found if seat.model == model])
        for model in models_of(rows)
        if any(seat.model == model for seat in found)
    }


def _action_and_score(found: Sequence[Seat]) -> dict[str, Any]:
    done = [(seat, a) for seat in found if (a := acted(seat)) is not None]
    scores = [(seat, seat.score) for seat in found if seat.score is not None]
    return {
        "action": share_of(done).as_dict() if done else None,
        "score": mean_of(scores).as_dict(),
    }


def by_window(rows: Sequence[DyadRow]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return action rate and score by task, window in seconds and model. ``action`` is None where a task has none."""
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for task in TASKS:
        of_task = [row for row in rows if row["task"] == task]
        for window in sorted({row["window_s"] for row in of_task}):
            part = [row for row in of_task if row["window_s"] == window]
            out.setdefault(task, {})[f"{window:g}"] = _by_model(part, _action_and_score)
    return out


def balance(rows: Sequence[DyadRow]) -> dict[str, dict[str, Any]]:
    """Return the mean score of the scored role over all pairings, and how many conversations it is over and of."""
    out: dict[str, dict[str, Any]] = {}
    for task, over in BALANCE.items():
        # An unjudged conversation is not an open one.
        found = list(seats((row for row in rows if row["task"] == task and row["outcome"] in VERDICTS), scored=True))
        if found:
            scores = [(seat, seat.score) for seat in found if seat.score is not None]
            out[task] = {**mean_of(scores).as_dict(), "of": len(found), "over": over}
    return out
