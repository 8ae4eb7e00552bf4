"""A grid of recordings on disk: which cases it holds, what each is worth, and what became of the cases that it lacks.

Conventions
-----------
* A grid is a run folder of this suite (``run.json``, ``recordings/``), or a folder of ``{id}.stereo.wav`` and
  ``{id}.rec.json`` as the official release has them. Listing it reads names only, so collection reads no audio.
* A run has the cases that it was to record; a mere folder is taken to be meant for all of the pack that are selected.
* A case without a recording is *skipped*, unless the run that is replayed says that it was an error: then it is that
  error. A recording that is there and cannot be used is an *error*, never a skip.
* A recording is handed on as it is. What had to be made up or brought to the session clock is named in its rec.json
  (``resampled_from``, ``prompt_assumed``, ``text_times``).
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

from dsbeval.dyadic.protocol import Run, Seats
from dsbeval.dyadic.record import read_dyad, write_dyad
from dsbeval.dyadic.rows import Side
from dsbeval.dyadic.textrun import KIND as TEXT
from dsbeval.dyadic.textrun import read_talk, write_talk
from dsbeval.errors import DsbevalError, OptionError, RunError, near
from dsbeval.ifeval.pack import Case, Pack
from dsbeval.recording import SCHEMA, Recording, audio_path, read_recording
from dsbeval.replay.release import LISTS, Release
from dsbeval.replay.user import check_user
from dsbeval.results import Row, RunFolder, file_sha256

SUFFIX = ".rec.json"
IFEVAL, DYADS = "IFD-", "DYA-"
_DYAD = re.compile(r"^DYA-(?P<scenario>.+?)-(?P<seats>ab|ba)-o(?P<opener>[AB])-r(?P<repeat>\d+)(?:@(?P<partner>.+))?$")
_OF = ("agent", "agent_args", "checkpoint", "seed", "device", "process", "latency", "acoustics", "pack")
"""What is kept of the fingerprint of the run that is replayed."""

T = TypeVar("T")


class NoRecordingError(DsbevalError):
    """The grid has no recording of a case: it is skipped."""


class Grid:
    """The recordings below ``root``. Raises :class:`OptionError` where there are none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if not root.is_dir():
            raise OptionError(f"--replay: {root}: no such folder; give a run folder, or a folder of *.stereo.wav files")
        self.run = RunFolder(root) if (root / "run.json").is_file() else None
        self.folder = next((path for path in (root / "recordings", root) if _names(path)), root)
        self.names = frozenset(_names(self.folder))
        asked = self.run.cases() if self.run is not None else []
        if not self.names and not asked:
            raise OptionError(f"--replay: {root}: holds no recordings (ID{SUFFIX}); {_below(root)}")
        self.ids = dict.fromkeys([*asked, *sorted(self.names)])
        """The cases that are there or were to be there, in the order of the run."""

    def asks(self, name: str) -> bool:
        """Return whether a case is of the grid: a run says which its cases are, a mere folder may be meant to have all."""
        return self.run is None or name in self.ids

    def holds(self, prefix: str) -> bool:
        """Return whether anything of a benchmark is there or was to be there."""
        return any(name.startswith(prefix) for name in self.ids)

    # What a case is

    def case(self, pack: Pack, case: Case) -> Recording:
        """Return the recording of a case of DSB-IFEval, with all in it that scoring needs.

        Raises :class:`NoRecordingError`, or :class:`~dsbeval.errors.DsbevalError` for one that is not of this case or this pack.
        """
        self.require(case.id)
        data = self._data(case.id)
        if data.get("schema") != SCHEMA:
            return self._read(case.id, lambda: self._release.recording(pack, case, data))
        recording = self._read(case.id, lambda: read_recording(self.folder, case.id, any_rate=True))
        self._read(case.id, lambda: check_user(recording, pack, case))
        return recording

    def copy_conversation(self, name: str, to: Path, audio_format: str = "wav") -> None:
        """Write the recording of a conversation, in speech or in text, into another folder. Raises as :meth:`case` does."""
        self.require(name)
        if self._data(name).get("kind") == TEXT:
            write_talk(to, name, self._read(name, lambda: read_talk(self.folder, name)))
        else:
            recording = self._read(name, lambda: read_dyad(self.folder, name, any_rate=True))
            write_dyad(to, name, recording, audio_format)

    def require(self, name: str) -> None:
        """Raise :class:`NoRecordingError` where there is no recording, or the error that the replayed run has in its place."""
        if name in self.names:
            return
        if (row := self.without_recording(name)) is not None:
            message = str(row.get("message", ""))
            raise (RunError if row["outcome"] == "error" else NoRecordingError)(message)
        was = " though its run was to record it" if name in self.ids else ""
        raise NoRecordingError(f"{self.root.name} has no recording of it{was}")

    def without_recording(self, name: str, item: str | None = None) -> Row | None:
        """Return the row of a case that left no recording in the replayed run: an error, or a skip; of one item, or any."""
        if name in self.names:
            return None
        return next((row for row in self._kept.get(name, ()) if item in (None, row["item"])), None)

    def dyads(self, tasks: Iterable[str], scenarios: Iterable[str]) -> list[Run]:
        """Return the conversations of two agents that are of the tasks, in the order of the run.

        Raises :class:`OptionError` for one whose scenario is none of ``scenarios``, or whose id says nothing.
        """
        wanted, known = set(tasks), set(scenarios)
        runs = [
            run for name in self.ids if name.startswith(DYADS) if (run := _run(self.root, name)).archetype in wanted
        ]
        for run in runs:
            if run.scenario not in known:
                raise OptionError(f"--replay: {run.id}: {run.scenario} is not a scenario; {near(run.scenario, known)}")
        return runs

    # What is said of it

    @functools.cached_property
    def sha256(self) -> str:
        """Content hash of everything that a replay may read."""
        digest = hashlib.sha256()
        files = [path for name in sorted(self.names) for path in (self.folder / f"{name}{SUFFIX}", self._audio(name))]
        for path in [*files, *self._release.files]:
            if path.is_file():
                digest.update(f"{path.name}\0{file_sha256(path)}\0".encode())
        return digest.hexdigest()

    def fingerprint(self) -> dict[str, Any]:
        """Return what a run that replays this grid says about it."""
        return {"sha256": self.sha256, "recordings": len(self.names), "of": self.of}

    @functools.cached_property
    def of(self) -> dict[str, Any] | None:
        """What the replayed recordings were made with, as far as their run says so; None for a folder that is not one."""
        if self.run is None:
            return None
        known = self.run.fingerprint()
        return {name: known.get(name) for name in _OF}

    def describe(self, pack: Pack) -> str:
        """Return one line for people: how many recordings of what, and how many that the pack has no case for."""
        of = "" if self.of is None else f" of agent {self.of['agent']}"
        strange = [name for name in self.names if not name.startswith(DYADS) and pack.case(name) is None]
        tail = f"; {len(strange)} are no cases of the pack ({sorted(strange)[0]} ...)" if strange else ""
        return f"replay: {len(self.names)} recordings{of} in {self.root}{tail}"

    # Reading

    @functools.cached_property
    def _release(self) -> Release:
        return Release(self.folder, [self.root, self.folder, self.root.parent])

    @functools.cached_property
    def _kept(self) -> dict[str, list[Row]]:
        out: dict[str, list[Row]] = {}
        for row in self.run.rows() if self.run is not None else []:
            if row["outcome"] in ("error", "skipped"):
                out.setdefault(str(row["id"]), []).append(row)
        return out

    def _data(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}{SUFFIX}"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{path}: not valid JSON ({error}); the recording is damaged") from None
        if not isinstance(data, dict):
            raise RunError(f"{path}: holds a {type(data).__name__}; an object with the fields of a recording is needed")
        return data

    def _audio(self, name: str) -> Path:
        wav = audio_path(self.folder, name)
        return wav if wav.exists() else audio_path(self.folder, name, "flac")

    def _read(self, name: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
            raise RunError(f"{self.folder / name}{SUFFIX}: {what}; it is not a whole recording") from None


def _names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return [p.name.removesuffix(SUFFIX) for p in folder.glob(f"*{SUFFIX}") if not p.name.startswith((".", "_"))]


def _below(root: Path) -> str:
    found = sorted(str(path.parent.relative_to(root)) for path in root.glob(f"*/**/*{SUFFIX}"))
    if not found:
        return f"beside each ID.stereo.wav stands its ID{SUFFIX} ({', '.join(LISTS)} of a release may lie there too)"
    return f"they lie in {', '.join(list(dict.fromkeys(found))[:3])}: give one of these"


def _run(root: Path, name: str) -> Run:
    match = _DYAD.match(name)
    if match is None:
        raise OptionError(f"--replay: {root}: {name} is not the id of a conversation (DYA-T1-1-01-ab-oA-r1)")
    partner = match["partner"] or ""
    return Run(
        match["scenario"],
        cast(Seats, match["seats"]),
        cast(Side, match["opener"].lower()),
        int(match["repeat"]),
        self_play=not partner and match["seats"] == "ab",
        partner=partner,
    )
