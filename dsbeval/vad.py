"""Speech activity: Silero VAD without torch, with the settings of the benchmark.

Conventions
-----------
* The model is the official sequence export inside the ``silero-vad`` package, run through onnxruntime. It is bit-equal
  to the stock ONNX model and several times faster; importing the package itself would import torch, so only its data
  file is used.
* :func:`speech_spans` returns exactly the samples of the stock ``get_speech_timestamps`` on the same 16 kHz signal
  (``tests/test_vad_parity.py``). A signal of no samples has no spans.
* The benchmark (DSB-IFEval, appendix E.2) sets ``min_speech_duration_ms=90`` and ``min_silence_duration_ms=90``, keeps
  every other library default (threshold 0.5, exit threshold 0.35, 30 ms padding) and merges spans closer than 0.3 s.

An edge that the VAD finds is off by up to :data:`ONSET_ERROR_S` (:data:`OFFSET_ERROR_S` at the end) from the edge of
the audible speech: 32 ms of chunk, 30 ms of padding, and the model's own hang-over. A margin inside that is not
evidence, and reports mark it.

References
----------
Silero Team, "Silero VAD", https://github.com/snakers4/silero-vad
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsbeval.audio import RATE, Signal, StreamResampler, resample
from dsbeval.errors import AudioError, DsbevalError
from dsbeval.spans import Span, Timeline, to_samples

VAD_RATE = 16_000
CHUNK = 512
_CONTEXT = 64
_BLOCK = 512  # chunks a call: keeps the encoder's activations in cache and memory bounded

ONSET_ERROR_S = 0.1
"""Stated error of a detected onset, in seconds."""

OFFSET_ERROR_S = 0.2
"""Stated error of a detected offset, in seconds: the model hangs on after the last sound."""

MODEL_FILE = "silero_vad_16k_sequence.onnx"


@dataclass(frozen=True, slots=True)
class VadSettings:
    """Parameters of the post-processing; the defaults are the benchmark's. Durations in milliseconds."""

    threshold: float = 0.5
    min_speech_ms: int = 90
    min_silence_ms: int = 90
    pad_ms: int = 30
    merge_s: float = 0.3

    @property
    def exit_threshold(self) -> float:
        """Probability below which speech may end (library default)."""
        return max(self.threshold - 0.15, 0.01)


BENCHMARK = VadSettings()


def model_path() -> Path:
    """Return the ONNX file inside the installed ``silero-vad`` package, found without importing the package."""
    spec = importlib.util.find_spec("silero_vad")
    if spec is None or spec.origin is None:
        raise DsbevalError("the package silero-vad is not installed; run: pip install 'silero-vad>=6.2.3'")
    path = Path(spec.origin).parent / "data" / MODEL_FILE
    if not path.exists():
        raise DsbevalError(
            f"{path} is missing; run: pip install 'silero-vad>=6.2.3' (older releases lack the sequence model)"
        )
    return path


def model_sha256() -> str:
    """Return the SHA-256 of the model file, for the fingerprint of a run."""
    return hashlib.sha256(model_path().read_bytes()).hexdigest()


@functools.cache
def _session() -> Any:
    import onnxruntime  # heavy: only when something is measured

    options = onnxruntime.SessionOptions()
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model_path()), sess_options=options, providers=["CPUExecutionProvider"])


