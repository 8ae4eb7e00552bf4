"""Read the JSON object out of a model's reply.

Conventions
-----------
* The object may stand alone, in a fenced block, after a block of thought, or within prose; what stands around it is
  ignored. Two objects are refused rather than guessed between, and so is a list, or a key that appears twice.
* What is wrong is a :class:`ReplyError` in words that can go back to the model.
"""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


class ReplyError(ValueError):
    """A reply cannot be used; the message says why, for the log and for the next try."""


def whole(text: str) -> str:
    """Return a text that can be written: half of a surrogate pair, which JSON can spell, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_object(text: str) -> dict[str, Any]:
    """Return the one JSON object of a reply. Raises :class:`ReplyError`.

    >>> read_object('Here it is: {"accept": true, "reason": ""} Good luck!')
    {'accept': True, 'reason': ''}
    """
    text = _THOUGHT.sub("", text)
    if not text.strip():
        raise ReplyError("the reply is empty; answer with one JSON object")
    try:
        return _object(_DECODER.decode(text))
    except json.JSONDecodeError:
        blocks = [block for block in _FENCE.findall(text) if "{" in block]
        return _within(blocks[0] if len(blocks) == 1 else text)
    except RecursionError:
        raise ReplyError("the reply is nested too deeply; answer with one flat JSON object") from None


def _within(text: str) -> dict[str, Any]:
    """Return the object that begins at the first brace; a second one after it is a fault."""
    start = text.find("{")
    if start < 0:
        raise ReplyError("the reply holds no JSON object; answer with one and nothing else")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ReplyError(
            f"the reply is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    if "{" in text[end:]:
        raise ReplyError("the reply holds more than one JSON object; answer with one and nothing else")
    return _object(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ReplyError(f"the reply is a JSON {type(value).__name__}; answer with one JSON object")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in out if names.count(key) > 1)
        raise ReplyError(f"the key {twice!r} appears twice; give it once")
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates)
