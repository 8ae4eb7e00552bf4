"""The garble watcher: does a side say what it writes? Scores read the text channel, so one that is not spoken deceives.

Conventions
-----------
* A channel is transcribed by a local recogniser, its speech segments in turn. The *share* is that of the text channel's words
  longer than three characters that the recogniser heard at all, over the first 30 s and over the whole. Both sides are
  normalised alike (:mod:`dsbeval.speech.normalise`); numbers are digits there, and so no such words.
* A side is *flagged* under 0.2 over the first 30 s or under 0.25 over the whole. Fewer than five words are no share: they say
  nothing (ours). An agent that gives no text has none, and is not watched.
* A flagged conversation is recorded again with other seeds, up to five times. What is flagged still is *garbled*: nobody could
  hear the words, so they are scored like words that were not said (:mod:`dsbeval.dyadic.transcript`), and the item of a
  garbled model fails.
* Only the last take is kept. Every take is in ``garble`` of rec.json and of the row, with its seeds and shares.

Source: DyaFDB (arXiv 2610.08125), garble watcher; outside its scoring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dsbeval.audio import RATE
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES, Side
from dsbeval.dyadic.segments import speech_segments
from dsbeval.speech.normalise import normalise
from dsbeval.speech.recognise import ChannelRecogniser


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Parameters of the watcher; the defaults are the benchmark's, but for ``least_words``."""

    first_s: float = 30.0
    first: float = 0.2
    whole: float = 0.25
    longer_than: int = 3
    least_words: int = 5
    again: int = 5


BENCHMARK = Thresholds()


@dataclass(frozen=True, slots=True)
class GarbleWatch:
    """Who listens, and how much must be heard."""

    name: str
    recognise: ChannelRecogniser
    thresholds: Thresholds = BENCHMARK


def as_fingerprint(name: str | None, thresholds: Thresholds = BENCHMARK) -> dict[str, Any] | None:
    """Return what of a watcher makes runs comparable; None where nobody watches."""
    return None if name is None else {"recogniser": name, **asdict(thresholds)}


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a side's text was heard. None where there are too few words to say."""

    words: int
    first: float | None
    whole: float | None

    def flagged(self, thresholds: Thresholds = BENCHMARK) -> bool:
        """Return whether that is too little."""
        first, whole = self.first, self.whole
        return (first is not None and first < thresholds.first) or (whole is not None and whole < thresholds.whole)


def share_heard(recording: DyadRecording, side: Side, watch: GarbleWatch) -> Share:
    """Transcribe the channel of a side and compare it with its text."""
    thresholds = watch.thresholds
    until = round(thresholds.first_s * RATE)
    tokens, audio = recording.text(side), recording.audio(side)
    if not any(token.text.strip() for token in tokens):
        return Share(0, None, None)
    speech = list(speech_segments(audio))
    heard = [normalise(text) for text in watch.recognise([audio[span.start : span.end] for span in speech])]

    def share(end: int) -> tuple[int, float | None]:
        text = "".join(token.text for token in tokens if token.sample < end)
        words = [word for word in normalise(text) if len(word) > thresholds.longer_than]
        known = {word for span, said in zip(speech, heard, strict=True) if span.start < end for word in said}
        enough = len(words) >= max(1, thresholds.least_words)
        return len(words), sum(word in known for word in words) / len(words) if enough else None

    words, whole = share(recording.length + 1)
    return Share(words, share(until)[1], whole)


def record_watched(take: Callable[[int], DyadRecording], watch: GarbleWatch) -> DyadRecording:
    """Record a conversation, and again as long as it is flagged and takes are left.

    Parameters
    ----------
    take : callable
        Records take number 0, 1, ... with seeds of its own.
    watch : GarbleWatch

    Returns
    -------
    DyadRecording
        The last take, with all of them described in its ``meta["garble"]``.
    """
    takes: list[dict[str, Any]] = []
    while True:
        recording = take(len(takes))
        shares = {side: share_heard(recording, side, watch) for side in SIDES}
        flagged = [side for side in SIDES if shares[side].flagged(watch.thresholds)]
        heard = {side: asdict(shares[side]) for side in SIDES}
        takes.append({"seeds": recording.meta["seeds"], "heard": heard, "flagged": flagged})
        if not flagged or len(takes) > watch.thresholds.again:
            garble = {"recogniser": watch.name, "takes": takes, "garbled": flagged}
            return replace(recording, meta={**recording.meta, "garble": garble})


def counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return how often rows were flagged, recorded again and garbled; None where nobody watched."""
    watched = [row for row in rows if row.get("garble")]
    if not watched:
        return None
    garbled = [row[f"model_{side}"] for row in watched for side in row["garble"]["garbled"]]
    return {
        "watched": len(watched),
        "flagged": sum(bool(row["garble"]["takes"][0]["flagged"]) for row in watched),
        "recorded_again": sum(len(row["garble"]["takes"]) - 1 for row in watched),
        "garbled": sum(bool(row["garble"]["garbled"]) for row in watched),
        "garbled_sides": {model: garbled.count(model) for model in sorted(set(garbled))},
    }
