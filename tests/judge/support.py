"""Run folders for the tests of judging, with recordings as the recorder writes them, but of a tenth of a second."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE
from dsbeval.ifeval.pack import Case, Pack, load_pack
from dsbeval.judge.contract import Question
from dsbeval.judge.pas import pas_question
from dsbeval.recording import Recording, TimedText, write_recording
from dsbeval.results import RunFolder

GOOD_PAS: dict[str, Any] = {
    "formalize": "Stay with the user.",
    "timeline": "It greets, then asks.",
    "register_fit": 4,
    "register_rationale": "plain",
    "content_fit": 4,
    "content_rationale": "on the subject",
    "pas": 81,
    "l4_category": "n/a",
    "summary": "It stays in role.",
}


def pas_reply(**changes: Any) -> str:
    """Return a good reply to a PAS question, with some fields changed."""
    return json.dumps({**GOOD_PAS, **changes})


@functools.cache
def pack() -> Pack:
    return load_pack()


def case(name: str) -> Case:
    """Return a case of the pack by a short name: ``R5/R5_A/i1/L2``."""
    role, probe, instance, level = name.split("/")
    full = next(p for p in pack().probes if p == probe or p.startswith(f"{probe}_"))
    return pack().cases[f"IFD-{role}-{full}-{instance}-{level}"]


def meta_of(one: Case, *, text: bool = True) -> dict[str, Any]:
    """Return what the recorder knows of a case besides audio and text: user segments of three seconds each."""
    script = pack().recordings[one.audio_key].script
    segments: list[dict[str, Any]] = []
    at = 0
    for turn, spoken in ((1, [("speech", script.turn1, 3.0)]), (2, [
        ("speech", s.speech, 3.0) if s.silence is None else ("silence", None, s.silence) for s in script.turn2
    ])):  # fmt: skip
        for kind, words, seconds in spoken:
            end = at + round(seconds * RATE)
            segments.append({
                "turn": turn, "type": kind, "part": "lead", "start": at, "end": end,
                "start_s": round(at / RATE, 3), "end_s": round(end / RATE, 3), "text": words,
            })  # fmt: skip
            at = end
    return {
        "test_case_id": one.id,
        "conversation_id": one.conversation_id,
        "role": one.role,
        "probe": one.probe,
        "level": one.level,
        "instance": one.instance,
        "l4_expected": one.l4_expected,
        "prompt": pack().prompt(one),
        "agent": "secret_model_v7",
        "capabilities": {"text": text},
        "seed": 1,
        "turn2_onset_s": 15.125,
        "window": {"start": 360_000, "end": 420_000, "start_s": 15.0, "end_s": 17.5},
        "user": segments,
    }


def record(folder: Path, one: Case, said: str, *, text: bool = True) -> None:
    """Write the recording of a case in which the agent says something."""
    silence = np.zeros(RATE // 10, np.float32)
    words = (TimedText(12_345, said),) if said else ()
    write_recording(folder, one.id, Recording(silence, silence, words, (), meta_of(one, text=text)))


def make_run(
    root: Path, cases: Iterable[Case], said: Callable[[Case], str] | Mapping[str, str] | str = "Okay, go on."
) -> RunFolder:
    """Make a run folder in which all the cases are recorded."""
    chosen = list(cases)
    folder = RunFolder.create(root, {"agent": "secret_model_v7"}, [one.id for one in chosen])
    for one in chosen:
        words = said if isinstance(said, str) else said[one.id] if isinstance(said, Mapping) else said(one)
        record(folder.recordings, one, words)
    return folder


def numbered(one: Case) -> str:
    """Return words that no two cases share, so that no two cases share a prompt."""
    return f"I have heard you, case {one.id}."


def question(name: str = "R5/R5_A/i1/L2", said: str = "What does that leave you with?", **more: Any) -> Question:
    """Return the PAS question of a case in which the agent says something."""
    return pas_question({**meta_of(case(name)), "transcript": said}, pack(), **more)


def files_of(root: Path) -> str:
    """Return everything that lies in a folder as one text, for looking for what must not be there."""
    return "\n".join(p.read_bytes().decode("utf-8", "replace") for p in sorted(root.rglob("*")) if p.is_file())
