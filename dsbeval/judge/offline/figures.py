"""The figures in a text, however they are written: ``18,000`` and ``eighteen thousand`` are the same.

Conventions
-----------
* Figures that stand next to each other are a *run*: ``four seven two`` is the run 4, 7, 2, which is also 472.
* A figure of a reply is known when the source has it, or has it spelled in another way (run against whole).
* A bare ``one`` is a word, not a figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_ROUND = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {"oh": 0}
_TENS = {word: 10 * k for k, word in enumerate(_ROUND, 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_TOKEN = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?|[a-z]+|[^\sa-z0-9]")

Run = tuple[str, ...]


def runs(text: str) -> list[Run]:
    """Return the runs of figures of a text.

    >>> runs("Eighteen thousand riders at four one seven Sycamore, 2.5 miles")
    [('18000',), ('4', '1', '7'), ('2.5',)]
    """
    out: list[list[str]] = []
    joined = False
    tokens = _TOKEN.findall(text.lower().replace("-", " "))
    index = 0
    while index < len(tokens):
        figure, after = _figure(tokens, index)
        if figure is None:
            joined = False
            index += 1
            continue
        if joined:
            out[-1].append(figure)
        else:
            out.append([figure])
        joined, index = True, after
    return [tuple(run) for run in out if run != ["1"] or "1" in tokens]


def _figure(tokens: Sequence[str], index: int) -> tuple[str | None, int]:
    """Return the figure that begins at a token, and the index after it."""
    token = tokens[index]
    if token[0] in "0123456789":
        digits = token.replace(",", "")
        if index + 1 < len(tokens) and tokens[index + 1] in _SCALES and digits.isdigit() and len(digits) < 16:
            return str(int(digits) * _SCALES[tokens[index + 1]]), index + 2
        return digits, index + 1
    hundred = token == "a" and index + 1 < len(tokens) and tokens[index + 1] in _SCALES
    if token not in _VALUES and token not in _TENS and not hundred:
        return None, index
    return _spelled(tokens, index)


def _spelled(tokens: Sequence[str], index: int) -> tuple[str, int]:
    total, group, last = 0, 0, ""
    while index < len(tokens):
        token = tokens[index]
        if token == "a" and not last and index + 1 < len(tokens) and tokens[index + 1] in _SCALES:
            group, last = 1, "unit"
        elif token in _TENS and last in ("", "hundred", "scale"):
            group, last = group + _TENS[token], "tens"
        elif token in _VALUES and (last in ("", "hundred", "scale") or (last == "tens" and 0 < _VALUES[token] < 10)):
            group, last = group + _VALUES[token], "unit"
        elif token == "hundred" and last == "unit" and group < 20:
            group, last = group * 100, "hundred"
        elif token in _SCALES and token != "hundred" and last in ("unit", "tens", "hundred"):
            total, group, last = total + group * _SCALES[token], 0, "scale"
        elif token == "and" and last in ("hundred", "scale") and index + 1 < len(tokens) and _counts(tokens[index + 1]):
            pass
        else:
            break
        index += 1
    return str(total + group), index


def _counts(token: str) -> bool:
    return token in _VALUES or token in _TENS


def unknown(reply: str, source: str, *, alone_from: int = 0) -> list[str]:
    """Return the figures of a reply that its source does not have; one that stands alone counts from ``alone_from`` on.

    >>> unknown("That is 417 Sycamore Lane, 50 mg", "four one seven Sycamore Lane")
    ['50']
    """
    known = runs(source)
    whole = {figure for run in known for figure in run} | {"".join(run) for run in known}
    strings = ["".join(run) for run in known]
    out = []
    for run in runs(reply):
        if "".join(run) in whole or (len("".join(run)) > 1 and any("".join(run) in string for string in strings)):
            continue
        if len(run) > 1 or float(run[0]) >= alone_from:
            out += [figure for figure in run if figure not in whole]
    return list(dict.fromkeys(out))
