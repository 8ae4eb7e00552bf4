"""The tables of a summary as text. A rate is never printed without its n, and from ten outcomes on not without its interval."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from dsbeval.caveats import lines as caveat_lines
from dsbeval.ifeval.pack import LEVELS
from dsbeval.judge.tables import render as render_judge
from dsbeval.stats import SMALL_N
from reports.dyad_tables import render as render_dyads
from reports.trials import trial_lines
from reports.usage_lines import service_lines

SUBSET_NAMES = {"all": "all cells", "reactive": "reactive (published headline)", "exercised": "exercised"}
EFFECT_NAMES = {
    "entailment_gap": "Entailment Gap (L1 - L2)",
    "redundancy_gain": "Redundancy Gain (L3 - L2)",
    "role_tax": "Role Tax (L3 - L1)",
}


def percent(cell: Mapping[str, Any]) -> str:
    """Return a rate with its counts and interval; of fewer than ten outcomes the counts alone; a dash for none."""
    if cell["rate"] is None:
        return "-"
    if cell["n"] < SMALL_N:
        return f"{cell['passed']}/{cell['n']}"
    return f"{100 * cell['rate']:.1f} ({cell['passed']}/{cell['n']}){interval(cell.get('ci95'))}"


def interval(limits: Sequence[float] | None, sign: str = "") -> str:
    """Return the limits of an interval in percent, behind what they are of; nothing where there are none."""
    return "" if limits is None else f" [{100 * limits[0]:{sign}.1f}, {100 * limits[1]:{sign}.1f}]"


def chance(p: float | None) -> str:
    """Return a p-value; a dash where nothing was tested."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def points(value: float | None) -> str:
    """Return a difference of rates in percentage points."""
    return "-" if value is None else f"{100 * value:+.1f}"


def realtime_line(facts: Mapping[str, Any]) -> str:
    """Return one line about the agent and real time."""
    if facts["latency"] == "wall":
        return (
            f"wall clock over {facts['n']} cases: frames sent late by p99 {facts['jitter_ms_p99_max']:.1f} ms at worst, "
            f"{facts['jitter_ms_max']:.1f} ms at most"
        )
    held = (
        "holds real time"
        if not facts["behind"]
        else f"CANNOT HOLD REAL TIME in {facts['behind']} of {facts['n']} cases"
    )
    return (
        f"measured latency over {facts['n']} cases: real-time factor {facts['rtf_mean']:.3f} (mean), p95 of a frame "
        f"{facts['rtf_p95_max']:.3f} at worst, largest lag {facts['max_lag_s']:.3f} s: {held}"
    )


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=None, pad_edge=False, header_style="")
    for index, column in enumerate(columns):
        # A cell that is too wide wraps: cut off, it would lose its n.
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=index == 0, overflow="fold")
    return table


