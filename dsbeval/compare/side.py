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
_NUMBER = (int, float)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "role", "probe", "level", "action", "margin_unit", "judge", "task", "scenario"), (str,)),
    **dict.fromkeys(("passed", "exercised", "borderline", "enacted", "self_play"), (bool,)),
    "pas": _NUMBER,
    "margin": (*_NUMBER, type(None)),
    "l4_category": (str,),
    "seats": (str,),
    "scores": (dict,),
    "turn_taking": (dict, type(None)),
}
"""Types of the fields of a baseline's row, which may have been edited; a bool is no number."""
_DYAD = ("task", "scenario", "self_play", "seats")
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
    if not all(isinstance(name, str) for name in data["cases"]):
        raise RunError(f"{path}: cases: holds what is no id; make the baseline again")
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(data["rows"], start=1):
        if (problem := _problem(row)) is None and (row["id"], row["item"]) in seen:
            problem = f"({row['id']}): is there twice"
        if problem is not None:
            raise RunError(f"{path}: row {number} {problem}; make the baseline again: dsbeval baseline RUN -o {path}")
        seen.add((row["id"], row["item"]))
    return Side(str(path), data["fingerprint"], tuple(data["cases"]), tuple(data["rows"]))


def _problem(row: Any) -> str | None:
    """Return what is wrong with a row of a baseline, or None."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return "has no id"
    for name, known in (("item", KEPT), ("outcome", OUTCOMES)):
        if row.get(name) not in known:
            return f"({row['id']}): {name} is {row.get(name)!r}, not one of {', '.join(known)}"
    wanted: tuple[str, ...] = ()
    if row["item"] == "dyad":
        wanted = _DYAD if "scores" in row else ()
    elif row["outcome"] in ("passed", "failed"):
        wanted = (*_CASE, "exercised") if row["item"] == "floor" else (*_CASE, "pas", "l4_category")
    for name in wanted:
        if name not in row:
            return f"({row['id']}): {name} is missing"
    for name, value in row.items():
        kinds = _TYPES.get(name)
        if kinds is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            return f"({row['id']}): {name} is {value!r}"
    for side, found in (row.get("scores") or {}).items():
        score = found.get("score") if isinstance(found, dict) else found
        if not isinstance(found, dict) or not isinstance(score, (*_NUMBER, type(None))):
            return f"({row['id']}): scores.{side} is {found!r}"
    for side, turns in (row.get("turn_taking") or {}).items():
        if not isinstance(turns, dict) or not all(isinstance(turns.get(n), (*_NUMBER, type(None))) for n in _TURNS):
            return f"({row['id']}): turn_taking.{side} is {turns!r}"
    return None


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
