"""Render a pack's speech: what is missing or has changed, and nothing else.

Conventions
-----------
* A segment stays as it is while its text, voice, take and pronunciations stay. A newer engine alone changes nothing,
  unless ``again`` asks for it.
* Instance 1 of every cell is rendered first, so that a pack becomes usable early.
* The manifest is written every few seconds and at the end, whatever ends the build: at most the segments under way are
  lost.
* The engine's level is kept. Only a peak above 0.9 is turned down, because the codec overshoots.
"""

from __future__ import annotations

import concurrent.futures
import fnmatch
import functools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dsbeval.errors import AudioError, DsbevalError, OptionError
from dsbeval.ifeval.pack import Pack, Recording
from dsbeval.speech.assemble import TURN1, audio_root, segment_name
from dsbeval.speech.engine import Engine, Utterance
from dsbeval.speech.engines import load_engine
from dsbeval.speech.store import AudioStore, Request, StoredSegment, write_segment
from dsbeval.speech.trim import trim
from dsbeval.speech.voices import Cast

PEAK = 0.9
TOLERANCE = 0.5
"""Share of its target duration by which a speech segment may be off."""

_SAVE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Line:
    """One speech segment that the pack asks for."""

    key: str
    name: str
    text: str
    part: str
    role: str
    seconds: float


@dataclass(frozen=True, slots=True)
class OffTarget:
    """A segment whose duration is more than half off its target."""

    line: Line
    seconds: float


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did."""

    made: int
    kept: int
    removed_files: int
    off_target: tuple[OffTarget, ...]


def lines(pack: Pack, recording: Recording) -> Iterator[Line]:
    """Yield the speech segments of a recording with their target durations."""
    key, script = recording.audio_key, recording.script
    role = recording.roles[0] if len(recording.roles) == 1 else "M"
    yield Line(key, TURN1, script.turn1, "turn1", role, pack.turn1_seconds)
    slots = pack.probes[script.probe].at(script.level or "").turn2
    for index, (segment, slot) in enumerate(zip(script.turn2, slots, strict=True)):
        if segment.speech is not None and slot.seconds is not None:
            yield Line(key, segment_name(index), segment.speech, segment.part or "", role, slot.seconds)


def pack_lines(pack: Pack, only: str = "*") -> list[Line]:
    """Return the speech segments of the recordings whose key matches a glob, instance 1 first.

    Raises :class:`OptionError` when nothing matches.
    """
    chosen = [r for key, r in sorted(pack.recordings.items()) if fnmatch.fnmatchcase(key, only)]
    if not chosen:
        count = len(pack.recordings)
        raise OptionError(f"--only: {only!r} matches none of {count} recordings; a key looks like IFD-R1-C2-i1")
    chosen.sort(key=lambda r: r.script.instance)
    return [line for recording in chosen for line in lines(pack, recording)]


def off_target(store: AudioStore, wanted: list[Line]) -> tuple[OffTarget, ...]:
    """Return the stored segments that are more than half off their target duration."""
    out = []
    for line in wanted:
        entry = store.find(line.key, line.name)
        if entry is not None and abs(entry.seconds - line.seconds) > TOLERANCE * line.seconds:
            out.append(OffTarget(line, entry.seconds))
    return tuple(out)


def build(
    pack: Pack,
    engine: str,
    *,
    only: str = "*",
    jobs: int = 1,
    again: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> BuildReport:
    """Render the missing segments of a pack with an engine, and remove the files that nothing names any more.

    Parameters
    ----------
    only : str
        A glob over audio keys.
    jobs : int
        Processes; each loads the engine.
    again : bool
        Also render what another version of the engine has made.
    progress : callable
        Called with the number of segments done and to do.
    """
    if jobs < 1:
        raise OptionError(f"--jobs: {jobs} is not a number of processes; give 1 or more")
    cast = Cast(pack.root)
    root = audio_root(pack)
    store = AudioStore(root)
    wanted = pack_lines(pack, only)
    version = _engine(engine).version if again else None
    todo: list[tuple[Line, Request]] = []
    for line in wanted:
        entry = store.find(line.key, line.name)
        asked = _request(cast, line, engine, version or (entry.version if entry else ""))
        if entry is None or entry.file != asked.file or entry.text != line.text or not (root / entry.file).exists():
            todo.append((line, asked))
    if todo:
        speaker = _engine(engine)
        store.engines[engine] = dict(speaker.facts)
        work = [(line, _request(cast, line, engine, speaker.version)) for line, _ in todo]
        try:
            last = time.monotonic()
            # The same words in the same voice are one file: rendered twice, the second would not match the first's hash.
            asking: dict[str, list[Line]] = {}
            for line, request in work:
                asking.setdefault(request.file, []).append(line)
            for file in set(asking) & set(stored := store.by_file()):
                if (root / file).exists():
                    for line in asking.pop(file):
                        store.put(line.key, line.name, stored[file])
            once = list({request.file: (line, request) for line, request in work if request.file in asking}.values())
            for done, (_, segment) in enumerate(_rendered(root, once, jobs), start=1):
                for sharing in asking[segment.file]:
                    store.put(sharing.key, sharing.name, segment)
                progress(done, len(once))
                if time.monotonic() - last > _SAVE_EVERY_S:
                    store.save()
                    last = time.monotonic()
        finally:
            store.save()
    named: dict[str, list[str]] = {}
    for line in pack_lines(pack):
        named.setdefault(line.key, []).append(line.name)
    removed = store.keep({key: tuple(names) for key, names in named.items()})
    if todo or removed:
        store.save()
    return BuildReport(len(todo), len(wanted) - len(todo), removed, off_target(store, wanted))


def _request(cast: Cast, line: Line, engine: str, version: str) -> Request:
    voice = cast.voice(line.key)
    spoken = cast.spoken(line.text, voice)
    return Request(engine, version, cast.engine_voice(voice, engine), cast.take(line.key, line.name), spoken)


def _rendered(root: Path, work: list[tuple[Line, Request]], jobs: int) -> Iterator[tuple[Line, StoredSegment]]:
    if jobs == 1:
        for line, request in work:
            yield line, render(root, request, line.text)
        return
    # spawn: a forked onnxruntime session does not work in the child
    pool = concurrent.futures.ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield from _in_order_of_arrival(pool, root, work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order_of_arrival(
    pool: concurrent.futures.Executor, root: Path, work: list[tuple[Line, Request]], jobs: int
) -> Iterator[tuple[Line, StoredSegment]]:
    rest = iter(work)
    running: dict[concurrent.futures.Future[StoredSegment], Line] = {}
    while True:
        for line, request in rest:
            running[pool.submit(render, root, request, line.text)] = line
            if len(running) >= 2 * jobs:  # a short queue: what an interrupt loses is small
                break
        if not running:
            return
        ready, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in ready:
            yield running.pop(future), future.result()


@functools.cache
def _engine(name: str) -> Engine:
    return load_engine(name)


def render(root: Path, request: Request, text: str) -> StoredSegment:
    """Speak, trim and store one segment."""
    try:
        spoken = trim(_engine(request.engine).synthesize(request.spoken, request.voice, request.seed))
    except AudioError as error:
        raise DsbevalError(f"{text!r} ({request.engine}, {request.voice}): {error}") from None
    return write_segment(root, request, text, with_headroom(spoken))


def with_headroom(spoken: Utterance) -> Utterance:
    """Return the utterance with its peak at most at :data:`PEAK`."""
    peak = float(np.abs(spoken.audio).max())
    return Utterance(spoken.audio * np.float32(PEAK / peak), spoken.words) if peak > PEAK else spoken
