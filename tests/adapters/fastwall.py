"""A wall that goes faster, for inner runs of adapters on the wall clock (``-p tests.adapters.fastwall``).

It proves nothing about pacing: tests of that run in real time. It lets a case of half a minute be played to a local server that
is driven by its input, with the same stamps, queues and deadlines.
"""

from __future__ import annotations

import time

import dsbeval.clock
from adapters import _wire

SPEED = 15.0

_START = time.monotonic()


def now() -> float:
    return _START + (time.monotonic() - _START) * SPEED


class FastWallClock(dsbeval.clock.WallClock):
    def __init__(self) -> None:
        super().__init__(now, lambda seconds: time.sleep(seconds / SPEED))


dsbeval.clock.WallClock = FastWallClock  # type: ignore[assignment,misc]
_wire.now = now
