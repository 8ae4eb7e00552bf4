"""Kokoro-82M: 28 English voices; renders the pack's audio. Its files are not part of the suite: a folder holds them.

The folder, named by ``DSBEVAL_KOKORO_DIR`` or given to :class:`KokoroEngine` (``docs/speech.md`` says how to fill it)::

    kokoro-v1.0.int8.onnx     the model; its SHA-256 is checked
    voices/af_heart.bin ...   style vectors, float32, shape (510, 1, 256)

Conventions
-----------
* A segment is spoken in one go, so that its sentences hang together; more than 500 phonemes are refused.
* ``am_michael+am_adam`` is the mean of two style vectors: a voice between the two. The first decides the accent.
* The model draws no noise of its own: a seed chooses the style vector of a neighbouring length (seed 0: the length
  itself), which gives another reading with the same voice.

References
----------
Kokoro-82M v1.0 (Apache-2.0 weights, hexgrad); its int8 ONNX export (MIT).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dsbeval.audio import Signal
from dsbeval.errors import DsbevalError
from dsbeval.speech.engine import Utterance, split_voice
from dsbeval.speech.onnxgraph import open_session, with_output
from dsbeval.speech.phonemes import phoneme_ids, plain, spoken_words, word_times

FOLDER_VARIABLE = "DSBEVAL_KOKORO_DIR"
MODEL_FILE = "kokoro-v1.0.int8.onnx"
MODEL_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"

_DURATIONS = "/encoder/Clip_output_0"
_LONGEST = 500
_ROWS = 510
_TAKE_STEP = 11  # rows between two takes: far enough for another reading

_VOICES = (
    *("af_alloy", "af_aoede", "af_bella", "af_heart", "af_jessica", "af_kore", "af_nicole", "af_nova", "af_river"),
    *("af_sarah", "af_sky"),
    *("am_adam", "am_echo", "am_eric", "am_fenrir", "am_liam", "am_michael", "am_onyx", "am_puck", "am_santa"),
    *("bf_alice", "bf_emma", "bf_isabella", "bf_lily"),
    *("bm_daniel", "bm_fable", "bm_george", "bm_lewis"),
)


class KokoroEngine:
    """The engine ``kokoro``.

    Parameters
    ----------
    folder : Path, optional
        Where the model and the voices are; the environment variable otherwise.
    """

    name = "kokoro"
    voices = _VOICES

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _folder()
        path = self._folder / MODEL_FILE
        try:
            model = path.read_bytes()
        except OSError:
            raise DsbevalError(f"{path}: no such file; docs/speech.md says how to fill the folder") from None
        digest = hashlib.sha256(model).hexdigest()
        if digest != MODEL_SHA256:
            found, needed = digest[:12], MODEL_SHA256[:12]
            raise DsbevalError(
                f"{path}: SHA-256 begins {found}, {needed} is needed; get the file again (docs/speech.md)"
            )
        self._session = open_session(with_output(model, _DURATIONS))
        self._vocabulary = _vocabulary()
        self.version = f"v1.0-int8+{MODEL_SHA256[:8]}/g2p-{importlib.metadata.version('hibari-tts')}"
        self.facts = {"version": self.version, "model_sha256": MODEL_SHA256, "licence": "Apache-2.0"}

    def synthesize(self, text: str, voice: str, seed: int) -> Utterance:
        """Speak ``text`` in one go."""
        names, pace = split_voice(voice, self.voices)
        spoken = spoken_words(text, british=names[0].startswith("b"))
        ids, ranges = phoneme_ids(spoken, self._vocabulary)
        count = len(ids) - 2
        if not 0 < count <= _LONGEST:
            raise DsbevalError(f"kokoro: {count} phonemes in {plain(text)!r}; a segment has 1 to {_LONGEST}")
        row = (count - 1 + seed * _TAKE_STEP) % _ROWS
        feed = {
            "tokens": np.asarray([ids], np.int64),
            "style": np.mean([_style(self._folder, name)[row] for name in names], axis=0, dtype=np.float32),
            "speed": np.asarray([pace], np.float32),
        }
        audio, durations = self._session.run(None, feed)
        samples = np.asarray(audio, np.float32).reshape(-1)
        return Utterance(cast(Signal, samples), word_times(spoken, ranges, durations.reshape(-1)))


def _folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        raise DsbevalError(
            f"the engine kokoro needs its files; set {FOLDER_VARIABLE} to their folder (docs/speech.md says how)"
        )
    return Path(named)


@functools.lru_cache(maxsize=len(_VOICES))
def _style(folder: Path, voice: str) -> NDArray[np.float32]:
    path = folder / "voices" / f"{voice}.bin"
    try:
        values = np.fromfile(path, "<f4")
    except OSError:
        raise DsbevalError(f"{path}: no such file; docs/speech.md says how to fill the folder") from None
    if values.size != _ROWS * 256:
        raise DsbevalError(
            f"{path}: {values.size} values, {_ROWS * 256} are needed; get the file again (docs/speech.md)"
        )
    return values.reshape(_ROWS, 1, 256)


def _vocabulary() -> dict[str, int]:
    try:
        import hibari
    except ImportError:
        raise DsbevalError(
            "the package hibari-tts is not installed; run: pip install 'hibari-tts[fast]==0.2.1'"
        ) from None
    path = Path(hibari.__file__).parent / "assets" / "vocab.json"  # hibari was distilled from Kokoro: one alphabet
    return cast("dict[str, int]", json.loads(path.read_text(encoding="utf-8")))
