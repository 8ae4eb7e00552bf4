"""The plots of DSB-IFEval: IAS and effects with intervals, role gaps, latencies, PAS, the IAS-PAS plane, conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from dsbeval.ifeval.crosstabs import OFFSETS, ONSETS, latency_of, limit_of
from dsbeval.ifeval.pack import LEVELS
from dsbeval.results import Row
from reports.html.plot_judge import conflict, pas, plane
from reports.html.plots import INK, MARKERS, MUTED, SERIES, drawing, legend, points, share_axis

if TYPE_CHECKING:
    pass

Summaries = Sequence[tuple[str, Mapping[str, Any]]]
"""Name and summary of each run."""

SUBSETS = {"all": "all", "reactive": "reactive", "exercised": "exercised"}
EFFECTS = {"entailment_gap": "Entailment Gap", "redundancy_gain": "Redundancy Gain", "role_tax": "Role Tax"}


def plots(runs: Summaries, rows: Sequence[Sequence[Row]]) -> dict[str, str]:
    """Return the plots of runs that have something to draw, by name; ``rows`` are the floor rows of each run."""
    scored = [
        (name, summary["ifeval"])
        for name, summary in runs
        if summary.get("ifeval", {}).get("ias", {}).get("all", {}).get("overall", {}).get("n")
    ]
    out: dict[str, str] = {}
    if scored:
        out["ias"] = _ias(scored)
        drawn = {
            "effects": _effects(scored),
            "role_gaps": _role_gaps(scored),
            "matched": _matched(scored),
            "latency": _latency([name for name, _ in runs], rows),
        }
        out |= {name: svg for name, svg in drawn.items() if svg}
    for k, judge in enumerate(dict.fromkeys(j for _, summary in runs for j in summary.get("judges", {}))):
        judged = [(name, summary["judges"][judge]) for name, summary in runs if judge in summary.get("judges", {})]
        judged = [(name, table) for name, table in judged if table["pas"]["overall"]["n"]]
        if judged:
            drawn = {f"pas-{k}": pas(judged), f"plane-{k}": plane(judged), f"conflict-{k}": conflict(judged)}
            out |= {name: svg for name, svg in drawn.items() if svg}
    return out


def _ias(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    levels = [level for level in LEVELS if any(table["ias"]["all"][level]["n"] for _, table in runs)]
    with drawing("ias", 520, 280) as (figure, svg):
        axes = figure.subplots()
        series = 0
        many = len(runs) > 1
        for name, table in runs:
            for subset in ("all", "reactive") if many else SUBSETS:
                shift = (series - 1) * 0.08
                cells = [(k + shift, table["ias"][subset][level]) for k, level in enumerate(levels)]
                points(axes, cells, "rate", series % len(SERIES), f"{name}, {subset}" if many else SUBSETS[subset])
                series += 1
        axes.set_xticks(range(len(levels)), levels)
        axes.set_xlim(-0.5, len(levels) - 0.5)
        axes.grid(visible=False, axis="x")
        share_axis(axes.yaxis)
        axes.set_ylabel("IAS, %")
        legend(axes)
        return svg()


def _effects(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    found = []
    many = len(runs) > 1
    for k, (name, table) in enumerate(runs):
        for subset in ("all", "reactive") if many else SUBSETS:
            effects = table["effects"][subset]
            for place, effect in enumerate(EFFECTS):
                if effects[effect] is not None:
                    found.append((place, k, name, subset, effects[effect], (effects.get("ci95") or {}).get(effect)))
    if not found:
        return ""
    series = list(dict.fromkeys((name, subset) for _, _, name, subset, _, _ in found))
    with drawing("effects", 520, max(280, 80 + 20 * len(series) * 3)) as (figure, svg):
        axes = figure.subplots()
        for at, key in enumerate(series):
            mine = [(place, value, limits) for place, _, name, subset, value, limits in found if (name, subset) == key]
            shift = (at - (len(series) - 1) / 2) * 0.8 / max(len(series), 1)
            for place, _, limits in mine:
                if limits:
                    axes.plot(limits, [place + shift] * 2, color=SERIES[at % 8], lw=1.4, alpha=0.65)
            axes.plot(
                [v for _, v, _ in mine],
                [p + shift for p, _, _ in mine],
                color=SERIES[at % 8],
                marker=MARKERS[at % 8],
                ms=5.5,
                lw=0,
                label=", ".join(key) if many else SUBSETS[key[1]],
            )
        axes.axvline(0, color=MUTED, lw=1)
        axes.set_yticks(range(len(EFFECTS)), list(EFFECTS.values()))
        axes.set_ylim(len(EFFECTS) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        widest = max(max(abs(v), *(map(abs, limits) if limits else (0,))) for *_, v, limits in found)
        share_axis(axes.xaxis, -1.1 * max(widest, 0.05), 1.1 * max(widest, 0.05))
        axes.set_xlabel("percentage points")
        legend(axes)
        return svg()


def _by_role(
    name: str,
    runs: Sequence[tuple[str, Mapping[str, Any]]],
    cells: Sequence[Mapping[str, Mapping[str, Any]]],
    field: str,
    label: str,
) -> str:
    roles = list(dict.fromkeys(role for found in cells for role, cell in found.items() if cell.get(field) is not None))
    if not roles:
        return ""
    with drawing(name, 440, 240) as (figure, svg):
        axes = figure.subplots()
        low = 0.0
        for k, (run, _) in enumerate(runs):
            shift = (k - (len(runs) - 1) / 2) * 0.2
            places = [(roles.index(role) + shift, cell) for role, cell in cells[k].items() if role in roles]
            points(axes, places, field, k % 8, run, line=False)
            low = min([low, *(min(c.get("ci95") or [c[field]]) for _, c in places if c.get(field) is not None)])
        axes.axhline(0, color=MUTED, lw=1)
        axes.set_xticks(range(len(roles)), roles)
        axes.set_xlim(-0.6, len(roles) - 0.4)
        axes.grid(visible=False, axis="x")
        if low < 0:
            edge = max(
                abs(v)
                for found in cells
                for c in found.values()
                if c.get(field) is not None
                for v in (c.get("ci95") or [c[field]])
            )
            share_axis(axes.yaxis, -1.1 * edge, 1.1 * edge)
        else:
            share_axis(axes.yaxis)
        axes.set_ylabel(label)
        if len(runs) > 1:
            legend(axes)
        return svg()


def _role_gaps(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    cells = []
    for _, table in runs:
        tested = table.get("gaps", {}).get("by_role", {})
        cells.append(
            {role: {"gap": gap, "ci95": tested.get(role, {}).get("ci95")} for role, gap in table["by_role_gap"].items()}
        )
    return _by_role("role_gaps", runs, cells, "gap", "Entailment Gap, points")


def _matched(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    return _by_role("matched", runs, [table["matched_audio"] for _, table in runs], "rate", "IAS, %")


def _latency(names: Sequence[str], rows: Sequence[Sequence[Row]]) -> str:
    """Draw the latency of each case on a line of its action; the dots are spread by the order of cases, not by chance."""
    lines: list[tuple[str, int, list[tuple[Row, float]]]] = []
    for action in (*ONSETS, *OFFSETS):
        for k, of_run in enumerate(rows):
            judged = [row for row in of_run if row["outcome"] in ("passed", "failed") and row["scored_as"] == action]
            found = [(row, value) for row in judged if (value := latency_of(row)) is not None]
            if found:
                lines.append((action.value, k, found))
    if not lines:
        return ""
    edge = max(0.5, *(value for _, _, found in lines for _, value in found))
    with drawing("latency", 900, 60 + 46 * len(lines)) as (figure, svg):
        axes = figure.subplots()
        for at, (_, k, found) in enumerate(lines):
            spread = [((37 * n) % 23 / 22 - 0.5) * 0.56 for n in range(len(found))]
            for limit in sorted({limit for row, _ in found if (limit := limit_of(row)) is not None}):
                axes.plot([limit, limit], [at - 0.42, at + 0.42], color=INK, lw=1.6, ls=(0, (3, 2)))
            for outcome, series, marker in (("passed", 2, "o"), ("failed", 1, "x")):
                mine = [
                    (row, value, y) for (row, value), y in zip(found, spread, strict=True) if row["outcome"] == outcome
                ]
                if mine:
                    dots = axes.scatter(
                        [value for _, value, _ in mine],
                        [at + y for *_, y in mine],
                        s=16 if marker == "o" else 18,
                        marker=marker,
                        color=SERIES[series],
                        alpha=0.7,
                        lw=1.2 if marker == "x" else 0,
                    )
                    dots.set_urls([f"#/case/{row['id']}" for row, *_ in mine])
            middle = median(value for _, value in found)
            axes.plot([middle, middle], [at - 0.3, at + 0.3], color=MUTED, lw=2)
            del k
        many = len(names) > 1
        axes.set_yticks(range(len(lines)), [f"{action}\n{names[k]}" if many else action for action, k, _ in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_xlim(min(0.0, *(v for _, _, f in lines for _, v in f)) - 0.02 * edge, 1.03 * edge)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("seconds")
        for series, marker, name in ((2, "o", "passed"), (1, "x", "failed")):
            axes.plot([], [], color=SERIES[series], marker=marker, lw=0, ms=5, label=name)
        axes.plot([], [], color=INK, lw=1.6, ls=(0, (3, 2)), label="limit")
        axes.plot([], [], color=MUTED, lw=2, label="median")
        legend(axes, ncols=4)
        return svg()
