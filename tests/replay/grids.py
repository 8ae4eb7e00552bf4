"""Recordings for tests of replaying: cases played to calibration agents, written as this suite does or as a release does."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal, resample, to_pcm16, write_audio
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.pack import Case, Pack, load_pack
from dsbeval.loading import load_agent
from dsbeval.recording import Recording, audio_path

LISTEN = "IFD-R5-R5_B_six_second_think-i1-L2"
READBACK = "IFD-R6-R6_B_mid_order_change-i1-L1"
BARGE_IN = "IFD-R1-C3-i1-L2"


@functools.cache
def recorded(case_id: str, agent: str = "oracle") -> Recording:
    """Return a case played to a calibration agent; treat it as read-only."""
    pack = load_pack()
    return record_case(load_agent(agent), pack, pack.cases[case_id])


def case_of(case_id: str) -> tuple[Pack, Case]:
    pack = load_pack()
    return pack, pack.cases[case_id]


def release(
    folder: Path, case_id: str, recording: Recording, user: Signal | None = None, rate: int = RATE, **rec: Any
) -> None:
    """Write a recording as an official release has it: stereo audio, when turn 2 begins, and what was said."""
    channels = (recording.user if user is None else user, recording.model)
    stereo = np.stack([resample(channel, RATE, rate) for channel in channels], axis=1)
    write_audio(audio_path(folder, case_id), to_pcm16(stereo), rate)
    known = {
        "turn2_onset_s": recording.meta["turn2_onset_s"],
        "transcript": "".join(token.text for token in recording.text),
    }
    data = {key: value for key, value in {**known, **rec}.items() if value is not None}
    (folder / f"{case_id}.rec.json").write_text(json.dumps(data))


def scripts(folder: Path, recording: Recording, **fields: Any) -> dict[str, Any]:
    """Write ``scripts.jsonl`` with the conversation of a recording and return its entry."""
    segments = [
        {"type": s["type"], "text": s["text"] or None, "duration_s": (s["end"] - s["start"]) / RATE}
        for s in recording.meta["user"]
        if s["turn"] == 2
    ]
    turn1 = next(s["text"] for s in recording.meta["user"] if s["turn"] == 1)
    entry = {"conversation_id": recording.meta["conversation_id"], "turn1": turn1, "segments": segments, **fields}
    (folder / "scripts.jsonl").write_text(json.dumps(entry) + "\n")
    return entry


def other_voice(recording: Recording) -> Signal:
    """Return the user channel with each speech segment played backwards: as long and as loud, and not alike."""
    user = recording.user.copy()
    for s in recording.meta["user"]:
        if s["type"] == "speech":
            user[s["start"] : s["end"]] = user[s["start"] : s["end"]][::-1]
    return user
