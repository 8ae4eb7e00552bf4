"""The runs that a report is about, side by side: each its summary and, but for the first, its differences from the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reports.html.page import Part, Ref, of_run, small

Row = tuple[Sequence[Part], Sequence[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a report: its name, its summary, and its differences from the first run's (None for that one)."""

    name: str
    root: Ref
    change: Ref | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The runs of a report. ``names`` are those of roles and probes, where the pack is known."""

    sides: tuple[Side, ...]
    names: dict[str, str]

    @property
    def several(self) -> bool:
        """Whether runs are compared."""
        return len(self.sides) > 1

    def part(self, *keys: str) -> View:
        """Return the view of a part of the summaries: the runs that have it."""
        found = []
        for side in self.sides:
            root = side.root.get(*keys)
            if root is not None and root.value is not None:
                found.append(Side(side.name, root, side.change.get(*keys) if side.change is not None else None))
        return View(tuple(found), self.names)

    def keys(self, *path: str) -> list[str]:
        """Return the keys of a mapping over all runs, in the order in which they appear."""
        refs = (side.root.get(*path) for side in self.sides)
        return list(dict.fromkeys(key for ref in refs if ref is not None and ref.value for key in ref.value))

    def rows(self, head: Sequence[Part], cells: Callable[..., Sequence[dict[str, Any]]]) -> list[Row]:
        """Return the rows of one line of a table: one a run, and one of the differences of each run but the first."""
        if not self.several:
            return [(head, cells(side.root)) for side in self.sides]
        out: list[Row] = []
        for side in self.sides:
            out.append(([*head, " ", of_run(side.name)], cells(side.root)))
            if side.change is not None:
                out.append(([*head, " ", of_run(f"{side.name}, change")], cells(side.change)))
        return out

    def named(self, key: str) -> list[Part]:
        """Return the id of a role or probe with its name."""
        name = self.names.get(key)
        return [{"label": key}, *([" ", small(name)] if name else [])]
