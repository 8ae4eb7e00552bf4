"""The words of F-Actor's speech: from a recogniser that hears its own voice, or from the model's text stream.

The published scores have F-Actor transcribed (NeMo, parakeet-tdt-0.6b-v2), since what it writes and what it says differ.
Nothing is transcribed unless a recogniser is named; the agent then declares that it gives no text.

Conventions
-----------
* Times are in seconds from the start of the audio that the words come with; words that were said in earlier frames have
  negative ones. They rest on the frames being heard one after the other, which the logical clock sees to.
* A recogniser is any function from 16 kHz audio to a text, or to words with the second in which each begins.
* It hears an utterance when that has ended: when :data:`GAP` frames have been quiet, or at the quietest frame of the last two
  seconds once it is :data:`LONGEST` frames long. Levels that open and close an utterance are the dyadic energy detector's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from adapters.f_actor.backbone import AGENT, DELAY, Backbone
from adapters.f_actor.codec import FRAME, RATE
from adapters.local import load_object, load_package
from dsbeval.agent import TextToken
from dsbeval.audio import RATE as CLOCK
from dsbeval.audio import Signal, resample
from dsbeval.errors import AgentError

HEARD_RATE = 16_000
OPENS, CLOSES = 0.010, 0.004
GAP, LONGEST, LOOK_BACK = 6, 100, 25
NEMO_ASR = "nvidia/parakeet-tdt-0.6b-v2"

Words = str | Sequence[tuple[str, float]]
Recogniser = Callable[[Signal], Words]


class Transcript(Protocol):
    """Turns what a session says into text with times."""

    def push(self, audio: Signal, text_id: int) -> tuple[TextToken, ...]:
        """Take a frame of the model's speech, and the text id of its step; return the text that is known now."""

    def finish(self) -> tuple[TextToken, ...]:
        """Return the rest; times count from the end of the last frame."""


class NoTranscript:
    """Nothing."""

    def push(self, audio: Signal, text_id: int) -> tuple[TextToken, ...]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def finish(self) -> tuple[TextToken, ...]:
        """Return nothing."""
        return ()


class StreamWords:
    """The model's own text stream, a word at a time: pads and marks of the stream part the words and are left out.

    The text of step t belongs to audio frame t, which is sampled two steps later: a word is placed there.
    """

    def __init__(self, backbone: Backbone) -> None:
        self._tokenizer, self._marks = backbone.tokenizer, frozenset(backbone.marks.values())
        self._word: list[int] = []
        self._began = 0
        self._step = -1
        self._any = False

    def push(self, audio: Signal, text_id: int) -> tuple[TextToken, ...]:  # noqa: ARG002
        """Return the word that has ended."""
        word = self._take(text_id)
        return self._token(word, self._began - (self._step - DELAY)) if word else ()

    def finish(self) -> tuple[TextToken, ...]:
        """Return the word that had not ended."""
        word, self._word = self._word, []
        return self._token(word, self._began - (self._step - DELAY + 1)) if word else ()

    def _take(self, text_id: int) -> list[int]:
        self._step += 1
        if text_id not in self._marks:
            if not self._word:
                self._began = self._step
            self._word.append(text_id)
            return []
        word, self._word = self._word, []
        return word

    def _token(self, word: list[int], frames: int) -> tuple[TextToken, ...]:
        text = " ".join(self._tokenizer.decode(word).split())
        if not text:
            return ()
        text, self._any = (f" {text}" if self._any else text), True
        return (TextToken(text, frames * FRAME / RATE),)


class Recognised:
    """What a recogniser makes of the model's speech, utterance by utterance."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self._frames: list[Signal] = []  # of the utterance under way, from the frame before it
        self._levels: list[float] = []
        self._open = False
        self._any = False

    def push(self, audio: Signal, text_id: int) -> tuple[TextToken, ...]:  # noqa: ARG002
        """Return the words of an utterance that has ended."""
        self._frames.append(audio)
        self._levels.append(float(np.sqrt(np.mean(np.square(audio, dtype=np.float64)))))
        if not self._open:
            self._open = self._levels[-1] >= OPENS
            if not self._open:
                self._drop(len(self._frames) - 1)
            return ()
        if len(self._frames) > GAP and max(self._levels[-GAP:]) < CLOSES:
            self._open = False
            return self._hear(len(self._frames), 1)
        if len(self._frames) >= LONGEST:
            recent = self._levels[-LOOK_BACK:]
            return self._hear(len(self._frames) - LOOK_BACK + recent.index(min(recent)) + 1, 1)
        return ()

    def finish(self) -> tuple[TextToken, ...]:
        """Return the words of the utterance under way."""
        return self._hear(len(self._frames), 0) if self._open else ()

    def _hear(self, frames: int, ahead: int) -> tuple[TextToken, ...]:
        """Recognise the first ``frames`` frames; the last frame held lies ``ahead`` frames into the emission's audio."""
        begins = (ahead - len(self._frames)) * FRAME / RATE
        audio = resample(np.concatenate(self._frames[:frames]), RATE, HEARD_RATE)
        found = self._recogniser(audio)
        self._drop(frames)
        words = [(found, 0.0)] if isinstance(found, str) else found
        out: list[TextToken] = []
        for text, at in words:
            if text := " ".join(str(text).split()):
                out.append(TextToken(f" {text}" if self._any else text, begins + float(at)))
                self._any = True
        return tuple(out)

    def _drop(self, frames: int) -> None:
        del self._frames[:frames], self._levels[:frames]


def load_recogniser(spec: str, device: str) -> Recogniser:
    """Load ``nemo[:ID or FILE.nemo]``, ``pocketsphinx``, ``faster-whisper:DIR`` or ``package.module:function``.

    Raises :class:`AgentError` when it is none of these, and what the loading raises.
    """
    kind, _, place = spec.partition(":")
    if kind == "nemo":
        return _nemo(place or NEMO_ASR, device)
    if kind in ("pocketsphinx", "faster-whisper"):
        from dsbeval.speech.recognise import load_recogniser as load

        local = load(spec)
        return lambda audio: local(resample(audio, HEARD_RATE, CLOCK))
    if place and "." in kind:
        found = load_object(AGENT, "recogniser", spec)
        if callable(found):
            recogniser: Recogniser = found
            return recogniser
    raise AgentError(
        f"agent {AGENT}: recogniser is {spec!r}; give stream (the model's own text), nemo, nemo:FILE.nemo, pocketsphinx, "
        "faster-whisper:DIR or package.module:function"
    )


def _nemo(place: str, device: str) -> Recogniser:
    models = load_package(AGENT, "nemo.collections.asr.models", "nemo_toolkit[asr]").ASRModel
    model = models.restore_from(place) if place.endswith(".nemo") else models.from_pretrained(place)
    model = model.to(device).eval()

    def recognise(audio: Signal) -> Words:
        heard = model.transcribe([audio], timestamps=True, verbose=False)[0]
        return [(str(word["word"]), float(word["start"])) for word in heard.timestamp["word"]]

    return recognise
