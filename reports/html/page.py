"""What a page of the report is made of: plain data that a browser renders, and the numbers in it by where they come from.

Conventions
-----------
* A page is sections of blocks (text, tables, figures, tallies); a text is a list of parts. A part is a string, or an object
  with the key ``k``: a number, named by the JSON pointer (RFC 6901) of its place in a document and by its format.
* The documents of a report are the summaries of its runs, in order, and after them the comparison, where there are several
  runs. No number of a page is written down here: the browser looks it up, so it cannot differ from ``summary.json``.
* :class:`Ref` is how pages are built: it is walked like the data and keeps the pointer of where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsbeval.stats import SMALL_N

Part = str | dict[str, Any]
Parts = list[Part]
Block = dict[str, Any]

CHANGE = {"pct": "points", "f1": "+f1", "f2": "+f2", "int": "+int"}
"""How the difference of two numbers of a format is shown."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A place in a document. ``change`` marks a document of differences, which has the shape of a summary."""

    doc: int
    value: Any
    path: tuple[str, ...] = ()
    change: bool = False

    def __getitem__(self, key: str | int) -> Ref:
        return Ref(self.doc, self.value[key], (*self.path, str(key)), self.change)

    def __bool__(self) -> bool:
        return bool(self.value)

    def get(self, *keys: str | int) -> Ref | None:
        """Return the place below, or None where there is none."""
        here = self
        for key in keys:
            inside = here.value
            there = (
                key in inside
                if isinstance(inside, Mapping)
                else isinstance(inside, list) and isinstance(key, int) and key < len(inside)
            )
            if not there:
                return None
            here = here[key]
        return here

    def items(self) -> Iterator[tuple[str, Ref]]:
        """Yield the keys and places of a mapping."""
        for key in self.value:
            yield key, self[key]

    @property
    def pointer(self) -> str:
        """The JSON pointer of this place."""
        return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in self.path)

    def number(self, form: str) -> Part:
        """Return this number as a part of a text; a difference with its sign."""
        return {"k": self.pointer, "f": CHANGE.get(form, form) if self.change else form, "d": self.doc}


def rate(cell: Ref | None, href: str | None = None) -> dict[str, Any]:
    """Return a table cell of a rate: percent, counts, interval; a rate over few is shown as counts."""
    if cell is None:
        return {"p": []}
    if cell.change:
        found = cell.get("rate")
        return {"p": [found.number("pct")] if found is not None else [], "tone": "change"}
    if not cell.value["n"]:
        return {"p": []}
    return {
        "p": [{"rate": cell.pointer, "d": cell.doc}],
        "heat": cell.value["rate"],
        **({"href": href} if href else {}),
    }


def mean(cell: Ref | None, form: str = "f1", name: str = "mean") -> dict[str, Any]:
    """Return a table cell of a mean: value, interval (of few none), n."""
    if cell is None or cell.value is None or cell.value.get(name) is None:
        return {"p": []}
    if cell.change:
        return {"p": [cell[name].number(form)], "tone": "change"}
    parts: Parts = [cell[name].number(form)]
    limits = (
        interval(cell, form) if cell["n"].value >= SMALL_N else []
    )  # over a few it would look surer than anything is
    return {"p": [*parts, *limits, " ", {"small": ["n ", cell["n"].number("int")]}]}


def gap_cell(gap: Ref, of: Mapping[str, Ref]) -> dict[str, Any]:
    """Return a table cell of a difference of two rates: points, interval, n of both sides, p; of few cases the pairs that moved.

    ``of`` has ``ci95``, ``n``, ``pairs``, ``gained``, ``lost`` and ``p``; it is empty for a change.
    """
    if gap.change:
        return {"p": [gap.number("points")], "tone": "change"}
    if min(of["n"].value) < SMALL_N:
        moved = (
            of["gained"].number("int"),
            " gained, ",
            of["lost"].number("int"),
            " lost of ",
            of["pairs"].number("int"),
        )
        return {"p": list(moved)}
    parts: Parts = [gap.number("points")]
    limits = of["ci95"]
    if limits.value is not None:
        parts += [" ", small("[", limits[0].number("points"), ", ", limits[1].number("points"), "]")]
    parts += [" ", small("(", of["n"][0].number("int"), ", ", of["n"][1].number("int"), ")")]
    return {"p": [*parts, *([" ", small("p ", of["p"].number("p"))] if of["p"].value is not None else [])]}


def interval(cell: Ref, form: str) -> Parts:
    """Return the limits of an interval in brackets, however they are kept; nothing where there are none."""
    limits = cell.get("ci95")
    if limits is not None and limits.value is not None:
        low, high = limits[0], limits[1]
    elif cell.value.get("low") is not None and cell.value.get("high") is not None:
        low, high = cell["low"], cell["high"]
    else:
        return []
    return [" ", {"small": ["[", low.number(form), ", ", high.number(form), "]"]}]


def plain(ref: Ref | None, form: str) -> dict[str, Any]:
    """Return a table cell of one number; empty where there is none."""
    if ref is None or ref.value is None:
        return {"p": []}
    return {"p": [ref.number(form)], **({"tone": "change"} if ref.change else {})}


def label(text: str) -> Part:
    """Return a name that is no number, whatever digits are in it."""
    return {"label": text}


def small(*parts: Part) -> Part:
    """Return parts that are by the way."""
    return {"small": list(parts)}


def of_run(name: str) -> Part:
    """Return the name of a run among several."""
    return {"run": name}


def tag(text_: str) -> Part:
    """Return a mark, such as *published*."""
    return {"tag": text_}


def link(href: str, *parts: Part) -> Part:
    """Return a link inside the report (``#/...``)."""
    return {"a": href, "t": list(parts)}


def text(*parts: Part, tone: str = "") -> Block:
    """Return a paragraph."""
    return {"b": "text", "p": list(parts), "tone": tone}


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[tuple[Sequence[Part], Sequence[dict[str, Any]]]],
    *,
    note: str = "",
    heat: bool = False,
) -> Block:
    """Return a table: the heads of its columns, and rows of a head and cells. ``heat`` colours cells by their rate."""
    return {
        "b": "table",
        "caption": caption,
        "head": list(head),
        "rows": [{"h": list(first), "c": list(cells)} for first, cells in rows],
        "note": note,
        "heat": heat,
    }


def figure(plot: str, caption: str, alt: str) -> Block:
    """Return a plot by its name, with what it shows in words."""
    return {"b": "figure", "plot": plot, "caption": caption, "alt": alt}


def drawn(plots: Mapping[str, str], plot: str, caption: str, alt: str) -> list[Block]:
    """Return a plot as a block, or nothing where there was nothing to draw."""
    return [figure(plot, caption, alt)] if plot in plots else []


def side_by_side(*blocks: Block) -> Block:
    """Return blocks that stand beside each other where there is room."""
    return {"b": "row", "blocks": list(blocks)}


def section(name: str, title: str, *blocks: Block) -> dict[str, Any]:
    """Return a section."""
    return {"id": name, "title": title, "blocks": list(blocks)}
