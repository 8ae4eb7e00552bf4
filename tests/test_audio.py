"""Signals, the resampler whole and in pieces, frames, and files that are wrong or half written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dsbeval.audio import (
    RATE,
    Signal,
    StreamResampler,
    atomic_write,
    check_signal,
    frames,
    read_audio,
    resample,
    to_pcm16,
    write_audio,
)
from dsbeval.errors import AudioError

RATES = [(24_000, other) for other in (16_000, 22_050, 48_000, 8_000)]
RATES += [(other, 24_000) for _, other in RATES]


def noise(size: int, seed: int = 0) -> Signal:
    return (np.random.default_rng(seed).standard_normal(size) * 0.2).astype(np.float32)


def signal(*values: float) -> Signal:
    return np.array(values, dtype=np.float32)


def one_line(error: pytest.ExceptionInfo[AudioError], *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


# Signals


@pytest.mark.parametrize(
    ("audio", "says"),
    [
        ([0.0, 0.1], ["is a list", "1-D numpy float32"]),
        (None, ["is a NoneType", "1-D numpy float32"]),
        (np.zeros(4), ["is float64", "astype(numpy.float32)"]),
        (np.zeros(4, np.int16), ["is int16", "float32"]),
        (np.zeros((4, 2), np.float32), ["shape (4, 2)", "one channel"]),
        (signal(0, 0, np.nan, np.nan), ["NaN", "at sample 2"]),
        (signal(0, np.inf), ["infinite", "at sample 1"]),
        (signal(-np.inf, 0), ["infinite", "at sample 0"]),
    ],
)
def test_a_signal_that_is_not_one_is_named(audio: Any, says: list[str]) -> None:
    with pytest.raises(AudioError) as error:
        check_signal(audio, "agent moshi, step 7")
    one_line(error, "agent moshi, step 7: ", *says)


@pytest.mark.parametrize("size", [0, 1, 480])
def test_a_signal_passes_untouched(size: int) -> None:
    audio = noise(size)
    assert check_signal(audio, "x") is audio


# Resampling


def in_pieces(audio: Signal, source: int, target: int, cuts: list[int]) -> Signal:
    stream = StreamResampler(source, target)
    out = [stream.push(piece) for piece in np.split(audio, sorted(cuts))]
    return np.concatenate([*out, stream.finish()])


@pytest.mark.parametrize(("source", "target"), RATES)
@settings(deadline=None, max_examples=40)
@given(data=st.data(), size=st.one_of(st.integers(0, 40), st.integers(0, 6_000)), seed=st.integers(0, 9))
def test_pieces_give_the_samples_of_the_whole(
    source: int, target: int, data: st.DataObject, size: int, seed: int
) -> None:
    cuts = data.draw(st.lists(st.integers(0, size), max_size=30))  # equal cuts make empty pieces
    audio = noise(size, seed)
    whole = resample(audio, source, target)
    pieces = in_pieces(audio, source, target, cuts)
    assert whole.dtype == pieces.dtype == np.float32
    assert whole.size == pieces.size == -(-size * target // source)
    np.testing.assert_allclose(pieces, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("source", "target"), RATES)
def test_a_stream_of_frames_is_late_by_less_than_a_tenth_of_a_second(source: int, target: int) -> None:
    stream = StreamResampler(source, target)
    frame = source // 50
    pushed = returned = 0
    for piece in frames(noise(source), frame):
        returned += stream.push(piece).size
        pushed += piece.size
        assert pushed / source - returned / target < 0.1
    assert returned > 0.9 * target


@pytest.mark.parametrize(("source", "target"), RATES)
@pytest.mark.parametrize("at", [0.0, 0.25, 0.5, 0.9, 0.999])
def test_an_impulse_stays_at_its_time(source: int, target: int, at: float) -> None:
    audio = np.zeros(source, np.float32)
    audio[round(at * source)] = 1.0
    for out in (resample(audio, source, target), in_pieces(audio, source, target, [source // 3, source // 2])):
        peak = int(np.abs(out).argmax())
        assert abs(peak - round(at * source) * target / source) <= 0.5


@pytest.mark.parametrize(("source", "target"), RATES)
def test_a_tone_comes_through_at_its_level_and_phase(source: int, target: int) -> None:
    tone = [np.sin(2 * np.pi * 440 * np.arange(rate) / rate).astype(np.float32) * 0.5 for rate in (source, target)]
    out = resample(tone[0], source, target)
    edge = target // 10  # the filter sees the start and the end of a tone as clicks
    np.testing.assert_allclose(out[edge:-edge], tone[1][edge:-edge], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("source", "target"), RATES)
def test_silence_stays_exact_silence(source: int, target: int) -> None:
    silence = np.zeros(source // 2, np.float32)
    assert not resample(silence, source, target).any()
    assert not in_pieces(silence, source, target, [100, 500]).any()


def test_one_channel_of_a_stereo_array_is_read_in_its_stride() -> None:
    stereo = np.stack([noise(5_000, 1), noise(5_000, 2)], axis=1)
    expected = resample(noise(5_000, 2), 24_000, 16_000)
    np.testing.assert_array_equal(resample(stereo[:, 1], 24_000, 16_000), expected)
    np.testing.assert_array_equal(in_pieces(stereo[:, 1], 24_000, 16_000, [7, 512]), expected)


def test_the_same_rate_changes_nothing() -> None:
    audio = noise(1_001)
    np.testing.assert_array_equal(resample(audio, RATE, RATE), audio)
    np.testing.assert_array_equal(in_pieces(audio, RATE, RATE, [480, 960]), audio)


# Frames


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 300), st.integers(1, 100))
def test_frames_are_whole_and_the_last_is_padded(size: int, frame: int) -> None:
    audio = noise(size)
    cut = list(frames(audio, frame))
    assert [piece.size for piece in cut] == [frame] * -(-size // frame)
    joined = np.concatenate([*cut, np.zeros(0, np.float32)])
    np.testing.assert_array_equal(joined[:size], audio)
    assert not joined[size:].any()


@pytest.mark.parametrize("frame", [0, -480])
def test_a_frame_of_no_samples_is_refused(frame: int) -> None:
    with pytest.raises(AudioError) as error:
        list(frames(noise(10), frame))
    one_line(error, str(frame))


# 16 bits


def test_16_bits_round_and_clip() -> None:
    audio = signal(0, -0.0, 1, -1, 1.5, -7, 0.5, 0.4 / 32768, 0.6 / 32768, -0.6 / 32768)
    assert to_pcm16(audio).tolist() == [0, 0, 32767, -32768, 32767, -32768, 16384, 0, 1, -1]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_every_16_bit_value_survives_reading_and_writing(tmp_path: Path, suffix: str) -> None:
    values = np.arange(-32768, 32768).astype(np.int16)
    first, again = tmp_path / f"first{suffix}", tmp_path / f"again{suffix}"
    write_audio(first, values)
    write_audio(again, read_audio(first))
    for path in (first, again):
        np.testing.assert_array_equal(sf.read(path, dtype="int16")[0], values)
    np.testing.assert_array_equal(to_pcm16(read_audio(first)), values)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_a_file_holds_what_quantising_gives(tmp_path: Path, suffix: str) -> None:
    audio = np.concatenate([noise(5_000), signal(1.2, -1.2), signal(0.5, -0.5, 1.5) / 32768])
    write_audio(tmp_path / f"x{suffix}", audio)
    np.testing.assert_array_equal(sf.read(tmp_path / f"x{suffix}", dtype="int16")[0], to_pcm16(audio))


# Files


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_exact_zeros_stay_exact_zeros(tmp_path: Path, suffix: str) -> None:
    audio = noise(4_800)
    audio[1_200:3_600] = 0.0
    write_audio(tmp_path / f"x{suffix}", audio)
    back = read_audio(tmp_path / f"x{suffix}", channels=1)
    assert back.shape == audio.shape
    assert not back[1_200:3_600].any()
    np.testing.assert_allclose(back, audio, rtol=0, atol=0.5001 / 32768)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_two_channels_stay_apart(tmp_path: Path, suffix: str) -> None:
    stereo = np.stack([noise(960, 1), np.zeros(960, np.float32)], axis=1)
    write_audio(tmp_path / f"x{suffix}", stereo)
    back = read_audio(tmp_path / f"x{suffix}", channels=2)
    assert back.shape == (960, 2)
    assert not back[:, 1].any()
    assert back[:, 0].any()


def test_opus_keeps_length_rate_and_place(tmp_path: Path) -> None:
    tone = (0.3 * np.sin(2 * np.pi * 300 * np.arange(24_000) / 24_000)).astype(np.float32)
    tone[:12_000] = 0.0
    write_audio(tmp_path / "x.opus", tone)
    back = read_audio(tmp_path / "x.opus", channels=1)
    assert back.size == tone.size
    assert np.abs(back[:11_000]).max() < 0.01
    lags = range(-48, 49)  # 2 ms is less than a period, so one lag is best
    fit = [float(np.dot(tone[13_000:23_000], back[13_000 + lag : 23_000 + lag])) for lag in lags]
    assert abs(lags[int(np.argmax(fit))]) <= 2


def test_the_rate_is_written(tmp_path: Path) -> None:
    write_audio(tmp_path / "x.wav", noise(160), rate=16_000)
    assert sf.info(tmp_path / "x.wav").samplerate == 16_000
    assert read_audio(tmp_path / "x.wav", rate=16_000).size == read_audio(tmp_path / "x.wav", rate=None).size == 160


def _missing(path: Path) -> None:
    pass


def _wrong_rate(path: Path) -> None:
    sf.write(path, noise(100), 16_000)


def _stereo(path: Path) -> None:
    sf.write(path, np.zeros((100, 2), np.float32), RATE)


def _no_samples(path: Path) -> None:
    sf.write(path, np.zeros(0, np.float32), RATE)


def _not_a_number(path: Path) -> None:
    sf.write(path, signal(0, 0, 0, np.nan), RATE, subtype="FLOAT")


def _infinite(path: Path) -> None:
    sf.write(path, signal(0, np.inf, 0), RATE, subtype="FLOAT")


def _text(path: Path) -> None:
    path.write_text("RIFF is what this is not\n" * 40, encoding="utf-8")


def _no_bytes(path: Path) -> None:
    path.touch()


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_missing, ["no such file", "is needed"]),
        (_wrong_rate, ["16000 Hz", "24000 Hz is needed", "resample"]),
        (_stereo, ["2 channel(s)", "1 needed"]),
        (_no_samples, ["no samples", "again"]),
        (_not_a_number, ["NaN", "sample 3", "again"]),
        (_infinite, ["infinite", "sample 1", "again"]),
        (_text, ["Format not recognised; ", "WAV"]),
        (_no_bytes, ["WAV, FLAC or Ogg Opus"]),
        (_folder, ["WAV, FLAC or Ogg Opus"]),
    ],
)
def test_a_file_that_is_wrong_is_one_clear_line(tmp_path: Path, make: Callable[[Path], None], says: list[str]) -> None:
    path = tmp_path / "user: side.wav"
    make(path)
    with pytest.raises(AudioError) as error:
        read_audio(path, channels=1)
    one_line(error, f"{path}: ", *says)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_a_flac_cut_short_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.flac"
    write_audio(path, noise(24_000))
    path.write_bytes(path.read_bytes()[:9_000])
    with pytest.raises(AudioError) as error:
        read_audio(path)
    one_line(error, f"{path}: ")


def test_a_headerless_file_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.raw"
    path.write_bytes(bytes(200))
    with pytest.raises(AudioError) as error:
        read_audio(path)
    one_line(error, f"{path}: ")


def test_an_unknown_suffix_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(AudioError) as error:
        write_audio(tmp_path / "x.mp3", noise(10))
    one_line(error, "x.mp3", "'.mp3'", ".wav", ".flac", ".opus")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_not_written(tmp_path: Path, bad: float) -> None:
    audio = noise(10)
    audio[6] = bad
    with pytest.raises(AudioError) as error:
        write_audio(tmp_path / "x.wav", audio)
    one_line(error, "x.wav", "sample 6")
    assert list(tmp_path.iterdir()) == []


# Writing in one step


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"half of the n")
            file.flush()
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_encoder_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    write_audio(path, noise(100))
    before = path.read_bytes()
    no_such_signal: NDArray[np.float32] = np.zeros((2, 2, 2), np.float32)
    with pytest.raises(ValueError, match="dimensions"):
        write_audio(path, no_such_signal)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_changes_hands_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "x.json"
    with atomic_write(path) as file:
        file.write(b"first")
        assert not path.exists()
    with atomic_write(path) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_mode_that_the_umask_gives(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_audio(tmp_path / "x.wav", noise(10))
        write_audio(tmp_path / "x.wav", noise(20))
        left = os.umask(umask)
    finally:
        os.umask(before)
    assert (tmp_path / "x.wav").stat().st_mode & 0o777 == mode
    assert left == umask
