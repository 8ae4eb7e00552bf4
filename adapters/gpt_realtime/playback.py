"""Where the audio of a service plays, and when its text is due.

Conventions
-----------
* Times are ``time.monotonic()``, as arrivals are stamped. Audio plays at ``max(arrival, end of what is queued)``, as the
  channel of the recording places it: a burst plays out in real time, a stall leaves a hole.
* The service sends text without times. It is spread over its item's audio by characters: exactly in proportion once both are
  complete, until then at :data:`CHARACTERS_A_SECOND`. It is given out when it is heard, so text that never was is in no
  recording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dsbeval.agent import Emission, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError

CHARACTERS_A_SECOND = 15.0
"""An ordinary rate of spoken English."""


@dataclass
class Playhead:
    """The end of what is queued."""

    ends: float = -math.inf

    def play(self, samples: int, arrived: float) -> float:
        """Queue audio and return when it begins to play."""
        start = max(arrived, self.ends)
        self.ends = start + samples / RATE
        return start

    def flush(self, at: float) -> None:
        """Drop what would play after ``at``."""
        self.ends = min(self.ends, at)


@dataclass
class Utterance:
    """One spoken item: its audio where it plays, and its text."""

    item: str
    content_index: int = 0
    pieces: list[tuple[float, int]] = field(default_factory=list)
    samples: int = 0
    """Received."""
    words: list[str] = field(default_factory=list)
    complete: bool = False
    """Neither audio nor text is expected any more."""
    cut: float = math.inf
    """What would play after this was dropped."""
    _odd: bytes = b""
    _given: int = 0

    def decode(self, pcm: bytes) -> Signal:
        """Return PCM16 as audio; half a sample is kept for the next piece."""
        pcm = self._odd + pcm
        whole = len(pcm) // 2 * 2
        self._odd = pcm[whole:]
        return np.frombuffer(pcm[:whole], "<i2").astype(np.float32) / np.float32(32768.0)

    def finish(self) -> None:
        """Expect no more. Raises :class:`AgentError` when half a sample is left over."""
        self.complete = True
        if self._odd:
            raise AgentError(f"the audio of {self.item} ends in the middle of a sample; it is not PCM16")

    def heard(self, at: float) -> int:
        """Return how many samples have been played at a time."""
        at = min(at, self.cut)
        return sum(min(max(0, int((at - start) * RATE)), samples) for start, samples in self.pieces)

    def when(self, sample: float) -> float:
        """Return when a sample is heard; infinite for one that never is."""
        for start, samples in self.pieces:
            if sample < samples:
                at = start + sample / RATE
                return at if at < self.cut else math.inf
            sample -= samples
        return math.inf

    def due(self, now: float) -> list[tuple[float, str]]:
        """Return the text that has come to be heard since the last time, each piece with when."""
        out: list[tuple[float, str]] = []
        characters = sum(map(len, self.words))
        a_character = self.samples / max(characters, 1) if self.complete else RATE / CHARACTERS_A_SECOND
        before = sum(map(len, self.words[: self._given]))
        for word in self.words[self._given :]:
            at = self.when(before * a_character)
            if at > now:
                break
            out.append((at, word))
            before += len(word)
            self._given += 1
        return out


def spoken(texts: list[tuple[float, str]], head: Playhead) -> Emission:
    """Return text with the times at which it is heard as an emission without audio."""
    first = texts[0][0]
    base = max(first, head.ends)  # where the recording would place audio that arrives then
    return Emission(text=tuple(TextToken(text, at - base) for at, text in texts), arrived=first)
