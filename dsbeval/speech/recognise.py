"""Local speech recognisers, each imported only when it is asked for.

``pocketsphinx`` comes with the suite, its English model inside; ``faster-whisper:FOLDER`` needs that package and a Whisper
model in CTranslate2 form.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal, resample, to_pcm16
from dsbeval.errors import DsbevalError, OptionError

Recogniser = Callable[[Signal], str]
"""From a 24 kHz signal to text."""

ChannelRecogniser = Callable[[Sequence[Signal]], list[str]]
"""From the pieces of one channel to their texts. Nothing carries over from one channel to the next."""

_ASR_RATE = 16_000
_ROOM = np.zeros(RATE // 4, np.float32)  # recognisers clip the first sound of a signal that begins with it


def load_recogniser(name: str) -> Recogniser:
    """Load ``pocketsphinx`` or ``faster-whisper:FOLDER``.

    Raises :class:`OptionError` for another name and :class:`DsbevalError` when the package or the model is missing.
    """
    return _load(name)[0]


def load_channel_recogniser(name: str) -> ChannelRecogniser:
    """Load a recogniser for whole channels, by the names of :func:`load_recogniser`; pocketsphinx with a narrower search.

    A channel is heard alike whatever was heard before: pocketsphinx adapts within one, and is put back after it.
    """
    recogniser, forget = _load(name, **_QUICK)

    def recognise(pieces: Sequence[Signal]) -> list[str]:
        forget()
        return [recogniser(piece) for piece in pieces]

    return recognise


def check_recogniser(name: str) -> None:
    """Raise what loading a recogniser would raise, as far as that shows without importing it."""
    kind, _, folder = name.partition(":")
    if kind not in ("pocketsphinx", "faster-whisper") or bool(folder) != (kind == "faster-whisper"):
        raise OptionError(f"--asr: {name!r} is not a recogniser; give pocketsphinx or faster-whisper:FOLDER")
    if importlib.util.find_spec(kind.replace("-", "_")) is None:
        raise DsbevalError(f"the package {kind} is not installed; run: pip install {kind}")
    if folder and not (Path(folder) / "model.bin").exists():
        raise DsbevalError(f"{folder}/model.bin: no such file; give the folder of a CTranslate2 Whisper model")


def _load(name: str, **search: Any) -> tuple[Recogniser, Callable[[], None]]:
    """Return a recogniser and what makes it forget what it has heard."""
    kind, _, folder = name.partition(":")
    if kind == "pocketsphinx":
        return _pocketsphinx(**search)
    if kind == "faster-whisper" and folder:
        return _faster_whisper(Path(folder)), lambda: None
    raise OptionError(f"--asr: {name!r} is not a recogniser; give pocketsphinx or faster-whisper:FOLDER")


def _package(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise DsbevalError(f"the package {name} is not installed; run: pip install {name}") from None


# Less than two thirds of the work; what is not heard of clear speech is about the same.
_QUICK: dict[str, Any] = {"maxhmmpf": 3000, "maxwpf": 20, "topn": 2, "fwdflat": False}


def _pocketsphinx(**search: Any) -> tuple[Recogniser, Callable[[], None]]:
    decoder = _package("pocketsphinx", "pocketsphinx").Decoder(samprate=_ASR_RATE, loglevel="FATAL", **search)

    def recognise(audio: Signal) -> str:
        loud = audio * np.float32(0.7 / max(1e-6, float(np.abs(audio).max())))
        decoder.start_utt()
        decoder.process_raw(to_pcm16(resample(np.concatenate([_ROOM, loud, _ROOM]), RATE, _ASR_RATE)).tobytes())
        decoder.end_utt()
        found = decoder.hyp()
        return re.sub(r"\(\d+\)|<[^>]*>|\[[^\]]*\]", " ", found.hypstr) if found is not None else ""

    return recognise, decoder.reinit_feat


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
