"""Speech spans against golden spans of the stock library, the online detector against the offline one, energy spans."""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsbeval
from dsbeval.audio import RATE, Signal, frames, read_audio, resample
from dsbeval.errors import AudioError, DsbevalError
from dsbeval.spans import Span, Timeline
from dsbeval.vad import (
    BENCHMARK,
    CHUNK,
    OFFSET_ERROR_S,
    ONSET_ERROR_S,
    VAD_RATE,
    OnlineDetector,
    SpeechProbability,
    VadSettings,
    energy_spans,
    model_path,
    model_sha256,
    spans_from_probabilities,
    speech_spans,
    speech_timeline,
)

GOLDEN = Path(__file__).parent / "golden" / "vad"
PAD = VAD_RATE * BENCHMARK.pad_ms // 1000
FRAME = RATE // 50
MS = RATE // 1000
CHUNK_24K = CHUNK * RATE // VAD_RATE
LATE = 64 * MS  # what a frame of 20 ms and the resampler's filter add to the chunks


@functools.cache
def golden() -> dict[str, list[tuple[int, int]]]:
    stored = json.loads((GOLDEN / "spans.json").read_text(encoding="utf-8"))
    return {name: [(start, end) for start, end in spans] for name, spans in stored.items()}


@functools.cache
def speech() -> Signal:
    return read_audio(GOLDEN / "speech.flac", channels=1)


def pairs(spans: tuple[Span, ...] | Timeline) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


@functools.cache
def choppy(seed: int) -> Signal:
    """Return golden speech cut into clicks (20 to 100 ms) and words (100 to 400 ms), at many levels, in hiss."""
    rng = np.random.default_rng(seed)
    source = np.concatenate([speech()[start:end] for start, end in golden()["speech_24k"]])
    out: list[Signal] = []
    for k in range(12):
        size = int(rng.integers(20 * MS, 100 * MS) if k % 2 else rng.integers(100 * MS, 400 * MS))
        start = int(rng.integers(0, source.size - size))
        gain = np.float32(10 ** (-rng.uniform(0, 20) / 20))
        out += [np.zeros(int(rng.integers(80 * MS, 400 * MS)), np.float32), source[start : start + size] * gain]
    audio = np.concatenate(out)
    hiss = rng.standard_normal(audio.size) * 10 ** -rng.uniform(3, 5)
    return np.concatenate([audio + hiss.astype(np.float32), np.zeros(RATE, np.float32)])


def python(code: str) -> str:
    """Run ``code`` in a fresh interpreter, where nothing is imported yet."""
    root = Path(dsbeval.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


# Imports and the model file


def test_importing_it_costs_nothing_heavy() -> None:
    heavy = "{'torch', 'onnxruntime', 'silero_vad', 'soundfile', 'soxr', 'scipy'}"
    assert python(f"import sys, dsbeval.vad; print(*sorted({heavy} & set(sys.modules)))") == ""


def test_finding_speech_does_not_import_torch() -> None:
    path = GOLDEN / "speech.flac"
    code = f"""
import sys
from pathlib import Path
from dsbeval.audio import read_audio
from dsbeval.vad import model_sha256, speech_timeline
found = speech_timeline(read_audio(Path({str(path)!r})))
print(len(model_sha256()), len(found), *{{'torch', 'silero_vad'}} & set(sys.modules))
"""
    assert python(code) == f"64 {len(golden()['stock_16k_merged'])}"


def test_the_model_is_named_by_its_hash() -> None:
    assert model_path().suffix == ".onnx"
    assert model_sha256() == hashlib.sha256(model_path().read_bytes()).hexdigest()


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)  # stands for an environment without it
    with pytest.raises(DsbevalError, match=r"^the package silero-vad is not installed; run: pip install .+$"):
        model_path()


def test_a_release_without_the_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = importlib.machinery.ModuleSpec("silero_vad", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: old)  # stands for an older release
    with pytest.raises(DsbevalError, match=r"^.+\.onnx is missing; run: pip install .+$"):
        model_path()


# Offline


def test_spans_are_the_stock_librarys() -> None:
    assert pairs(speech_spans(resample(speech(), RATE, VAD_RATE))) == golden()["stock_16k"]


