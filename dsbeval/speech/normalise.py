"""Text as it is compared: what the pack says against what a recogniser heard.

Conventions
-----------
* Lower case, no punctuation; contractions lose their apostrophe.
* A number is its single digits, however it was written: "twenty-five", "25" and "25th" are all ``2 5``; "oh" between
  digits is ``0``.
* Fillers are dropped, and a few spellings and abbreviations unified.
"""

from __future__ import annotations

import re

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_UNITS = {word: value for value, word in enumerate(_SMALL)}
_TENS = {
    word: 10 * value
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_ORDINALS = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
    "twentieth": "twenty",
    "thirtieth": "thirty",
} | {f"{word}th": word for word in _SMALL if f"{word}th" not in ("oneth", "twoth", "threeth")}
_SYMBOLS = {
    "’": "'",
    "²": " squared ",
    "³": " cubed ",
    "½": " one half ",
    "+": " plus ",
    "−": " minus ",
    "=": " equals ",
    "×": " times ",
    "%": " percent ",
    "&": " and ",
}
_SAME = {
    "alright": "all right",
    "ave": "avenue",
    "cause": "because",
    "colour": "color",
    "dollar": "",
    "dollars": "",
    "dr": "doctor",
    "gonna": "going to",
    "grey": "gray",
    "mama": "mom",
    "mcg": "micrograms",
    "mg": "milligrams",
    "ml": "milliliters",
    "momma": "mom",
    "mr": "mister",
    "mrs": "missus",
    "mum": "mom",
    "ok": "okay",
    "st": "street",
    "til": "until",
    "till": "until",
    "vs": "versus",
    "wanna": "want to",
    "wouldve": "would have",
}
_FILLERS = frozenset({"ah", "er", "hmm", "mm", "oh", "uh", "uhm", "um"})


def normalise(text: str) -> list[str]:
    """Return the words that are compared.

    >>> normalise("Um, it's at nineteen oh five, the twenty-third.")
    ['its', 'at', '1', '9', '0', '5', 'the', '2', '3']
    """
    text = text.lower()
    for symbol, words in _SYMBOLS.items():
        text = text.replace(symbol, words)
    text = re.sub(r"(?<=\d)(?:,(?=\d{3})|(?:st|nd|rd|th)\b)", "", text)
    text = re.sub(r"(?<=[a-z])'(?=[a-z])", "", text)
    found = [_ORDINALS.get(word, word) for word in re.findall(r"[a-z]+|\d", text)]
    return _without_fillers(_in_digits([part for word in found for part in _SAME.get(word, word).split()]))


def _without_fillers(words: list[str]) -> list[str]:
    out: list[str] = []
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word == "oh" and before.isdigit() and after.isdigit():
            out.append("0")
        elif word not in _FILLERS:
            out.append(word)
    return out


def _in_digits(words: list[str]) -> list[str]:
    """Replace number words by the digits of the figures that they make."""
    out: list[str] = []
    index = 0
    while index < len(words):
        used, figure = _figure(words[index:])
        out += list(figure) if used else [words[index]]
        index += used or 1
    return out


def _figure(words: list[str]) -> tuple[int, str]:
    """Return how many of the first words make one figure, and the figure; 0 words when they make none."""
    total = current = used = 0
    last = ""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        fresh = last in ("", "and", *_SCALES)
        if word in _UNITS and (fresh or (last == "tens" and 0 < _UNITS[word] < 10)):
            current, last = current + _UNITS[word], "unit"
        elif word in _TENS and fresh:
            current, last = current + _TENS[word], "tens"
        elif word == "hundred" and last in ("", "unit"):
            current, last = max(current, 1) * 100, word
        elif word in ("thousand", "million") and last in ("", "unit", "tens", "hundred"):
            total, current, last = total + max(current, 1) * _SCALES[word], 0, word
        elif word == "and" and last in _SCALES and (following in _UNITS or following in _TENS):
            last = word
        else:
            break
        used += 1
    return used, str(total + current)
