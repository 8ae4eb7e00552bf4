"""Where the report's audio lies: in the run folder, as recorded; or as small clips in the report, which can then go anywhere.

A clip is Opus at the library's default rate, about 5 kB a second of both channels, on the same time axis to the sample. It is
made once: a clip that is newer than its recording is kept.
"""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from dsbeval.audio import RATE, atomic_write
from reports.html.modes import Audio
from reports.html.recorded import Recorded

_BLOCK = 10 * RATE


@dataclass(frozen=True, slots=True)
class Clips:
    """The audio of one run, for a report in ``out``."""

    out: Path
    name: str
    audio: Audio
    only: Set[str] | None = None
    """The recordings that get clips, where not all do."""

    def place(self, recorded: Recorded) -> str | None:
        """Return the address of a recording's audio, relative to the report; None where there is none. Makes the clip."""
        if self.audio == "none" or recorded.samples is None:
            return None
        if self.audio == "linked":
            there = os.path.relpath(recorded.path.resolve(), self.out.resolve())
            return quote(Path(there).as_posix())
        stem = recorded.path.name.removesuffix(recorded.path.suffix).removesuffix(".stereo")
        if self.only is not None and stem not in self.only:
            return None
        clip = self.out / "audio" / self.name / f"{stem}.opus"
        if not _is_newer(clip, recorded.path):
            _encode(clip, recorded)
        return quote(clip.relative_to(self.out).as_posix())


def _is_newer(clip: Path, recording: Path) -> bool:
    try:
        return clip.stat().st_mtime_ns >= recording.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _encode(clip: Path, recorded: Recorded) -> None:
    import soundfile as sf

    samples = recorded.samples
    assert samples is not None
    with atomic_write(clip) as file, sf.SoundFile(file, "w", RATE, 2, "OPUS", format="OGG") as out:
        for start in range(0, len(samples), _BLOCK):  # the encoder's stack does not hold minutes at once
            out.write(np.ascontiguousarray(samples[start : start + _BLOCK]))
