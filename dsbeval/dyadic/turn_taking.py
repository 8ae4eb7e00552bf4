"""Turn-taking of one model against its partner, from the speech of the two channels alone.

Everything is a set operation on half-open spans of integer samples, so a measure is exact on whatever grid the spans lie
(80 ms frames in a recording). Speech is clipped to the window first: nothing outside it exists.

Measures
--------
* **TOR_pause** = pauses of the partner into which the model cut / pauses of the partner.
  A *pause* is a silence between two segments of the partner that is shorter than ``turn_end_s``. The model cuts in when an
  utterance of at least ``take_s`` *starts* inside the pause: in the very sample in which the partner stops counts, in the
  sample in which the partner resumes does not. Speech that began before the pause is no cut, but the pause still counts.
* **TOR_end** = turn ends of the partner at which the model took the turn / turn ends of the partner.
  A *turn end* is a silence of the partner of at least ``turn_end_s`` after a segment of it, up to its next one or to the
  end of the window. The model takes the turn with one unbroken stretch of at least ``take_s`` inside that silence; speech
  that began before the partner had ended counts from the partner's end on. A silence at the end of the window that
  is shorter than ``turn_end_s`` is neither a pause nor a turn end, and silence before the partner's first word is neither.
* A **start over the partner** is an utterance that starts while the partner is already speaking: later than the first sample
  of the partner's segment and before its end. Two that start in one sample start over nobody. Each has one outcome:

  1. *won*: while the utterance lasts the partner stops, and the model alone speaks for ``hold_s`` from there;
  2. else *backchannel*: the utterance is shorter than ``backchannel_s`` and the partner speaks on, unbroken, for at least
     ``hold_s`` after its end, whether or not the model comes back meanwhile;
  3. else *lost*: the model stops, and the partner alone speaks for ``hold_s`` from there;
  4. else *undecided*: both stop within ``hold_s`` of each other, or the window ends before it is decided.
* **Backchannels** are counted a conversation. **Barge-in success** = won / (won + lost).
* **Channel occupancy** = exclusive speech of the model / exclusive speech of both. None when neither ever spoke alone: there
  is no share of nothing. It sums to 1 over the two sides.

A duration of exactly a threshold is *at least* it. A share of no occasions is None, never 0.

Source: DyaFDB, turn-taking metrics. The order of the outcomes and the edges above are where its text leaves a choice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dsbeval.audio import RATE
from dsbeval.dyadic.rows import SideTurns
from dsbeval.spans import Span, Timeline, to_samples


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds in seconds; the defaults are the benchmark's."""

    turn_end_s: float = 1.0
    take_s: float = 1.0
    backchannel_s: float = 1.0
    hold_s: float = 0.5

    def __post_init__(self) -> None:
        for name in ("turn_end_s", "take_s", "backchannel_s", "hold_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")


BENCHMARK = Thresholds()

Outcome = Literal["won", "backchannel", "lost", "undecided"]


def share(part: int, whole: int) -> float | None:
    """Return a share; None of nothing."""
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts of one model against its partner in one window; speech in samples."""

    pauses: int
    pauses_cut: int
    ends: int
    ends_taken: int
    backchannels: int
    barge_ins_won: int
    barge_ins_lost: int
    undecided: int
    segments: int
    speech: int
    exclusive: int
    partner_exclusive: int

    @property
    def tor_pause(self) -> float | None:
        """Share of the partner's pauses that the model cut into."""
        return share(self.pauses_cut, self.pauses)

    @property
    def tor_end(self) -> float | None:
        """Share of the partner's turn ends at which the model took the turn."""
        return share(self.ends_taken, self.ends)

    @property
    def barge_in(self) -> float | None:
        """Share of the decided starts over the partner at which the partner yielded."""
        return share(self.barge_ins_won, self.barge_ins_won + self.barge_ins_lost)

    @property
    def occupancy(self) -> float | None:
        """Share of the exclusive speech."""
        return share(self.exclusive, self.exclusive + self.partner_exclusive)

    @property
    def starts_over(self) -> int:
        """How often the model started over the partner."""
        return self.barge_ins_won + self.barge_ins_lost + self.backchannels + self.undecided

    def as_row(self) -> SideTurns:
        """Return the measures as a result row holds them."""
        return {
            "pauses": self.pauses,
            "pauses_cut": self.pauses_cut,
            "ends": self.ends,
            "ends_taken": self.ends_taken,
            "backchannels": self.backchannels,
            "barge_ins_won": self.barge_ins_won,
            "barge_ins_lost": self.barge_ins_lost,
            "undecided": self.undecided,
            "segments": self.segments,
            "speech_s": round(self.speech / RATE, 3),
            "exclusive_s": round(self.exclusive / RATE, 3),
            "tor_pause": self.tor_pause,
            "tor_end": self.tor_end,
            "barge_in": self.barge_in,
            "occupancy": self.occupancy,
        }


