"""A conversation of two text models as a run has it: recorded, and on disk where a spoken one would lie.

Conventions
-----------
* Ids, run matrix and seeds are those of the spoken conversations (:mod:`dsbeval.dyadic.protocol`), so pairings are had and
  scored alike. 240 words stand for the minute, so ``window_s`` is 60.
* ``ID.rec.json`` has ``"kind": "text"``, the turns and by what the conversation ended, beside what is known of any
  conversation. There is no audio.

Source: DyaFDB, analyses (text pairing).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dsbeval.audio import atomic_write
from dsbeval.dyadic.bridge import WINDOW_S
from dsbeval.dyadic.protocol import Run, run_meta
from dsbeval.dyadic.rows import SIDES, Side
from dsbeval.dyadic.scenarios import Suite
from dsbeval.dyadic.textpair import MANNER, TURNS, WORDS, Chat, Talk, Turn, converse
from dsbeval.errors import RunError
from dsbeval.recording import SCHEMA, read_facts

KIND = "text"
_TALK = frozenset({"schema", "kind", "turns", "ended", "words"})

Seeded = Callable[[int], Chat]
"""A text model: from a seed to who answers under it."""


@dataclass(frozen=True, slots=True)
class TalkRecording:
    """A finished conversation in text, and what is known about it as plain data."""

    talk: Talk
    meta: dict[str, Any]


def as_fingerprint() -> dict[str, Any]:
    """Return what conversations in text are had with."""
    return {"medium": KIND, "words": WORDS, "turns": TURNS, "window_s": int(WINDOW_S), "manner": MANNER}


def record_talk(
    run: Run, suite: Suite, model: Seeded, partner: Seeded, *, names: tuple[str, str], seed: int = 0
) -> TalkRecording:
    """Let a pairing of text models talk. ``names`` are what the model and the partner are called in tables.

    Raises :class:`~dsbeval.errors.AgentError`, naming the side, when a model does not answer.
    """
    scenario = suite.scenarios[run.scenario]
    seeds = dict(zip(SIDES, run.seeds(seed), strict=True))
    players: dict[Side, Seeded] = {"a": model, "b": partner} if run.seats == "ab" else {"a": partner, "b": model}
    prompts: dict[Side, str] = {side: suite.prompt(scenario, side, run.opener) for side in SIDES}
    talk = converse({side: players[side](seeds[side]) for side in SIDES}, prompts, run.opener, suite.opener)
    meta = {**run_meta(run, suite, *names, seed=seed, window_s=WINDOW_S), "prompts": prompts, "seeds": seeds}
    return TalkRecording(talk, meta)


def write_talk(folder: Path, name: str, recording: TalkRecording) -> None:
    """Write ``{name}.rec.json``."""
    talk = recording.talk
    data = {
        "schema": SCHEMA,
        "kind": KIND,
        **recording.meta,
        "turns": [asdict(turn) for turn in talk.turns],
        "ended": talk.ended,
        "words": talk.words,
    }
    with atomic_write(folder / f"{name}.rec.json") as file:
        file.write(json.dumps(data, ensure_ascii=False, indent=1).encode() + b"\n")


def read_talk(folder: Path, name: str) -> TalkRecording:
    """Read a conversation back. Raises :class:`RunError` in one line."""
    data = read_facts(folder, name)
    if data.get("kind") != KIND:
        raise RunError(f"{folder / name}.rec.json: is not a conversation in text; name another run folder")
    turns = tuple(Turn(turn["side"], str(turn["text"]), bool(turn["cut"])) for turn in data["turns"])
    return TalkRecording(Talk(turns, data["ended"]), {key: data[key] for key in data if key not in _TALK})
