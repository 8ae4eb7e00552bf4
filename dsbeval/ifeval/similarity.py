"""Are the instances of a cell really different? Near-duplicates by shared content words, and proper names used twice.

Conventions
-----------
* The similarity of two recordings is the larger of the Jaccard indices of the content words of their first and of
  their second turns (:func:`dsbeval.ifeval.leakage.content_words`): a copied turn shows although the other is new.
* A conversation and its own variant at L4b share the first turn by design and are never compared.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsbeval.ifeval.leakage import content_words, jaccard
from dsbeval.ifeval.pack import Pack, Recording

NEAR_DUPLICATE = 0.5
"""Turns at least this similar are near-duplicates. Unrelated derivations in algebra reach 0.3."""


def spoken(recording: Recording) -> str:
    """Return all words of turn 2, in order."""
    return " ".join(segment.speech for segment in recording.script.turn2 if segment.speech)


@dataclass(frozen=True, order=True, slots=True)
class Pair:
    """Two recordings and how similar they are. ``turn`` is the turn (1 or 2) in which they are most alike."""

    similarity: float
    first: str
    second: str
    turn: int


def pairs(pack: Pack) -> list[Pair]:
    """Return every pair of recordings that could be compared, the most similar first."""
    words = [
        (recording, (content_words(recording.script.turn1), content_words(spoken(recording))))
        for recording in pack.recordings.values()
    ]
    out = []
    for (a, words_a), (b, words_b) in itertools.combinations(words, 2):
        if _conversation(a) == _conversation(b):
            continue
        by_turn = [jaccard(x, y) for x, y in zip(words_a, words_b, strict=True)]
        most = max(by_turn)
        out.append(Pair(most, a.audio_key, b.audio_key, by_turn.index(most) + 1))
    return sorted(out, key=lambda pair: (-pair.similarity, pair.first, pair.second))


def _conversation(recording: Recording) -> tuple[object, ...]:
    return recording.roles, recording.script.probe, recording.script.instance


_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
# Capitalised words that name nobody and no place of their own.
_COMMON = frozenset({
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January", "February",
    "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
    "Christmas", "Easter", "Thanksgiving", "Mom", "Mama", "Mommy", "Dad", "Daddy", "Papa", "Grandma",
    "Grandpa", "Granddaddy", "Street", "Road", "Avenue", "Lane", "Way", "Terrace", "Drive", "Court", "Point",
    "Creek", "Apartments", "Building", "Township", "Saint", "North", "South", "East", "West", "New",
    "Majesty",
})  # fmt: skip


def proper_names(recordings: Iterable[Recording]) -> frozenset[str]:
    """Return the words that are capitalised inside a sentence somewhere: names of people and places."""
    texts = (text for recording in recordings for text in (recording.script.turn1, spoken(recording)))
    return frozenset(name for text in texts for name in _INSIDE.findall(text)) - _COMMON


def repeated_names(pack: Pack) -> Iterator[tuple[str, str, list[Recording]]]:
    """Yield (role/probe, name, recordings) for each proper name that two instances of one cell share."""
    known = proper_names(pack.recordings.values())
    cells: dict[str, dict[str, dict[int, Recording]]] = defaultdict(lambda: defaultdict(dict))
    for recording in pack.recordings.values():
        said = known & set(_NAME.findall(f"{recording.script.turn1} {spoken(recording)}"))
        for role, name in itertools.product(recording.roles, said):
            cells[f"{role}/{recording.script.probe}"][name].setdefault(recording.script.instance, recording)
    for cell, names in cells.items():
        for name, by_instance in sorted(names.items()):
            if len(by_instance) > 1:
                yield cell, name, [by_instance[i] for i in sorted(by_instance)]
