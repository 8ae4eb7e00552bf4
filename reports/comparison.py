"""A comparison of two runs as text for a terminal and as Markdown for a comment on a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsbeval.compare.compare import by_action
from dsbeval.judge.tables import table
from dsbeval.stats import SMALL_N
from reports.tables import chance

FLIPS_SHOWN = 10
FAMILIES = {
    "headline": "IAS",
    "level": "By level",
    "effect": "Effects",
    "action": "By action",
    "role": "By role",
    "probe": "By probe",
    "conduct": "Conduct",
    "persona": "Persona",
    "safety": "Safety",
    "dyad": "DyaFDB scores",
    "turns": "Turn-taking",
    "margin": "Margins (mean)",
}
SUMMARY = ("headline", "level", "effect", "action", "role", "persona", "safety", "dyad", "turns")
"""Families that are shown whole; of the others only what has changed."""
HEAD = ("", "base", "new", "change", "95 %", "n", "p", "")


def amount(value: float | None, unit: str, sign: str = "") -> str:
    """Return a value of a metric as tables print it: shares in percent, changes of them in points."""
    if value is None:
        return "-"
    return f"{100 * value:{sign}.1f}" if unit == "points" else f"{value:{sign}.2f}"


def change_cells(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return base, new, change and interval of a metric; of a share of fewer than ten outcomes the counts."""
    unit, sizes, limits = entry["unit"], (entry["n_base"], entry["n_new"]), entry["ci95"]
    values = (entry["base"], entry["new"])
    if min(sizes) >= SMALL_N or unit != "points" or None in values or entry["family"] == "effect":
        small = min(sizes) < SMALL_N
        shown = "-" if limits is None or small else ", ".join(amount(limit, unit, "+") for limit in limits)
        return amount(values[0], unit), amount(values[1], unit), amount(entry["delta"], unit, "+"), shown
    passed = [round(value * n, 2) for value, n in zip(values, sizes, strict=True)]
    change = f"{passed[1] - passed[0]:+g}" if sizes[0] == sizes[1] else "-"
    return f"{passed[0]:g}/{sizes[0]}", f"{passed[1]:g}/{sizes[1]}", change, "-"


def metric_row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a metric under :data:`HEAD`."""
    return (
        entry["title"],
        *change_cells(entry),
        str(entry["n_base"]) if entry["n_base"] == entry["n_new"] else f"{entry['n_base']}, {entry['n_new']}",
        chance(entry["p_holm"]),
        entry["verdict"],
    )


def chosen(found: Mapping[str, Any]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yield the title and the metrics of each family that is shown."""
    for family, title in FAMILIES.items():
        members = [entry for entry in found["metrics"] if entry["family"] == family and entry["delta"] is not None]
        if family not in SUMMARY:
            members = [entry for entry in members if entry["verdict"] != "no evidence"]
        if members:
            yield title, members


def header(found: Mapping[str, Any]) -> list[str]:
    """Return who is compared with whom, over how many pairs, and in what they differ."""
    pairs = found["pairs"]
    lines = [
        f"base {found['base']['agent']} ({found['base']['label']})",
        f"new  {found['new']['agent']} ({found['new']['label']})",
        f"{pairs['both']} pairs; {pairs['base_only']} more in the base only, {pairs['new_only']} in the new run only",
    ]
    lines += [f"UNLIKE {line}" for line in found["unlike"]]
    return lines + [f"differs in {line}" for line in found["differs"]]


def flip_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the cases that flipped, both ways: how many of which action, and the first of them."""
    lines = []
    for way, words in (("to_fail", "passed before, fail now"), ("to_pass", "failed before, pass now")):
        flips = found["flips"][way]
        counts = ", ".join(f"{action} {count}" for action, count in by_action(flips).items())
        lines.append(f"{len(flips)} {words}{': ' if counts else ''}{counts}")
        lines += [f"  {entry['id']} {entry['item']}{_margins(entry)}" for entry in flips[:FLIPS_SHOWN]]
        if len(flips) > FLIPS_SHOWN:
            lines.append(f"  ... and {len(flips) - FLIPS_SHOWN} more")
    return lines


def _margins(entry: Mapping[str, Any]) -> str:
    values = [entry.get("margin_base"), entry.get("margin_new")]
    if values == [None, None]:
        return ""
    unit = " s" if entry.get("unit") == "s" else ""
    one, other = ("none" if value is None else f"{value:+.3f}" for value in values)
    return f" (margin {one}, now {other}{unit})"


def margin_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the margins that have moved furthest."""
    entries = found["margins_moved"]
    if not entries:
        return []
    lines = [f"{len(entries)} margins moved by more than the error of a detected edge; the furthest:"]
    return lines + [
        f"  {e['id']} {e['action']}: {e['base']:+.3f} s, now {e['new']:+.3f} s ({e['delta']:+.3f})"
        for e in entries[:FLIPS_SHOWN]
    ]


def render(found: Mapping[str, Any]) -> list[str]:
    """Return a comparison as lines of text."""
    lines = header(found)
    for title, members in chosen(found):
        lines += ["", *table((title, *HEAD[1:]), [metric_row(entry) for entry in members])]
    lines += ["", *flip_lines(found), *margin_lines(found)]
    return [*lines, "", verdict_line(found)]


def verdict_line(found: Mapping[str, Any]) -> str:
    """Return in one line what has got better, worse or otherwise changed."""
    if not found["pairs"]["both"]:
        return "nothing to compare: no item has a verdict in both runs"
    parts = []
    for verdict in ("worse", "better", "changed"):
        names = [entry["name"] for entry in found["metrics"] if entry["verdict"] == verdict]
        if names:
            parts.append(f"{verdict}: {', '.join(names)}")
    return (
        "; ".join(parts) or f"no evidence of a change in any metric (alpha {found['alpha']:g}, Holm within each family)"
    )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table; the first column to the left, the others to the right."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def markdown(found: Mapping[str, Any]) -> str:
    """Return a comparison as Markdown: the verdict, the headline tables, the rest folded."""
    lines = [f"**{verdict_line(found)}**", ""]
    lines += [f"- {line}" for line in header(found)]
    for number, (title, members) in enumerate(chosen(found)):
        rows = [metric_row(entry) for entry in members]
        body = markdown_table((title, *HEAD[1:-1], "verdict"), rows)
        lines += ["", *(body if number == 0 else _folded(title, body))]
    lines += ["", *_folded("Flips", ["```", *flip_lines(found), *margin_lines(found), "```"])]
    return "\n".join(lines) + "\n"


def _folded(title: str, body: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *body, "", "</details>"]
