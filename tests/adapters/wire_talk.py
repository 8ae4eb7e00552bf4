"""Talking to an agent behind a wire: frames go out at a pace, and what has come back is looked at."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dsbeval.agent import Emission, Session
from dsbeval.audio import Signal


def emissions(returned: Emission | Sequence[Emission]) -> Sequence[Emission]:
    """Return what a step returned: these agents return a tuple."""
    assert isinstance(returned, tuple)
    return returned


def heard_back(session: Session, frames: int = 1, *, quiet: Signal, wait_s: float) -> list[Emission]:
    """Send frames of silence, wait a little after each, and return what has come."""
    out: list[Emission] = []
    for _ in range(frames):
        out.extend(emissions(session.step(quiet)))
        time.sleep(wait_s)
    return [*out, *emissions(session.finish())]
