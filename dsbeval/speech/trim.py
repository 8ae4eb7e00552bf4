"""Trim an utterance to its speech, so that a boundary of construction is where speech is.

Conventions
-----------
* Audible: a 5 ms frame within :data:`AUDIBLE_DB` of the utterance's own loud level (the 95th percentile of its sound).
  Most voices are far below it where nobody speaks; a few end in a hiss at -35 dB, which is cut off.
* What remains holds the audible frames and :data:`MARGIN_S` on either side, with a 5 ms fade inside the margin: the
  first and the last audible sound lie within 30 ms of the ends, and nothing clicks.
* The first word starts and the last word ends with the audio. Models put the silence after a text into its last word.
"""

from __future__ import annotations

import numpy as np

from dsbeval.audio import RATE, Signal
from dsbeval.errors import AudioError
from dsbeval.spans import Span, to_samples
from dsbeval.speech.engine import Utterance, WordTime

AUDIBLE_DB = -30.0
FRAME = RATE // 200
MARGIN_S = 0.02
FADE_S = 0.005
_RUN = 2  # frames in a row: a single one is a click, not speech


def audible_extent(audio: Signal, audible_db: float = AUDIBLE_DB) -> Span:
    """Return the samples from the first audible frame to the last. Raises :class:`AudioError` when there is none."""
    frames = np.pad(audio, (0, -audio.size % FRAME)).reshape(-1, FRAME).astype(np.float64)
    level = np.sqrt((frames**2).mean(axis=1))
    # of the frames with anything in them, so that a short word in a long silence has the level of the word
    loud = float(np.percentile(level[level > 0.01 * level.max()], 95)) if level.any() else 0.0
    heard = level > loud * 10 ** (audible_db / 20)
    run = heard.copy()
    for shift in range(1, _RUN):
        run[:-shift] &= heard[shift:]
        run[-shift:] = False
    starts = np.flatnonzero(run)
    if loud < 1e-4 or not starts.size:
        raise AudioError("the utterance is silent; the engine could not speak this text")
    return Span(int(starts[0]) * FRAME, min(audio.size, (int(starts[-1]) + _RUN) * FRAME))


def trim(utterance: Utterance) -> Utterance:
    """Return the utterance from 20 ms before its first audible frame to 20 ms after its last, with its word times."""
    margin, fade = to_samples(MARGIN_S, RATE), to_samples(FADE_S, RATE)
    extent = audible_extent(utterance.audio)
    start, end = max(0, extent.start - margin), min(utterance.audio.size, extent.end + margin)
    audio = utterance.audio[start:end].astype(np.float32, copy=True)
    fade = min(fade, audio.size // 2)
    ramp = np.linspace(0.0, 1.0, fade, endpoint=False, dtype=np.float32)
    audio[:fade] *= ramp
    audio[audio.size - fade :] *= ramp[::-1]
    return Utterance(audio, _moved(utterance.words, -start, audio.size))


def _moved(words: tuple[WordTime, ...], by: int, size: int) -> tuple[WordTime, ...]:
    out: list[WordTime] = []
    for index, word in enumerate(words):
        start = 0 if index == 0 else min(max(word.start + by, out[-1].end), size - 1)
        end = size if index == len(words) - 1 else min(max(word.end + by, start + 1), size)
        out.append(WordTime(word.word, start, end))
    return tuple(out)
