"""The plots of DyaFDB: eta squared, Kaplan-Meier curves, the act-succeed plane, balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.dyad_tables import MEASURES
from reports.html.plots import HAIR, MARKERS, MUTED, SERIES, drawing, legend, share_axis

TERMS = ("task", "model", "partner", "interaction", "residual")
CURVES = ("entry", "deviation", "leak_by_attacker", "leak_by_defender")

Summaries = Sequence[tuple[str, Mapping[str, Any]]]


def plots(runs: Summaries) -> dict[str, str]:
    """Return the plots of the ``dyadic`` blocks of runs, by name; what has nothing to draw is left out."""
    found = [(name, summary["dyadic"]) for name, summary in runs if summary.get("dyadic", {}).get("matrices")]
    if not found:
        return {}
    drawn = {"eta2": _eta2(found), "factors": _factors(found), "balance": _balance(found)}
    drawn |= {f"km-{name}": _curves(found, name) for name in CURVES}
    return {name: svg for name, svg in drawn.items() if svg}


def plots_by_judge(runs: Summaries) -> dict[str, str]:
    """Return the plots of conversations by each judge that was asked after the run; their names begin with its place."""
    out: dict[str, str] = {}
    for k, judge in enumerate(dict.fromkeys(judge for _, summary in runs for judge in summary.get("judged", {}))):
        judged = [(name, summary["judged"][judge]) for name, summary in runs if judge in summary.get("judged", {})]
        out |= {f"{k}-{name}": svg for name, svg in plots(judged).items()}
    return out


def _named(many: bool, run: str, name: str) -> str:
    cut = name.rpartition("/")[2]
    return f"{cut}, {run}" if many else cut


def _eta2(runs: Summaries) -> str:
    bars: list[tuple[str, Mapping[str, float], bool]] = []
    for kind in ("turn_taking", "tasks"):
        names = list(dict.fromkeys(name for _, data in runs for name in data["variance"][kind]))
        for name in names:
            for run, data in runs:
                cell = data["variance"][kind].get(name, {})
                if "eta2" in cell:
                    bars.append((_named(len(runs) > 1, run, MEASURES.get(name, name)), cell["eta2"], False))
            reference = runs[0][1]["published"]["turn_taking_eta2"].get(name) if kind == "turn_taking" else None
            if reference and bars:
                bars.append((f"{MEASURES.get(name, name)}, published", reference, True))
    if not any(not reference for *_, reference in bars):
        return ""
    with drawing("eta2", 760, 70 + 24 * len(bars)) as (figure, svg):
        axes = figure.subplots()
        for at, (_, shares, reference) in enumerate(bars):
            left = 0.0
            for k, term in enumerate(TERMS):
                share = shares.get(term, 0.0)
                axes.barh(
                    at,
                    share,
                    left=left,
                    height=0.66,
                    color=SERIES[(6, 0, 1, 3, 7)[k]],
                    alpha=0.55 if reference else 1.0,
                    hatch="/" if reference else None,
                    edgecolor=HAIR,
                    label=term if at == 0 else None,
                )
                left += share
        axes.set_yticks(range(len(bars)), [title for title, *_ in bars])
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        share_axis(axes.xaxis)
        axes.set_xlabel("% of the variance between cells")
        legend(axes, ncols=5)
        return svg()


def _curves(runs: Summaries, name: str) -> str:
    found = [(run, model, curve) for run, data in runs for model, curve in data["survival"][name].items() if curve["n"]]
    if not found or not any(curve["events"] for *_, curve in found):
        return ""
    end = max(data["window_s"] for _, data in runs)
    with drawing(f"km-{name}", 440, 260) as (figure, svg):
        axes = figure.subplots()
        for k, (run, model, curve) in enumerate(found):
            times = [0.0, *curve["times_s"], end]
            shares = [1.0, *curve["survival"]]
            colour = SERIES[k % 8]
            axes.step(
                times,
                [*shares, shares[-1]],
                where="post",
                color=colour,
                ls=("-", "--", "-.", ":")[k % 4],
                label=_named(len(runs) > 1, run, model),
            )
            low = [
                1.0,
                *(s if limit is None else limit for s, limit in zip(curve["survival"], curve["low"], strict=True)),
            ]
            high = [
                1.0,
                *(s if limit is None else limit for s, limit in zip(curve["survival"], curve["high"], strict=True)),
            ]
            axes.fill_between(times, [*low, low[-1]], [*high, high[-1]], step="post", color=colour, alpha=0.14, lw=0)
        axes.axhline(0.5, color=MUTED, lw=0.8, ls=(0, (2, 3)))
        share_axis(axes.yaxis)
        axes.set_xlim(0, end)
        axes.set_xlabel("seconds")
        axes.set_ylabel("% without it yet")
        legend(axes, ncols=2)
        return svg()


def _factors(runs: Summaries) -> str:
    tasks = list(dict.fromkeys(task for _, data in runs for task in data["factors"]))
    points = {
        task: [
            (_named(len(runs) > 1, run, model), cell)
            for run, data in runs
            for model, cell in data["factors"].get(task, {}).items()
            if model != "acted"
            and cell["p_acted"]["value"] is not None
            and cell["p_success_given_acted"]["value"] is not None
        ]
        for task in tasks
    }
    points = {task: found for task, found in points.items() if found}
    if not points:
        return ""
    names = list(dict.fromkeys(name for found in points.values() for name, _ in found))
    with drawing("factors", 240 * min(4, len(points)) + 40, 270) as (figure, svg):
        panels = figure.subplots(1, len(points), squeeze=False, sharey=True)[0]
        for axes, (task, found) in zip(panels, points.items(), strict=True):
            grid = [k / 50 for k in range(1, 51)]
            for product in (0.1, 0.25, 0.5, 0.75):
                axes.plot(
                    [x for x in grid if product / x <= 1],
                    [product / x for x in grid if product / x <= 1],
                    color=HAIR,
                    lw=1,
                )
            for name, cell in found:
                k = names.index(name)
                axes.plot(
                    cell["p_acted"]["value"],
                    cell["p_success_given_acted"]["value"],
                    color=SERIES[k % 8],
                    marker=MARKERS[k % 8],
                    ms=7,
                    lw=0,
                    clip_on=False,
                    label=name,
                )
            axes.set_title(task)
            axes.grid(visible=False)
            share_axis(axes.xaxis)
            share_axis(axes.yaxis)
            axes.set_xlabel("acted, %")
        panels[0].set_ylabel("success once acted, %")
        handles: dict[str, Any] = {}
        for axes in panels:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(list(handles.values()), list(handles), loc="outside upper left", ncols=4, borderaxespad=0)
        return svg()


def _balance(runs: Summaries) -> str:
    lines = [
        (_named(len(runs) > 1, run, task), cell)
        for run, data in runs
        for task, cell in data["balance"].items()
        if cell["value"] is not None
    ]
    if not lines:
        return ""
    with drawing("balance", 440, 60 + 26 * len(lines)) as (figure, svg):
        axes = figure.subplots()
        axes.axvline(0.5, color=MUTED, lw=1, ls=(0, (2, 3)))
        for at, (_, cell) in enumerate(lines):
            if cell["low"] is not None:
                axes.plot([cell["low"], cell["high"]], [at, at], color=SERIES[0], lw=1.6, alpha=0.65)
            axes.plot(cell["value"], at, color=SERIES[0], marker="o", ms=6, clip_on=False)
        axes.set_yticks(range(len(lines)), [name for name, _ in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        share_axis(axes.xaxis)
        axes.set_xlabel("mean score of the scored role, %")
        return svg()
