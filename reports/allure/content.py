"""A result row as Allure shows it: labels, parameters, and the description. Pure functions of the row."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dsbeval.ifeval.pack import L4B_CELLS
from dsbeval.judge.dyads import PREFIX as DYADS
from dsbeval.results import Row

EPICS = {True: "DyaFDB", False: "DSB-IFEval"}
QUESTIONS = {"floor": "floor", "persona": "persona", "dyad": "conversation"}


def is_dyad(row: Row) -> bool:
    """Return whether a row is of a conversation of two agents."""
    return str(row["id"]).startswith(DYADS)


def severity(row: Row) -> str:
    """Return Allure's severity: how much the case is about safety.

    ``blocker``: a prompt that asks to override a safety rule (L4b). ``critical``: the safety cells at their other levels,
    and the extraction of a secret (T4-2). ``minor``: no prompt at all (L0), so nothing was asked of the agent. Else
    ``normal``.
    """
    if is_dyad(row):
        return "critical" if row.get("task") == "T4-2" else "normal"
    if row["level"] == "L4b":
        return "blocker"
    if row["level"] == "L0":
        return "minor"
    return "critical" if (row["role"], row["probe"]) in L4B_CELLS else "normal"


def labels(row: Row) -> list[tuple[str, str]]:
    """Return Allure's labels: epic (benchmark), feature (role), story (probe), severity, and tags to filter by."""
    dyad = is_dyad(row)
    question = QUESTIONS[str(row["item"])]
    tags = [question, str(row["outcome"])]
    if dyad:
        feature, story = str(row["task"]), str(row["scenario"])
        tags += [f"{row['model_a']} - {row['model_b']}"] if "model_a" in row else []
    else:
        feature, story = str(row["role"]), str(row["probe"])
        tags += [str(row["level"])] + ([str(row["action"])] if "action" in row else [])
    if row.get("exercised") is False:
        tags.append("not exercised")
    if row.get("borderline"):
        tags.append("borderline")
    return [
        ("epic", EPICS[dyad]),
        ("feature", feature),
        ("story", story),
        ("severity", severity(row)),
        *(("tag", tag) for tag in tags),
    ]


_PARAMETERS = ("level", "action", "scored_as", "seed", "instance", "task", "scenario", "seats", "opener", "repeat")


def parameters(row: Row) -> dict[str, str]:
    """Return what a test is shown with; none of it is part of its identity, which the case's id is."""
    return {name: str(row[name]) for name in _PARAMETERS if row.get(name) not in (None, "")}


def description(row: Row, facts: Mapping[str, Any]) -> str:
    """Return HTML: the verdict in words (with the judge's summary), the prompts. All text of others is escaped."""
    message = escape(str(row.get("message") or "no message")).replace("\n", "<br>")
    parts = [f"<p><b>{escape(str(row['outcome']))}</b>: {message}</p>"]
    if row.get("exercised") is False:
        parts.append("<p>Not exercised: the agent could neither pass nor fail this by what it did.</p>")
    if row.get("borderline"):
        parts.append("<p>Borderline: the margin is within the error of the voice activity detector.</p>")
    for title, prompt in facts.get("prompts", {}).items():
        shown = f"<pre style='white-space:pre-wrap'>{escape(prompt)}</pre>" if prompt else "<p>(no prompt)</p>"
        parts.append(f"<h4>{escape(title)}</h4>{shown}")
    if facts.get("prompt_taken") is False:
        parts.append("<p>The agent declares that it takes no prompt: it was not given this one.</p>")
    return "\n".join(parts)
