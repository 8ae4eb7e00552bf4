"""What is attached to a case that did not pass: a short stereo clip, the picture, the transcript, the measurements.

Made from the run folder. What a case does not have (an agent that died before it recorded) is not attached, and a recording
that cannot be read is named in an attachment of its own: evidence never turns a verdict into an error.
"""

from __future__ import annotations

import base64
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal
from dsbeval.dyadic.rows import SIDES
from dsbeval.errors import DsbevalError
from dsbeval.ifeval.score import score_recording
from dsbeval.recording import Recording, read_recording, token_rows
from dsbeval.recording import read_facts as recording_facts
from dsbeval.results import Row, RunFolder
from reports.allure.content import is_dyad

BEFORE_S = 4.0
AFTER_S = 3.0
"""What a clip holds around the scored window."""
NEW_LINE_S = 1.0
"""A silence in the agent's words after which the transcript begins a new line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An attachment."""

    name: str
    body: bytes | str
    mime: str
    extension: str


def read_facts(folder: RunFolder, row: Row) -> dict[str, Any]:
    """Return the prompts of a recorded case and whether they were taken; nothing where there is no recording."""
    try:
        data = recording_facts(folder.recordings, str(row["id"]))
    except (DsbevalError, OSError):
        return {}
    if is_dyad(row):
        sides = data.get("prompts", {})
        return {"prompts": {f"Prompt of side {side}": str(text) for side, text in dict(sides).items()}}
    return {"prompts": {"System prompt": str(data.get("prompt", ""))}, "prompt_taken": data.get("prompt_taken")}


def pieces(folder: RunFolder, row: Row) -> Iterator[Piece]:
    """Yield what there is to hear, see and read about a case."""
    name = str(row["id"])
    yield Piece("result row", json.dumps(row, ensure_ascii=False, indent=1), "application/json", "json")
    trace = folder.root / "errors" / f"{name}.txt"
    if trace.exists():
        yield Piece("traceback", trace.read_text(encoding="utf-8"), "text/plain", "txt")
    if not (folder.recordings / f"{name}.rec.json").exists():
        return
    try:
        yield from _recorded(folder, row)
    except (DsbevalError, KeyError, ValueError, OSError) as error:
        yield Piece("evidence that could not be read", f"{type(error).__name__}: {error}", "text/plain", "txt")


def _recorded(folder: RunFolder, row: Row) -> Iterator[Piece]:
    yield from (_conversation if is_dyad(row) else _case)(folder, row)


def _case(folder: RunFolder, row: Row) -> Iterator[Piece]:
    recording = read_recording(folder.recordings, str(row["id"]))
    window = recording.meta["window"]
    start = max(0, int(window["start"]) - round(BEFORE_S * RATE))
    end = min(recording.length, int(window["end"]) + round(AFTER_S * RATE))
    yield from _sound((recording.user, recording.model), start, end, "scored window, user left, agent right")
    measured = row if "measurements" in row else score_recording(recording)[1]  # the persona's row measures nothing
    yield Piece("timeline", _picture(recording, measured), "image/png", "png")
    text = transcript({"user": recording.meta["user"], "tokens": token_rows(recording.text)})
    yield Piece("transcript", text, "text/plain", "txt")


def _conversation(folder: RunFolder, row: Row) -> Iterator[Piece]:
    from dsbeval.dyadic.record import read_dyad
    from dsbeval.dyadic.textrun import KIND, read_talk
    from dsbeval.dyadic.transcript import hear, hear_talk

    if recording_facts(folder.recordings, str(row["id"])).get("kind") == KIND:
        talk = read_talk(folder.recordings, str(row["id"])).talk
        yield Piece("transcript", hear_talk(talk).transcript or "(nobody wrote anything)", "text/plain", "txt")
        return
    recording = read_dyad(folder.recordings, str(row["id"]))
    channels = recording.audio("a"), recording.audio("b")
    yield from _sound(channels, 0, recording.length, "conversation, side a left, side b right")
    silent = [side for side in SIDES if not recording.text(side)]
    text = hear(recording).transcript + "".join(f"\n(side {side} gave no text)" for side in silent)
    yield Piece("transcript", text, "text/plain", "txt")


def _sound(channels: tuple[Signal, Signal], start: int, end: int, titles: str) -> Iterator[Piece]:
    span = f"{start / RATE:.2f}-{end / RATE:.2f} s"
    sound = clip(channels, start, end)
    yield Piece(f"listen {span}: {titles}", player(sound, f"{titles}, {span}"), "text/html", "html")
    yield Piece(f"audio {span}", sound, "audio/ogg", "ogg")


def clip(channels: tuple[Signal, Signal], start: int, end: int) -> bytes:
    """Return samples ``start`` to ``end`` of both channels as Ogg Opus."""
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, np.stack([one[start:end] for one in channels], axis=1), RATE, format="OGG", subtype="OPUS")
    return out.getvalue()


def player(sound: bytes, title: str) -> str:
    """Return a page that plays a clip: Allure 3 offers audio for download only, but shows a page."""
    source = base64.b64encode(sound).decode("ascii")
    return (
        f"<!doctype html><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<p style='font:14px sans-serif'>{escape(title)}</p>"
        f"<audio controls preload='metadata' style='width:100%' src='data:audio/ogg;base64,{source}'></audio>"
    )


def transcript(data: dict[str, Any]) -> str:
    """Return who said what when: the user's script, and the agent's own text by its times."""
    lines = [(one["start_s"], f"user:  {one['text']}") for one in data["user"] if one["type"] == "speech"]
    words: list[str] = []
    begun = last = 0.0
    for token in [*data["tokens"], {"t": float("inf"), "text": ""}]:
        if words and token["t"] - last > NEW_LINE_S:
            lines.append((begun, f"agent: {''.join(words).strip()}"))
            words = []
        if not words:
            begun = token["t"]
        words.append(str(token["text"]))
        last = token["t"]
    said = [f"[{time:7.2f} s] {text}" for time, text in sorted(lines, key=lambda line: line[0])]
    return "\n".join(said if data["tokens"] else [*said, "(the agent gave no text)"])


def _picture(recording: Recording, row: Row) -> bytes:
    from reports.timeline import draw

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "timeline.png")
        draw(recording, row, path)
        return path.read_bytes()
