"""Leakage: does a persona give away the floor rules that its directive states?

Two gates, both on the persona alone, as published: an imperative lint, and the overlap of content words with the
directive.

Conventions
-----------
* Content words: lower case, ``[a-z’]+`` (a straight apostrophe counts as the typographic one), without the words of
  ``stopwords.txt``, without tokens of one character, each counted once.
* Overlap is the Jaccard index of the two sets; two empty sets overlap by 0.

Source: DSB-IFEval (arXiv 2609.03423), leakage gates.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path

from dsbeval.ifeval.schema import Role

MAX_JACCARD = 0.15
"""The overlap must stay below it."""
PERSONA_WORDS = (60, 120)
"""Fewest and most words of a persona."""

IMPERATIVES = (
    "interrupt", "backchannel", "wait", "pause", "yield", "acknowledge", "respond", "reply", "speak", "stay silent",
    "keep quiet", "let me finish", "let them finish", "jump in", "cut in", "take the floor", "hold the floor",
    "talk over", "repeat back", "read back",
)  # fmt: skip
"""Phrases that state a floor rule. Exact forms on word boundaries, as published."""

_TOKEN = re.compile(r"[a-z’]+")


@functools.cache
def stopwords() -> frozenset[str]:
    """Return the fixed list of function words."""
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.replace("'", "’") for line in lines if line and not line.startswith("#"))


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text.

    >>> sorted(content_words("Don't let the user’s sentence end."))
    ['end', 'sentence', 'user’s']
    """
    tokens = (token.strip("’") for token in _TOKEN.findall(text.lower().replace("'", "’")))
    return frozenset(token for token in tokens if len(token) > 1) - stopwords()


def jaccard(a: Set[object], b: Set[object]) -> float:
    """Return the size of the intersection over the size of the union; 0 for two empty sets."""
    return len(a & b) / len(a | b) if a or b else 0.0


def phrases_in(text: str, phrases: Iterable[str]) -> list[str]:
    """Return the phrases that occur in the text, each once, in lower case and in the order of the text.

    Whole words, any case, any white space between the words; where two phrases overlap, the longer one.
    """
    found = _any_of(tuple(phrases)).findall(text)
    return list(dict.fromkeys(" ".join(match.lower().split()) for match in found))


@functools.cache
def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    if not phrases:
        return re.compile(r"(?!)")  # an empty alternative would match everywhere
    words = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in longest_first)
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Leakage:
    """What a persona gives away: a row of the table that ``dsbeval pack check`` prints."""

    role: str
    words: int
    jaccard: float
    shared: tuple[str, ...]
    imperatives: tuple[str, ...]


def leakage(role: Role) -> Leakage:
    """Measure one role."""
    persona, directive = content_words(role.persona), content_words(role.directive)
    return Leakage(
        role=role.id,
        words=len(role.persona.split()),
        jaccard=jaccard(persona, directive),
        shared=tuple(sorted(persona & directive)),
        imperatives=tuple(phrases_in(role.persona, IMPERATIVES)),
    )
