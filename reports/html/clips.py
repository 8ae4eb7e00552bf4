"""The report's audio lies in the report, so that the folder can go anywhere: the recordings themselves, or small clips of them.

A recording enters as a hard link, which costs nothing beside the run folder and is a file wherever the report is copied to. A
clip is Opus at the library's default rate, about 5 kB a second of both channels, on the same time axis to the sample. It is
made once: a clip that is newer than its recording is kept, and played also where recordings are asked for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Set
from dataclasses import dataclass, field
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

    _placed: set[Path] = field(default_factory=set, init=False)

    def place(self, recorded: Recorded) -> str | None:
        """Return the address of a recording's audio, relative to the report; None where there is none. Puts it there."""
        if self.audio == "none" or recorded.samples is None:
            return None
        stem = recorded.path.name.removesuffix(recorded.path.suffix).removesuffix(".stereo")
        if self.only is not None and stem not in self.only:
            return None
        clip = self._folder / f"{stem}.opus"
        if not _is_newer(clip, recorded.path):
            if self.audio == "linked":
                clip = self._folder / recorded.path.name
                _link(clip, recorded.path)
            else:
                _encode(clip, recorded)
        self._placed.add(clip)
        return quote(clip.relative_to(self.out).as_posix())

    def sweep(self) -> None:
        """Remove what no page plays any more."""
        for path in self._folder.glob("*"):
            if path not in self._placed:
                path.unlink()

    @property
    def _folder(self) -> Path:
        return self.out / "audio" / self.name


def _is_newer(clip: Path, recording: Path) -> bool:
    try:
        return clip.stat().st_mtime_ns >= recording.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _link(link: Path, recording: Path) -> None:
    if link.exists():
        if link.samefile(recording):
            return
        link.unlink()
    link.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(recording, link)
    except OSError:  # another file system, or one without links
        shutil.copyfile(recording, link)


def _encode(clip: Path, recorded: Recorded) -> None:
    import soundfile as sf

    samples = recorded.samples
    assert samples is not None
    with atomic_write(clip) as file, sf.SoundFile(file, "w", RATE, 2, "OPUS", format="OGG") as out:
        for start in range(0, len(samples), _BLOCK):  # the encoder's stack does not hold minutes at once
            out.write(np.ascontiguousarray(samples[start : start + _BLOCK]))
