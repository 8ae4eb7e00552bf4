"""Acoustic conditions of the user channel: a seeded transform that leaves the timeline as it is, to the sample.

Conventions
-----------
* Input and output are mono float32 at 24 kHz, of the same length. What began at sample ``n`` begins at sample ``n``:
  linear-phase filters are applied without their delay, and the room's direct path is its first tap, at gain 1. So the
  boundaries of a turn hold under every condition.
* Equal seeds give equal samples. Random numbers are made from the raw bits of PCG64, whose stream numpy keeps fixed.
* No loudness normalisation, before or after. Samples beyond full scale are clipped, as a converter would.

``clean``
    The input itself.
``telephone``
    300-3400 Hz (linear phase, -6 dB at the edges), 8 kHz, G.711 mu-law codes, back to 24 kHz. Not random.
``noisy``
    Stationary noise with the long-term spectrum of speech (flat to 500 Hz, then -9 dB an octave), at :data:`SNR_DB`
    over the speech. It covers the whole signal, pauses included.
``reverberant``
    A synthetic room: the direct path, then from :data:`TAIL_AFTER_S` on a tail of exponentially decaying noise with
    :data:`RT60_S` and a direct-to-reverberant ratio of :data:`DRR_DB`. Cut at the end of the signal.

*Over the speech* means over the 20 ms frames within 40 dB of the loudest one (:func:`speech_power`). A signal of pure
silence has no such frames; its noise is set as if against speech 26 dB below full scale, the nominal level of
telephony (ITU-T P.56).
"""

from __future__ import annotations

import io
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from dsbeval.audio import RATE, Signal, check_signal
from dsbeval.errors import OptionError, near

Acoustics = Literal["clean", "telephone", "noisy", "reverberant"]

SNR_DB = 10.0
RT60_S = 0.5
DRR_DB = 3.0
TAIL_AFTER_S = 0.0025
BACKGROUND_S = 60
BAND_HZ = (300.0, 3400.0)

KINDS: dict[str, str] = {
    "clean": "the recording as it is",
    "telephone": f"{BAND_HZ[0]:.0f}-{BAND_HZ[1]:.0f} Hz through 8 kHz G.711 mu-law",
    "noisy": f"speech-shaped noise at {SNR_DB:g} dB SNR over the speech",
    "reverberant": f"synthetic room, RT60 {RT60_S:g} s, direct-to-reverberant ratio {DRR_DB:g} dB",
}
"""The conditions, each in one line, for help texts and the fingerprint of a run."""

_FRAME = RATE // 50
_NOMINAL_POWER = 10 ** (-26 / 10)
_NARROW = 8_000
_TAPS = 481  # 20 ms: a transition of about 160 Hz, narrow enough for the lower edge of the telephone band


def apply(audio: Signal, kind: Acoustics, seed: int) -> Signal:
    """Return ``audio`` under an acoustic condition: same length, same timeline.

    Raises :class:`OptionError` for an unknown condition or a negative seed, :class:`AudioError` for a signal that is
    not mono float32.
    """
    check_signal(audio, "acoustics")
    if kind not in KINDS:
        raise OptionError(f"--acoustics: {kind!r} is not a condition; {near(str(kind), KINDS)}")
    if seed < 0:
        raise OptionError(f"--acoustics: seed is {seed}; use zero or a positive number")
    if kind == "clean" or not audio.size:
        return audio
    match kind:
        case "telephone":
            out = _telephone(audio)
        case "noisy":
            out = _noisy(audio, seed)
        case _:
            out = _reverberant(audio, seed)
    return np.clip(out, -1.0, 1.0).astype(np.float32)


def in_session(audio: Signal, kind: Acoustics, seed: int) -> Signal:
    """Return a turn as it sounds within a session: a room rings on after it, noise is left to :func:`background`."""
    if kind == "noisy":
        return audio
    ringing = np.pad(audio, (0, int(1.2 * RT60_S * RATE))) if kind == "reverberant" else audio
    return apply(ringing, kind, seed)


