"""The VAD against the stock silero-vad package, sample for sample. The one test file that imports torch."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dsbeval.audio import RATE, Signal, resample
from dsbeval.vad import (
    BENCHMARK,
    CHUNK,
    VAD_RATE,
    SpeechProbability,
    VadSettings,
    spans_from_probabilities,
    speech_spans,
)

SENTENCES = (
    "Hi, could I get a number four with no onions, and, um, make the drink a large.",
    "She was taking the pills at eight. Then another two, maybe an hour later. I am not sure.",
    "It's 4125 West Alder Street. Sorry, no, 4126.",
    "Breathe in. And out. And again, as slowly as you like.",
    "The committee, after eleven hours of debate, rejected the amendment!",
)
SPEEDS = (1.0, 1.25, 0.8, 0.9, 1.1)

# The settings that the benchmark names; everything else is the library's default.
STOCK = {"min_speech_duration_ms": 90, "min_silence_duration_ms": 90}

Spans = list[tuple[int, int]]


@functools.cache
def said(index: int) -> Signal:
    """Return a sentence at 16 kHz."""
    from hibari import Hibari

    return resample(_voice(Hibari)(SENTENCES[index], seed=index, speed=SPEEDS[index]), RATE, VAD_RATE)


@functools.cache
def _voice(kind: Any) -> Any:
    return kind()


@functools.cache
def stock(kind: str) -> Any:
    """Return the stock model, ONNX or JIT."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package's own, about resources and torch.jit
        import silero_vad

        return silero_vad.load_silero_vad(onnx=kind == "onnx")


def stock_spans(audio: Signal, kind: str) -> Spans:
    import silero_vad
    import torch

    model = stock(kind)
    return [(s["start"], s["end"]) for s in silero_vad.get_speech_timestamps(torch.from_numpy(audio), model, **STOCK)]


def our_spans(audio: Signal) -> Spans:
    return [(span.start, span.end) for span in speech_spans(audio)]


def decibels(value: float) -> np.float32:
    return np.float32(10 ** (value / 20))


def noise(size: int, rng: np.random.Generator, rms: float) -> Signal:
    return (rng.standard_normal(size) * rms).astype(np.float32)


