"""The conversations of DyaFDB as the report shows them: a line in the list, and all that a conversation's page needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsbeval.audio import RATE
from dsbeval.dyadic.rows import SIDES
from dsbeval.dyadic.textrun import KIND
from dsbeval.dyadic.verdict import ITEM
from dsbeval.judge.dyads import conversation_ids
from dsbeval.results import Row, RunFolder
from reports.html.cases import reply_of, traceback_of
from reports.html.recorded import Recorded

COLUMNS = (
    "id",
    "task",
    "scenario",
    "seats",
    "opener",
    "repeat",
    "self_play",
    "model_a",
    "model_b",
    "role_a",
    "role_b",
    "window_s",
    "outcome",
    "exercised",
    "message",
    "judge",
    "score_a",
    "score_b",
    "shard",
)
"""What the list of conversations knows of each."""
_ID = re.compile(
    r"DYA-(?P<scenario>(?P<task>T\d(?:-\d)?)-\d+)-(?P<seats>ab|ba)-o(?P<opener>[AB])-r(?P<repeat>\d+)(?:@(?P<partner>.+))?"
)
MOMENTS = {"entry_s": "in role", "deviation_s": "off role", "leak_s": "secret out"}
"""What of a side's scores is a moment of the conversation."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a run says of its conversations."""

    folder: RunFolder
    ids: tuple[str, ...]
    rows: Mapping[str, Row]
    judgements: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: RunFolder, rows: Iterable[Row], judgements: Mapping[str, tuple[Row, ...]]) -> Results:
        """Return the results of the conversations of a run."""
        return cls(
            folder,
            tuple(conversation_ids(folder)),
            {str(row["id"]): row for row in rows if row["item"] == ITEM},
            judgements,
        )


def line(results: Results, name: str, shard: int) -> list[Any]:
    """Return the list's values of a conversation, in the order of :data:`COLUMNS`."""
    row = results.rows.get(name) or {
        **_named(name),
        "outcome": "missing",
        "message": "no result: the run was cut before this conversation",
    }
    scores = row.get("scores", {})
    known = {
        **row,
        "id": name,
        **{f"score_{side}": scores.get(side, {}).get("score") for side in SIDES},
        "shard": shard,
    }
    return [known.get(column) for column in COLUMNS]


def _named(name: str) -> Row:
    """Return what the id of a conversation says of it."""
    found = _ID.fullmatch(name)
    if found is None:
        return {}
    return {
        "task": found["task"],
        "scenario": found["scenario"],
        "seats": found["seats"],
        "opener": found["opener"].lower(),
        "repeat": int(found["repeat"]),
    }


def detail(results: Results, name: str, recorded: Recorded | None) -> dict[str, Any]:
    """Return what the page of a conversation shows; ``recorded`` is None where there is no recording."""
    row = results.rows.get(name)
    out: dict[str, Any] = {
        "row": {key: value for key, value in row.items() if key != "speech"} if row else None,
        "judgements": [reply_of(found) for found in results.judgements.get(name, ())],
        "traceback": traceback_of(results.folder.root, name),
    }
    if recorded is None:
        return out
    meta = recorded.meta
    if meta.get("kind") == KIND:
        return out | _heads(meta) | {"talk": [[turn["side"], turn["text"], turn["cut"]] for turn in meta["turns"]]}
    speech = (row or {}).get("speech", {})
    return out | {
        **recorded.shown(SIDES),
        **_heads(meta),
        "said": {side: [[token["t"], token["text"]] for token in meta["tokens"][side]] for side in SIDES},
        "speech": {
            side: [[round(start / RATE, 3), round(end / RATE, 3)] for start, end in speech.get(side, ())]
            for side in SIDES
        },
        "lead_in": meta["lead_in_s"],
        "measured": _moments(row),
        "events": [
            [event["t"], f"{event['event']} {event['side']}" if "side" in event else event["event"]]
            for event in meta["events"]
        ],
    }


def _heads(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "channels": list(SIDES),
        "titles": [f"{side} · {meta['models'][side]} · {meta['roles'][side]}" for side in SIDES],
        "setting": meta["setting"],
        "prompts": meta["prompts"],
    }


def _moments(row: Row | None) -> list[list[Any]]:
    found = (row or {}).get("scores", {})
    return [
        [scores[key], f"{side}: {name}"]
        for side, scores in found.items()
        for key, name in MOMENTS.items()
        if scores.get(key) is not None
    ]
