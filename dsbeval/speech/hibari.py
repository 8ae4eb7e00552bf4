"""hibari-tts: a small, fast synthesiser whose model is inside its package; used for the agents' bank and for drafts.

The package has one voice. Others are derived from it between the network and the waveform: pitch by a factor on f0,
length of the vocal tract by stretching the spectral envelopes along frequency. Factors near 1 cost a few points of word
error rate; ``m1`` is the limit.

Conventions
-----------
* One thread: the samples depend on the number of threads.
* The seed draws the noise of unvoiced sounds, so another seed is nearly the same take.

References
----------
hibari-tts 0.2.1 (Apache-2.0), a distillation of Kokoro-82M.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsbeval.errors import DsbevalError, OptionError
from dsbeval.speech.engine import Utterance, WordTime, split_voice
from dsbeval.speech.onnxgraph import open_session, with_output
from dsbeval.speech.phonemes import phoneme_ids, plain, spoken_words, word_times

_DURATIONS = "/Clip_output_0"

_VOICES: dict[str, tuple[float, float, float]] = {
    # f0 factor, formant factor, pace
    "heart": (1.0, 1.0, 1.0),
    "f2": (1.14, 1.07, 0.95),
    "f3": (0.92, 0.97, 1.0),
    "f4": (1.07, 1.03, 1.06),
    "m1": (0.60, 0.87, 1.0),
    "m2": (0.70, 0.92, 1.08),
    "m3": (0.65, 0.90, 0.95),
    "m4": (0.76, 0.94, 1.0),
}


class HibariEngine:
    """The engine ``hibari``."""

    name = "hibari"
    voices = tuple(_VOICES)

    def __init__(self) -> None:
        try:
            from hibari import Hibari
        except ImportError:
            raise DsbevalError(
                "the package hibari-tts is not installed; run: pip install 'hibari-tts[fast]==0.2.1'"
            ) from None
        self._tts: Any = Hibari(threads=1)
        model = Path(self._tts.model_path).read_bytes()
        self._session = open_session(with_output(model, _DURATIONS))
        release = importlib.metadata.version("hibari-tts")
        digest = hashlib.sha256(model).hexdigest()
        self.version = f"{release}+{digest[:8]}"
        self.facts = {"version": self.version, "model_sha256": digest, "licence": "Apache-2.0"}

    def synthesize(self, text: str, voice: str, seed: int) -> Utterance:
        """Speak ``text``, sentence by sentence, as the model was trained."""
        names, pace = split_voice(voice, self.voices)
        if len(names) > 1:
            raise OptionError(f"voice {voice!r}: hibari cannot blend voices; name one of {', '.join(self.voices)}")
        pitch, formant, own_pace = _VOICES[names[0]]
        noise = np.random.default_rng(seed)
        audio: list[NDArray[np.float32]] = []
        words: list[WordTime] = []
        length = 0
        for sentence in self._tts.split_sentences(text):
            spoken = spoken_words(sentence)
            ids, ranges = phoneme_ids(spoken, self._tts.vocab)
            feed = {"ids": np.asarray([ids], np.int64), "speed": np.asarray([pace * own_pace], np.float32)}
            *network, durations = self._session.run(None, feed)
            piece = _waveform([part[0] for part in network], pitch, formant, noise)
            words += word_times(spoken, ranges, durations.reshape(-1), offset=length)
            audio.append(piece)
            length += piece.size
        if not audio:
            raise DsbevalError(f"hibari: nothing to speak in {plain(text)!r}; give it a text with a word in it")
        return Utterance(np.concatenate(audio), tuple(words))


def _waveform(
    network: list[NDArray[np.float32]], pitch: float, formant: float, noise: np.random.Generator
) -> NDArray[np.float32]:
    from hibari import dsp

    harmonic, theta, aperiodic, residual, phase, f0 = network
    if formant != 1.0:
        harmonic, theta, aperiodic, residual = (
            _stretched(part, formant) for part in (harmonic, theta, aperiodic, residual)
        )
    if pitch < 1.0:
        harmonic = harmonic + np.float32(np.log(pitch))  # more harmonics a band at a lower pitch: keep the level
    out: NDArray[np.float32] = dsp.synth(harmonic, theta, aperiodic, residual, phase, f0 * np.float32(pitch), noise)
    return out.astype(np.float32, copy=False)


def _stretched(envelope: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """Move what is at frequency ``f`` to ``f x factor``; the top is held where it runs out."""
    low, high, weight = _stretch_weights(len(envelope), factor)
    return (envelope[low] * (1 - weight) + envelope[high] * weight).astype(np.float32)


@functools.cache
def _stretch_weights(bins: int, factor: float) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    source = np.minimum(np.arange(bins) / factor, bins - 1)
    low = np.floor(source).astype(np.intp)
    return low, np.minimum(low + 1, bins - 1), (source - low).astype(np.float32)[:, None]
