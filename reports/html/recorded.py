"""A recording as the report shows it: what rec.json says, the waveforms made small, and where its audio lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsbeval.audio import RATE
from dsbeval.dyadic.textrun import KIND
from dsbeval.errors import DsbevalError
from dsbeval.recording import read_facts
from dsbeval.spans import Timeline
from reports.html.peaks import both


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording of two channels. ``samples`` has the shape ``(length, 2)``; None where its audio is gone."""

    meta: Mapping[str, Any]
    path: Path
    samples: NDArray[np.int16] | None

    def shown(self, channels: Sequence[str]) -> dict[str, Any]:
        """Return duration, names of the channels and waveforms."""
        return {
            "duration": self.meta["duration_s"],
            "channels": list(channels),
            "peaks": None if self.samples is None else both(self.samples, RATE),
        }

    def detected(self, channel: int) -> Timeline:
        """Return the speech that the detector of the benchmark finds in a channel: for rows that do not say."""
        if self.samples is None:
            return Timeline(())
        from dsbeval.ifeval.scene import audible
        from dsbeval.vad import speech_timeline

        signal = np.ascontiguousarray(self.samples[:, channel]).astype(np.float32) / np.float32(32768)
        return audible(signal, speech_timeline(signal))


def read_recorded(folder: Path, name: str) -> Recorded:
    """Read a recording. Audio that is missing or unreadable leaves the rest.

    Raises :class:`RunError` and ValueError where there is no sense in rec.json.
    """
    import soundfile as sf

    meta = read_facts(folder, name)
    if meta.get("kind") == KIND:
        return Recorded(meta, folder / f"{name}.rec.json", None)
    audio = folder / str(meta["audio"])
    try:
        samples, rate = sf.read(audio, dtype="int16", always_2d=True)
    except (sf.LibsndfileError, OSError):
        return Recorded(meta, audio, None)
    usable = rate == RATE and samples.shape[1] == 2
    return Recorded(meta, audio, samples if usable else None)


def recorded_or_why(folder: Path, name: str) -> tuple[Recorded | None, str | None]:
    """Return a recording, or None and why it cannot be shown; (None, None) where none was made."""
    if not (folder / f"{name}.rec.json").exists():
        return None, None
    try:
        return read_recorded(folder, name), None
    except (DsbevalError, KeyError, TypeError, ValueError) as error:
        return None, f"the recording cannot be shown: {error}"
