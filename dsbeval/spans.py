"""Spans and timelines: exact intervals on one clock of samples.

Conventions
-----------
* A span is half open, ``[start, end)``, in integer samples, never empty. Seconds exist only at the edge
  (``from_seconds``, ``seconds``).
* A timeline is a set of samples held as sorted, disjoint, non-touching spans, so two timelines are equal exactly when
  they cover the same samples, and every operation is a set operation.
* The rate is the caller's; the session clock of the suite is 24 kHz (:data:`dsbeval.audio.RATE`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Integral
from operator import index
from typing import overload


def to_samples(seconds: float, rate: int) -> int:
    """Return the sample that ``seconds`` falls on, rounded down as the benchmark does (``floor(d x rate)``).

    The product is rounded to a millionth of a sample first: a time that names a sample falls on it, whatever binary
    floating point makes of the time (0.29 s at 100 Hz is sample 29, although ``0.29 * 100 < 29``).
    """
    return int(round(seconds * rate, 6) // 1)


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A half-open interval of samples. NumPy integers are taken as the plain integers they stand for.

    >>> Span(10, 20) & Span(15, 40)
    Span(start=15, end=20)
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        # A float is a TypeError here: seconds passed for samples must not go unnoticed.
        object.__setattr__(self, "start", index(self.start))
        object.__setattr__(self, "end", index(self.end))
        if self.end <= self.start:
            raise ValueError(f"a span must not be empty: [{self.start}, {self.end})")

    @classmethod
    def from_seconds(cls, start: float, end: float, rate: int) -> Span:
        """Return the span between two times in seconds."""
        return cls(to_samples(start, rate), to_samples(end, rate))

    def seconds(self, rate: int) -> tuple[float, float]:
        """Return start and end in seconds, rounded to the millisecond as recordings store them."""
        return round(self.start / rate, 3), round(self.end / rate, 3)

    @property
    def duration(self) -> int:
        """Length in samples."""
        return self.end - self.start

    def __and__(self, other: Span) -> Span | None:
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Span(start, end) if start < end else None

    def __contains__(self, sample: object) -> bool:
        return isinstance(sample, Integral) and self.start <= int(sample) < self.end

    def overlaps(self, other: Span) -> bool:
        """Whether the two share at least one sample."""
        return self.start < other.end and other.start < self.end

    def shift(self, by: int) -> Span:
        """Return the span moved by ``by`` samples."""
        return Span(self.start + by, self.end + by)


def _normalised(spans: Iterable[Span]) -> tuple[Span, ...]:
    out: list[Span] = []
    for span in sorted(spans):
        if out and span.start <= out[-1].end:
            if span.end > out[-1].end:
                out[-1] = Span(out[-1].start, span.end)
        else:
            out.append(span)
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A set of samples as sorted, disjoint spans.

    >>> Timeline([Span(0, 10), Span(5, 20)]) - Timeline([Span(8, 12)])
    Timeline(spans=(Span(start=0, end=8), Span(start=12, end=20)))
    """

    spans: tuple[Span, ...] = field(default=())

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        object.__setattr__(self, "spans", _normalised(spans))

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, key: int) -> Span: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Span, ...]: ...
    def __getitem__(self, key: int | slice) -> Span | tuple[Span, ...]:
        return self.spans[key]

    def __contains__(self, sample: object) -> bool:
        return any(sample in span for span in self.spans)

    @property
    def duration(self) -> int:
        """Number of samples covered."""
        return sum(span.duration for span in self.spans)

    @property
    def extent(self) -> Span | None:
        """The span from the first sample covered to the last, or None when nothing is."""
        return Span(self.spans[0].start, self.spans[-1].end) if self.spans else None

    def __or__(self, other: Timeline) -> Timeline:
        return Timeline((*self.spans, *other.spans))

    def __and__(self, other: Timeline) -> Timeline:
        out: list[Span] = []
        i = j = 0
        while i < len(self.spans) and j < len(other.spans):
            a, b = self.spans[i], other.spans[j]
            common = a & b
            if common is not None:
                out.append(common)
            if a.end <= b.end:
                i += 1
            else:
                j += 1
        return Timeline(out)

    def __sub__(self, other: Timeline) -> Timeline:
        extent = self.extent
        return self & other.gaps(extent) if extent is not None else self

    def gaps(self, within: Span) -> Timeline:
        """Return the samples of ``within`` that are not covered."""
        out: list[Span] = []
        cursor = within.start
        for span in self.clip(within):
            if span.start > cursor:
                out.append(Span(cursor, span.start))
            cursor = span.end
        if cursor < within.end:
            out.append(Span(cursor, within.end))
        return Timeline(out)

    def clip(self, within: Span) -> Timeline:
        """Return the part that lies inside ``within``."""
        return Timeline(common for span in self.spans if (common := span & within) is not None)

    def merge(self, gap: int) -> Timeline:
        """Join neighbours whose gap is *less than* ``gap`` samples (a gap of exactly ``gap`` stays)."""
        out: list[Span] = []
        for span in self.spans:
            if out and span.start - out[-1].end < gap:
                out[-1] = Span(out[-1].start, span.end)
            else:
                out.append(span)
        return Timeline(out)

    def shift(self, by: int) -> Timeline:
        """Return the timeline moved by ``by`` samples."""
        return Timeline(span.shift(by) for span in self.spans)

    def overlap(self, other: Timeline) -> int:
        """Return the number of samples that both cover."""
        return (self & other).duration

    def touching(self, within: Span) -> tuple[Span, ...]:
        """Return the whole spans that share a sample with ``within``."""
        return tuple(span for span in self.spans if span.overlaps(within))

    def starting_in(self, within: Span) -> tuple[Span, ...]:
        """Return the whole spans whose first sample lies inside ``within``: its new onsets."""
        return tuple(span for span in self.spans if span.start in within)

    def at(self, sample: int) -> Span | None:
        """Return the span that covers ``sample``, or None."""
        return next((span for span in self.spans if sample in span), None)
