"""What a run has used of services, in one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsbeval.judge.cost import dollars, short
from dsbeval.usage import COST, UNCOUNTED

_TOKENS = {
    "audio_in": "audio in",
    "audio_cached": "audio in, cached",
    "text_in": "text in",
    "text_cached": "text in, cached",
    "audio_out": "audio out",
    "text_out": "text out",
}


def service_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return what a run has used of services, and how often a case was begun again because a session was lost."""
    lines = [usage_line(entry) for entry in summary.get("usage", ())]
    if (again := summary.get("restarts")) is not None:
        lines.append(
            f"begun again because a session was lost: {again['cases']} cases, {again['restarts']} times; "
            "restarts in their rec.json says why"
        )
    return lines


def usage_line(entry: Mapping[str, Any]) -> str:
    """Return an entry of ``summary["usage"]`` as a line: what it was, how often, what it took, what it cost."""
    counts = entry["counts"]
    words = [f"{name} {entry[name]}" for name in sorted(set(entry) - {"agent", "counts", COST})]
    parts = [f"{_whole(counts.get('sessions', 0))} sessions"]
    if counts.get("lost"):
        parts.append(f"{_whole(counts['lost'])} lost")
    if "responses" in counts:
        parts.append(f"{_whole(counts['responses'])} responses")
    tokens = [f"{short(int(counts[kind]))} {name}" for kind, name in _TOKENS.items() if counts.get(kind)]
    if tokens:
        parts.append(f"tokens: {', '.join(tokens)}")
    if "billed_s" in counts:
        parts.append(f"{counts['billed_s'] / 60:.1f} min billed")
    if counts.get(UNCOUNTED):
        parts.append(f"{_whole(counts[UNCOUNTED])} responses without their tokens, so no cost can be given")
    elif entry[COST] is not None:
        parts.append(dollars(entry[COST]))
    else:
        parts.append("no price given")
    return f"{entry['agent']} ({', '.join(words)}): {'; '.join(parts)}"


def _whole(count: float) -> str:
    return str(int(count))
