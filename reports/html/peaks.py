"""Waveforms made small: the loudest sample of every fiftieth of a second, as one byte.

A canvas cannot read an hour of audio before it draws, and a report must not carry it: 50 peaks a second and channel are as
fine as a screen shows, and 1.4 kB a channel of a usual case.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

PEAKS_PER_S = 50


def peaks(channel: NDArray[np.int16], rate: int) -> str:
    """Return the peaks of a channel, shape ``(samples,)``, as base64: 255 is the channel's own loudest sample."""
    step = rate // PEAKS_PER_S
    padded = np.pad(channel.astype(np.int32), (0, -channel.size % step))
    blocks = np.abs(padded).reshape(-1, step).max(axis=1) if padded.size else np.zeros(0, np.int32)
    top = max(1, int(blocks.max(initial=0)))
    return base64.b64encode(np.rint(blocks * (255 / top)).astype(np.uint8).tobytes()).decode("ascii")


def both(stereo: NDArray[np.int16], rate: int) -> dict[str, Any]:
    """Return the peaks of both channels, shape ``(samples, 2)``, as a case page reads them."""
    return {"per_s": PEAKS_PER_S, "channels": [peaks(np.ascontiguousarray(stereo[:, k]), rate) for k in (0, 1)]}
