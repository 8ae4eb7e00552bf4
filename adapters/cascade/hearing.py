"""What one session hears: where the user speaks, and in which words.

Conventions
-----------
* Audio comes in frames at the session clock, 24 kHz. The voice activity model and the recogniser run at 16 kHz on the
  same resampled stream.
* A stretch of speech begins at its first chunk of 32 ms that is speech, known two chunks later, and ends
  :data:`HANG_OVER_S` before the first quiet chunk of at least 90 ms: the model keeps saying speech for about that long
  after the sound has stopped.
* The recogniser hears a stretch from a quarter of a second before its onset, and pauses shorter than
  :data:`UTTERANCE_PAUSE_S` are inside an utterance.
* Words are numbered from the start of the session, and only the last :data:`KEPT_WORDS` are kept, so memory does not
  grow.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from adapters.cascade.recognise import RATE, Recogniser
from dsbeval.audio import RATE as CLOCK
from dsbeval.audio import Signal, StreamResampler
from dsbeval.vad import BENCHMARK, CHUNK, SpeechProbability

HANG_OVER_S = 0.07
ONSET_CHUNKS = 2
QUIET_CHUNKS = 3
PRE_ROLL_S = 0.25
UTTERANCE_PAUSE_S = 0.3
UTTERANCE_LONG_S = 15.0
UTTERANCE_MOST_S = 25.0
KEPT_WORDS = 160

_LEVEL = 0.5
_QUIETEST = 0.02
_DECAY = 0.989  # of the peak, a frame of speech: half in five seconds


@dataclass(frozen=True, slots=True)
class Heard:
    """What is known at the end of a frame; times in seconds of the session.

    Parameters
    ----------
    now : float
    talking : bool
        Whether the user is speaking.
    onset_s : float
        Start of the last stretch of speech; -1 before the first.
    end_s : float
        Its audible end, or ``now`` while it lasts.
    pause_s : float
        The silence before it.
    settled : bool
        Whether every word is final.
    words : int
        Number of words heard so far in the session.
    last : str
        The last utterance, final or not.
    """

    now: float
    talking: bool
    onset_s: float
    end_s: float
    pause_s: float
    settled: bool
    words: int
    last: str


class Endpointer:
    """Silero probabilities turned into stretches of speech as they come. Times in 16 kHz samples."""

    def __init__(self) -> None:
        self._model = SpeechProbability()
        self._chunks = 0
        self._loud = 0
        self._quiet = 0
        self.onset = -1
        self.end = 0
        self.pause = 0
        self.talking = False
        self.dip = True

    def push(self, audio: Signal) -> None:
        """Hear the next piece."""
        for probability in self._model.push(audio).tolist():
            start = self._chunks * CHUNK
            self._chunks += 1
            self.dip = probability < BENCHMARK.exit_threshold
            if probability >= BENCHMARK.threshold:
                self._loud += 1
                self._quiet = 0
                if not self.talking and self._loud == ONSET_CHUNKS:
                    self.talking = True
                    self.onset = start - (ONSET_CHUNKS - 1) * CHUNK
                    self.pause = self.onset - self.end
            elif self.dip:
                self._loud = 0
                self._quiet += 1
                if self.talking and self._quiet == QUIET_CHUNKS:
                    self.talking = False
                    first_quiet = start - (QUIET_CHUNKS - 1) * CHUNK
                    self.end = max(self.onset, first_quiet - round(HANG_OVER_S * RATE))


class Hearing:
    """Endpointing and recognition of one session."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self._resampler = StreamResampler(CLOCK, RATE)
        self._endpointer = Endpointer()
        self._clock = 0
        self._received = 0  # 16 kHz samples
        self._recent: deque[Signal] = deque()
        self._recent_size = 0
        self._begun: int | None = None
        self._recognised = 0  # up to here the recogniser has heard
        self._peak = 0.0
        self._final: deque[str] = deque()
        self._dropped = 0
        self._open: list[str] = []
        self._last = ""

    def push(self, frame: Signal) -> Heard:
        """Hear one frame and return what is known at its end."""
        self._clock += frame.size
        audio = self._resampler.push(frame)
        ears = self._endpointer
        ears.push(audio)
        self._received += audio.size
        self._remember(audio)
        if ears.talking and self._begun is None:
            self._begin()
        elif self._begun is not None:
            self._recogniser.push(self._levelled(audio))
        if self._begun is not None:
            self._open = self._recogniser.partial().split()
            self._last = " ".join(self._open) or self._last
            if self._is_over():
                self._end()
        now = self._clock / CLOCK
        return Heard(
            now=now,
            talking=ears.talking,
            onset_s=ears.onset / RATE if ears.onset >= 0 else -1.0,
            end_s=now if ears.talking else ears.end / RATE,
            pause_s=ears.pause / RATE,
            settled=self._begun is None,
            words=self._dropped + len(self._final) + len(self._open),
            last=self._last,
        )

    def text(self, start: int) -> str:
        """Return the words from number ``start`` on, as far as they are kept."""
        words = [*self._final, *self._open]
        return " ".join(words[max(0, start - self._dropped) :])

    def _remember(self, audio: Signal) -> None:
        self._recent.append(audio)
        self._recent_size += audio.size
        while self._recent_size - self._recent[0].size >= RATE:
            self._recent_size -= self._recent.popleft().size

    def _begin(self) -> None:
        recent = np.concatenate(self._recent)
        onset = max(self._endpointer.onset - round(PRE_ROLL_S * RATE), self._recognised)
        self._begun, self._last = self._received, ""
        self._recogniser.begin()
        self._recogniser.push(self._levelled(recent[max(0, recent.size - (self._received - onset)) :]))

    def _levelled(self, audio: Signal) -> Signal:
        """Bring a quiet or a loud talker near the level that the models were trained on, slowly."""
        if audio.size and self._endpointer.talking:
            self._peak = max(float(np.abs(audio).max()), self._peak * _DECAY, _QUIETEST)
        return (audio * np.float32(_LEVEL / self._peak)).astype(np.float32, copy=False)

    def _is_over(self) -> bool:
        ears = self._endpointer
        if not ears.talking:
            return self._received - ears.end >= UTTERANCE_PAUSE_S * RATE
        age = (self._received - (self._begun or 0)) / RATE
        return age > UTTERANCE_MOST_S or (age > UTTERANCE_LONG_S and ears.dip)

    def _end(self) -> None:
        words = self._recogniser.end().split()
        self._begun, self._open, self._recognised = None, [], self._received
        self._final.extend(words)
        self._last = " ".join(words) or self._last
        while len(self._final) > KEPT_WORDS:
            self._final.popleft()
            self._dropped += 1
