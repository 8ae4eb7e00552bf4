"""What a run has used of services: written down after every attempt at a case, and added up from the run folder.

Everything counts that was used: cases that ended in an error, and attempts that were begun again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from dsbeval.agent import Agent

FOLDER = "usage"
COST = "cost_usd"
UNCOUNTED = "responses_uncounted"
"""Responses whose tokens the service did not state, or not in full: no cost can be given."""

_noted: WeakKeyDictionary[Agent, dict[str, float]] = WeakKeyDictionary()


def note(run: Path, agents: Iterable[Agent]) -> None:
    """Write down what these agents have used since the last time, each once, into this process's own file."""
    for agent in {id(agent): agent for agent in agents}.values():
        used = agent.usage()
        if used is None:
            continue
        before = _noted.get(agent, {})
        grown = {key: round(value - before.get(key, 0), 9) for key, value in used.counts.items()}
        if not any(grown.values()):
            continue
        _noted[agent] = dict(used.counts)
        row = {"agent": agent.name, **used.of, "counts": grown}
        (run / FOLDER).mkdir(exist_ok=True)
        with (run / FOLDER / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")


def totals(run: Path) -> list[dict[str, Any]]:
    """Return what was used, one entry for each thing that was: its words, ``counts`` and ``cost_usd``.

    The cost is None where no price was given, and where a service did not say what a response took: a sum of some is not the
    sum. A torn line is left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((run / FOLDER).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # the process died while it wrote
            counts = row.pop("counts")
            entry = found.setdefault(json.dumps(row, sort_keys=True), {**row, "counts": {}})
            for key, value in counts.items():
                entry["counts"][key] = entry["counts"].get(key, 0) + value
    for entry in found.values():
        cost = entry["counts"].pop(COST, None)
        entry[COST] = None if cost is None or entry["counts"].get(UNCOUNTED) else round(cost, 6)
    return [found[key] for key in sorted(found)]
