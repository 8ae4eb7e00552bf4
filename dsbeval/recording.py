"""What a session leaves behind: two channels placed by time, events, text with times; and how that lies on disk.

Conventions
-----------
* Channel 0 is the user, channel 1 the agent, both at 24 kHz, PCM16.
* Audio is placed by time, never by count: an emission starts at ``max(arrival, cursor)``, so a burst plays out in real
  time, a stall leaves a hole, and a flush cuts what lies in the future.
* ``{id}.rec.json`` holds times in seconds rounded to the millisecond, as the official release does, and beside them
  the exact samples that scoring uses. Nothing in it depends on the wall clock, the worker or the order of cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.agent import Emission
from dsbeval.audio import RATE, Signal, atomic_write, read_audio, read_resampled, resample, to_pcm16, write_audio
from dsbeval.errors import RunError

SCHEMA = 1
FORMATS = ("wav", "flac")


class Channel:
    """A channel that grows as time goes on; samples at its own rate, positions given on the session clock."""

    def __init__(self, rate: int, background: Signal | None = None) -> None:
        self.rate = rate
        self._samples = np.zeros(rate * 60, np.float32)
        self._background = background if background is not None and background.size else None
        self.cursor = 0

    def native(self, clock: int) -> int:
        """Return a position of the session clock in this channel's samples."""
        return round(clock * self.rate / RATE)

    def clock(self, native: int) -> int:
        """Return a position of this channel on the session clock."""
        return round(native * RATE / self.rate)

    def place(self, audio: Signal, arrival: int) -> int:
        """Queue audio that arrives at ``arrival`` (session clock) and return where it starts (session clock)."""
        start = max(self.native(arrival), self.cursor)
        end = start + audio.size
        if end > self._samples.size:
            self._samples = np.concatenate([self._samples, np.zeros(max(end, self._samples.size), np.float32)])
        self._samples[start:end] = audio
        self.cursor = max(self.cursor, end) if audio.size else self.cursor
        return self.clock(start)

    def flush(self, now: int) -> None:
        """Drop everything that would be played after ``now`` (session clock)."""
        cut = self.native(now)
        if cut < self.cursor:
            self._samples[cut : self.cursor] = 0.0
            self.cursor = cut

    def played(self, start: int, end: int) -> Signal:
        """Return native samples ``start`` to ``end``: silence where nothing was placed, over the looped background."""
        piece = self._samples[start:end]
        whole = piece if piece.size == end - start else np.pad(piece, (0, end - start - piece.size))
        if self._background is None:
            return whole
        index = np.arange(start, end) % self._background.size
        mixed: Signal = np.clip(whole + self._background[index], -1.0, 1.0)
        return mixed

    def render(self, length: int) -> Signal:
        """Return the channel on the session clock, exactly ``length`` samples."""
        audio = resample(self.played(0, max(self.native(length), 1)), self.rate, RATE)
        return audio[:length] if audio.size >= length else np.pad(audio, (0, length - audio.size))


@dataclass(frozen=True, slots=True)
class TimedText:
    """A piece of the agent's text and the session sample at which it was due to be heard."""

    sample: int
    text: str


class AgentSide:
    """The agent's channel and text, filled from its emissions."""

    def __init__(self, rate: int) -> None:
        self.channel = Channel(rate)
        self._text: list[TimedText] = []

    def accept(self, emission: Emission, arrival: int) -> None:
        """Place an emission that is heard from ``arrival`` on; a flush drops what would be played after that."""
        if emission.flush:
            self.channel.flush(arrival)
            self._text = [token for token in self._text if token.sample < arrival]
        start = self.channel.place(emission.audio, arrival)
        self._text.extend(TimedText(start + round(t.offset_s * RATE), t.text) for t in emission.text)

    @property
    def text(self) -> tuple[TimedText, ...]:
        """The text in the order in which it is heard."""
        return tuple(sorted(self._text, key=lambda token: token.sample))


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished session: both channels on the session clock, and what is known about it as plain data."""

    user: Signal
    model: Signal
    text: tuple[TimedText, ...]
    events: tuple[dict[str, Any], ...]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Samples of the session."""
        return self.user.size


def audio_path(folder: Path, name: str, audio_format: str = "wav") -> Path:
    """Return the path of a recording's stereo file."""
    return folder / f"{name}.stereo.{audio_format}"


