"""From a channel and its text to what was said when: speech segments on the frame grid, the text of each, a transcript.

Conventions
-----------
* A frame is 80 ms (:data:`FRAME`, 1,920 samples of the 24 kHz clock), and every boundary lies on the frame grid. A last,
  incomplete frame counts as a frame: it is filled up with silence.
* A frame opens a segment when its RMS is *above* ``opens`` and closes it when *below* ``closes``; a frame at exactly
  either value changes nothing. The frame that closes is outside.
* Short segments are dropped first, then near neighbours are joined: a click between two utterances does not bridge
  them. A segment of exactly ``min_speech_s`` stays; a gap of exactly ``max_gap_s`` is joined.
* A piece of text belongs to the segment during which it is due. One in no segment belongs to the one whose edge is
  nearer, at most ``lead_s`` before its start or ``lag_s`` after its end, both limits included; a tie goes to the segment
  to come, since text runs ahead of audio. Text that is near no segment was never voiced and is left out.

Source: DyaFDB, protocol (energy detector a channel; text from 0.6 s before a segment to 0.3 s after it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsbeval.audio import RATE, Signal
from dsbeval.judge.dyadic import anonymise
from dsbeval.recording import TimedText
from dsbeval.spans import Span, Timeline, to_samples
from dsbeval.vad import energy_spans

FRAME = 1920
"""Samples of a frame on the session clock: 80 ms."""


@dataclass(frozen=True, slots=True)
class EnergySettings:
    """Parameters of the segmentation; the defaults are the benchmark's."""

    opens: float = 0.010
    closes: float = 0.004
    min_speech_s: float = 0.16
    max_gap_s: float = 0.32
    frame: int = FRAME

    def __post_init__(self) -> None:
        if self.frame <= 0:
            raise ValueError(f"frame must be positive, not {self.frame}")
        if not 0 <= self.closes <= self.opens:
            raise ValueError(f"closes ({self.closes}) must be between 0 and opens ({self.opens})")
        if self.min_speech_s < 0 or self.max_gap_s < 0:
            raise ValueError("min_speech_s and max_gap_s must not be negative")


BENCHMARK = EnergySettings()


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech and the text that was written while it was spoken, folded to one line."""

    span: Span
    text: str


def speech_segments(audio: Signal, settings: EnergySettings = BENCHMARK) -> Timeline:
    """Return the speech of a channel: whole frames, short ones dropped, near ones joined."""
    frame = settings.frame
    found = energy_spans(audio, frame, opens=settings.opens, closes=settings.closes)
    on_grid = (Span(span.start, -(-span.end // frame) * frame) for span in found)
    least = to_samples(settings.min_speech_s, RATE)
    kept = Timeline(span for span in on_grid if span.duration >= least)
    return kept.merge(to_samples(settings.max_gap_s, RATE) + 1)  # merge joins what is closer than its argument


def owner(timeline: Timeline, sample: int, *, lead_s: float = 0.6, lag_s: float = 0.3) -> int | None:
    """Return the index of the segment that a piece of text at ``sample`` belongs to, or None."""
    best: tuple[int, int] | None = None
    for index, span in enumerate(timeline):
        if sample in span:
            return index
        before = sample < span.start
        distance = span.start - sample if before else sample - span.end
        reach = to_samples(lead_s if before else lag_s, RATE)
        if distance <= reach and (best is None or distance <= best[0]):
            best = (distance, index)
    return best[1] if best else None


def attach(
    timeline: Timeline, text: Sequence[TimedText], *, lead_s: float = 0.6, lag_s: float = 0.3
) -> tuple[tuple[Segment, ...], tuple[TimedText, ...]]:
    """Return the segments with their text, and the pieces of text that were voiced, in the order of their time."""
    said: list[list[str]] = [[] for _ in timeline]
    voiced: list[TimedText] = []
    for piece in sorted(text, key=lambda piece: piece.sample):
        index = owner(timeline, piece.sample, lead_s=lead_s, lag_s=lag_s)
        if index is not None:
            said[index].append(piece.text)
            voiced.append(piece)
    segments = (Segment(span, " ".join("".join(parts).split())) for span, parts in zip(timeline, said, strict=True))
    return tuple(segments), tuple(voiced)


def transcript(a: Sequence[Segment], b: Sequence[Segment]) -> tuple[str, dict[str, str]]:
    """Return the anonymised transcript of two sides, and which side is which speaker.

    A line a segment that has text, with its start in seconds, ordered by onset; *Speaker A* is whose line is first. Two
    lines that start in the same frame stand in the order of the sides.
    """
    sides = (("a", a), ("b", b))
    return anonymise(
        (side, segment.span.start / RATE, segment.text)
        for side, found in sides
        for segment in found
        if segment.text.strip()
    )
