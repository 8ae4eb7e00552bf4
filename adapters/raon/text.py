"""The model's text without its structure.

The gateway has taken most structural tokens out; a line break stands for the start and the pauses of speech. What is left of
them, whole or cut in two by a frame, is taken out here.
"""

from __future__ import annotations

import codecs
import re

_TOKEN = re.compile(r"<\|[A-Za-z0-9_]{1,48}\|>")
_CUT = re.compile(r"<(?:\|[A-Za-z0-9_]{0,48}\|?)?$")


class TextFilter:
    """Deltas in, words out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._blank = True

    def push(self, delta: bytes) -> str:
        """Return what can be said of the text so far; what may be the beginning of a token is held back."""
        text = self._held + self._decoder.decode(delta)
        cut = _CUT.search(text)
        whole = cut.start() if cut else len(text)
        self._held = text[whole:]
        text = re.sub(r"\s+", " ", _TOKEN.sub("", text[:whole]))
        if self._blank:
            text = text.removeprefix(" ")
        if text:
            self._blank = text.endswith(" ")
        return text
