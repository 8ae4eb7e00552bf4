"""What one side of a bridge hears of the other, tick by tick, in frames of its own length and rate.

Conventions
-----------
* A tick is 80 ms (:data:`TICK`).
* An agent that hears at another rate than its partner speaks is fed through the one streaming resampler. It is late by
  its filter, rounded up to a whole sample of the session clock (``heard_late`` in the recording, 37 to 84 ms): a constant,
  and the only thing that rates change. Channels are resampled once, whole, when the session has ended.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dsbeval.audio import RATE, Signal, StreamResampler
from dsbeval.errors import AgentError

TICK = 1920
"""A tick on the session clock: 80 ms."""


@functools.cache
def lateness(source: int, target: int) -> int:
    """Return how many target samples the streaming resampler is late at most, fed a tick at a time.

    Rounded up to a whole sample of the session clock.
    """
    if source == target:
        return 0
    stream, ready, late = StreamResampler(source, target), 0, 0
    for tick in range(500):
        piece = round((tick + 1) * TICK * source / RATE) - round(tick * TICK * source / RATE)
        ready += stream.push(np.zeros(piece, np.float32)).size
        late = max(late, math.ceil((tick + 1) * TICK * target / RATE) - ready)
    whole = target // math.gcd(target, RATE)
    return -(-late // whole) * whole


class Ear:
    """Cuts what the other side plays into the frames of one agent."""

    def __init__(self, source: int, target: int, frame: int) -> None:
        late = lateness(source, target)
        self._stream = StreamResampler(source, target)
        self._held = np.zeros(late, np.float32)
        self._frame = frame
        self.late = late * RATE // target
        """Samples of the session clock by which everything is heard late."""

    def push(self, audio: Signal) -> None:
        """Hear what was played in a tick."""
        ready = self._stream.push(audio)
        self._held = np.concatenate([self._held, ready]) if self._held.size else ready.copy()

    def frame(self) -> Signal:
        """Return the next frame, which nobody else writes to."""
        if self._held.size < self._frame:
            raise AgentError(f"the resampler holds {self._held.size} samples of a frame of {self._frame}")
        frame, self._held = self._held[: self._frame].copy(), self._held[self._frame :]
        return frame
