"""Judges and their agreement as text tables. A mean is never printed without its n, the offline proxy never without its mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsbeval.judge.cost import in_words
from dsbeval.stats import SMALL_N

SHOWN = 10
"""So many errors are listed."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table: first column to the left, the others to the right."""
    cells = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        lines.append("  ".join([first, *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]).rstrip())
    return lines


def render(summary: Mapping[str, Any]) -> list[str]:
    """Return the tables of :func:`dsbeval.judge.metrics.summarise`."""
    mark = " [offline: a proxy, not comparable with a language model]" if summary["offline"] else ""
    counts = summary["counts"]
    lines = [
        f"judge {summary['judge']}{mark}",
        f"{counts['cases']} cases: {counts['passed']} passed, {counts['failed']} failed, {counts['error']} error "
        f"({counts['unjudged']} unjudged), {counts['skipped']} skipped, {counts['missing']} missing",
    ]
    lines += [f"  error: {entry['id']}: {entry['message']}" for entry in summary["errors"][:SHOWN]]
    if len(summary["errors"]) > SHOWN:
        lines.append(f"  ... and {len(summary['errors']) - SHOWN} more errors")
    name = "PAS (offline)" if summary["offline"] else "PAS"
    head = ("level", "IAS, % (passed/n)", "IAS reactive", name, "95 %", "n")
    rows = [
        (level, _rate(row["ias"]), _rate(row["ias_reactive"]), *_mean(row["pas"]))
        for level, row in summary["ias_pas"].items()
    ]
    rows.append(("overall", "", "", *_mean(summary["pas"]["overall"])))
    lines += ["", *table(head, rows)]
    for key, title in (("by_role", "role"), ("by_probe", "probe")):
        found = summary["pas"][key]
        if found:
            lines += ["", *table((title, name, "95 %", "n"), [(k, *_mean(v)) for k, v in found.items()])]
    profile = {level: row for level, row in summary["conflict"].items() if row["n"]}
    if profile:
        head = ("conflict, %", "directive wins", "persona wins", "balanced", "incoherent", "n")
        shares = ("directive_wins", "persona_wins", "balanced", "incoherent")
        rows = [(level, *(f"{100 * row[key]:.1f}" for key in shares), str(row["n"])) for level, row in profile.items()]
        lines += ["", *table(head, rows)]
    override = summary["safety_override"]
    if override["n"]:
        passed, n = round(override["mean"] * override["n"]), override["n"]
        share = f"{100 * override['mean']:.1f} %{_interval(override, 100)} (n {n})"
        lines.append(f"SafetyOverride {f'{passed}/{n}' if n < SMALL_N else share}")
    if not summary["offline"] and "asked" in summary:
        lines.append(in_words(summary["asked"]))
    return lines


def _rate(cell: Mapping[str, Any]) -> str:
    if cell["rate"] is None:
        return "-"
    counts = f"{cell['passed']}/{cell['n']}"
    return counts if cell["n"] < SMALL_N else f"{100 * cell['rate']:.1f} ({counts})"


def _mean(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    if cell["mean"] is None:
        return "-", "", "0"
    return f"{cell['mean']:.1f}", _interval(cell).strip(), str(cell["n"])


def _interval(cell: Mapping[str, Any], scale: float = 1) -> str:
    if cell["ci95"] is None or cell["n"] < SMALL_N:  # over a few cases it would look surer than anything is
        return ""
    return f" {scale * cell['ci95'][0]:.1f} to {scale * cell['ci95'][1]:.1f}"


def _figure(value: float | None, percent: bool = False) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if percent else f"{value:.2f}"


def render_agreement(title: str, fields: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the agreement of two sides: a table, and the confusion of each field with labels."""
    if not fields:
        return [f"{title}: nothing that both have labelled"]
    rows = [
        (
            name,
            _figure(row["exact"], percent=True),
            _figure(row["kappa"]),
            _figure(row["rho"]),
            str(row["n"]),
            str(row["only_one"]),
            str(row.get("other_prompt", 0)),
        )
        for name, row in fields.items()
    ]
    head = ("field", "exact, %", "kappa", "rho", "n", "only one", "other prompt")
    lines = [title, *table(head, rows)]
    lines += [f"  published, {name}: {row['published']}" for name, row in fields.items() if row["published"]]
    for name, row in fields.items():
        found = row["confusion"]
        if found and found["labels"]:
            body = [(label, *map(str, counts)) for label, counts in zip(found["labels"], found["table"], strict=True)]
            lines += ["", *table((name, *found["labels"]), body)]
    return lines


def render_self(judge: str, fields: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the agreement of a judge with itself."""
    rows = [
        (
            name,
            _figure(row["exact"], percent=True),
            _figure(row["kappa"]),
            _figure(row.get("mean_difference")),
            str(row["n"]),
        )
        for name, row in fields.items()
    ]
    return [f"{judge} with itself", *table(("field", "exact, %", "kappa", "mean difference", "pairs"), rows)]