def write_recording(folder: Path, name: str, recording: Recording, audio_format: str = "wav") -> None:
    """Write ``{name}.stereo.wav`` and ``{name}.rec.json``; the JSON comes last, so its presence means a whole recording."""
    said = {
        "transcript": "".join(token.text for token in recording.text).strip(),
        "tokens": token_rows(recording.text),
    }
    write_session(folder, name, (recording.user, recording.model), recording.meta, said, recording.events, audio_format)


def read_recording(folder: Path, name: str, *, any_rate: bool = False) -> Recording:
    """Read a recording back. Raises :class:`RunError` or :class:`~dsbeval.errors.AudioError` in one line."""
    data, (user, model) = read_session(folder, name, any_rate=any_rate)
    meta = {key: value for key, value in data.items() if key not in {*DERIVED, "tokens", "transcript"}}
    return Recording(user, model, read_tokens(data["tokens"]), tuple(data["events"]), meta)


# What every two-channel session shares on disk, whoever the two are

DERIVED = frozenset({"schema", "sample_rate", "audio", "samples", "duration_s", "events"})
"""Fields of rec.json that follow from the rest of a session."""


def token_rows(text: Iterable[TimedText]) -> list[dict[str, Any]]:
    """Return text with times as rec.json keeps it."""
    return [{"t": round(t.sample / RATE, 3), "sample": t.sample, "text": t.text} for t in text]


def read_tokens(rows: Iterable[Mapping[str, Any]]) -> tuple[TimedText, ...]:
    """Return the text that :func:`token_rows` wrote."""
    return tuple(TimedText(int(row["sample"]), str(row["text"])) for row in rows)


def write_session(
    folder: Path,
    name: str,
    channels: tuple[Signal, Signal],
    meta: Mapping[str, Any],
    said: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    audio_format: str = "wav",
) -> None:
    """Write the two files of a session: its audio, then what is known about it and what was said, as plain data."""
    length = channels[0].size
    write_audio(audio_path(folder, name, audio_format), to_pcm16(np.stack(channels, axis=1)))
    data = {
        "schema": SCHEMA,
        **meta,
        "sample_rate": RATE,
        "audio": audio_path(folder, name, audio_format).name,
        "samples": length,
        "duration_s": round(length / RATE, 3),
        **said,
        "events": list(events),
    }
    with atomic_write(folder / f"{name}.rec.json") as file:
        file.write(json.dumps(data, ensure_ascii=False, indent=1).encode() + b"\n")


def read_facts(folder: Path, name: str) -> dict[str, Any]:
    """Return rec.json of a session of any kind. Raises :class:`RunError` in one line."""
    path = folder / f"{name}.rec.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: no such recording; run the case first") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error}); record the case again") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise RunError(
            f"{path}: schema is {data.get('schema') if isinstance(data, dict) else None!r}; {SCHEMA} is needed"
        )
    return data


def read_session(
    folder: Path, name: str, kind: str | None = None, *, any_rate: bool = False
) -> tuple[dict[str, Any], tuple[Signal, Signal]]:
    """Return rec.json and the two channels of a session of a kind: ``"dyad"``, or None for a user and an agent.

    With ``any_rate`` audio that somebody has stored at another rate is brought back to the session clock, and
    ``resampled_from`` in rec.json says so.

    Raises :class:`RunError` or :class:`~dsbeval.errors.AudioError` in one line.
    """
    data, path = read_facts(folder, name), folder / f"{name}.rec.json"
    if data.get("kind") != kind:
        kinds = [found or "a user and an agent" for found in (data.get("kind"), kind)]
        raise RunError(f"{path}: is a recording of {kinds[0]}, not of {kinds[1]}; name another run folder")
    path, told = folder / str(data["audio"]), ""
    if any_rate:
        stereo, rate = read_resampled(path, channels=2)
        if rate != RATE and abs(len(stereo) - data["samples"]) <= RATE // rate + 1:  # it cannot be told to the sample
            stereo = np.pad(stereo[: data["samples"]], ((0, max(0, data["samples"] - len(stereo))), (0, 0)))
            data["resampled_from"] = rate
        told = f" at {RATE} Hz (the file says {rate} Hz)" if rate != RATE else ""
    else:
        stereo = read_audio(path, channels=2)
    if len(stereo) != data["samples"]:
        raise RunError(f"{path}: {len(stereo)} samples{told}, but rec.json says {data['samples']}; record it again")
    left, right = (np.ascontiguousarray(stereo[:, k]) for k in (0, 1))
    return data, (left, right)