def background(speech: Signal, kind: Acoustics, seed: int) -> Signal:
    """Return what lies under the whole user channel of a session, to be looped: the noise of ``noisy``, else nothing.

    It does not stop between the turns, so that it does not give their edges away. Its level is set by ``speech``.
    """
    if kind != "noisy":
        return np.zeros(0, np.float32)
    return _noise(BACKGROUND_S * RATE, speech_power(speech), seed).astype(np.float32)


def speech_power(audio: Signal) -> float:
    """Return the mean power of the 20 ms frames within 40 dB of the loudest one; 0 for pure silence."""
    padded = np.pad(audio.astype(np.float64), (0, -audio.size % _FRAME)).reshape(-1, _FRAME)
    power = (padded**2).mean(axis=1)
    if not power.size or not power.max() > 0:
        return 0.0
    return float(power[power >= power.max() * 1e-4].mean())


def room(seed: int) -> NDArray[np.float64]:
    """Return the impulse response of the synthetic room of a seed; tap 0 is the direct path, 1.0."""
    time = np.arange(int(1.2 * RT60_S * RATE)) / RATE  # the tail ends 72 dB down
    tail = _white(time.size, "reverberant", seed) * 10 ** (-3.0 * time / RT60_S)
    tail[time < TAIL_AFTER_S] = 0.0
    tail *= np.sqrt(10 ** (-DRR_DB / 10) / (tail**2).sum())
    tail[0] = 1.0
    return tail


def _telephone(audio: Signal) -> NDArray[np.float64]:
    import soundfile as sf
    from scipy import signal

    band = signal.firwin(_TAPS, BAND_HZ, fs=RATE, pass_zero=False)
    narrow = signal.oaconvolve(audio.astype(np.float64), band, mode="same")[:: RATE // _NARROW]
    # Clipped first: the encoder wraps what lies beyond full scale. Its code for zero decodes to exact zero.
    coded = io.BytesIO()
    sf.write(coded, np.clip(narrow, -1.0, 1.0), _NARROW, format="RAW", subtype="ULAW")
    coded.seek(0)
    decoded, _ = sf.read(coded, samplerate=_NARROW, channels=1, format="RAW", subtype="ULAW")
    return cast("NDArray[np.float64]", signal.resample_poly(decoded, RATE // _NARROW, 1)[: audio.size])


def _noisy(audio: Signal, seed: int) -> NDArray[np.float64]:
    return audio + _noise(audio.size, speech_power(audio), seed)


def _noise(size: int, speech: float, seed: int) -> NDArray[np.float64]:
    """Return ``size`` samples of speech-shaped noise at :data:`SNR_DB` under a speech power."""
    from scipy import signal

    edges = np.array([0.0, 60.0, 100.0, 500.0, *(500.0 * 2 ** (k / 2) for k in range(1, 10)), RATE / 2])
    level = np.where(edges <= 500.0, 0.0, -9.0 * np.log2(np.maximum(edges, 500.0) / 500.0))
    level[:2] = -24.0  # rumble that no microphone passes
    shape = signal.firwin2(_TAPS, edges, 10 ** (level / 20), fs=RATE)
    noise = signal.oaconvolve(_white(size + _TAPS - 1, "noisy", seed), shape, mode="valid")
    wanted = (speech or _NOMINAL_POWER) * 10 ** (-SNR_DB / 10)
    # The filter's gain, not this stretch's mean square: a stretch of two samples would otherwise set its own level.
    scaled: NDArray[np.float64] = noise * float(np.sqrt(wanted / (shape**2).sum()))
    return scaled


def _reverberant(audio: Signal, seed: int) -> NDArray[np.float64]:
    from scipy import signal

    return signal.oaconvolve(audio.astype(np.float64), room(seed))[: audio.size]


def _white(size: int, kind: str, seed: int) -> NDArray[np.float64]:
    """Return uniform white noise of unit power; each condition has a stream of its own."""
    stream = np.random.PCG64(np.random.SeedSequence([seed, list(KINDS).index(kind)]))
    bits = stream.random_raw(size)
    return ((bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0) * float(np.sqrt(3.0))
