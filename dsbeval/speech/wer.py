"""Word error rate of stored speech under a local recogniser: how well a machine understands what the user says.

Conventions
-----------
* Both sides are normalised alike (:mod:`dsbeval.speech.normalise`). What is left wrong is the recogniser's error as
  well as the voice's, so rates compare voices and find bad takes; they are not a quality of the pack by themselves.
* The rate of a group is its errors divided by its words, not the mean of rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


def errors(reference: list[str], heard: list[str]) -> int:
    """Return the least number of substitutions, deletions and insertions that turn one list of words into the other.

    A word written as two, or two as one ("step ladder"), is no error.
    """
    rows = [list(range(len(heard) + 1))]
    for i, word in enumerate(reference, start=1):
        row = [i]
        for j, other in enumerate(heard, start=1):
            best = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (word != other))
            if j > 1 and word == heard[j - 2] + other:
                best = min(best, rows[i - 1][j - 2])
            if i > 1 and reference[i - 2] + word == other:
                best = min(best, rows[i - 2][j - 1])
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


@dataclass(frozen=True, slots=True)
class Heard:
    """One segment as a recogniser heard it."""

    key: str
    name: str
    voice: str
    role: str
    text: str
    heard: str
    errors: int
    words: int


@dataclass(frozen=True, slots=True)
class Rate:
    """Word errors of a group of segments."""

    group: str
    errors: int
    words: int

    @property
    def rate(self) -> float:
        """Errors a word."""
        return self.errors / max(1, self.words)


def rates(segments: Iterable[Heard], group: Callable[[Heard], str]) -> tuple[Rate, ...]:
    """Return the rate of every group, the worst first."""
    sums: dict[str, tuple[int, int]] = {}
    for segment in segments:
        wrong, words = sums.get(group(segment), (0, 0))
        sums[group(segment)] = (wrong + segment.errors, words + segment.words)
    return tuple(sorted((Rate(name, *both) for name, both in sums.items()), key=lambda r: (-r.rate, r.group)))


def worst(segments: Iterable[Heard], count: int) -> tuple[Heard, ...]:
    """Return the segments with the most errors a word, the longer of two equal ones first."""
    wrong = [segment for segment in segments if segment.errors]
    return tuple(sorted(wrong, key=lambda h: (-h.errors / max(1, h.words), -h.words, h.key, h.name))[:count])
