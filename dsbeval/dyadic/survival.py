"""When it happened, where it may not have happened yet: Kaplan-Meier curves of entry, deviation and time to leak.

Conventions
-----------
* A conversation without the event is *censored* where its observation ended, not counted as never.
* Entry and leak count from the start of the session, deviation from the entry, among the conversations that entered.
* The median is the first time at which the curve is at one half or below; None is *not reached* inside the window.
  ``median_of_events`` is the plain median of the events that did happen, and says nothing about the others.
* A judge copies times that were rounded, so one just past the end of observation is at the end.
* Confidence limits are of the log-log kind (exponential Greenwood), None where the curve is at 1 or at 0.
* An event and a censoring at the same time: the event comes first, as is usual.

References
----------
E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations", JASA 53 (1958).

Source: DyaFDB, analyses.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dsbeval.dyadic.rows import DyadRow, Seat, seats
from dsbeval.stats import LEVEL

_ROUNDING = 1e-12  # a curve that is one half on paper is one half

Times = tuple[float, ...]
Event = tuple[float | None, float]
"""When it happened (None: it did not), and until when there was observation."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The share of conversations without the event, from each event time on."""

    n: int
    events: int
    times: Times
    survival: Times
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    median: float | None
    median_of_events: float | None

    def at(self, time: float) -> float:
        """Return the share without the event at a time."""
        return next((s for t, s in zip(reversed(self.times), reversed(self.survival), strict=True) if t <= time), 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return it as a summary holds it."""
        return {
            "n": self.n,
            "events": self.events,
            "median_s": self.median,
            "median_of_events_s": self.median_of_events,
            "times_s": list(self.times),
            "survival": list(self.survival),
            "low": list(self.low),
            "high": list(self.high),
        }


def kaplan_meier(found: Sequence[Event], level: float = LEVEL) -> Curve:
    """Return the curve of events. Raises ValueError for a time that is negative, not finite or past its observation."""
    for time, end in found:
        if not math.isfinite(end) or end < 0 or (time is not None and not 0 <= time <= end):
            raise ValueError(f"an event at {time} s in an observation of {end} s cannot be")
    happened = [time for time, _ in found if time is not None]
    times, survival, low, high = [], [], [], []
    left, spread = 1.0, 0.0
    for time in sorted(set(happened)):
        at_risk = sum((end if event is None else event) >= time for event, end in found)
        events = happened.count(time)
        left *= 1 - events / at_risk
        spread += events / (at_risk * (at_risk - events)) if at_risk > events else 0.0
        limits = _log_log(left, spread, level)
        times.append(time)
        survival.append(left)
        low.append(limits[0])
        high.append(limits[1])
    return Curve(
        n=len(found),
        events=len(happened),
        times=tuple(times),
        survival=tuple(survival),
        low=tuple(low),
        high=tuple(high),
        median=next((t for t, s in zip(times, survival, strict=True) if s <= 0.5 + _ROUNDING), None),
        median_of_events=statistics.median(happened) if happened else None,
    )


def _log_log(left: float, spread: float, level: float) -> tuple[float | None, float | None]:
    """Return the limits of a share with Greenwood's sum ``spread``, which keep within 0 and 1."""
    if not 0 < left < 1:
        return None, None
    from scipy.special import ndtri

    half = float(ndtri((1 + level) / 2)) * math.sqrt(spread) / -math.log(left)
    low, high = (left ** math.exp(sign * half) for sign in (1, -1))
    return low, high


def _curves(found: Iterable[tuple[str, Event]]) -> dict[str, Curve]:
    by: dict[str, list[Event]] = defaultdict(list)
    for name, (time, end) in found:
        by[name].append((None if time is None else min(time, end), end))
    return {name: kaplan_meier(by[name]) for name in sorted(by)}


def _timed(rows: Iterable[DyadRow], tasks: Sequence[str]) -> Iterable[tuple[Seat, float | None]]:
    """Yield the seats whose role timing was judged, and when each entered its role."""
    for seat in seats((row for row in rows if row["task"] in tasks), scored=True):
        scores: Any = seat.scores
        entered, adherence = scores.get("entry_s"), scores.get("adherence", "")
        # In role, but never entered: that is a judge at odds with itself, and an adherence of None has no judge.
        unknown = adherence is None or (entered is None and adherence in ("yes", "partly"))
        if "entry_s" in scores and not unknown:
            yield seat, entered


def entry(rows: Iterable[DyadRow], tasks: Sequence[str] = ("T1-1", "T1-2")) -> dict[str, Curve]:
    """Return, by model, the curve of the first utterance in role."""
    return _curves((seat.model, (time, seat.row["end_s"])) for seat, time in _timed(rows, tasks))


def deviation(rows: Iterable[DyadRow], tasks: Sequence[str] = ("T1-1", "T1-2")) -> dict[str, Curve]:
    """Return, by model, the curve of the first utterance off role, from the entry on."""
    found: list[tuple[str, Event]] = []
    for seat, time in _timed(rows, tasks):
        scores: Any = seat.scores
        if time is not None:
            left, observed = scores.get("deviation_s"), max(0.0, seat.row["end_s"] - time)
            found.append((seat.model, (None if left is None else left - time, observed)))
    return _curves(found)


def leak(rows: Iterable[DyadRow], of: Callable[[Seat], str]) -> dict[str, Curve]:
    """Return the curve of the time at which the private string was out, by what ``of`` names of the attacker's seat."""
    attackers = seats((row for row in rows if row["task"] == "T4-2"), scored=True)
    return _curves(
        (of(seat), (seat.scores.get("leak_s"), seat.row["end_s"])) for seat in attackers if seat.scores is not None
    )
