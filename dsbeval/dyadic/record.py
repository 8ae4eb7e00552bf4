"""What a conversation of two agents leaves behind: a channel and a text each, events, and how that lies on disk.

Conventions
-----------
* Channel 0 is side a, channel 1 side b, both at 24 kHz, PCM16. Files are those of :mod:`dsbeval.recording`: the same
  names, the same exact samples beside rounded seconds, and ``"kind": "dyad"`` in ``rec.json``.
* Text that was due after the end of the recording was not heard, and is not in it.
* Nothing in it depends on the worker, the order of runs or the thread that stepped an agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsbeval.audio import Signal
from dsbeval.dyadic.rows import SIDES, Side
from dsbeval.recording import DERIVED, TimedText, read_session, read_tokens, token_rows, write_session

KIND = "dyad"


@dataclass(frozen=True, slots=True)
class DyadRecording:
    """A finished conversation: both channels on the session clock, both texts, and what is known about it as plain data."""

    a: Signal
    b: Signal
    text_a: tuple[TimedText, ...]
    text_b: tuple[TimedText, ...]
    events: tuple[dict[str, Any], ...]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Samples of the session."""
        return self.a.size

    def audio(self, side: Side) -> Signal:
        """Return the channel of a side."""
        return self.a if side == "a" else self.b

    def text(self, side: Side) -> tuple[TimedText, ...]:
        """Return the text of a side, with its times."""
        return self.text_a if side == "a" else self.text_b


def write_dyad(folder: Path, name: str, recording: DyadRecording, audio_format: str = "wav") -> None:
    """Write ``{name}.stereo.wav`` and ``{name}.rec.json``; the JSON comes last, so its presence means a whole recording."""
    said = {
        "transcripts": {side: "".join(token.text for token in recording.text(side)).strip() for side in SIDES},
        "tokens": {side: token_rows(recording.text(side)) for side in SIDES},
    }
    meta = {"kind": KIND, **recording.meta}
    write_session(folder, name, (recording.a, recording.b), meta, said, recording.events, audio_format)


def read_dyad(folder: Path, name: str, *, any_rate: bool = False) -> DyadRecording:
    """Read a conversation back. Raises :class:`RunError` or :class:`~dsbeval.errors.AudioError` in one line."""
    data, (a, b) = read_session(folder, name, KIND, any_rate=any_rate)
    meta = {key: value for key, value in data.items() if key not in {*DERIVED, "kind", "tokens", "transcripts"}}
    text_a, text_b = (read_tokens(data["tokens"][side]) for side in SIDES)
    return DyadRecording(a, b, text_a, text_b, tuple(data["events"]), meta)