def test_the_timeline_is_merged_and_on_the_session_clock() -> None:
    on_clock = [(start * 3 // 2, -(-end * 3 // 2)) for start, end in golden()["stock_16k_merged"]]
    assert pairs(speech_timeline(speech())) == on_clock
    unmerged = speech_timeline(speech(), VadSettings(merge_s=0.0))
    assert len(unmerged) == len(golden()["stock_16k"]) > len(on_clock)


def test_a_gap_of_exactly_the_merge_limit_stays() -> None:
    first, second = golden()["stock_16k"][:2]
    gap = (second[0] - first[1]) / VAD_RATE
    assert len(speech_timeline(speech(), VadSettings(merge_s=gap))) == 3
    assert len(speech_timeline(speech(), VadSettings(merge_s=gap + 0.001))) == 2


@pytest.mark.parametrize("gain_db", [0, -6, -14])
def test_edges_are_near_the_edges_of_the_sound(gain_db: int) -> None:
    built = golden()["speech_24k"]
    unmerged = speech_timeline(speech() * np.float32(10 ** (gain_db / 20)), VadSettings(merge_s=0.0))
    assert len(unmerged) == len(built)
    for span, (start, end) in zip(unmerged, built, strict=True):
        assert abs(span.start - start) <= ONSET_ERROR_S * RATE
        assert abs(span.end - end) <= OFFSET_ERROR_S * RATE


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1_536])
def test_a_very_short_signal_has_no_speech(size: int) -> None:
    rng = np.random.default_rng(size)
    for audio in (np.zeros(size, np.float32), (rng.standard_normal(size) * 0.1).astype(np.float32)):
        assert speech_spans(audio) == ()
        assert len(speech_timeline(audio)) == 0


def test_speech_to_the_last_sample_ends_inside_the_signal() -> None:
    start, end = golden()["speech_24k"][0]
    cut = speech()[: end - 7_001]
    last = speech_timeline(cut)[-1]
    assert start - 0.1 * RATE < last.start < start + 0.1 * RATE
    assert last.end == cut.size


