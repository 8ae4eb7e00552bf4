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

from dsbeval.audio import RATE
from dsbeval.errors import DsbevalError
from dsbeval.recording import read_session, token_rows
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
        data = json.loads((folder.recordings / f"{row['id']}.rec.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
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
    name = str(row["id"])
    if row.get("medium") == "text":
        yield Piece("transcript", _written(folder, name), "text/plain", "txt")
        return
    if is_dyad(row):
        data, channels = read_session(folder.recordings, name, "dyad")
        start, end = 0, channels[0].size
        titles = "conversation, side a left, side b right"
        text = _dyad_transcript(folder, name)
    else:
        data, channels = read_session(folder.recordings, name)
        window = data["window"]
        start = max(0, int(window["start"]) - round(BEFORE_S * RATE))
        end = min(channels[0].size, int(window["end"]) + round(AFTER_S * RATE))
        titles = "scored window, user left, agent right"
        text = transcript(data)
    span = f"{start / RATE:.2f}-{end / RATE:.2f} s"
    sound = clip(channels, start, end)
    yield Piece(f"listen {span}: {titles}", player(sound, f"{titles}, {span}"), "text/html", "html")
    yield Piece(f"audio {span}", sound, "audio/ogg", "ogg")
    if not is_dyad(row):
        yield Piece("timeline", _picture(folder, name), "image/png", "png")
    yield Piece("transcript", text, "text/plain", "txt")


def clip(channels: tuple[Any, Any], start: int, end: int) -> bytes:
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


def _dyad_transcript(folder: RunFolder, name: str) -> str:
    from dsbeval.dyadic.record import read_dyad
    from dsbeval.dyadic.transcript import hear

    recording = read_dyad(folder.recordings, name)
    spoken = hear(recording).transcript
    silent = [side for side in ("a", "b") if not token_rows(recording.text(side))]
    return spoken + "".join(f"\n(side {side} gave no text)" for side in silent)


def _written(folder: RunFolder, name: str) -> str:
    from dsbeval.dyadic.textrun import read_talk
    from dsbeval.dyadic.transcript import hear_talk

    return hear_talk(read_talk(folder.recordings, name).talk).transcript


def _picture(folder: RunFolder, name: str) -> bytes:
    from reports.timeline import draw_case

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "timeline.png")
        draw_case(folder.recordings, name, path)
        return path.read_bytes()
