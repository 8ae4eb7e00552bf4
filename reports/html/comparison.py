"""Runs beside each other: the differences of their summaries, and what :mod:`dsbeval.compare` finds in their cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.compare.compare import compare
from dsbeval.compare.side import Side, side_of_run
from dsbeval.results import Row, RunFolder

SCHEMA = 1
ASIDE = frozenset({"schema", "fingerprint", "published", "errors", "skipped", "missing", "survival", "asked"})
"""Parts of a summary that have no differences to show."""


def compare_runs(
    runs: Sequence[tuple[str, RunFolder, Mapping[str, Any]]], *, allow_unlike: bool = False
) -> dict[str, Any]:
    """Return the comparison of each run with the first, as ``comparison.json`` has it.

    Parameters
    ----------
    runs : sequence of (name, folder, summary)
    allow_unlike : bool
        Compare runs that were not made alike all the same.

    Returns
    -------
    dict
        ``runs``: names. ``changes``: for each run the differences of its summary from the first one's, in the shape of a
        summary; ``against``: for each run what ``dsbeval compare`` finds. Both are None for the first run.

    Raises
    ------
    RunError
        Where two runs are unlike, and that is not allowed.
    """
    sides = [side_of_run(folder, name) for name, folder, _ in runs]
    first: Side = sides[0]
    return {
        "schema": SCHEMA,
        "runs": [name for name, *_ in runs],
        "changes": [None, *(difference(runs[0][2], summary) for *_, summary in runs[1:])],
        "against": [None, *(_counted(compare(first, side, allow_unlike=allow_unlike)) for side in sides[1:])],
    }


def _counted(found: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison whose shares have the counts behind them, which is what is shown of few cases."""
    metrics = []
    for entry in found["metrics"]:
        share = entry["unit"] == "points" and entry["family"] != "effect" and entry["base"] is not None
        counts = [round(entry[of] * entry[f"n_{of}"], 2) for of in ("base", "new")] if share else None
        metrics.append({**entry, "counts": counts})
    return {**found, "metrics": metrics}


def difference(base: Any, new: Any) -> Any:
    """Return ``new - base`` of every number that two summaries share, in their shape; None where there is no such difference.

    Lists are compared place by place, so those of a matrix over other models are not compared at all.
    """
    if isinstance(base, bool) or isinstance(new, bool):
        return None
    if isinstance(base, (int, float)) and isinstance(new, (int, float)):
        return new - base
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        if base.get("models") != new.get("models") and "values" in base:
            return None
        return {key: difference(base[key], new[key]) for key in base if key in new and key not in ASIDE}
    if isinstance(base, list) and isinstance(new, list) and len(base) == len(new):
        return [difference(one, other) for one, other in zip(base, new, strict=True)]
    return None


def changed(rows: Sequence[Sequence[Row]]) -> set[str]:
    """Return the ids of cases whose outcomes are not the same in all runs that have them, by any of their items."""
    found: dict[tuple[str, str], set[str]] = {}
    for of_run in rows:
        for row in of_run:
            found.setdefault((str(row["id"]), str(row["item"])), set()).add(str(row["outcome"]))
    return {name for (name, _), outcomes in found.items() if len(outcomes) > 1}