class SpeechProbability:
    """Silero's speech probability of successive 32 ms chunks of a 16 kHz signal, fed in any pieces."""

    def __init__(self) -> None:
        self._hidden = np.zeros((1, 1, 128), np.float32)
        self._cell = np.zeros((1, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)
        self._held = np.zeros(0, np.float32)

    def push(self, audio: Signal) -> NDArray[np.float32]:
        """Feed samples and return the probabilities of the chunks that are now complete, shape ``(chunks,)``."""
        held = np.concatenate([self._held, audio]) if self._held.size else audio
        whole = held.size // CHUNK
        self._held = held[whole * CHUNK :].copy()
        return self._run(held[: whole * CHUNK])

    def finish(self) -> NDArray[np.float32]:
        """Return the probability of the last, incomplete chunk (or none), zero-padded as the stock library does."""
        if not self._held.size:
            return np.zeros(0, np.float32)
        last = np.pad(self._held, (0, CHUNK - self._held.size))
        self._held = np.zeros(0, np.float32)
        return self._run(last)

    def _run(self, audio: Signal) -> NDArray[np.float32]:
        chunks = audio.reshape(-1, CHUNK)
        out: list[NDArray[np.float32]] = []
        for start in range(0, len(chunks), _BLOCK):
            block = chunks[start : start + _BLOCK]
            rows = np.empty((len(block), _CONTEXT + CHUNK), np.float32)
            rows[:, _CONTEXT:] = block
            rows[0, :_CONTEXT] = self._context
            rows[1:, :_CONTEXT] = block[:-1, -_CONTEXT:]
            self._context = block[-1, -_CONTEXT:].copy()
            inputs = {"input": rows, "h": self._hidden, "c": self._cell}
            probabilities, self._hidden, self._cell = _session().run(None, inputs)
            out.append(probabilities)
        return np.concatenate(out) if out else np.zeros(0, np.float32)


def spans_from_probabilities(
    probabilities: NDArray[np.float32], length: int, settings: VadSettings = BENCHMARK
) -> tuple[Span, ...]:
    """Turn chunk probabilities into padded speech spans, in 16 kHz samples, exactly as the stock library does.

    Parameters
    ----------
    probabilities : array, shape (chunks,)
    length : int
        Number of samples of the signal, which ends inside the last chunk.
    settings : VadSettings
    """
    min_speech = VAD_RATE * settings.min_speech_ms / 1000
    min_silence = VAD_RATE * settings.min_silence_ms / 1000
    found: list[tuple[int, int]] = []
    onset: int | None = None
    quiet: int | None = None
    # Python floats, because the stock library compares doubles: float32(0.35) is less than 0.35 only there.
    for index, probability in enumerate(probabilities.astype(np.float64).tolist()):
        sample = index * CHUNK
        if probability >= settings.threshold:
            quiet = None
            if onset is None:
                onset = sample
        elif probability < settings.exit_threshold and onset is not None:
            quiet = sample if quiet is None else quiet
            if sample - quiet >= min_silence:
                if quiet - onset > min_speech:
                    found.append((onset, quiet))
                onset = quiet = None
    if onset is not None and length - onset > min_speech:
        found.append((onset, length))
    return _padded(found, length, VAD_RATE * settings.pad_ms // 1000)


def _padded(found: list[tuple[int, int]], length: int, pad: int) -> tuple[Span, ...]:
    out: list[Span] = []
    for index, (start, end) in enumerate(found):
        before = start - found[index - 1][1] if index else 2 * pad
        after = found[index + 1][0] - end if index + 1 < len(found) else 2 * pad
        # Two spans closer than both pads share the silence between them.
        padded_start = start - (before // 2 if before < 2 * pad else pad)
        padded_end = end + (after // 2 if after < 2 * pad else pad)
        out.append(Span(max(0, padded_start), min(length, padded_end)))
    return tuple(out)


def speech_spans(audio16: Signal, settings: VadSettings = BENCHMARK) -> tuple[Span, ...]:
    """Return the speech spans of a 16 kHz signal, in its samples: the stock ``get_speech_timestamps``, not merged."""
    model = SpeechProbability()
    probabilities = np.concatenate([model.push(np.ascontiguousarray(audio16)), model.finish()])
    return spans_from_probabilities(probabilities, audio16.size, settings)


def speech_timeline(audio: Signal, settings: VadSettings = BENCHMARK) -> Timeline:
    """Return the merged speech spans of a channel on the 24 kHz session clock."""
    spans = speech_spans(resample(audio, RATE, VAD_RATE), settings)
    limit = audio.size
    on_clock = (Span(span.start * 3 // 2, min(limit, -(-span.end * 3 // 2))) for span in spans)
    return Timeline(on_clock).merge(to_samples(settings.merge_s, RATE))


class OnlineDetector:
    """Is the agent speaking *now*? The same model, fed as the session runs, for the turn manager.

    ``push`` takes the played audio of the model channel at ``rate``. ``onset`` is the start of the speech under way,
    back-dated to its first chunk, or None; ``silent_since`` is the end of the last speech; ``spans`` are all that was
    found so far, the last one open (end None) while speech is under way. All in session samples (24 kHz), without
    padding.
    """

    def __init__(self, rate: int = RATE, settings: VadSettings = BENCHMARK) -> None:
        self._settings = settings
        self._resampler = StreamResampler(rate, VAD_RATE)
        self._model = SpeechProbability()
        self._chunks = 0
        self._start: int | None = None
        self._quiet: int | None = None
        self.onset: int | None = None
        self.silent_since = 0
        self.spans: list[tuple[int, int | None]] = []

    def push(self, audio: Signal) -> None:
        """Feed the next piece of the channel."""
        for probability in self._model.push(self._resampler.push(audio)).astype(np.float64).tolist():
            self._step(probability, self._chunks * CHUNK)
            self._chunks += 1

    def _step(self, probability: float, sample: int) -> None:
        settings = self._settings
        if probability >= settings.threshold:
            self._quiet = None
            if self._start is None:
                self._start = sample
        elif probability < settings.exit_threshold and self._start is not None:
            self._quiet = sample if self._quiet is None else self._quiet
            if sample - self._quiet >= VAD_RATE * settings.min_silence_ms / 1000:
                if self.onset is not None:
                    self.silent_since = self._quiet * 3 // 2
                    self.spans[-1] = (self.onset, self.silent_since)
                self.onset = self._start = self._quiet = None
        if self._start is not None and self.onset is None:
            spoken = (sample + CHUNK if self._quiet is None else self._quiet) - self._start
            if spoken > VAD_RATE * settings.min_speech_ms / 1000:
                self.onset = self._start * 3 // 2
                self.spans.append((self.onset, None))


def energy_spans(audio: Signal, frame: int, *, opens: float = 0.010, closes: float = 0.004) -> Timeline:
    """Return the frames between an RMS that opens a segment and one that closes it (DyaFDB); trims synthesised speech.

    Raises :class:`AudioError` when ``frame`` is not positive.
    """
    if frame <= 0:
        raise AudioError(f"frame must be positive, not {frame}")
    padded = np.pad(audio, (0, -audio.size % frame)).reshape(-1, frame)
    rms = np.sqrt(np.einsum("ij,ij->i", padded, padded) / frame)
    out: list[Span] = []
    start: int | None = None
    for index, value in enumerate(rms.tolist()):
        if start is None and value > opens:
            start = index * frame
        elif start is not None and value < closes:
            out.append(Span(start, index * frame))
            start = None
    if start is not None:
        out.append(Span(start, audio.size))
    return Timeline(out)