def tables(summary: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a summary."""
    data = summary["ifeval"]
    levels = [level for level in (*LEVELS, "overall") if data["ias"]["all"][level]["n"]]
    out: list[Table] = []

    table = _table("IAS, % (passed/n) [95 %]", "level", *SUBSET_NAMES.values())
    for level in levels:
        table.add_row(level, *(percent(data["ias"][name][level]) for name in SUBSET_NAMES))
    out.append(table)

    table = _table("Effects, percentage points", "effect", "cells", "points", "95 %", "n", "pairs", "p")
    for effect, title in EFFECT_NAMES.items():
        known = [name for name in SUBSET_NAMES if data["effects"][name][effect] is not None]
        for name in known:
            values = data["effects"][name]
            cell = {key: values[key][effect] for key in ("n", "ci95", "pairs", "gained", "lost", "p")}
            table.add_row(title if name == known[0] else "", name, *_gap(cell, values[effect]))
    out.append(table)

    table = _table("IAS by action, % (passed/n) [95 %]", "action", "rate")
    for action, cell in data["by_action"].items():
        table.add_row(action, percent(cell))
    out.append(table)

    table = _table("By role [95 %]", "role", "IAS, %", "matched audio, %")
    for role, cell in data["by_role"].items():
        matched = data["matched_audio"].get(role)
        table.add_row(role, percent(cell), percent(matched) if matched else "-")
    out.append(table)

    table = _table("Entailment Gap by role, percentage points (p by Holm)", "role", "points", "95 %", "n", "pairs", "p")
    for role, cell in data["gaps"]["by_role"].items():
        if cell["gap"] is not None:
            table.add_row(role, *_gap(cell | {"p": cell["p_holm"]}, cell["gap"]))
    out.append(table)
    return [table for table in out if table.row_count]


def _gap(cell: Mapping[str, Any], gap: float) -> tuple[str, ...]:
    """Return points, interval, n of both sides, pairs and p; of fewer than ten cases the net number of pairs that gained."""
    small = min(cell["n"]) < SMALL_N
    limits = "-" if small else interval(cell["ci95"], "+").strip(" []") or "-"
    shown = f"{cell['gained'] - cell['lost']:+d}/{cell['pairs']}" if small else points(gap)
    return shown, limits, f"{cell['n'][0]}, {cell['n'][1]}", str(cell["pairs"]), chance(cell["p"])


def sections(summary: Mapping[str, Any], width: int = 100) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each benchmark that the run has cases of."""
    if "ifeval" in summary:
        yield "DSB-IFEval", _ifeval(summary, width)
    if "dyadic" in summary:
        yield "DyaFDB", render_dyads(summary["dyadic"], summary["fingerprint"]["agent"])
    if services := service_lines(summary):
        yield "Services", services


def render(summary: Mapping[str, Any], width: int = 100) -> list[str]:
    """Return the tables of a summary as lines of text."""
    out: list[str] = []
    for _, lines in sections(summary, width):
        out += [*([""] if out else []), *lines]
    return out


def _ifeval(summary: Mapping[str, Any], width: int) -> list[str]:
    """Return the tables of DSB-IFEval, with what is missing named first."""
    console = Console(file=io.StringIO(), width=max(width, 140), color_system=None, legacy_windows=False)
    counts = summary["counts"]
    console.print(
        f"agent {summary['fingerprint']['agent']}: {counts['cases']} cases: {counts['passed']} passed, "
        f"{counts['failed']} failed, {counts['error']} error, {counts['skipped']} skipped, {counts['missing']} missing",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    for kind in ("errors", "skipped"):
        for entry in summary[kind][:10]:
            console.print(
                f"  {kind.removesuffix('s')}: {entry['id']}: {entry['message']}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )
        if len(summary[kind]) > 10:
            console.print(f"  ... and {len(summary[kind]) - 10} more {kind}")
    if summary["missing"]:
        console.print(
            f"  missing: {', '.join(summary['missing'][:5])}{' ...' if len(summary['missing']) > 5 else ''}",
            soft_wrap=True,
        )
    for line in caveat_lines(summary.get("caveats", {})):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    for table in tables(summary):
        console.print(f"\n{table.title}", highlight=False)
        table.title = None  # rich would wrap it to the width of the columns
        console.print(table, highlight=False)
    if summary["ifeval"]["enacted"]["n"]:
        console.print(
            f"\nL4a: the contradiction was enacted on the floor in {percent(summary['ifeval']['enacted'])} of cases, %",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    for line in trial_lines(summary["ifeval"]["trials"]) if "trials" in summary["ifeval"] else ():
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    if "realtime" in summary:
        console.print(f"\n{realtime_line(summary['realtime'])}", highlight=False, soft_wrap=True)
    data = summary["ifeval"]
    console.print(
        f"\n{data['not_exercised']} cases were not exercised; {data['borderline']} margins lie inside the VAD's error."
        if counts["passed"] + counts["failed"]
        else "\nno case has a verdict, so there are no rates",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    for judge in summary.get("judges", {}).values():
        lines += ["", *render_judge(judge)]
    return lines
