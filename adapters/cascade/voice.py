"""The voice of the agent: sentences turned into speech, and the mouth that lets it out frame by frame.

Conventions
-----------
* Speech is at the session clock, 24 kHz. Sentences are synthesised one by one, trimmed to what is audible and joined
  with a short silence, so that the voice is heard as soon as it starts and a turn is one stretch of speech.
* A mouth returns exactly a frame whenever it is asked: speech, silence, or one and then the other.
* A word is said in the frame in which it begins; a turn that is cut has said only the words that were begun.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from dsbeval.agent import TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError, AudioError
from dsbeval.speech.engine import Engine, WordTime
from dsbeval.speech.trim import trim

BETWEEN_S = 0.15
FADE_S = 0.01
LONGEST_SENTENCE = 18
"""Words of a sentence; a longer one is spoken in pieces."""

_KEPT = 128  # sentences, about 20 MB


@dataclass(frozen=True, eq=False, slots=True)
class Speech:
    """Spoken sentences: audio, words, and the sample at which each sentence ends."""

    audio: Signal
    words: tuple[WordTime, ...]
    ends: tuple[int, ...]

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.audio.size / RATE


class Voice:
    """An engine and a voice of its; keeps what it has said before."""

    def __init__(self, engine: Engine, voice: str) -> None:
        if voice.partition("@")[0] not in engine.voices:
            raise AgentError(f"agent cascade: voice is {voice!r}; it is one of {', '.join(engine.voices)}")
        self._engine = engine
        self._voice = voice
        self._said: OrderedDict[tuple[str, int], tuple[Signal, tuple[WordTime, ...]]] = OrderedDict()

    def speak(self, text: str, seed: int, longest_s: float | None = None) -> Speech:
        """Return ``text`` as speech, without the last sentences where it would be longer than ``longest_s``.

        Raises :class:`AgentError` when there is nothing to speak.
        """
        gap = round(BETWEEN_S * RATE)
        pieces: list[Signal] = []
        words: list[WordTime] = []
        ends: list[int] = []
        size = 0
        for sentence in split_sentences(text):
            audio, times = self._sentence(sentence, seed)
            start = size + gap if pieces else 0
            if longest_s is not None and pieces and start + audio.size > longest_s * RATE:
                break
            if pieces:
                pieces.append(np.zeros(gap, np.float32))
            pieces.append(audio)
            words += (WordTime(word.word, word.start + start, word.end + start) for word in times)
            size = start + audio.size
            ends.append(size)
        if not pieces:
            raise AgentError(f"agent cascade: nothing to say in {text!r}; the writer must return words")
        return Speech(np.concatenate(pieces), tuple(words), tuple(ends))

    def _sentence(self, sentence: str, seed: int) -> tuple[Signal, tuple[WordTime, ...]]:
        key = sentence, seed
        if key not in self._said:
            try:
                spoken = trim(self._engine.synthesize(sentence, self._voice, seed))
            except AudioError as error:
                raise AgentError(f"agent cascade: cannot speak {sentence!r}: {error}") from None
            self._said[key] = spoken.audio, spoken.words
            if len(self._said) > _KEPT:
                self._said.popitem(last=False)
        self._said.move_to_end(key)
        return self._said[key]


def split_sentences(text: str) -> tuple[str, ...]:
    """Split a text into sentences of at most :data:`LONGEST_SENTENCE` words, each with a letter or a digit in it."""
    clean = re.sub(r"[\[\]()*_#`<>{}|\\]", " ", text)  # brackets would be read as pronunciations
    out: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+", " ".join(clean.split())):
        words = sentence.split()
        out += (" ".join(words[i : i + LONGEST_SENTENCE]) for i in range(0, len(words), LONGEST_SENTENCE))
    return tuple(sentence for sentence in out if re.search(r"[A-Za-z0-9]", sentence))


class Mouth:
    """Lets speech out. One of a session."""

    def __init__(self) -> None:
        self._speech: Speech | None = None
        self._cursor = 0
        self._limit = 0
        self._fade = False

    @property
    def speaking(self) -> bool:
        """Whether there is more to come."""
        return self._speech is not None

    @property
    def said_s(self) -> float:
        """Seconds of the speech under way that are out."""
        return self._cursor / RATE

    @property
    def left(self) -> int:
        """Samples of the speech under way that are not out."""
        return self._limit - self._cursor if self._speech is not None else 0

    def start(self, speech: Speech) -> None:
        """Begin with the next frame."""
        self._speech, self._cursor, self._limit, self._fade = speech, 0, speech.audio.size, False

    def stop(self) -> None:
        """Fade out at once."""
        if self._speech is not None:
            self._limit = min(self._limit, self._cursor + round(FADE_S * RATE))
            self._fade = True

    def finish_sentence(self) -> None:
        """Stop at the end of the sentence under way."""
        if self._speech is not None:
            self._limit = min(self._limit, next(end for end in self._speech.ends if end > self._cursor))

    def frame(self, size: int) -> tuple[Signal, tuple[TextToken, ...]]:
        """Return the next ``size`` samples and the words that begin in them."""
        out = np.zeros(size, np.float32)
        speech = self._speech
        if speech is None:
            return out, ()
        end = min(self._cursor + size, self._limit)
        piece = speech.audio[self._cursor : end]
        if self._fade:
            piece = piece * np.linspace(1.0, 0.0, piece.size, dtype=np.float32)
        out[: piece.size] = piece
        tokens = tuple(
            TextToken(f"{word.word} ", (word.start - self._cursor) / RATE)
            for word in speech.words
            if self._cursor <= word.start < end
        )
        self._cursor = end
        if end >= self._limit:
            self._speech = None
        return out, tokens
