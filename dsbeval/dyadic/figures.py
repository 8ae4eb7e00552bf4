"""Amounts of money in a text, however they are said: a scorer asks whether a price was said at all.

Conventions
-----------
* An amount is a whole number; the currency is not looked at, and neither are cents.
* A text is read generously: "four fifty" is 4, 50 and 450. Numbers are those of :mod:`dsbeval.dyadic.spoken`.
"""

from __future__ import annotations

import re
from itertools import pairwise

from dsbeval.dyadic.spoken import spoken_words

_SCALES = {"hundred": 100, "thousand": 1000, "grand": 1000, "k": 1000}
_DECIMAL = re.compile(r"(\d+\.\d+)\s*(?:k|grand|thousand)\b", re.IGNORECASE)
_CENTS = re.compile(r"(?<=\d)\.\d\d\b")
_TWO_HUNDREDS = re.compile(r"(?<=hundred )and (?=\w+(?:[ -]\w+)? hundred\b)", re.IGNORECASE)
_HALF = ["and", "a", "half"]


def amounts(text: str) -> frozenset[int]:
    """Return every amount that a text says.

    >>> sorted(amounts("From $1,800.00 down to twelve hundred and fifty, or 1.5k"))
    [1250, 1500, 1800]
    >>> sorted(amounts("Four fifty, then; not two and a half thousand."))
    [2, 4, 50, 450, 2500]
    """
    text = _CENTS.sub("", _DECIMAL.sub(lambda match: str(round(float(match[1]) * 1000)), text))
    text = _TWO_HUNDREDS.sub("to ", text)  # "four hundred and five hundred" are two amounts
    words = spoken_words(text)
    said = [word.text for word in words]
    found: set[int] = set()
    for index, word in enumerate(words):
        if not word.is_number:
            continue
        value = int(word.text)
        found |= {value, value * _SCALES.get("".join(said[index + 1 : index + 2]), 1)}
        if said[index + 1 : index + 4] == _HALF:
            found.add(round((value + 0.5) * _SCALES.get("".join(said[index + 4 : index + 5]), 0)) or value)
    # "Four fifty", "twelve eighty", "nine five zero": numbers that stand together are also read as one.
    run = ""
    for before, word in pairwise(words):
        if not (before.is_number and word.is_number and len(word.text) <= 2):
            run = ""
            continue
        run = (run or before.text) + word.text
        found |= {int(run), int(before.text + word.text)}
    return frozenset(found)
