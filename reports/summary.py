"""The summary of a run, from its folder alone: the floor, and each judge by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsbeval.ifeval.metrics import summarise
from dsbeval.judge.metrics import summarise_judges
from dsbeval.results import Row, RunFolder


def build(
    folder: RunFolder, rows: Sequence[Row] | None = None, fingerprint: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return ``report/summary.json`` of a run.

    ``rows`` and ``fingerprint`` stand in for the run's own where it was scored again.
    """
    rows = folder.rows() if rows is None else rows
    cases = folder.cases()
    floor = [row for row in rows if row["item"] == "floor"]
    persona = [row for row in rows if row["item"] == "persona"]
    judges = summarise_judges(persona, floor)
    for judge, table in judges.items():
        judged = {row["id"] for row in persona if row["judge"] == judge}
        table["counts"]["missing"] = len(set(cases) - judged)
    return {**summarise(floor, cases, fingerprint or folder.fingerprint()), "judges": judges}
