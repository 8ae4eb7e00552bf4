"""What an agent declares about itself that a reader of its scores must be told: it took no prompt, it outran its context.

A recording and its row keep the names (``"caveats": [NAME]``, in the row of a dyad ``{SIDE: [NAME]}``), the summary how
many rows of each agent have them, the terminal a sentence each. Where there are none there is no such field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dsbeval.audio import RATE

SENTENCES = {
    "prompt_not_taken": "takes no system prompt: a persona-blind control, whose levels differ by chance alone",
    "past_context": "was played for longer than it can look back on",
}

Row = Mapping[str, Any]
Tally = dict[str, dict[str, dict[str, int]]]


def caveats(facts: Mapping[str, Any], length: int) -> list[str]:
    """Return the caveats of a session of ``length`` samples; ``facts`` has ``prompt_taken`` and ``capabilities``."""
    context_s = facts.get("capabilities", {}).get("context_s")
    found = {
        "prompt_not_taken": facts.get("prompt_taken") is False,  # None: not known, of a recording from elsewhere
        "past_context": context_s is not None and length > context_s * RATE,
    }
    return [name for name, holds in found.items() if holds]


def tally(rows: Iterable[Row], agent: str) -> Tally:
    """Return ``{agent: {caveat: {"n", "of"}}}`` over rows with a verdict; agents without any are left out."""
    seen: Counter[str] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for name, marks in _by_agent(row, agent):
            seen[name] += 1
            found.update((name, mark) for mark in marks)
    out: Tally = {}
    for (name, mark), n in sorted(found.items()):
        out.setdefault(name, {})[mark] = {"n": n, "of": seen[name]}
    return out


def lines(tallied: Tally) -> list[str]:
    """Return a sentence for each caveat of each agent, with its counts."""
    return [
        f"agent {agent} {SENTENCES.get(mark, mark)} ({cell['n']} of {cell['of']})"
        for agent, marks in tallied.items()
        for mark, cell in marks.items()
    ]


def _by_agent(row: Row, agent: str) -> Iterator[tuple[str, list[str]]]:
    """Yield who took part in a row, with its caveats; an agent that played both sides once, with those of either."""
    marks = row.get("caveats", [])
    if row["item"] != "dyad":
        yield agent, marks
        return
    both: dict[str, list[str]] = {}
    for side in ("a", "b"):
        own = both.setdefault(str(row[f"model_{side}"]), [])
        own += [mark for mark in dict(marks).get(side, []) if mark not in own]
    yield from both.items()
