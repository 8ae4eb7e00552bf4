"""Words and figures as they are spoken, in one normal form, each with the characters that it came from.

Conventions
-----------
* Case, accents, hyphens, commas and other punctuation do not matter.
* A number is its digits, however it is said: ``6184``, ``6,184``, ``six one eight four``, ``sixty-one eighty-four``, ``six
  thousand one hundred and eighty-four`` all become the digits 6184 (in one, two or four words). ``double four`` is 44,
  ``the ninth`` is 9. ``oh`` is 0 only where ``zero_oh`` asks for it.
* Sounds of hesitation are not words.
* A *stem* is a rough one: ``heats``, ``heating`` and ``heat`` are the same, as are ``plugs`` and ``plugged``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_ROUND = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINAL = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_UNITS = {word: value for value, word in enumerate(_SMALL)}
_TENS = {word: 10 * k for k, word in enumerate(_ROUND, 2)}
_ORDINALS = {word: value for value, word in enumerate(_ORDINAL, 1)} | {"thirtieth": 30}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_REPEATS = {"double": 2, "triple": 3}
_HESITATIONS = frozenset({"uh", "um", "er", "erm", "ah", "hmm", "hm", "mm", "eh"})

_TOKEN = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|\d+|[^\W\d_]+")
_VOWELS = frozenset("aeiouy")


@dataclass(frozen=True, slots=True)
class Word:
    """A word in its normal form, and the half-open range of characters it came from."""

    text: str
    start: int
    end: int

    @property
    def is_number(self) -> bool:
        """Whether it stands for digits."""
        return self.text.isdigit()


def spoken_words(text: str, *, zero_oh: bool = False) -> list[Word]:
    """Return the words of a text, numbers as digits.

    >>> [word.text for word in spoken_words("Um, it's sixty-one EIGHTY-four, on the 9th.")]
    ['it', 's', '61', '84', 'on', 'the', '9', 'th']
    """
    found = [Word(_plain(match[0]), match.start(), match.end()) for match in _TOKEN.finditer(text)]
    return _with_numbers([word for word in found if word.text not in _HESITATIONS], zero_oh=zero_oh)


def _plain(token: str) -> str:
    decomposed = unicodedata.normalize("NFKD", token.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character) and character != ",")


def _with_numbers(words: Sequence[Word], *, zero_oh: bool) -> list[Word]:
    out: list[Word] = []
    index = 0
    while index < len(words):
        digits, after = _number(words, index, zero_oh=zero_oh)
        out.append(words[index] if digits is None else Word(digits, words[index].start, words[after - 1].end))
        index = after
    return out


def _number(words: Sequence[Word], index: int, *, zero_oh: bool) -> tuple[str | None, int]:
    """Return the digits of the number that begins at ``index``, and the index after it; None and the next index."""
    word = words[index].text
    following = words[index + 1].text if index + 1 < len(words) else ""
    if word in _REPEATS and (digit := _digit(following, zero_oh=zero_oh)) is not None:
        return digit * _REPEATS[word], index + 2
    if zero_oh and word in ("oh", "o"):
        return "0", index + 1
    if word.isdigit():
        scale = _SCALES.get(following)
        return (str(int(word) * scale), index + 2) if scale else (word, index + 1)
    if not (word in _UNITS or word in _TENS or word in _ORDINALS or (word == "a" and following in _SCALES)):
        return None, index + 1
    return _spelled([word.text for word in words], index)


def _digit(word: str, *, zero_oh: bool) -> str | None:
    if zero_oh and word in ("oh", "o"):
        return "0"
    if len(word) == 1 and word.isdigit():
        return word
    return str(_UNITS[word]) if _UNITS.get(word, 10) < 10 else None


def _spelled(words: Sequence[str], index: int) -> tuple[str, int]:
    """Read as long as it is one number: units after tens, hundreds after units, and so on down."""
    total = group = 0
    last = ""
    while index < len(words):
        word = words[index]
        small = _UNITS.get(word, _ORDINALS.get(word))
        fits = last in ("", "hundred", "scale")
        if word == "a" and not last:
            group, last = 1, "unit"
        elif word in _TENS and fits:
            group, last = group + _TENS[word], "tens"
        elif small is not None and (fits or (last == "tens" and 0 < small < 10)):
            group, last = group + small, "ordinal" if word in _ORDINALS else "unit"
        elif word == "hundred" and last in ("unit", "tens") and group < 100:
            group, last = group * 100, "hundred"
        elif word in _SCALES and word != "hundred" and last in ("unit", "tens", "hundred"):
            total, group, last = total + group * _SCALES[word], 0, "scale"
        elif word == "and" and last in ("hundred", "scale") and _goes_on(words, index + 1):
            pass
        else:
            break
        index += 1
    return str(total + group), index


def _goes_on(words: Sequence[str], index: int) -> bool:
    return index < len(words) and (words[index] in _UNITS or words[index] in _TENS or words[index] in _ORDINALS)


def stem(word: str) -> str:
    """Return a rough stem.

    >>> [stem(word) for word in ("heats", "heating", "plugged", "guaranteed", "carries", "glass")]
    ['heat', 'heat', 'plug', 'guarant', 'carry', 'glas']
    """
    for ending, put in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        base = word[: -len(ending)] + put
        if word.endswith(ending) and len(base) >= 3 and _VOWELS & set(base):
            word = base
            break
    bare = word.rstrip("e") or word
    doubled = len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in _VOWELS
    return bare[:-1] if doubled else bare
