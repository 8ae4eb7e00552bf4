"""From a recording to a result row, and from a run folder to new rows: the verdict part of a run, without a model.

A row of the floor item::

    {"id", "item": "floor", "outcome": passed|failed|error|skipped, "role", "probe", "level", "instance", "action",
    "scored_as",
     "matched", "seed", "verifier", "passed", "exercised", "margin", "margin_unit", "borderline", "label",
     "thresholds", "message", "measurements"}; "restarts" where the case was begun again

An error or skipped row has the identifying fields, the outcome and the message only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsbeval.attempts import restarts_of
from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import Case
from dsbeval.ifeval.scene import Measurements, measure_recording
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.trials import split_trial
from dsbeval.ifeval.verifiers import Thresholds, Verdict, verify
from dsbeval.recording import Recording, read_recording
from dsbeval.results import Row, RunFolder

ITEM = "floor"
PREFIX = "IFD-"
"""How the ids of this benchmark begin; a run folder may hold those of another beside them."""
Overrides = Mapping[Action, Thresholds]


def identity(case: Case) -> Row:
    """Return the fields of a row that name its case."""
    return {
        "id": case.id,
        "item": ITEM,
        "role": case.role,
        "probe": case.probe,
        "level": case.level,
        "instance": case.instance,
        "action": case.action.value,
        "scored_as": case.scored_as.value,
        "matched": case.matched,
    }


def judge_measurements(meta: Mapping[str, Any], m: Measurements, overrides: Overrides | None = None) -> Verdict:
    """Judge the measurements of a recording by the action and thresholds that it was recorded for."""
    return verify(Action(meta["scored_as"]), m, meta["thresholds"], overrides)


def enacted(meta: Mapping[str, Any], m: Measurements, overrides: Overrides | None = None) -> bool:
    """Return whether the floor behaviour of an L4a case was the action that its contradiction asks for.

    By the default thresholds of that action: the cell's own belong to its base action.
    """
    return verify(Action(meta["resolved_action"]), m, {}, overrides).passed


def score_recording(recording: Recording, overrides: Overrides | None = None) -> tuple[Verdict, Row]:
    """Measure and judge a recording; return the verdict and its result row."""
    return score_measured(recording, measure_recording(recording), overrides)


def score_measured(
    recording: Recording, measurements: Measurements, overrides: Overrides | None = None
) -> tuple[Verdict, Row]:
    """Judge the measurements of a recording; return the verdict and its result row."""
    meta = recording.meta
    verdict = judge_measurements(meta, measurements, overrides)
    row: Row = {
        "id": meta["test_case_id"],
        "item": ITEM,
        "role": meta["role"],
        "probe": meta["probe"],
        "level": meta["level"],
        "instance": meta["instance"],
        "action": meta["expected_action"],
        "scored_as": meta["scored_as"],
        "matched": str(meta["audio_key"]).startswith("IFD-M-"),
        "seed": meta["seed"],
        "outcome": "passed" if verdict.passed else "failed",
        **({"enacted": enacted(meta, measurements, overrides)} if meta.get("resolved_action") else {}),
        **({"realtime": meta["realtime"]} if "realtime" in meta else {}),
        **({"caveats": meta["caveats"]} if meta.get("caveats") else {}),
        **restarts_of(meta),
        **verdict.as_dict(),
        "measurements": measurements.as_dict(),
    }
    return verdict, row


def unscored(case: Case, outcome: str, message: str) -> Row:
    """Return the row of a case that has no verdict."""
    return {**identity(case), "outcome": outcome, "message": message}


def case_ids(folder: RunFolder) -> list[str]:
    """Return the ids of the cases of this benchmark that were to be run."""
    return [case for case in folder.cases() if case.startswith(PREFIX)]


def score_run(folder: RunFolder, overrides: Overrides | None = None) -> list[Row]:
    """Derive the rows of a run again from its recordings alone.

    A recording that cannot be read is an error row, never a failure. Errors and skips of the run that left no
    recording are kept.
    """
    kept = {
        str(row["id"]): row for row in folder.rows() if row["item"] == ITEM and row["outcome"] in ("error", "skipped")
    }
    out: list[Row] = []
    for case in case_ids(folder):
        path = folder.recordings / f"{case}.rec.json"
        if not path.exists():
            if case in kept:
                out.append(kept[case])
            continue
        out.append(_scored(folder.recordings, case, overrides))
    return out


def _scored(recordings: Path, case: str, overrides: Overrides | None) -> Row:
    try:
        return score_recording(read_recording(recordings, case), overrides)[1]
    except (DsbevalError, KeyError, ValueError) as error:
        role, probe, instance, level = case.removeprefix(PREFIX).split("-")
        message = str(error) if isinstance(error, DsbevalError) else f"{case}.rec.json: {type(error).__name__} {error}"
        return {
            "id": case,
            "item": ITEM,
            "role": role,
            "probe": probe,
            "level": split_trial(level)[0],
            "instance": int(instance[1:]),
            "outcome": "error",
            "message": message,
        }