def test_one_channel_of_a_stereo_array_is_heard_in_its_stride() -> None:
    stereo = np.stack([np.zeros_like(speech()), speech()], axis=1)
    assert speech_timeline(stereo[:, 1]) == speech_timeline(speech())
    assert len(speech_timeline(stereo[:, 0])) == 0


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 5), st.lists(st.integers(0, 70_000), max_size=60))
def test_probabilities_do_not_depend_on_the_pieces(seed: int, cuts: list[int]) -> None:
    audio = resample(choppy(seed), RATE, VAD_RATE)[: 50_000 + seed]
    whole, pieces = SpeechProbability(), SpeechProbability()
    expected = np.concatenate([whole.push(audio), whole.finish()])
    found = [pieces.push(piece) for piece in np.split(audio, sorted(min(cut, audio.size) for cut in cuts))]
    assert expected.size == -(-audio.size // CHUNK)
    np.testing.assert_allclose(np.concatenate([*found, pieces.finish()]), expected, rtol=0, atol=1e-6)


def test_a_signal_longer_than_a_block_is_carried_over() -> None:
    """More than 512 chunks are two calls of the model: the state must pass between them."""
    audio = np.tile(resample(speech(), RATE, VAD_RATE), 4)[: 700 * CHUNK]
    model = SpeechProbability()
    one_by_one = np.concatenate([model.push(chunk) for chunk in audio.reshape(-1, CHUNK)])
    np.testing.assert_allclose(SpeechProbability().push(audio), one_by_one, rtol=0, atol=1e-6)


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_no_probability_makes_no_span(chunks: int) -> None:
    assert spans_from_probabilities(np.ones(chunks, np.float32), chunks * CHUNK) == ()


def test_spans_need_more_than_the_shortest_speech() -> None:
    # Three chunks are 96 ms, over 90; as a signal that ends inside the third they are 90 exactly, which is not enough.
    assert pairs(spans_from_probabilities(np.ones(3, np.float32), 1_441)) == [(0, 1_441)]
    assert spans_from_probabilities(np.ones(3, np.float32), 1_440) == ()


def test_the_exit_threshold_follows_the_threshold() -> None:
    assert BENCHMARK.exit_threshold == pytest.approx(0.35)
    assert VadSettings(threshold=0.1).exit_threshold == 0.01


# Online


def offline(audio: Signal) -> list[tuple[int, int]]:
    """Return the offline spans without their padding, on the session clock."""
    spans = pairs(speech_spans(resample(audio, RATE, VAD_RATE)))
    return [((start + PAD) * 3 // 2, (end - PAD) * 3 // 2) for start, end in spans]


def reports(audio: Signal, pieces: list[Signal]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return (samples heard by then, edge) for every onset and every end that the detector reported."""
    detector = OnlineDetector()
    onsets: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    before, now = (detector.onset, detector.silent_since), 0
    for piece in pieces:
        detector.push(piece)
        now += piece.size
        if detector.silent_since != before[1]:
            ends.append((now, detector.silent_since))
        if detector.onset is not None and detector.onset != before[0]:
            onsets.append((now, detector.onset))
        before = (detector.onset, detector.silent_since)
    assert now == audio.size
    assert detector.onset is None, "every signal here ends in silence"
    assert detector.spans == [(a, b) for (_, a), (_, b) in zip(onsets, ends, strict=True)]
    return onsets, ends


def probabilities(audio: Signal) -> list[float]:
    return [float(chance) for chance in SpeechProbability().push(resample(audio, RATE, VAD_RATE))]


@pytest.mark.parametrize("gain_db", [0, -6, -14])
def test_a_sentence_is_reported_within_160_ms_of_its_first_chunk(gain_db: int) -> None:
    audio = speech() * np.float32(10 ** (gain_db / 20))
    onsets, ends = reports(audio, list(frames(audio, FRAME)))
    assert len(onsets) == len(ends) == len(golden()["speech_24k"])
    for heard, onset in onsets:
        assert 0 < heard - (onset + CHUNK_24K) <= 160 * MS
    for heard, end in ends:
        assert 0 < heard - (end + CHUNK_24K) <= 160 * MS


@pytest.mark.parametrize("seed", range(20))
def test_online_edges_are_the_offline_ones_and_in_time(seed: int) -> None:
    audio = choppy(seed)
    expected, chance = offline(audio), probabilities(audio)
    assert expected
    onsets, ends = reports(audio, list(np.split(audio, range(FRAME, audio.size, FRAME))))
    assert len(onsets) == len(ends) == len(expected)
    for (heard, onset), (start, _) in zip(onsets, expected, strict=True):
        assert abs(onset - start) <= CHUNK_24K
        # Speech that breaks off at once is known to be speech when it goes on: 90 ms, or the next chunk that speaks.
        first = start // CHUNK_24K
        sure = next(k for k in range(first + 2, len(chance)) if chance[k] >= BENCHMARK.threshold)
        assert heard - (sure + 1) * CHUNK_24K <= LATE
    for (heard, end), (_, stop) in zip(ends, expected, strict=True):
        assert abs(end - stop) <= CHUNK_24K
        first = stop // CHUNK_24K
        sure = next(k for k in range(first + 3, len(chance)) if chance[k] < BENCHMARK.exit_threshold)
        assert heard - (sure + 1) * CHUNK_24K <= LATE


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 19), st.lists(st.integers(50, 2_000), min_size=1, max_size=20))
def test_online_edges_do_not_depend_on_the_pieces(seed: int, sizes: list[int]) -> None:
    audio = choppy(seed)
    cuts = np.cumsum(np.resize(sizes, audio.size // min(sizes) + 1))
    onsets, ends = reports(audio, list(np.split(audio, cuts[cuts < audio.size])))
    assert [(a, b) for (_, a), (_, b) in zip(onsets, ends, strict=True)] == offline(audio)


def test_the_corpus_for_the_online_detector_holds_what_it_must_reject() -> None:
    """Speech, and clicks shorter than the shortest speech: without both the tests above would prove too little."""
    signals = [resample(choppy(seed), RATE, VAD_RATE) for seed in range(20)]
    kept = sum(len(speech_spans(signal)) for signal in signals)
    clicks = sum(len(speech_spans(signal, VadSettings(min_speech_ms=0))) for signal in signals) - kept
    assert kept >= 40
    assert clicks >= 10


def test_speech_under_way_has_an_onset_and_no_end() -> None:
    start, end = golden()["speech_24k"][0]
    detector = OnlineDetector()
    assert (detector.onset, detector.silent_since, detector.spans) == (None, 0, [])
    for piece in frames(speech()[: end - 4_800], FRAME):
        detector.push(piece)
    assert detector.onset is not None
    assert abs(detector.onset - start) <= ONSET_ERROR_S * RATE
    assert detector.silent_since == 0
    assert detector.spans == [(detector.onset, None)]


def test_silence_is_not_speech_however_long() -> None:
    detector = OnlineDetector()
    for _ in range(250):
        detector.push(np.zeros(FRAME, np.float32))
    assert (detector.onset, detector.silent_since, detector.spans) == (None, 0, [])


def test_a_channel_at_another_rate_is_on_the_session_clock() -> None:
    audio = choppy(3)
    detector = OnlineDetector(VAD_RATE)
    for piece in frames(resample(audio, RATE, VAD_RATE), 320):
        detector.push(piece)
    assert detector.spans == offline(audio)


# Energy


def level(*values: tuple[float, int]) -> Signal:
    return np.concatenate([np.full(size, value, np.float32) for value, size in values])


def test_energy_spans_cover_whole_frames() -> None:
    audio = level((0, 250), (0.1, 230), (0, 520))  # sound from 250 to 480
    assert pairs(energy_spans(audio, 100)) == [(200, 500)]
    assert pairs(energy_spans(audio, 10)) == [(250, 480)]


def test_energy_between_the_two_levels_holds_and_does_not_open() -> None:
    audio = level((0.007, 300), (0.02, 100), (0.007, 200), (0.003, 100), (0.007, 100), (0.02, 100), (0, 100))
    assert pairs(energy_spans(audio, 100)) == [(300, 600), (800, 900)]
    assert pairs(energy_spans(audio, 100, closes=0.001)) == [(300, 900)]
    assert pairs(energy_spans(audio, 100, opens=0.005)) == [(0, 600), (700, 900)]


def test_energy_exactly_at_a_level_neither_opens_nor_closes() -> None:
    audio = level((0.25, 100), (0.5, 100), (0.25, 100), (0, 100))
    assert pairs(energy_spans(audio, 100, opens=0.25, closes=0.25)) == [(100, 300)]


def test_energy_to_the_end_stops_at_the_last_sample() -> None:
    assert pairs(energy_spans(level((0, 100), (0.2, 130)), 100)) == [(100, 230)]
    assert pairs(energy_spans(level((0.2, 30)), 100)) == [(0, 30)]


@pytest.mark.parametrize("size", [0, 1, 99, 1_000])
def test_no_energy_has_no_spans(size: int) -> None:
    assert len(energy_spans(np.zeros(size, np.float32), 100)) == 0


@pytest.mark.parametrize("frame", [0, -1])
def test_an_energy_frame_of_no_samples_is_refused(frame: int) -> None:
    with pytest.raises(AudioError, match=f"^frame must be positive, not {frame}$"):
        energy_spans(np.zeros(10, np.float32), frame)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from([0.0, 0.003, 0.005, 0.009, 0.011, 0.3]), max_size=30), st.integers(1, 9))
def test_energy_spans_open_loud_and_end_quiet(levels: list[float], frame: int) -> None:
    spans = energy_spans(level((0, 0), *((value, frame) for value in levels)), frame)
    inside = [any(span.start <= k * frame < span.end for span in spans) for k in range(len(levels))]
    # Level by level: loud is in, quiet is out, what lies between goes on as it was.
    for (was, now), value in zip(pairwise([False, *inside]), levels, strict=True):
        assert now == (value > 0.010 or (was and value >= 0.004))
    assert all(span.start % frame == 0 and span.end % frame == 0 for span in spans)
