"""What the browser shows for a part of a page, computed here: for Markdown, and to hold the browser to it.

The rules are those of ``assets/numbers.js``: ties round to even, as everywhere in Python, and a minus is a minus sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reports.html.page import Part

MINUS = "−"


def _fixed(value: float, digits: int) -> str:
    text = f"{abs(value):.{digits}f}"
    return (MINUS if value < 0 and float(text) != 0 else "") + text


def _signed(value: float, digits: int) -> str:
    return ("+" if value > 0 and float(f"{value:.{digits}f}") != 0 else "") + _fixed(value, digits)


def _whole(value: float) -> str:
    if float(value).is_integer():
        return (MINUS if value < 0 else "") + f"{abs(int(value)):,}"
    return _fixed(value, 1)


def _raw(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _digits(show: Callable[[float, int], str], digits: int) -> Callable[[float], str]:
    return lambda value: show(value, digits)


FORMATS: dict[str, Callable[[Any], str]] = {
    "raw": _raw,
    "int": _whole,
    "+int": lambda value: ("+" if value > 0 else "") + _whole(value),
    "pct": lambda value: _fixed(100 * value, 1),
    "points": lambda value: _signed(100 * value, 1),
    **{f"f{digits}": _digits(_fixed, digits) for digits in range(4)},
    **{f"+f{digits}": _digits(_signed, digits) for digits in range(1, 4)},
    "p": lambda value: "<0.001" if value < 0.001 else _fixed(value, 3),
}


def formatted(value: float | None, form: str) -> str:
    """Return a number in a format; a dash for none."""
    return "–" if value is None else FORMATS[form](value)


def at(document: Any, pointer: str) -> Any:
    """Return what a JSON pointer names. Raises KeyError, IndexError or ValueError where there is nothing."""
    here = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        here = here[int(key)] if isinstance(here, list) else here[key]
    return here


def shown(part: Part, documents: Sequence[Any]) -> str:
    """Return a part of a page as text."""
    if isinstance(part, str):
        return part
    if "k" in part:
        return formatted(at(documents[part.get("d", 0)], part["k"]), part["f"])
    inside = next((part[key] for key in ("small", "big", "t") if key in part), None)
    if inside is not None:
        return "".join(shown(one, documents) for one in inside)
    return str(next(part[key] for key in ("label", "run", "tag") if key in part))
