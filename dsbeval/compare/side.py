"""One side of a comparison: a run folder, or the baseline file that was made of one.

Conventions
-----------
* A baseline (``dsbeval baseline RUN -o baseline.json``) holds the fingerprint, the ids that were to be run, and of each row what
  a comparison reads: no audio, no text, no measurements. It is one row a line, so that a diff of two of them can be read.
* Both kinds give the same comparison: a folder's rows are cut down to the same fields when they are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsbeval.audio import atomic_write
from dsbeval.errors import RunError
from dsbeval.results import OUTCOMES, Row, RunFolder

SCHEMA = 1
KIND = "dsbeval-baseline"

_WHO = ("id", "item", "outcome")
_CASE = (*_WHO, "role", "probe", "level", "action", "passed")
KEPT: dict[str, tuple[str, ...]] = {
    "floor": (*_CASE, "exercised", "margin", "margin_unit", "borderline", "enacted"),
    "persona": (*_CASE, "judge", "pas", "l4_category"),
    "dyad": (*_WHO, "task", "scenario", "self_play", "seats", "judge", "scores", "turn_taking"),
}
"""Fields of a row, by item, that a comparison reads."""
_TURNS = ("tor_pause", "tor_end", "backchannels", "barge_in", "occupancy")
_SCORES = ("score", "acted")


@dataclass(frozen=True)
class Side:
    """A run as comparisons see it: where it came from, its fingerprint, the ids that were to be run, and its rows."""

    label: str
    fingerprint: Mapping[str, Any]
    cases: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return str(self.fingerprint.get("agent", "?"))


def slim(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return rows with the fields that a comparison reads; rows of other items are left out."""
    return tuple(
        {key: _cut(key, row[key]) for key in KEPT[row["item"]] if key in row} for row in rows if row["item"] in KEPT
    )


def _cut(key: str, value: Any) -> Any:
    if key == "scores":
        return {side: {name: found[name] for name in _SCORES if name in found} for side, found in value.items()}
    if key == "turn_taking" and value is not None:
        return {side: {name: found[name] for name in _TURNS} for side, found in value.items()}
    return value


def side_of_run(folder: RunFolder, label: str | None = None) -> Side:
    """Return a run folder as a side."""
    return Side(label or str(folder.root), folder.fingerprint(), tuple(folder.cases()), slim(folder.rows()))


def read_side(path: Path) -> Side:
    """Read a run folder or a baseline file. Raises :class:`RunError` when it is neither."""
    if path.is_dir():
        return side_of_run(RunFolder.open(path), str(path))
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(
            f"{path}: no such run folder or baseline; make one with: dsbeval baseline RUN -o {path}"
        ) from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a baseline ({error}); make it again with dsbeval baseline RUN -o FILE") from None
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise RunError(f"{path}: not a baseline (no kind {KIND!r}); make one with dsbeval baseline RUN -o FILE")
    if data.get("schema") != SCHEMA:
        raise RunError(f"{path}: schema is {data.get('schema')!r}; {SCHEMA} is needed: make the baseline again")
    for name, kind in (("fingerprint", dict), ("cases", list), ("rows", list)):
        if not isinstance(data.get(name), kind):
            raise RunError(f"{path}: {name} is missing; make the baseline again")
    for number, row in enumerate(data["rows"], start=1):
        _check(path, number, row)
    return Side(str(path), data["fingerprint"], tuple(data["cases"]), tuple(data["rows"]))


def _check(path: Path, number: int, row: Any) -> None:
    where = f"{path}: row {number}"
    if (
        not isinstance(row, dict)
        or row.get("item") not in KEPT
        or row.get("outcome") not in OUTCOMES
        or "id" not in row
    ):
        raise RunError(f"{where}: has no id, item and outcome; make the baseline again")
    verdict = row["item"] != "dyad" and row["outcome"] in ("passed", "failed")
    missing = [name for name in _CASE if name not in row] if verdict else []
    if missing:
        raise RunError(f"{where} ({row['id']}): {missing[0]} is missing; make the baseline again")


def write_baseline(side: Side, path: Path) -> None:
    """Write a side as a baseline file, one row a line, in the order of the cases."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    body = ",\n".join(text(row) for row in side.rows)
    head = json.dumps(side.fingerprint, ensure_ascii=False, allow_nan=False, indent=1)
    content = (
        f'{{"schema":{SCHEMA},"kind":"{KIND}",\n"fingerprint":{head},\n"cases":{text(list(side.cases))},\n'
        f'"rows":[\n{body}\n]}}\n'
    )
    with atomic_write(path) as file:
        file.write(content.encode())
