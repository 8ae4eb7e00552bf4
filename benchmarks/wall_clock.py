"""Does the wall clock drift: a minute of frames against a peer on a local socket that speaks at known times.

Run: ``python -m benchmarks.wall_clock`` (a minute). The ratio is the drift over the minute against the 5 ms that an onset
may be off: under 1 is right. What a busy machine adds is in the jitter of the sent frames, not in the drift.
"""

from __future__ import annotations

import numpy as np

from dsbeval.audio import RATE
from tests.test_clock import over_the_wall, runs

SECONDS = 60
EVERY_S = 2.5
ALLOWED_MS = 5.0


def main() -> None:
    """Print where the peer's sounds landed, the slope over the minute, and the jitter."""
    plan = [(0.5 + EVERY_S * k, 480) for k in range(int(SECONDS / EVERY_S))]
    channel, peer, clock, start = over_the_wall(plan, SECONDS)
    begun = np.array([begin for begin, _ in runs(channel)]) / RATE
    sent = np.array(peer.sent[: begun.size]) - start
    off_ms = (begun - sent) * 1000
    drift_ms = float(np.polyfit(sent, off_ms, 1)[0] * SECONDS)
    print(
        f"{begun.size} of {len(plan)} sounds, off by {np.median(off_ms):.2f} ms (median), {off_ms.max():.2f} ms at most"
    )
    print(
        f"drift {drift_ms:+.2f} ms in {SECONDS} s; ratio to the allowed {ALLOWED_MS:g} ms: {abs(drift_ms) / ALLOWED_MS:.2f}"
    )
    print(f"frames sent, late by: {clock.report()['jitter_ms']} ms")


if __name__ == "__main__":
    main()
