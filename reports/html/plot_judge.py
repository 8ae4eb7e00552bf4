"""The plots of a judge: PAS by level, the IAS-PAS plane, the conflict profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.ifeval import published
from dsbeval.ifeval.pack import LEVELS
from reports.html.plots import HAIR, INK, MARKERS, MUTED, SERIES, drawing, legend, points, share_axis

PROFILE = ("directive_wins", "persona_wins", "balanced", "incoherent")


NAME_WIDTH, NAME_HEIGHT = 0.25, 5.0
"""Room that a name takes in the plane, as a rate and in points of PAS."""


def pas(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return PAS by level."""
    levels = [level for level in LEVELS if any(level in table["pas"]["by_level"] for _, table in runs)]
    with drawing("pas", 440, 240) as (figure, svg):
        axes = figure.subplots()
        for k, (name, table) in enumerate(runs):
            found = table["pas"]["by_level"]
            points(axes, [(n, found[level]) for n, level in enumerate(levels) if level in found], "mean", k % 8, name)
        axes.set_xticks(range(len(levels)), levels)
        axes.set_xlim(-0.5, len(levels) - 0.5)
        axes.set_ylim(0, 100)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("PAS")
        if len(runs) > 1:
            legend(axes)
        return svg()


def _apart(names: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return names with their places, those that would lie on each other one above the other."""
    out: list[tuple[float, float, str]] = []
    for x, y, name in sorted(names, key=lambda entry: entry[1]):
        below = [other for at, other, _ in out if abs(at - x) < NAME_WIDTH]
        out.append((x, max([y, *(other + NAME_HEIGHT for other in below)]), name))
    return out


def plane(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return IAS against PAS, level by level, over the published systems."""
    with drawing("plane", 440, 300) as (figure, svg):
        axes = figure.subplots()
        drawn = False
        names: list[tuple[float, float, str]] = []
        for model in published.MODELS:
            xs, ys = ([table[model][level] for level in LEVELS] for table in (published.IAS, published.PAS))
            axes.plot([x / 100 for x in xs], ys, color=MUTED, marker=".", ms=5, lw=0, alpha=0.45)
            names.append((sum(xs) / len(xs) / 100, sum(ys) / len(ys), model))
        for x, y, model in _apart(names):
            axes.annotate(model, (x, y), fontsize=9, color=MUTED, ha="center")
        for k, (name, table) in enumerate(runs):
            mine = [
                (level, cell["ias_reactive"]["rate"], cell["pas"]["mean"]) for level, cell in table["ias_pas"].items()
            ]
            mine = [found for found in mine if None not in found]
            if mine:
                drawn = True
                axes.plot(
                    [x for _, x, _ in mine],
                    [y for *_, y in mine],
                    color=SERIES[k % 8],
                    marker=MARKERS[k % 8],
                    ms=6,
                    lw=0.8,
                    label=name,
                )
                for level, x, y in mine:
                    axes.annotate(level, (x, y), (5, 4), textcoords="offset points", fontsize=10, color=INK)
        if not drawn:
            return ""
        share_axis(axes.xaxis)
        axes.set_ylim(0, 100)
        axes.set_xlabel("IAS, reactive cells, %")
        axes.set_ylabel("PAS")
        if len(runs) > 1:
            legend(axes)
        return svg()


def conflict(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return how conflicts were resolved."""
    bars = [
        (f"{level}, {name}" if len(runs) > 1 else level, table["conflict"][level])
        for level in ("L4a", "L4b")
        for name, table in runs
        if table["conflict"][level]["n"]
    ]
    if not bars:
        return ""
    with drawing("conflict", 440, 80 + 34 * len(bars)) as (figure, svg):
        axes = figure.subplots()
        left = [0.0] * len(bars)
        for k, name in enumerate(PROFILE):
            shares = [cell[name] for _, cell in bars]
            axes.barh(
                range(len(bars)),
                shares,
                left=left,
                height=0.62,
                color=SERIES[(0, 3, 5, 6)[k]],
                label=name.replace("_", " "),
                hatch=("", "/", "\\\\", "")[k],
                edgecolor=HAIR,
            )
            left = [a + b for a, b in zip(left, shares, strict=True)]
        axes.set_yticks(range(len(bars)), [title for title, _ in bars])
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        share_axis(axes.xaxis)
        axes.set_xlabel("% of judged cases")
        legend(axes, ncols=2)
        return svg()