def measure(model: Timeline, partner: Timeline, window: Span, thresholds: Thresholds = BENCHMARK) -> Measures:
    """Measure one model against its partner.

    Parameters
    ----------
    model, partner : Timeline
        Speech of the two channels, in samples of the session clock.
    window : Span
        What is measured; speech outside it is cut off.
    thresholds : Thresholds
    """
    model, partner = model.clip(window), partner.clip(window)
    turn_end, take = to_samples(thresholds.turn_end_s, RATE), to_samples(thresholds.take_s, RATE)
    pauses = [gap for gap in _inner_gaps(partner) if gap.duration < turn_end]
    ends = [gap for gap in _silences_after(partner, window) if gap.duration >= turn_end]
    long = [span for span in model if span.duration >= take]
    found = floor_outcomes(model, partner, thresholds)
    both = model.overlap(partner)
    return Measures(
        pauses=len(pauses),
        pauses_cut=sum(any(gap.start <= span.start < gap.end for span in long) for gap in pauses),
        ends=len(ends),
        ends_taken=sum(any(_within(span, gap) >= take for span in long) for gap in ends),
        backchannels=found.count("backchannel"),
        barge_ins_won=found.count("won"),
        barge_ins_lost=found.count("lost"),
        undecided=found.count("undecided"),
        segments=len(model),
        speech=model.duration,
        exclusive=model.duration - both,
        partner_exclusive=partner.duration - both,
    )


def floor_outcomes(model: Timeline, partner: Timeline, thresholds: Thresholds = BENCHMARK) -> list[Outcome]:
    """Return the outcome of each start over the partner, in order. Nothing is cut off: clip to the window before."""
    own, other = _Lane(model), _Lane(partner)
    return [_outcome(span, own, other, thresholds) for span in model if other.at(span.start - 1, span.start + 1)]


def measure_both(a: Timeline, b: Timeline, window: Span, thresholds: Thresholds = BENCHMARK) -> dict[str, Measures]:
    """Return the measures of both sides."""
    return {"a": measure(a, b, window, thresholds), "b": measure(b, a, window, thresholds)}


def _within(span: Span, gap: Span) -> int:
    return min(span.end, gap.end) - max(span.start, gap.start)


def _inner_gaps(speech: Timeline) -> Iterator[Span]:
    for one, other in zip(speech.spans, speech.spans[1:], strict=False):
        yield Span(one.end, other.start)


def _silences_after(speech: Timeline, window: Span) -> Iterator[Span]:
    yield from _inner_gaps(speech)
    if speech.spans and speech[-1].end < window.end:
        yield Span(speech[-1].end, window.end)


class _Lane:
    """A channel in which a sample is found quickly: a run measures many utterances at many thresholds."""

    def __init__(self, speech: Timeline) -> None:
        self.spans = speech.spans
        self._starts = [span.start for span in speech]

    def at(self, start: int, end: int) -> Span | None:
        """Return the one segment that covers all samples from ``start`` to ``end``, or None."""
        index = bisect_right(self._starts, start) - 1
        return self.spans[index] if index >= 0 and end <= self.spans[index].end else None

    def silent(self, start: int, end: int) -> bool:
        """Whether no sample from ``start`` to ``end`` is covered."""
        index = bisect_left(self._starts, end) - 1
        return index < 0 or self.spans[index].end <= start

    def stops(self, start: int, end: int) -> Iterator[int]:
        """Yield the ends of segments after ``start`` and before ``end``."""
        for index in range(max(bisect_right(self._starts, start) - 1, 0), bisect_left(self._starts, end)):
            if start < self.spans[index].end < end:
                yield self.spans[index].end


def _outcome(utterance: Span, model: _Lane, partner: _Lane, thresholds: Thresholds) -> Outcome:
    hold = to_samples(thresholds.hold_s, RATE)
    if any(_alone(model, partner, stop, hold) for stop in partner.stops(utterance.start, utterance.end)):
        return "won"
    goes_on = partner.at(utterance.end, utterance.end + hold) is not None
    if goes_on and utterance.duration < to_samples(thresholds.backchannel_s, RATE):
        return "backchannel"
    return "lost" if goes_on and _alone(partner, model, utterance.end, hold) else "undecided"


def _alone(speaker: _Lane, other: _Lane, start: int, hold: int) -> bool:
    """Whether one speaks, unbroken, and the other is silent for ``hold`` samples from ``start`` on."""
    return speaker.at(start, start + hold) is not None and other.silent(start, start + hold)
