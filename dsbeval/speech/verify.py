"""Check a pack's stored speech: files, levels, durations, and that the VAD hears speech where it is and only there.

Conventions
-----------
* Edges are judged on the assembled turn between half a second of silence, as a session delivers it, a *run* of speech
  segments at a time (segments that only the joint divides are one run to the VAD). Error = what the VAD says minus
  construction, in milliseconds: negative is early.
* Silero marks an onset up to its padding early and an end about 100 ms late, on any speech; the limits leave room for
  that and little more.
* A fault is one line that names the segment, what is wrong and the mend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dsbeval.audio import RATE, Signal
from dsbeval.errors import AudioError
from dsbeval.ifeval.pack import Pack
from dsbeval.spans import Span, Timeline
from dsbeval.speech.assemble import PlacedSegment, UserTurn, audio_root, open_store, user_turns
from dsbeval.speech.build import Line, off_target, pack_lines
from dsbeval.speech.normalise import normalise
from dsbeval.speech.recognise import Recogniser
from dsbeval.speech.store import AudioStore, pcm_sha256
from dsbeval.speech.trim import AUDIBLE_DB, audible_extent
from dsbeval.speech.voices import Cast
from dsbeval.speech.wer import Heard, errors
from dsbeval.vad import speech_timeline

ONSET_MS = (-120.0, 120.0)
OFFSET_MS = (-150.0, 250.0)
COVERED = 0.6
"""Least share of a speech segment that the VAD must call speech."""

LEVEL_DBFS = (-32.0, -10.0)
PEAK = 0.999
EDGE_S = 0.03

_CODEC_DB = 6.0  # a frame at the bound of audibility may lose some level in the codec
_ROOM = RATE // 2


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a segment."""

    key: str
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.key} {self.name}: {self.what}"


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a quantity over segments, runs or conversations."""

    n: int
    low: float
    p5: float
    median: float
    p95: float
    high: float
    mean: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise values; all zero when there are none."""
        if not values:
            return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        low, p5, median, p95, high = (float(v) for v in np.percentile(values, [0, 5, 50, 95, 100]))
        return cls(len(values), low, p5, median, p95, high, float(np.mean(values)))


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What :func:`verify` found. ``other_decoder``: segments whose samples differ although their file is right."""

    recordings: int
    segments: int
    speech_s: float
    megabytes: float
    conversation_s: Spread
    level_dbfs: Spread
    peak: Spread
    onset_ms: Spread
    offset_ms: Spread
    other_decoder: int
    faults: tuple[Fault, ...]
    heard: tuple[Heard, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def verify(
    pack: Pack,
    *,
    only: str = "*",
    recogniser: Recogniser | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> VerifyReport:
    """Check the speech of the recordings whose key matches a glob.

    Raises :class:`AudioError` when there is no audio at all.
    """
    store = open_store(audio_root(pack))
    cast = Cast(pack.root)
    wanted = pack_lines(pack, only)
    faults: list[Fault] = [
        Fault(o.line.key, o.line.name, f"lasts {o.seconds:.2f} s, its target is {o.line.seconds:g} s; reword it")
        for o in off_target(store, wanted)
    ]
    levels: list[float] = []
    peaks: list[float] = []
    heard: list[Heard] = []
    other_decoder = 0
    broken: set[str] = set()
    for done, line in enumerate(wanted, start=1):
        try:
            audio = store.read(line.key, line.name)
        except AudioError as error:
            faults.append(Fault(line.key, line.name, str(error)))
            broken.add(line.key)
            continue
        other_decoder += pcm_sha256(audio) != store.entry(line.key, line.name).sha256
        level, peak = _level(audio)
        levels.append(level)
        peaks.append(peak)
        faults += [Fault(line.key, line.name, what) for what in _segment_faults(audio, level, peak)]
        if recogniser is not None:
            heard.append(_heard(line, cast.voice(line.key).id, recogniser(audio)))
        progress(done, len(wanted))
    onsets: list[float] = []
    offsets: list[float] = []
    durations: list[float] = []
    keys = sorted({line.key for line in wanted} - broken)
    for key in keys:
        try:
            turns = user_turns(pack, key)
        except AudioError as error:
            faults.append(Fault(key, "", str(error)))
            continue
        durations.append(sum(turn.audio.size for turn in turns) / RATE)
        for index, turn in enumerate(turns):
            found = _edges(turn, key, first=index == 0)
            onsets += found[0]
            offsets += found[1]
            faults += found[2]
    entries = [store.find(line.key, line.name) for line in wanted]
    return VerifyReport(
        recordings=len({line.key for line in wanted}),
        segments=len(wanted),
        speech_s=sum(entry.seconds for entry in entries if entry),
        megabytes=_megabytes(store),
        conversation_s=Spread.of(durations),
        level_dbfs=Spread.of(levels),
        peak=Spread.of(peaks),
        onset_ms=Spread.of(onsets),
        offset_ms=Spread.of(offsets),
        other_decoder=other_decoder,
        faults=tuple(faults),
        heard=tuple(heard),
    )


def _megabytes(store: AudioStore) -> float:
    return sum(path.stat().st_size for path in store.root.iterdir() if path.is_file()) / 1e6


def _heard(line: Line, voice: str, text: str) -> Heard:
    reference = normalise(line.text)
    return Heard(
        line.key,
        line.name,
        voice,
        line.role,
        line.text,
        text.strip(),
        errors(reference, normalise(text)),
        len(reference),
    )


def _level(audio: Signal) -> tuple[float, float]:
    """Return the RMS level of the audible part in dBFS, and the peak."""
    extent = audible_extent(audio)
    part = audio[extent.start : extent.end].astype(np.float64)
    return 10 * float(np.log10((part**2).mean())), float(np.abs(audio).max())


def _segment_faults(audio: Signal, level: float, peak: float) -> list[str]:
    out = []
    if not LEVEL_DBFS[0] <= level <= LEVEL_DBFS[1]:
        out.append(f"level {level:.1f} dBFS is outside {LEVEL_DBFS[0]:g} to {LEVEL_DBFS[1]:g}; try another take")
    if peak >= PEAK:
        out.append(f"peak {peak:.3f} clips; build it again")
    extent = audible_extent(audio, AUDIBLE_DB - _CODEC_DB)
    before, after = extent.start / RATE, (audio.size - extent.end) / RATE
    if max(before, after) > EDGE_S:
        out.append(f"silence of {1000 * max(before, after):.0f} ms at an end, 30 ms are allowed; build it again")
    return out


def _runs(segments: Sequence[PlacedSegment]) -> list[tuple[Span, int]]:
    """Return the runs of speech between silences, each with the index of its first segment."""
    out: list[tuple[Span, int]] = []
    open_run = False
    for index, segment in enumerate(segments):
        if segment.kind == "silence":
            open_run = False
        elif open_run:
            span, first = out[-1]
            out[-1] = (Span(span.start, segment.span.end), first)
        else:
            out.append((segment.span, index))
            open_run = True
    return out


def _edges(turn: UserTurn, key: str, *, first: bool) -> tuple[list[float], list[float], list[Fault]]:
    room = np.zeros(_ROOM, np.float32)
    speech = speech_timeline(np.concatenate([room, turn.audio, room]))
    onsets: list[float] = []
    offsets: list[float] = []
    faults: list[Fault] = []
    names = ["t1"] if first else [f"s{index + 1}" for index in range(len(turn.segments))]
    for segment, name in zip(turn.segments, names, strict=True):
        if segment.kind == "speech":
            span = segment.span.shift(_ROOM)
            share = speech.clip(span).duration / span.duration
            if share < COVERED:
                faults.append(Fault(key, name, f"the VAD hears speech in {share:.0%} of it; try another take"))
    runs = [(span.shift(_ROOM), index) for span, index in _runs(turn.segments)]
    for run, index in runs:
        touching = speech.touching(run)
        if not touching:
            continue
        onset = (touching[0].start - run.start) * 1000 / RATE
        offset = (touching[-1].end - run.end) * 1000 / RATE
        onsets.append(onset)
        offsets.append(offset)
        if not ONSET_MS[0] <= onset <= ONSET_MS[1]:
            faults.append(Fault(key, names[index], f"the VAD hears its onset {onset:+.0f} ms off; try another take"))
        if not OFFSET_MS[0] <= offset <= OFFSET_MS[1]:
            faults.append(Fault(key, names[index], f"the VAD hears its end {offset:+.0f} ms off; try another take"))
    for stray in speech - _heard_around(runs):
        at = (stray.start - _ROOM) / RATE
        faults.append(
            Fault(key, "t1" if first else "turn 2", f"the VAD hears speech in silence at {at:.2f} s; try another take")
        )
    return onsets, offsets, faults


def _heard_around(runs: Sequence[tuple[Span, int]]) -> Timeline:
    """Return where speech may be heard: every run with the room that the limits give it."""
    early, late = int(-ONSET_MS[0] * RATE / 1000), int(OFFSET_MS[1] * RATE / 1000)
    return Timeline(Span(max(0, span.start - early), span.end + late) for span, _ in runs)
