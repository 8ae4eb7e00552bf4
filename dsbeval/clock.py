"""Clocks of a session: as fast as the machine, with or without the agent's own compute time, or paced by the wall.

Conventions
-----------
* Session time is in samples at 24 kHz from the start of the session. The frame that ends at sample e can be heard by
  the agent at e, not before.
* *Logical, none* (default, as published): an emission is heard where the capability says; computing costs nothing.
* *Logical, measured*: the agent is busy for as long as its step really took. A frame that comes while it is busy
  queues; what it emits cannot be heard before it was computed. Costs are charged in whole milliseconds, rounded down:
  less than that is the harness's own call, so an agent that costs nothing gives the same bytes as without charging. A
  chunked agent is waited for when it is more than two chunks behind (the backpressure of the dyadic bridge); the time
  waited is reported and not charged.
* *Wall*: frames are sent on absolute deadlines counted from the start, so nothing drifts; arrivals are stamped by the
  adapter with ``time.monotonic()``. How late each frame was sent is the jitter.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from dsbeval.audio import RATE

LATENCIES = ("none", "measured")
BACKPRESSURE_CHUNKS = 2

Seconds = Callable[[], float]


class Clock(ABC):
    """When a frame may be stepped, and when what it emits arrives."""

    def timer(self) -> float:
        """Return the time by which the cost of a step is measured, in seconds."""
        return time.perf_counter()

    @abstractmethod
    def ready(self, frame_end: int) -> None:
        """Return when the frame that ends at ``frame_end`` may be heard by the agent."""

    @abstractmethod
    def arrival(self, frame_end: int, earliest: int, arrived: float | None) -> int:
        """Return where an emission of the step just made is heard from, in session samples.

        ``earliest`` is where the capability places it; ``arrived`` the adapter's own stamp, on the wall clock.
        """

    def stepped(self, frame_end: int, cost_s: float) -> None:  # noqa: B027
        """Take note of what a step cost."""

    def finished(self, at: int, cost_s: float) -> None:  # noqa: B027
        """Take note of what the answer at the end cost."""

    def report(self) -> dict[str, Any]:
        """Return what is kept in rec.json about time; empty where time leaves no trace."""
        return {}


class LogicalClock(Clock):
    """As fast as the machine; computing costs nothing."""

    def ready(self, frame_end: int) -> None:
        """Return at once."""

    def arrival(self, frame_end: int, earliest: int, arrived: float | None) -> int:  # noqa: ARG002
        """Return where the capability places it."""
        return earliest


class MeasuredClock(LogicalClock):
    """As fast as the machine, with the agent charged for the time that its steps took."""

    def __init__(self, frame: int, *, chunked: bool = False, timer: Seconds = time.perf_counter) -> None:
        self._frame = frame
        self._timer = timer
        self._limit = BACKPRESSURE_CHUNKS * frame if chunked else None
        self._free_at = 0
        self._waited = 0
        self._lag = 0
        self._costs: list[float] = []
        self._answer = 0.0

    def timer(self) -> float:
        """Return the machine's clock, or what stands in its place."""
        return self._timer()

    def stepped(self, frame_end: int, cost_s: float) -> None:
        """Keep the agent busy for the whole milliseconds of a step, from when it could begin."""
        self._costs.append(cost_s)
        self._charge(frame_end, cost_s)
        behind = self._free_at - frame_end
        if self._limit is not None and behind > self._limit:
            self._waited += behind - self._limit
            self._free_at = frame_end + self._limit
            behind = self._limit
        self._lag = max(self._lag, behind)

    def finished(self, at: int, cost_s: float) -> None:
        """Charge the answer at the end like a step; it is no frame, so it has no part in the real-time factor."""
        self._charge(at, cost_s)
        self._answer = cost_s

    def _charge(self, at: int, cost_s: float) -> None:
        self._free_at = max(at, self._free_at) + int(round(cost_s * 1000, 6)) * RATE // 1000

    def arrival(self, frame_end: int, earliest: int, arrived: float | None) -> int:  # noqa: ARG002
        """Return the later of where the capability places it and when it was computed."""
        return max(earliest, self._free_at)

    def report(self) -> dict[str, Any]:
        """Return the real-time factor (mean and p95 of a frame), the largest lag, and the time that was waited."""
        factors = np.asarray(self._costs or [0.0]) * RATE / self._frame
        return {
            "latency": "measured",
            "rtf_mean": round(float(factors.mean()), 4),
            "rtf_p95": round(float(np.percentile(factors, 95)), 4),
            "answer_s": round(self._answer, 3),
            "max_lag_s": round(self._lag / RATE, 3),
            "waited_s": round(self._waited / RATE, 3),
            "holds_real_time": bool(factors.mean() < 1.0 and self._waited == 0),
        }


class WallClock(Clock):
    """Frames on absolute deadlines; arrivals where they really came.

    ``now`` and ``sleep`` are the wall; a test at the edge of the world may put its own there.
    """

    def __init__(self, now: Seconds = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._now, self._sleep = now, sleep
        self._start: float | None = None
        self._late: list[float] = []

    def ready(self, frame_end: int) -> None:
        """Sleep until the frame has ended. A deadline that has passed is not waited for, so a stall is caught up with."""
        if self._start is None:
            self._start = self._now()
        deadline = self._start + frame_end / RATE
        while (rest := deadline - self._now()) > 0:
            self._sleep(rest)
        self._late.append(self._now() - deadline)

    def arrival(self, frame_end: int, earliest: int, arrived: float | None) -> int:  # noqa: ARG002
        """Return the stamp of the adapter on the session clock, or now where it gave none."""
        assert self._start is not None
        return max(0, round(((self._now() if arrived is None else arrived) - self._start) * RATE))

    def report(self) -> dict[str, Any]:
        """Return how late the frames were sent: p50, p99 and the largest, in milliseconds."""
        late = np.asarray(self._late or [0.0]) * 1000
        p50, p99 = (round(float(np.percentile(late, q)), 3) for q in (50, 99))
        return {
            "latency": "wall",
            "jitter_ms": {"p50": p50, "p99": p99, "max": round(float(late.max()), 3)},
            "frames": late.size,
        }


def make_clock(kind: str, latency: str, frame: int, *, chunked: bool = False) -> Clock:
    """Return the clock of a session: ``kind`` is what the agent declares, ``latency`` what the run asks for."""
    if kind == "wall":
        return WallClock()
    return MeasuredClock(frame, chunked=chunked) if latency == "measured" else LogicalClock()
