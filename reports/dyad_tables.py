"""The conversations of two agents as text tables: what became of them, score matrices, turn-taking. No figure without its n."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.caveats import lines as caveat_lines
from dsbeval.judge.contract import is_offline
from dsbeval.judge.tables import table
from dsbeval.stats import SMALL_N

SHOWN = 10
"""So many errors and skips are listed."""
TASK_NAMES = {
    "T1-1": "role adherence, engaging partner",
    "T1-2": "role adherence, digressing partner",
    "T2": "solved",
    "T3-1": "channel occupancy, both press",
    "T3-2": "channel occupancy of the presser",
    "T4-1": "own option landed",
    "T4-2": "secret extracted",
    "T4-3": "claimant's share of closed runs",
    "T4-4": "seller's share of the gap, closed runs",
}
MEASURES = {
    "tor_pause": "TOR_pause",
    "tor_end": "TOR_end",
    "backchannels": "backchannels",
    "barge_in": "barge-in",
    "occupancy": "occupancy",
}
_PLACE = re.compile(r"^.*/")


def render(data: Mapping[str, Any], agent: str) -> list[str]:
    """Return the tables of the ``dyadic`` block of a summary."""
    found = data["outcomes"]
    lines = [
        f"agent {agent}: {found['cases']} conversations: {found['passed']} passed, {found['failed']} failed, "
        f"{found['error']} error, {found['skipped']} skipped, {found['missing']} missing"
    ]
    lines += [f"{option} has no part in conversations of two agents" for option in data.get("ignored", ())]
    for kind in ("errors", "skipped"):
        lines += [f"  {kind.removesuffix('s')}: {entry['id']}: {entry['message']}" for entry in data[kind][:SHOWN]]
        if len(data[kind]) > SHOWN:
            lines.append(f"  ... and {len(data[kind]) - SHOWN} more {kind}")
    if data["missing"]:
        lines.append(f"  missing: {', '.join(data['missing'][:5])}{' ...' * (len(data['missing']) > 5)}")
    lines += caveat_lines(data.get("caveats", {}))
    lines += [
        f"with run {run['run']}: agent {run['agent']}, {run['cases']} conversations: {run['error']} error, "
        f"{run['skipped']} skipped, {run['missing']} missing"
        for run in data.get("with_runs", ())
    ]
    if "garble" in data:
        lines.append(_garble(data["garble"]))
    text = data.get("text", {})
    if not data.get("matrices") and not text.get("matrices"):
        return lines
    for judge in data["judges"]:
        mark = " [offline: a proxy, not comparable with a language model]" if is_offline(judge) else ""
        lines.append(f"judge {judge}{mark}")
    if data.get("matrices"):
        lines += _matrices(f"Scores, mean (n) [95 %] over {data['window_s']:g} s", data["matrices"])
        lines += ["", *_turn_taking(data["turn_taking"])]
    if text.get("matrices"):
        lines += _matrices("Scores in writing, mean (n) [95 %] over 240 words", text["matrices"])
    return lines


def _matrices(title: str, matrices: Mapping[str, Any]) -> list[str]:
    lines = ["", f"{title}: rows the model scored, columns its partner"]
    for task, matrix in matrices.items():
        lines += ["", *_matrix(f"{task} {TASK_NAMES[task]}", matrix)]
    return lines


def _garble(found: Mapping[str, Any]) -> str:
    sides = ", ".join(f"{model} {n}" for model, n in found["garbled_sides"].items())
    return (
        f"garble watch: {found['flagged']} of {found['watched']} conversations flagged, {found['recorded_again']} recorded "
        f"again, {found['garbled']} garbled for good{f' (sides: {sides})' if sides else ''}"
    )


def _short(models: Sequence[str]) -> list[str]:
    """Return names without the folder of a file, where that leaves them different."""
    short = [_PLACE.sub("", model) for model in models]
    return short if len(set(short)) == len(short) else list(models)


def _cell(value: float | None, n: int, limits: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} ({n})" + (f" [{limits[0]:.2f}, {limits[1]:.2f}]" if limits and n >= SMALL_N else "")


def _matrix(title: str, matrix: Mapping[str, Any]) -> list[str]:
    names = _short(matrix["models"])
    rows = [
        (name, *map(_cell, values, counts, limits), "-" if average is None else f"{average:.2f} ({cells})")
        for name, values, counts, limits, average, cells in zip(
            names,
            matrix["values"],
            matrix["n"],
            matrix["ci95"],
            matrix["row_average"],
            matrix["row_cells"],
            strict=True,
        )
        if any(counts)
    ]
    return table((title, *names, "average (cells)"), rows)


def _turn_taking(measures: Mapping[str, Any]) -> list[str]:
    models = next(iter(measures.values()))["models"]
    rows = []
    for i, model in enumerate(_short(models)):
        for j, partner in enumerate(_short(models)):
            cells = [_cell(*(measures[name][field][i][j] for field in ("values", "n", "ci95"))) for name in MEASURES]
            if any(cell != "-" for cell in cells):
                rows.append((f"{model} with {partner}", *cells))
    return table(("Turn-taking, mean (n) [95 %]", *MEASURES.values()), rows)
