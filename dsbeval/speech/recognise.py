"""Local speech recognisers, each imported only when it is asked for.

``pocketsphinx`` needs the package of that name (its English model is inside); ``faster-whisper:FOLDER`` needs that
package and a Whisper model in CTranslate2 form. Neither is a dependency of the suite.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal, resample, to_pcm16
from dsbeval.errors import DsbevalError, OptionError

Recogniser = Callable[[Signal], str]
"""From a 24 kHz signal to text."""

_ASR_RATE = 16_000
_ROOM = np.zeros(RATE // 4, np.float32)  # recognisers clip the first sound of a signal that begins with it


def load_recogniser(name: str) -> Recogniser:
    """Load ``pocketsphinx`` or ``faster-whisper:FOLDER``.

    Raises :class:`OptionError` for another name and :class:`DsbevalError` when the package or the model is missing.
    """
    kind, _, folder = name.partition(":")
    if kind == "pocketsphinx":
        return _pocketsphinx()
    if kind == "faster-whisper" and folder:
        return _faster_whisper(Path(folder))
    raise OptionError(f"--asr: {name!r} is not a recogniser; give pocketsphinx or faster-whisper:FOLDER")


def _package(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise DsbevalError(f"the package {name} is not installed; run: pip install {name}") from None


def _pocketsphinx() -> Recogniser:
    decoder = _package("pocketsphinx", "pocketsphinx").Decoder(samprate=_ASR_RATE, loglevel="FATAL")

    def recognise(audio: Signal) -> str:
        loud = audio * np.float32(0.7 / max(1e-6, float(np.abs(audio).max())))
        decoder.start_utt()
        decoder.process_raw(to_pcm16(resample(np.concatenate([_ROOM, loud, _ROOM]), RATE, _ASR_RATE)).tobytes())
        decoder.end_utt()
        found = decoder.hyp()
        return re.sub(r"\(\d+\)|<[^>]*>|\[[^\]]*\]", " ", found.hypstr) if found is not None else ""

    return recognise


def _faster_whisper(folder: Path) -> Recogniser:
    whisper = _package("faster_whisper", "faster-whisper")
    if not (folder / "model.bin").exists():
        raise DsbevalError(f"{folder / 'model.bin'}: no such file; give the folder of a CTranslate2 Whisper model")
    model = whisper.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def recognise(audio: Signal) -> str:
        heard = resample(np.concatenate([_ROOM, audio, _ROOM]), RATE, _ASR_RATE)
        found, _ = model.transcribe(
            heard, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False
        )
        return " ".join(part.text.strip() for part in found)

    return recognise
