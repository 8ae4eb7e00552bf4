"""What the tests of ``cascade`` share: users made of synthesised speech, and a conversation with the agent."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass

import numpy as np

from adapters.cascade import FRAME, Cascade
from dsbeval.agent import Emission, Session
from dsbeval.audio import RATE, Signal
from dsbeval.spans import Span, Timeline
from dsbeval.speech.engine import Engine, Utterance
from dsbeval.speech.engines import load_engine
from dsbeval.speech.trim import trim
from dsbeval.vad import speech_timeline

HELLO = "Hello, I would like to talk with you about our garden today."


@functools.cache
def engine() -> Engine:
    return load_engine("hibari")


@functools.cache
def agent() -> Cascade:
    return Cascade()


@functools.cache
def spoken(text: str, voice: str = "m2") -> Utterance:
    return trim(engine().synthesize(text, voice, 0))


def silence(seconds: float) -> Signal:
    return np.zeros(round(seconds * RATE), np.float32)


@dataclass(frozen=True)
class User:
    """A user channel and where each of its texts lies in it, in seconds."""

    audio: Signal
    said: tuple[tuple[float, float], ...]


def user(*parts: str | float) -> User:
    """Texts are spoken, numbers are seconds of silence."""
    pieces: list[Signal] = []
    said: list[tuple[float, float]] = []
    size = 0
    for part in parts:
        piece = spoken(part).audio if isinstance(part, str) else silence(part)
        if isinstance(part, str):
            said.append((size / RATE, (size + piece.size) / RATE))
        pieces.append(piece)
        size += piece.size
    audio = np.concatenate(pieces)
    return User(np.pad(audio, (0, -audio.size % FRAME)), tuple(said))


@dataclass(frozen=True)
class Talk:
    """The agent's channel on the user's clock, and its words with their times."""

    audio: Signal
    words: tuple[tuple[float, str], ...]
    flushes: tuple[float, ...]

    @property
    def text(self) -> str:
        return "".join(word for _, word in self.words).strip()

    @functools.cached_property
    def speech(self) -> Timeline:
        return speech_timeline(self.audio)

    @property
    def starts(self) -> list[float]:
        return [span.start / RATE for span in self.speech]

    def silent(self, start: float, end: float) -> bool:
        """Whether no speech of the agent lies between two times."""
        return not self.speech.touching(Span.from_seconds(start, end, RATE))


def feed(session: Session, audio: Signal) -> Talk:
    """Play a whole channel to an open session."""
    out = np.zeros(audio.size + FRAME, np.float32)
    words: list[tuple[float, str]] = []
    flushes: list[float] = []
    for start in range(0, audio.size, FRAME):
        emission = session.step(audio[start : start + FRAME])
        assert isinstance(emission, Emission)
        assert emission.audio.shape == (FRAME,)
        heard_from = start + FRAME  # the emission of a frame is heard from the end of the frame on
        out[heard_from : heard_from + FRAME] = emission.audio
        words += ((heard_from / RATE + token.offset_s, token.text) for token in emission.text)
        if emission.flush:
            flushes.append(heard_from / RATE)
    return Talk(out, tuple(words), tuple(flushes))


_TALKS: dict[tuple[str, bytes, int], Talk] = {}


def talk(prompt: str, audio: Signal, seed: int = 0) -> Talk:
    """Have a conversation in a session of its own; the same one is had once."""
    key = prompt, hashlib.sha256(audio.tobytes()).digest(), seed
    if key not in _TALKS:
        with agent().open(prompt, seed) as session:
            _TALKS[key] = feed(session, audio)
    return _TALKS[key]


def plain(text: str) -> list[str]:
    """Return lower-case words."""
    return re.findall(r"[a-z']+", text.lower())
