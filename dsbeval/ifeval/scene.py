"""What is measured in a recording, before any threshold is applied.

Conventions
-----------
* All positions are integer samples of the 24 kHz session clock; those of a :class:`Measurements` are relative to the
  start of the scored window.
* User edges are exact: they come from construction. Model edges come from the VAD, merged at 0.3 s, and are then
  moved inwards over digital silence: where every sample is exactly zero nothing was said, so an edge cannot lie
  there. An agent that starts in the sample at which the window opens is measured at 0, not at minus the VAD's
  padding.
* *genuine* is the onset of the first model span that starts inside the window; speech already under way is not counted.
* Nothing here depends on a threshold, so thresholds can be changed without the model and without the VAD.

Source: DSB-IFEval, verifier section and appendices D.2, E.2, E.4.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal, to_pcm16
from dsbeval.recording import Recording
from dsbeval.spans import Span, Timeline
from dsbeval.vad import speech_timeline


def audible(audio: Signal, timeline: Timeline) -> Timeline:
    """Move the edges of each span inwards over exact digital silence; a span with nothing in it goes."""
    sounding = np.flatnonzero(to_pcm16(audio))  # as a recording holds it, so that memory and disk measure alike
    out: list[Span] = []
    for span in timeline:
        first = int(np.searchsorted(sounding, span.start))
        last = int(np.searchsorted(sounding, span.end)) - 1
        if first <= last:
            out.append(Span(int(sounding[first]), int(sounding[last]) + 1))
    return Timeline(out)


@dataclass(frozen=True, slots=True)
class ModelSpan:
    """A model span that touches the window: edges from the window's start, and how the user's turn lies about it."""

    start: int
    end: int
    in_user_turn: bool
    user_resumes: bool

    @property
    def duration(self) -> int:
        """Length in samples."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Measurements:
    """The numbers of a case. Samples relative to the window's start, unless said otherwise."""

    window: Span
    observed: int
    spans: tuple[ModelSpan, ...]
    speaking_at_start: bool
    genuine: int | None
    first_offset: int | None
    covered: int
    nearest: int | None
    overlap: int
    spoke: bool
    forced: bool
    target_tokens: int
    matched_tokens: int
    speech: Timeline = field(default_factory=lambda: Timeline(()))
    """All model speech, in session samples: no verdict reads it, a picture does."""

    @property
    def onsets(self) -> tuple[ModelSpan, ...]:
        """The spans that start inside the window."""
        return tuple(s for s in self.spans if 0 <= s.start < self.window.duration)

    @property
    def coverage(self) -> float | None:
        """Share of the read-back target that was said, or None where nothing is to be read back."""
        return self.matched_tokens / self.target_tokens if self.target_tokens else None

    def label(self, ceiling: int) -> str:
        """Return silent, backchannel or floor_take; ``ceiling`` is the longest backchannel, in samples (exclusive)."""
        if not self.spans:
            return "silent"
        if all(s.in_user_turn and s.user_resumes and s.duration < ceiling for s in self.spans):
            return "backchannel"
        return "floor_take"

    def as_dict(self) -> dict[str, Any]:
        """Return the measurements as plain data: seconds for people, samples for scoring again."""
        return {
            "window_s": [round(self.window.start / RATE, 3), round(self.window.end / RATE, 3)],
            "observed_s": round(self.observed / RATE, 3),
            "genuine_s": _seconds(self.genuine),
            "first_offset_s": _seconds(self.first_offset),
            "covered_s": _seconds(self.covered),
            "nearest_s": _seconds(self.nearest),
            "overlap_s": _seconds(self.overlap),
            "spans_s": [[_seconds(s.start), _seconds(s.end)] for s in self.spans],
            "speaking_at_start": self.speaking_at_start,
            "spoke": self.spoke,
            "barge_in_forced": self.forced,
            "coverage": None if self.coverage is None else round(self.coverage, 4),
            "target_tokens": self.target_tokens,
            "matched_tokens": self.matched_tokens,
            "samples": {
                "window": [self.window.start, self.window.end],
                "observed": self.observed,
                "genuine": self.genuine,
                "first_offset": self.first_offset,
                "covered": self.covered,
                "nearest": self.nearest,
                "overlap": self.overlap,
                "spans": [[s.start, s.end, s.in_user_turn, s.user_resumes] for s in self.spans],
                "speech": [[s.start, s.end] for s in self.speech],
            },
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Measurements:
        """Return the measurements that :meth:`as_dict` wrote."""
        exact = data["samples"]
        return cls(
            window=Span(*exact["window"]),
            observed=exact["observed"],
            spans=tuple(ModelSpan(*span) for span in exact["spans"]),
            speaking_at_start=data["speaking_at_start"],
            genuine=exact["genuine"],
            first_offset=exact["first_offset"],
            covered=exact["covered"],
            nearest=exact["nearest"],
            overlap=exact["overlap"],
            spoke=data["spoke"],
            forced=data["barge_in_forced"],
            target_tokens=data["target_tokens"],
            matched_tokens=data["matched_tokens"],
            speech=Timeline(Span(*span) for span in exact.get("speech", ())),
        )


def _seconds(samples: int | None) -> float | None:
    return None if samples is None else round(samples / RATE, 3)


def measure(
    window: Span,
    model: Timeline,
    user: Timeline,
    length: int,
    *,
    forced: bool = False,
    target: str = "",
    said: str = "",
) -> Measurements:
    """Measure one case.

    Parameters
    ----------
    window : Span
        The scored window, in session samples.
    model, user : Timeline
        Speech of the agent (detected) and of the user's turn 2 (by construction).
    length : int
        Samples recorded; the window may reach past them.
    forced : bool
        Whether a barge-in came in on silence, after its timeout.
    target, said : str
        Words that must be read back, and the agent's text from the window's start on.
    """
    w0 = window.start
    turn = user.extent
    observed = min(window.end, length) - w0
    touching = model.touching(window)
    onsets = model.starting_in(window)
    offsets = [span.end for span in model if span.end >= w0]
    matched, total = readback_match(target, said)
    return Measurements(
        window=window,
        observed=max(0, observed),
        spans=tuple(
            ModelSpan(
                s.start - w0,
                s.end - w0,
                in_user_turn=turn is not None and s.start in turn,
                user_resumes=turn is not None and turn.end > s.end,
            )
            for s in touching
        ),
        speaking_at_start=model.at(w0) is not None,
        genuine=onsets[0].start - w0 if onsets else None,
        first_offset=min(offsets) - w0 if offsets else None,
        covered=model.clip(window).duration,
        nearest=_nearest(model, window),
        overlap=model.clip(window).overlap(user),
        spoke=len(model) > 0,
        forced=forced,
        target_tokens=total,
        matched_tokens=matched,
        speech=model,
    )


def _nearest(model: Timeline, window: Span) -> int | None:
    """Return the distance from the window to the nearest model speech outside it; 0 when it touches, None when there is none."""
    distances = [max(span.start - window.end, window.start - span.end, 0) for span in model]
    return min(distances) if distances else None


def measure_recording(recording: Recording) -> Measurements:
    """Measure a recording of an episode: run the VAD over the agent's channel and read the rest from what was written."""
    meta = recording.meta
    window = Span(int(meta["window"]["start"]), int(meta["window"]["end"]))
    user = Timeline(
        Span(int(s["start"]), int(s["end"])) for s in meta["user"] if s["type"] == "speech" and s["turn"] == 2
    )
    model = audible(recording.model, speech_timeline(recording.model))
    said = "".join(token.text for token in recording.text if token.sample >= window.start)
    return measure(
        window,
        model,
        user,
        recording.length,
        forced=bool(meta["barge_in_forced"]),
        target=str(meta["readback_target"]),
        said=said,
    )


_TOKEN = re.compile(r"[a-z0-9]+")
_DIGITS = {
    "zero": "0", "oh": "0", "one": "1", "two": "2", "three": "3", "four": "4",
    "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
}  # fmt: skip


def normalise(text: str) -> list[str]:
    """Return the tokens of a read-back: lower case, spelled digits as figures, runs of digits split into single ones."""
    out: list[str] = []
    for token in _TOKEN.findall(text.lower()):
        word = _DIGITS.get(token, token)
        out.extend(word if word.isdigit() else [word])
    return out


def readback_match(target: str, said: str) -> tuple[int, int]:
    """Return how many of the target's tokens were said, each said token counting once, and how many there are."""
    wanted, heard = normalise(target), Counter(normalise(said))
    matched = 0
    for token in wanted:
        if heard[token] > 0:
            heard[token] -= 1
            matched += 1
    return matched, len(wanted)