def signals(index: int) -> Iterator[tuple[str, Signal]]:
    """Yield what a session can hold, made from one sentence; levels and places come from its own random numbers."""
    rng = np.random.default_rng(1_000 + index)
    speech, other = said(index), said((index + 1) % len(SENTENCES))
    rms = float(np.sqrt(np.mean(speech**2)))
    yield "as it is", speech
    for low, high in ((-35, -25), (-25, -15), (-15, -8), (-8, -3)):
        gain = rng.uniform(low, high)
        yield f"{gain:.1f} dB", speech * decibels(gain)
    for snr in (20, 10, 5, 0, -5):
        yield f"SNR {snr} dB", speech + noise(speech.size, rng, rms * float(decibels(-snr)))
    gap = np.zeros(int(rng.integers(500, 40_000)), np.float32)
    yield "between digital silence", np.concatenate([gap, speech, gap, gap, other, gap])
    yield "cut off by digital silence", np.concatenate([speech[: speech.size // 2], gap, speech[speech.size // 2 :]])
    for span in speech_spans(speech)[:3]:
        # The silence becomes long enough to end the span in the last chunk, which is not whole.
        size = span.end - VAD_RATE * BENCHMARK.pad_ms // 1000 + 3 * CHUNK + int(rng.integers(1, CHUNK))
        yield f"cut at {size}", speech[:size]
    shift = int(rng.integers(1_000, min(speech.size, other.size)))
    both = np.zeros(shift + max(speech.size, other.size), np.float32)
    both[: speech.size] += speech
    both[shift : shift + other.size] += other * decibels(rng.uniform(-12, 3))
    yield "two speakers", both
    for _ in range(4):
        start = int(rng.integers(0, speech.size // 2))
        size = int(rng.integers(1, speech.size // 2)) | 1
        yield f"{size} samples from {start}", speech[start : start + size]
    for _ in range(12):
        # About the shortest speech that counts, out of the loudest part.
        start = int(np.argmax(np.abs(speech))) - int(rng.integers(0, 2_000))
        size = int(rng.integers(1_400, 3_000))
        yield f"{size} samples from {start}", speech[max(0, start) : max(0, start) + size]


@pytest.mark.parametrize("index", range(len(SENTENCES)))
def test_spans_are_identical_on_speech(index: int) -> None:
    counts = set()
    for name, audio in signals(index):
        ours = our_spans(audio)
        for kind in ("onnx", "jit"):
            assert ours == stock_spans(audio, kind), (name, kind)
        counts.add(len(ours))
    assert len(counts) >= 3, "signals that all look alike prove little"


@pytest.mark.parametrize("kind", ["onnx", "jit"])
@pytest.mark.parametrize("rms", [0.0, 1e-4, 0.01, 0.3])
@pytest.mark.parametrize("size", [1, 511, 512, 513, 1_023, 1_025, 48_000])
def test_spans_are_identical_without_speech(size: int, rms: float, kind: str) -> None:
    audio = noise(size, np.random.default_rng(size), rms)
    assert our_spans(audio) == stock_spans(audio, kind)


@pytest.mark.parametrize("kind", ["onnx", "jit"])
def test_no_samples_have_no_spans(kind: str) -> None:
    nothing = np.zeros(0, np.float32)
    assert our_spans(nothing) == stock_spans(nothing, kind) == []


def test_probabilities_are_those_of_the_stock_model() -> None:
    import torch

    audio = np.concatenate([said(0), said(1)])
    ours = SpeechProbability()
    found = np.concatenate([ours.push(audio), ours.finish()])
    for kind, tolerance in (("onnx", 0.0), ("jit", 2e-5)):  # bit for bit; JIT sums in another order
        model = stock(kind)
        model.reset_states()
        with torch.no_grad():
            chunks = torch.from_numpy(np.pad(audio, (0, -audio.size % CHUNK)).reshape(-1, CHUNK))
            expected = np.array([model(chunk, VAD_RATE).item() for chunk in chunks])
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


# Post-processing alone


def sequences(rng: np.random.Generator, count: int) -> Iterator[NDArray[np.float32]]:
    """Yield random probabilities of several kinds: jumping, drifting, and sitting on the thresholds."""
    on_the_edge = np.array([0.0, 0.25, 0.34, 0.35, 0.3500001, 0.4, 0.4999999, 0.5, 0.51, 1.0], np.float32)
    for k in range(count):
        size = int(rng.integers(0, 120))
        if k % 3 == 0:
            yield rng.uniform(0, 1, size).astype(np.float32)
        elif k % 3 == 1:
            drift = np.zeros(size)
            step = rng.standard_normal(size) * rng.uniform(0.2, 1.0)
            keep = rng.uniform(0.7, 0.98)
            for i in range(1, size):
                drift[i] = keep * drift[i - 1] + step[i]
            yield (1 / (1 + np.exp(-2 * drift))).astype(np.float32)
        else:
            # Each value is held for a few chunks, so that silences come out near their limit.
            yield np.repeat(rng.choice(on_the_edge, size), rng.integers(1, 5, size))


def _compare(probabilities: NDArray[np.float32], length: int, settings: VadSettings) -> int:
    import silero_vad

    expected = silero_vad.get_speech_timestamps_from_probs(
        probabilities.astype(np.float64).tolist(),
        threshold=settings.threshold,
        min_speech_duration_ms=settings.min_speech_ms,
        min_silence_duration_ms=settings.min_silence_ms,
        speech_pad_ms=settings.pad_ms,
        audio_length_samples=length,
    )
    found = spans_from_probabilities(probabilities, length, settings)
    assert [(s.start, s.end) for s in found] == [(s["start"], s["end"]) for s in expected], (settings, probabilities)
    return len(found)


def _length(probabilities: NDArray[np.float32], rng: np.random.Generator) -> int:
    """Return a length that ends inside the last chunk."""
    return max(0, probabilities.size * CHUNK - int(rng.integers(0, CHUNK)))


def test_post_processing_is_identical_at_the_settings_of_the_benchmark() -> None:
    rng = np.random.default_rng(0)
    spans = [_compare(p, _length(p, rng), BENCHMARK) for p in sequences(rng, 4_000)]
    assert sum(spans) > 8_000
    assert 0 in spans


def test_post_processing_is_identical_at_other_settings() -> None:
    """Short silences leave less than two pads between spans: they share what there is."""
    rng = np.random.default_rng(1)
    for p in sequences(rng, 4_000):
        settings = VadSettings(
            threshold=float(rng.choice([0.1, 0.3, 0.4, 0.5, 0.51, 0.65, 0.8])),
            min_speech_ms=int(rng.choice([0, 32, 64, 90, 250])),
            min_silence_ms=int(rng.choice([0, 32, 64, 96, 100, 400])),
            pad_ms=int(rng.choice([0, 15, 30, 31, 100, 400])),
        )
        _compare(p, _length(p, rng), settings)
