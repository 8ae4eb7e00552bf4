"""Where the audio of a service plays, and when its text is due.

Conventions
-----------
* Times are ``time.monotonic()``, as arrivals are stamped. Audio plays at ``max(arrival, end of what is queued)``, as the
  channel of the recording places it: a burst plays out in real time, a stall leaves a hole.
* The service sends text without times. It is spread over its item's audio by characters: exactly in proportion once both are
  complete, until then at :data:`CHARACTERS_A_SECOND`. It is given out word by word when it is heard, so text that never was
  is in no recording.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from dsbeval.agent import Emission, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError

CHARACTERS_A_SECOND = 15.0
"""An ordinary rate of spoken English."""

_WORD = re.compile(r"\s*\S+\s*|\s+")


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
    """As they came: in pieces of any size."""
    complete: bool = False
    """Neither audio nor text is expected any more."""
    cut: float = math.inf
    """What would play after this was dropped."""
    _odd: bytes = b""
    _given: int = 0
    _last: float = -math.inf

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
        """Return the words that have come to be heard since the last time, each with when.

        A word that may still grow is kept back.
        """
        out: list[tuple[float, str]] = []
        text = "".join(self.words)
        a_character = self.samples / max(len(text), 1) if self.complete else RATE / CHARACTERS_A_SECOND
        for word in _WORD.findall(text[self._given :]):
            # Never before the word before it, though the estimate that placed that one has changed since.
            at = max(self.when(self._given * a_character), self._last)
            grows = self._given + len(word) == len(text) and not self.complete
            if at > now or at == math.inf or (grows and not word[-1:].isspace()):
                break
            out.append((at, word))
            self._given += len(word)
            self._last = at
        return out


def spoken(texts: list[tuple[float, str]], head: Playhead) -> Emission:
    """Return text with the times at which it is heard as an emission without audio, in the order of the times."""
    texts = sorted(texts, key=lambda text: text[0])  # by nothing else: words of one time stay in their order
    first = texts[0][0]
    base = max(first, head.ends)  # where the recording would place audio that arrives then
    return Emission(text=tuple(TextToken(text, at - base) for at, text in texts), arrived=first)
