"""Audio at the edge: arrays, frames, one pinned resampler, files.

Conventions
-----------
* A signal is a one-dimensional ``float32`` array, full scale 1.0. The session clock is :data:`RATE` (24 kHz).
* One resampler everywhere: soxr, quality HQ. Spans depend on it more than on the VAD's implementation, so it is named
  in every fingerprint (:data:`RESAMPLER`).
* 16 bits are the signal times 32768, rounded and clipped (:func:`to_pcm16`), in memory and in files: reading a PCM16
  file and writing it again changes no sample, and WAV and FLAC hold the same ones.
* A file is written beside its name and moved into place, so a reader never sees half of one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from dsbeval.errors import AudioError

Signal = NDArray[np.float32]

RATE = 24_000
"""The session clock: every recording, window and span, in samples a second."""

RESAMPLER = "soxr-HQ"


def check_signal(audio: object, what: str) -> Signal:
    """Return ``audio`` if it is a finite 1-D float32 array; otherwise raise :class:`AudioError` naming ``what``.

    Nothing is converted silently: a float64 or 2-D array is a mistake in the adapter that made it.
    """
    if not isinstance(audio, np.ndarray):
        raise AudioError(f"{what}: audio is a {type(audio).__name__}; return a 1-D numpy float32 array")
    if audio.dtype != np.float32:
        raise AudioError(f"{what}: audio is {audio.dtype}; return float32 (audio.astype(numpy.float32))")
    if audio.ndim != 1:
        raise AudioError(f"{what}: audio has shape {audio.shape}; return one channel, shape (samples,)")
    if audio.size and not np.isfinite(audio).all():
        first = int(np.flatnonzero(~np.isfinite(audio))[0])
        raise AudioError(f"{what}: audio has a NaN or infinite value at sample {first}; check the model's output")
    return audio


def resample(audio: Signal, source: int, target: int) -> Signal:
    """Resample a whole signal to exactly ``ceil(n x target / source)`` samples; time zero stays at sample zero."""
    if source == target or not audio.size:
        return audio
    import soxr  # imported late: collection must not pay for it

    wanted = -(-audio.size * target // source)
    out = cast(Signal, np.asarray(soxr.resample(audio, source, target, quality="HQ"), dtype=np.float32))
    if out.size < wanted:
        out = np.pad(out, (0, wanted - out.size))
    return out[:wanted]


class StreamResampler:
    """The same resampler fed piece by piece. Output is aligned with the input's time zero and arrives late.

    ``push`` returns what is ready; ``finish`` returns the rest, so that the whole has the length of :func:`resample`.
    """

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._stream: Any = None
        self._pushed = self._returned = 0
        if source != target:
            import soxr

            self._stream = soxr.ResampleStream(source, target, 1, dtype="float32", quality="HQ")

    def push(self, audio: Signal) -> Signal:
        """Feed the next piece and return the output that is ready."""
        self._pushed += audio.size
        if self._stream is None:
            return audio
        out = cast(Signal, self._stream.resample_chunk(audio))
        self._returned += out.size
        return out

    def finish(self) -> Signal:
        """Return what the filter still holds; nothing may be pushed afterwards."""
        if self._stream is None:
            return np.zeros(0, np.float32)
        rest = cast(Signal, self._stream.resample_chunk(np.zeros(0, np.float32), last=True))
        wanted = -(-self._pushed * self._target // self._source) - self._returned
        if rest.size < wanted:
            rest = np.pad(rest, (0, wanted - rest.size))
        return rest[:wanted]


def frames(audio: Signal, frame: int) -> Iterator[Signal]:
    """Cut a signal into frames of ``frame`` samples; the last one is padded with zeros.

    Raises :class:`AudioError` when ``frame`` is not positive.
    """
    if frame <= 0:
        raise AudioError(f"frame must be positive, not {frame}")
    for start in range(0, audio.size, frame):
        piece = audio[start : start + frame]
        yield piece if piece.size == frame else np.pad(piece, (0, frame - piece.size))


def to_pcm16(audio: NDArray[np.float32]) -> NDArray[np.int16]:
    """Quantise to 16 bits, clipping at full scale. Exact zero stays exact zero."""
    return cast("NDArray[np.int16]", np.clip(np.rint(audio * 32768.0), -32768, 32767).astype(np.int16))


def read_audio(path: Path, *, rate: int | None = RATE, channels: int | None = None) -> NDArray[np.float32]:
    """Read an audio file as float32, shape ``(samples,)`` or ``(samples, channels)``.

    Raises :class:`AudioError` when the file is missing, unreadable, empty, at another rate, with another number of
    channels, or not finite.
    """
    import soundfile as sf

    try:
        data, found = sf.read(path, dtype="float32", always_2d=True)
    except (sf.LibsndfileError, OSError, TypeError) as error:  # TypeError: it wants a rate for a name in .raw
        why = "no such file" if not path.exists() else str(error).rsplit(": ", 1)[-1].strip(" .") or "unreadable"
        raise AudioError(f"{path}: {why}; a readable WAV, FLAC or Ogg Opus file is needed") from None
    if rate is not None and found != rate:
        raise AudioError(f"{path}: sample rate is {found} Hz; {rate} Hz is needed (resample the file)")
    if channels is not None and data.shape[1] != channels:
        raise AudioError(f"{path}: {data.shape[1]} channel(s); {channels} needed")
    if not len(data):
        raise AudioError(f"{path}: holds no samples; record or render it again")
    if not np.isfinite(data).all():
        first = int(np.argwhere(~np.isfinite(data))[0][0])
        raise AudioError(f"{path}: NaN or infinite value at sample {first}; the file is damaged, make it again")
    return cast("NDArray[np.float32]", data[:, 0] if data.shape[1] == 1 else data)


def read_resampled(path: Path, *, channels: int | None = None) -> tuple[NDArray[np.float32], int]:
    """Read an audio file of any rate at the session clock; return it, shaped as by :func:`read_audio`, and the file's own rate.

    Raises :class:`AudioError` as :func:`read_audio` does.
    """
    import soundfile as sf

    audio = read_audio(path, rate=None, channels=channels)
    found = int(sf.info(path).samplerate)
    if found == RATE:
        return audio, found
    columns = audio.reshape(len(audio), -1).T
    clocked = [resample(np.ascontiguousarray(column), found, RATE) for column in columns]
    return (clocked[0] if audio.ndim == 1 else np.stack(clocked, axis=1)), found


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path``; it takes the name only when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: its files are private, and a umask can only be read by changing it under every other thread.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_audio(path: Path, audio: NDArray[np.float32] | NDArray[np.int16], rate: int = RATE) -> None:
    """Write a signal, shape ``(samples,)`` or ``(samples, channels)``, in the format of the suffix.

    WAV and FLAC hold PCM16; the third suffix is ``.opus``. Raises :class:`AudioError` for another suffix, or for a NaN
    or infinite value, which 16 bits would turn into an innocent-looking sample.
    """
    import soundfile as sf

    kinds = {".wav": ("WAV", "PCM_16"), ".flac": ("FLAC", "PCM_16"), ".opus": ("OGG", "OPUS")}
    if path.suffix not in kinds:
        raise AudioError(f"{path}: cannot write {path.suffix!r} files; use one of {', '.join(kinds)}")
    if not np.isfinite(audio).all():
        first = int(np.argwhere(~np.isfinite(audio))[0][0])
        raise AudioError(f"{path}: NaN or infinite value at sample {first}; mend what made the signal")
    container, subtype = kinds[path.suffix]
    if subtype == "PCM_16" and audio.dtype != np.int16:
        # Left to itself the file library rounds for FLAC and truncates for WAV.
        audio = to_pcm16(cast("NDArray[np.float32]", audio))
    with atomic_write(path) as file:
        sf.write(file, audio, rate, format=container, subtype=subtype)
