"""Speech recognition behind one small protocol: pocketsphinx as it streams, or a Whisper model utterance by utterance.

Conventions
-----------
* A recogniser belongs to one session and hears one utterance at a time, at 16 kHz. What it returns is lower case, words
  and apostrophes only.
* Recognisers share nothing that changes with use. A pocketsphinx decoder is lent to one session at a time and is put
  back into its first state.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dsbeval.audio import Signal, to_pcm16
from dsbeval.errors import AgentError

RATE = 16_000


class Recogniser(Protocol):
    """Hears one utterance after another."""

    def begin(self) -> None:
        """Begin an utterance."""

    def push(self, audio: Signal) -> None:
        """Hear the next piece."""

    def partial(self) -> str:
        """Return the words so far; they may still change. Empty where the engine does not stream."""

    def end(self) -> str:
        """End the utterance and return its words."""


class Recognition(Protocol):
    """An engine, loaded once, that lends recognisers."""

    def lend(self) -> Recogniser:
        """Return a recogniser in a fresh state."""

    def give_back(self, recogniser: Recogniser) -> None:
        """Take back what was lent."""


def load_recognition(name: str) -> Recognition:
    """Load ``pocketsphinx`` or ``whisper:DIR``. Raises :class:`AgentError` when it is neither or not installed."""
    if name == "pocketsphinx":
        return Sphinx()
    engine, _, folder = name.partition(":")
    if engine == "whisper" and folder:
        return Whisper(Path(folder))
    raise AgentError(
        f"agent cascade: asr is {name!r}; give pocketsphinx, or whisper:DIR with the folder of a CTranslate2 Whisper "
        f"model"
    )


def plain_words(text: str) -> str:
    """Return lower-case words without punctuation and doubled spaces, digits that sound like words put right."""
    return " ".join(_digits_heard(re.findall(r"[a-z0-9]+(?:'[a-z]+)*", text.lower().replace("’", "'"))))


_DIGITS = frozenset(("zero", "oh", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"))
_SOUNDS_LIKE = {"for": "four", "fore": "four", "to": "two", "too": "two", "ate": "eight", "won": "one"}


def _digits_heard(words: list[str]) -> list[str]:
    """Replace a word that sounds like a digit by the digit where digits stand on both sides, or two of them on one."""
    words = ["oh" if word == "o" else word for word in words]
    digit = [word in _DIGITS for word in words]
    for i, word in enumerate(words):
        if word in _SOUNDS_LIKE:
            before, after = digit[max(0, i - 2) : i][::-1], digit[i + 1 : i + 3]
            if (before[:1] == [True] == after[:1]) or before == [True, True] or after == [True, True]:
                words[i], digit[i] = _SOUNDS_LIKE[word], True
    return words


class Sphinx:
    """pocketsphinx with the US English model of its package."""

    def __init__(self) -> None:
        if importlib.util.find_spec("pocketsphinx") is None:
            raise AgentError("agent cascade: the package pocketsphinx is not installed; run: pip install pocketsphinx")
        self._free: list[_SphinxRecogniser] = []

    def lend(self) -> Recogniser:
        """Return a recogniser whose channel estimate is that of a new decoder."""
        if not self._free:
            return _SphinxRecogniser()
        recogniser = self._free.pop()
        recogniser.forget()
        return recogniser

    def give_back(self, recogniser: Recogniser) -> None:
        """Keep the decoder for the next session: loading one takes half a second."""
        if isinstance(recogniser, _SphinxRecogniser):
            self._free.append(recogniser)


# A narrower search and no second pass: less than half the work, and the same word error rate within its noise
# (docs/agents.md).
_SEARCH: dict[str, Any] = {"maxhmmpf": 3000, "maxwpf": 20, "topn": 2, "fwdflat": False}


class _SphinxRecogniser:
    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder: Any = Decoder(samprate=RATE, loglevel="FATAL", **_SEARCH)
        self._open = False

    def forget(self) -> None:
        """Drop an open utterance, and the channel estimate that carries over from one utterance to the next."""
        if self._open:
            self.end()
        self._decoder.reinit_feat()

    def begin(self) -> None:
        self._decoder.start_utt()
        self._open = True

    def push(self, audio: Signal) -> None:
        if audio.size:
            self._decoder.process_raw(to_pcm16(audio).tobytes())

    def partial(self) -> str:
        return self._words()

    def end(self) -> str:
        self._decoder.end_utt()
        self._open = False
        return self._words()

    def _words(self) -> str:
        found = self._decoder.hyp()
        return plain_words(found.hypstr) if found else ""


class Whisper:
    """A CTranslate2 Whisper model from a folder of the user's; it hears an utterance when it has ended."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "model.bin").is_file():
            raise AgentError(
                f"agent cascade: asr: {folder} holds no model.bin; give the folder of a Whisper model converted for "
                f"CTranslate2"
            )
        try:
            engine: Any = importlib.import_module("faster_whisper")
        except ImportError:
            raise AgentError(
                "agent cascade: asr: faster-whisper is not installed; run: pip install faster-whisper"
            ) from None
        self._model: Any = engine.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def lend(self) -> Recogniser:
        """Return a recogniser; the model itself keeps no state."""
        return _WhisperRecogniser(self._model)

    def give_back(self, recogniser: Recogniser) -> None:
        """Nothing to keep."""


class _WhisperRecogniser:
    def __init__(self, model: Any) -> None:
        self._model = model
        self._held: list[Signal] = []

    def begin(self) -> None:
        self._held = []

    def push(self, audio: Signal) -> None:
        self._held.append(audio)

    def partial(self) -> str:
        return ""

    def end(self) -> str:
        audio = np.concatenate(self._held) if self._held else np.zeros(0, np.float32)
        self._held = []
        if audio.size < RATE // 10:
            return ""
        segments, _ = self._model.transcribe(
            audio, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False
        )
        return plain_words(" ".join(segment.text for segment in segments))
