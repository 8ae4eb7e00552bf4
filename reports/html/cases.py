"""The cases of DSB-IFEval as the report shows them: a line in the list, and all that a case page needs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsbeval.audio import RATE
from dsbeval.ifeval.score import ITEM as FLOOR
from dsbeval.ifeval.score import case_ids
from dsbeval.judge.cache import Store
from dsbeval.judge.contract import is_offline
from dsbeval.results import Row, RunFolder
from reports.html.recorded import Recorded

PERSONA = "persona"
COLUMNS = (
    "id",
    "role",
    "probe",
    "level",
    "instance",
    "action",
    "scored_as",
    "outcome",
    "exercised",
    "margin",
    "margin_unit",
    "borderline",
    "label",
    "message",
    "pas",
    "persona",
    "audio_key",
    "shard",
)
"""What the list of cases knows of each."""
_ID = re.compile(r"IFD-(?P<role>[^-]+)-(?P<probe>.+)-i(?P<instance>\d+)-(?P<level>L\d[ab]?)(?P<trial>.*)")
TRACEBACK = 12_000
"""So many characters of a traceback are shown, from its end."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a run says of its cases: the floor row and the persona rows of each, and what judges replied."""

    folder: RunFolder
    ids: tuple[str, ...]
    floor: Mapping[str, Row]
    persona: Mapping[str, tuple[Row, ...]]
    judgements: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: RunFolder, rows: Iterable[Row], judgements: Mapping[str, tuple[Row, ...]]) -> Results:
        """Return the results of the cases of a run."""
        floor: dict[str, Row] = {}
        persona: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row["item"] == FLOOR:
                floor[str(row["id"])] = row
            elif row["item"] == PERSONA:
                persona[str(row["id"])].append(row)
        for found in persona.values():
            found.sort(
                key=lambda row: is_offline(str(row["judge"]))
            )  # the list shows the first, and a proxy says least
        ids = tuple(case_ids(folder))
        return cls(folder, ids, floor, {name: tuple(found) for name, found in persona.items()}, judgements)


def replies(folder: RunFolder) -> dict[str, tuple[Row, ...]]:
    """Return the newest reply of each judge to each question, by the case that it is about."""
    out: dict[str, list[Row]] = defaultdict(list)
    for (_, name, _, repeat), row in Store.of_run(folder.root).latest().items():
        if repeat == 0:
            out[name].append(row)
    return {name: tuple(found) for name, found in out.items()}


def line(results: Results, name: str, shard: int, audio_key: str | None) -> list[Any]:
    """Return the list's values of a case, in the order of :data:`COLUMNS`. A case without a row is *missing*."""
    row = results.floor.get(name) or {
        **_named(name),
        "outcome": "missing",
        "message": "no result: the run was cut before this case",
    }
    judged = results.persona.get(name, ())
    known = {
        **row,
        "id": name,
        "pas": next((found["pas"] for found in judged if "pas" in found), None),
        "persona": judged[0]["outcome"] if judged else None,
        "audio_key": audio_key,
        "shard": shard,
    }
    return [known.get(column) for column in COLUMNS]


def _named(name: str) -> Row:
    """Return what the id of a case says of it."""
    found = _ID.fullmatch(name)
    if found is None:
        return {}
    return {
        "role": found["role"],
        "probe": found["probe"],
        "level": found["level"],
        "instance": int(found["instance"]),
    }


def detail(results: Results, name: str, recorded: Recorded | None) -> dict[str, Any]:
    """Return what the page of a case shows; ``recorded`` is None where there is no recording."""
    row = results.floor.get(name)
    out: dict[str, Any] = {
        "row": _without_samples(row) if row else None,
        "persona": [_persona(found) for found in results.persona.get(name, ())],
        "judgements": [reply_of(found) for found in results.judgements.get(name, ())],
        "traceback": traceback_of(results.folder.root, name),
    }
    if recorded is None:
        return out
    meta = recorded.meta
    start = meta["window"]["start_s"]
    return out | {
        **recorded.shown(("user", "agent")),
        "agent": meta["agent"],
        "prompts": {"agent": meta["prompt"]},
        "prompt_taken": meta["prompt_taken"],
        "said": {
            "user": [[s["start_s"], s["end_s"], s["text"]] for s in meta["user"] if s["type"] == "speech"],
            "agent": [[t["t"], t["text"]] for t in meta["tokens"]],
        },
        "parts": [[s["turn"], s["part"], s["start_s"], s["end_s"]] for s in meta["user"]],
        "speech": {
            "user": [[s["start_s"], s["end_s"]] for s in meta["user"] if s["type"] == "speech"],
            "agent": _agent_speech(row, recorded),
        },
        "window": [start, meta["window"]["end_s"]],
        "limit": _limit(row, start),
        "measured": _measured(row, start),
        "events": [[event["t"], event["event"]] for event in meta["events"]],
        "readback_target": meta["readback_target"],
        "l4_expected": meta["l4_expected"],
        "resolved_action": meta["resolved_action"],
    }


def _without_samples(row: Row) -> Row:
    """Return a row without the exact integers: they are for scoring again, and half of its bytes."""
    if "measurements" not in row:
        return row
    return {**row, "measurements": {key: value for key, value in row["measurements"].items() if key != "samples"}}


def _persona(row: Row) -> Row:
    kept = (
        "judge",
        "outcome",
        "message",
        "pas",
        "register_fit",
        "content_fit",
        "l4_category",
        "l4_expected",
        "summary",
    )
    return {key: row[key] for key in kept if key in row}


def reply_of(row: Row) -> Row:
    """Return what a page shows of a judge's reply."""
    kept = ("judge", "item", "model", "outcome", "answer", "problem")
    return {key: row.get(key) for key in kept}


def traceback_of(root: Path, name: str) -> str | None:
    """Return the end of the traceback behind an error row, or None where there is none."""
    try:
        return (root / "errors" / f"{name}.txt").read_text(encoding="utf-8", errors="replace")[-TRACEBACK:]
    except FileNotFoundError:
        return None


def _agent_speech(row: Row | None, recorded: Recorded) -> list[list[float]]:
    """Return the agent's speech spans in seconds: as the row has them, else detected again."""
    exact = (row or {}).get("measurements", {}).get("samples", {})
    spans = exact.get("speech")
    if spans is None:
        spans = [[span.start, span.end] for span in recorded.detected(1)]
    return [[round(start / RATE, 3), round(end / RATE, 3)] for start, end in spans]


def _limit(row: Row | None, start: float) -> float | None:
    """Return where on the time axis the limit of a latency lies, or None where a case has no such limit."""
    thresholds = (row or {}).get("thresholds", {})
    if "max_wait_s" in thresholds:
        return round(start + float(thresholds["max_wait_s"]), 3)
    return round(start + float(thresholds["max_latency_ms"]) / 1000, 3) if "max_latency_ms" in thresholds else None


def _measured(row: Row | None, start: float) -> list[list[Any]]:
    """Return what was measured against a limit of time, as a time and a name; nothing where no time decides."""
    found = (row or {}).get("measurements", {})
    key, name = (
        ("first_offset_s", "offset") if (row or {}).get("verifier") == "yield_latency" else ("genuine_s", "onset")
    )
    if _limit(row, start) is None or found.get(key) is None:
        return []
    return [[round(start + found[key], 3), name]]
