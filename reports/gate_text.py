"""The gate's decision as one table that says why, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dsbeval.gate.decide import Decision
from dsbeval.gate.limits import Check
from dsbeval.judge.tables import table
from reports.comparison import amount, change_cells, flip_lines, header, markdown_table

WORDS = {"pass": "pass", "regression": "REGRESSION", "not enough evidence": "NOT ENOUGH"}
HEAD = ("gate", "", "base", "new", "change", "95 %", "may lose", "could see", "n", "why")


def title(decision: Decision) -> str:
    """Return the decision in one line, which names what it hangs on."""
    named = [check.what for check in decision.checks if check.outcome == decision.outcome]
    because = "" if decision.outcome == "pass" else f": {', '.join(named)}"
    return f"gate: {decision.outcome.upper()}{because} (exit status {decision.status})"


def row(check: Check) -> tuple[str, ...]:
    """Return the cells of a check under :data:`HEAD`."""
    one = check.change
    if one is None:
        return (check.what, WORDS[check.outcome], *[""] * 7, check.why)
    return (
        check.what,
        WORDS[check.outcome],
        *change_cells(one.as_dict()),
        amount(check.drop, one.unit),
        amount(check.detectable, one.unit),
        str(min(one.n_base, one.n_new)),
        check.why,
    )


def render(decision: Decision) -> list[str]:
    """Return the decision as lines of text: the runs, the table, the flips, and the verdict last."""
    lines = header(decision.comparison) if decision.comparison else []
    rows = [row(check) for check in decision.checks]
    plain = not any(check.change for check in decision.checks)
    picked = [(cells[0], cells[1], cells[-1]) for cells in rows] if plain else rows
    lines += ["", *_left_last(table((HEAD[0], HEAD[1], HEAD[-1]) if plain else HEAD, picked), picked)]
    if decision.comparison:
        lines += ["", *flip_lines(decision.comparison)]
    return [*lines, "", title(decision)]


def _left_last(lines: list[str], rows: list[Any]) -> list[str]:
    """Put the last column, which holds words, to the left."""
    words = ["why", *(cells[-1] for cells in rows)]
    width = max(map(len, words))
    start = max(map(len, lines)) - width
    return [f"{line[:start]}{word}".rstrip() for line, word in zip(lines, words, strict=True)]


def markdown(decision: Decision) -> str:
    """Return the decision as Markdown, for a comment on a change."""
    lines = [f"**{title(decision)}**", ""]
    lines += [f"- {line}" for line in (header(decision.comparison) if decision.comparison else [])]
    lines += ["", *markdown_table(HEAD, [row(check) for check in decision.checks])]
    if decision.comparison:
        flips = ["```", *flip_lines(decision.comparison), "```"]
        lines += ["", "<details><summary>Flips</summary>", "", *flips, "", "</details>"]
    return "\n".join(lines) + "\n"


def as_dict(decision: Decision) -> Mapping[str, Any]:
    """Return the decision as ``report/gate.json`` holds it."""
    return {
        "schema": 1,
        "outcome": decision.outcome,
        "status": decision.status,
        "checks": [asdict(check) for check in decision.checks],
        "comparison": dict(decision.comparison),
    }
