"""Runs built by hand: rows of the pack's own cases, whose outcome a test decides, and a fingerprint like a run's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dsbeval.compare.side import Side, slim
from dsbeval.ifeval.pack import Case, load_pack
from dsbeval.results import RunFolder
from tests.dyadic.dyads import dyad

Row = dict[str, Any]

FINGERPRINT: dict[str, Any] = {
    "agent": "mine",
    "agent_args": {},
    "checkpoint": {"name": "step-1000", "sha256": "a" * 64},
    "pack": "b" * 64,
    "seed": 0,
    "device": "cpu",
    "judge": {"name": "none", "id": "none", "server": None, "prompts": "1"},
    "pas_pass": 50,
    "audio_format": "wav",
    "latency": "none",
    "acoustics": "clean: the recording as it is",
    "vad": {"model": "c" * 64, "merge_s": 0.3},
    "thresholds": {"LISTEN": {}, "YIELD": {"max_latency_ms": 600.0}},
    "protocol": {"frame_synchronous": {"between_s": 3.0}},
    "versions": {"dsbeval": "0.1.0", "resampler": "soxr-HQ"},
    "selection": {"levels": [], "limit": None},
}


def cases(*, levels: Iterable[str] = (), **select: Any) -> list[Case]:
    return load_pack().select(levels=levels, **select)


def floor(case: Case, passed: bool, **fields: Any) -> Row:
    return {
        "id": case.id, "item": "floor", "outcome": "passed" if passed else "failed", "role": case.role, "probe": case.probe,
        "level": case.level, "instance": case.instance, "action": case.action.value, "scored_as": case.scored_as.value,
        "matched": case.matched, "passed": passed, "exercised": True, "margin": 0.5 if passed else -0.5, "margin_unit": "s",
        "borderline": False, "message": "", "label": "silent", **fields,
    }  # fmt: skip


def persona(case: Case, pas: int, category: str = "n/a", **fields: Any) -> Row:
    return {
        "id": case.id, "item": "persona", "outcome": "passed" if pas >= 50 else "failed", "role": case.role,
        "probe": case.probe, "level": case.level, "instance": case.instance, "action": case.action.value, "judge": "x:y",
        "matched": case.matched, "passed": pas >= 50, "pas": pas, "l4_category": category, "message": "", **fields,
    }  # fmt: skip


def attack(number: int, score: float, **fields: Any) -> Row:
    """Return a conversation in which the model under test sits at b and holds the secret."""
    seat = {"self_play": False, "seats": "ba", "judge": "x:y", "id": f"DYA-T4-2-{number:02}-ba-oA-r1@echo"}
    return {**dyad("T4-2", ("echo", "mine"), {"a": score}, scenario=number), **seat, **fields}


def error(row: Row) -> Row:
    kept = ("id", "item", "role", "probe", "level", "instance", "action", "matched")
    return {key: row[key] for key in kept} | {"outcome": "error", "message": "the device was lost"}


def side(rows: Iterable[Row], label: str = "run", **fingerprint: Any) -> Side:
    rows = list(rows)
    names = tuple(dict.fromkeys(str(row["id"]) for row in rows))
    return Side(label, FINGERPRINT | fingerprint, names, slim(rows))


def folder(root: Path, rows: Iterable[Row], names: Iterable[str] | None = None, **fingerprint: Any) -> RunFolder:
    rows = list(rows)
    wanted = dict.fromkeys(str(row["id"]) for row in rows) if names is None else names
    found = RunFolder.create(root, FINGERPRINT | fingerprint, wanted)
    for row in rows:
        found.append(row)
    return found


def passing(chosen: Iterable[Case], fails: Callable[[Case], bool] = lambda case: False) -> list[Row]:
    return [floor(case, not fails(case)) for case in chosen]
