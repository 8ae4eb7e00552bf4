"""Lengths of time and rates in plain English, replaced by marks that the rules of a prompt can match.

========= ============================================================= ==========================================
mark      from                                                          means
========= ============================================================= ==========================================
``<max>`` within 2 s, at most two seconds, no longer than, 500 ms tops  an upper bound
``<min>`` at least six seconds, no less than, or longer                 a lower bound
``<than>`` longer than 2 seconds, beyond 1.2 s, more than               upper bound if the sentence forbids, else lower
``<dur>`` after 3 seconds, a two-second pause                           a length, not bounded
``<rate>`` between two and six a minute, every ten seconds              times a minute (the middle of a range)
========= ============================================================= ==========================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {
    word: value
    for value, word in enumerate(
        (
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
        )
    )
}  # fmt: skip
_TENS = {
    word: 10 * (index + 2)
    for index, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"))
}
_ONE = "|".join(_UNITS)
_TEN = "|".join(_TENS)
_WORD_NUMBER = (
    rf"(?:(?:{_ONE}) hundred(?: and)?(?: (?:{_TEN}))?(?:[ -](?:{_ONE}))?|(?:{_TEN})(?:[ -](?:{_ONE}))?|{_ONE})"
)
_NUMBER = (
    rf"(?:\d+(?:\.\d+)?|{_WORD_NUMBER}(?: point (?:{_ONE}))?|(?:half )?an?|half(?: of)? an?|a couple(?: of)?|half)"
)
_UNIT = r"(?:milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?)\b"
_BETWEEN = r"(?: ?(?:to|and|-|–|or) ?)"
_SPACE = r"(?:(?<=\d)[ -]?|[ -])"  # only figures may touch their unit, as in 3s

_LENGTH = (
    rf"(?:between )?(?P<a>{_NUMBER})(?:{_BETWEEN}(?P<b>{_NUMBER}))?(?P<half> and a half)?(?: of a| full| whole)?"
    rf"{_SPACE}(?P<unit>{_UNIT})(?P<half_after> and a half)?"
)
_UPPER = (
    r"(?:in under|under|within|in less than|less than|at most|at the most|up to|no longer than|no more than|"
    r"not more than|not longer than|no later than|not later than|shorter than|below|(?:a |the )?maximum(?: of| is)?|"
    r"max|fewer than|inside|briefer than)"
)
_LOWER = (
    r"(?:at least|no less than|not less than|no fewer than|(?:a |the )?minimum(?: of| is)?|for a good|a good|"
    r"no sooner than|not before)"
)
_THAN = r"(?:more than|longer than|beyond|past|over|exceeds?|exceeding|later than|in excess of|above)"
_UPPER_AFTER = r"(?: or less| or sooner| at most| at the most| max\b| maximum| tops| or under)"
_LOWER_AFTER = r"(?: or more| or longer| at least| minimum)"

_QUANTITY = re.compile(
    rf"(?<!times )(?:(?:\b(?P<upper>{_UPPER})|\b(?P<lower>{_LOWER})|\b(?P<than>{_THAN})) (?:about |around )?)?"
    rf"\b{_LENGTH}(?:(?P<upper_after>{_UPPER_AFTER})|(?P<lower_after>{_LOWER_AFTER}))?"
)
_RATE = re.compile(
    rf"\b(?:between )?(?P<a>{_NUMBER})(?:{_BETWEEN}(?P<b>{_NUMBER}))?(?: times| of them)? ?"
    r"(?:a|per|each|every|/) ?(?:minute|min)\b"
)
_EVERY = re.compile(
    rf"\b(?:once )?every (?P<a>{_NUMBER})(?:{_BETWEEN}(?P<b>{_NUMBER}))?{_SPACE}(?P<unit>seconds?|secs?|s)\b"
)


@dataclass(frozen=True, slots=True)
class Marked:
    """A sentence in lower case with marks in place of quantities, and the values in the order of the marks."""

    text: str
    values: tuple[float, ...]

    def first(self, *kinds: str) -> tuple[str, float] | None:
        """Return kind and value of the first mark of one of ``kinds``, or None."""
        for mark, value in zip(re.findall(r"<(max|min|than|dur|rate)>", self.text), self.values, strict=True):
            if mark in kinds:
                return str(mark), value
        return None


def number(text: str) -> float:
    """Return the number that ``text`` spells: ``1.5``, ``six hundred``, ``twenty-five``, ``half a``.

    Raises :class:`ValueError` when it spells none.
    """
    text = text.strip().replace("-", " ")
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if text.startswith("half"):
        return 0.5
    if text in ("a", "an"):
        return 1.0
    if text.startswith("a couple"):
        return 2.0
    whole, _, fraction = text.partition(" point ")
    total = 0
    for word in whole.split():
        if word == "hundred":
            total *= 100
        elif word != "and":
            if word not in _UNITS and word not in _TENS:
                raise ValueError(f"not a number: {text!r}")
            total += _UNITS.get(word, _TENS.get(word, 0))
    return total + (_UNITS[fraction] / 10 if fraction else 0.0)


def mark_quantities(sentence: str) -> Marked:
    """Replace every length and rate of ``sentence`` (lower case) by its mark."""
    sentence = re.sub(r"[<>]", " ", sentence)
    found: list[tuple[int, int, str, float]] = []
    for pattern, rate in ((_EVERY, 1), (_RATE, 2), (_QUANTITY, 0)):
        for match in pattern.finditer(sentence):
            if any(match.start() < end and start < match.end() for start, end, _, _ in found):
                continue
            found.append(
                (match.start(), match.end(), *(_quantity(match) if not rate else ("rate", _per_minute(match, rate))))
            )
    found.sort()
    out, cursor = "", 0
    for start, end, kind, _ in found:
        out += f"{sentence[cursor:start]}<{kind}>"
        cursor = end
    return Marked(out + sentence[cursor:], tuple(value for *_, value in found))


def _per_minute(match: re.Match[str], rate: int) -> float:
    low = number(match["a"])
    middle = (low + number(match["b"])) / 2 if match["b"] else low
    return 60 / max(middle, 0.1) if rate == 1 else middle


def _quantity(match: re.Match[str]) -> tuple[str, float]:
    unit = match["unit"]
    factor = 60.0 if unit.startswith("min") else 1e-3 if unit.startswith("m") else 1.0
    low = number(match["a"])
    half = 0.5 if match["half"] or match["half_after"] else 0.0
    high = number(match["b"]) if match["b"] else low
    if match["upper"] or match["upper_after"]:
        return "max", (high + half) * factor
    if match["lower"] or match["lower_after"]:
        return "min", (low + half) * factor
    if match["than"]:
        return "than", (high + half) * factor
    return "dur", ((low + high) / 2 + half) * factor
