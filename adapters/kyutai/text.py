"""The text that the model thinks beside its speech: token ids, one a frame, as pieces of text."""

from __future__ import annotations

from typing import Any

from dsbeval.agent import TextToken

SPECIAL = 4
"""Ids below this are no text: end of padding, start, end, padding."""
_SPACE = "\u2581"


class Transcriber:
    """The text of one session. A character that is spelled in bytes comes with the last of them."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._bytes = b""

    def read(self, token: int) -> tuple[TextToken, ...]:
        """Return the text of the token of a frame, timed at the start of the audio that it comes with."""
        if token < SPECIAL or token >= self._tokenizer.vocab_size():
            return self._flush()
        piece = str(self._tokenizer.id_to_piece(token))
        if self._tokenizer.is_byte(token):
            self._bytes += bytes([int(piece[1:-1], 16)])
            return self._flush(whole=True)
        if self._tokenizer.is_control(token) or self._tokenizer.is_unknown(token):
            return self._flush()
        return (*self._flush(), TextToken(piece.replace(_SPACE, " ")))

    def _flush(self, *, whole: bool = False) -> tuple[TextToken, ...]:
        """Return the bytes that are kept as text; ``whole`` keeps them on until they are characters."""
        if not self._bytes:
            return ()
        try:
            text = self._bytes.decode()
        except UnicodeDecodeError:
            if whole and len(self._bytes) < 4:  # no character has more bytes
                return ()
            text = self._bytes.decode(errors="replace")
        self._bytes = b""
        return (TextToken(text),)
