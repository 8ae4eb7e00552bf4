"""Text to phonemes by word, with the grapheme-to-phoneme rules of hibari-tts (the alphabet that Kokoro uses too).

Conventions
-----------
* A word is what stands between two spaces of the text. Its phonemes and the punctuation after it stay with it, so a
  word knows the durations that belong to it.
* ``[word](/phonemes/)`` sets a pronunciation by hand; the word is then ``word``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dsbeval.errors import DsbevalError
from dsbeval.speech.engine import WordTime

UNIT = 600
"""Samples of one duration step of both models: 25 ms at 24 kHz."""

_MARKUP = re.compile(r"\[([^\]]+)\]\(/[^)]*/\)")
_NOT_HEARD = frozenset(" ;:,.!?—…\"“”()'-")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as written, and its phonemes with the punctuation that follows."""

    text: str
    phonemes: str


@functools.cache
def grapheme_to_phoneme(british: bool) -> Any:
    """Return the rules for American or British English.

    Raises :class:`DsbevalError` when hibari-tts is not installed.
    """
    try:
        from hibari.g2p import G2P
    except ImportError:
        raise DsbevalError(
            "the package hibari-tts is not installed; run: pip install 'hibari-tts[fast]==0.2.1'"
        ) from None
    return G2P(british=british)


def plain(text: str) -> str:
    """Return the text without pronunciation marks."""
    return _MARKUP.sub(r"\1", text)


def spoken_words(text: str, *, british: bool = False) -> tuple[SpokenWord, ...]:
    """Return the words of one line of text with their phonemes; joined with single spaces, a model reads them."""
    from hibari.g2p.normalize import normalize

    rules = grapheme_to_phoneme(british)
    groups: list[list[Any]] = [[]]
    for token in rules.phonemize_tokens(rules.tokenize(normalize(text))):
        groups[-1].append(token)
        if token.whitespace:
            groups.append([])
    found = [("".join(t.text for t in group), "".join(t.phonemes or "" for t in group)) for group in groups if group]
    written = plain(text).split()
    if len(written) == len(found):  # keep the spelling of the script; normalising may have changed it
        found = [(word, phonemes) for word, (_, phonemes) in zip(written, found, strict=True)]
    return tuple(SpokenWord(word, phonemes) for word, phonemes in found if phonemes)


def phoneme_ids(words: Sequence[SpokenWord], vocabulary: dict[str, int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the model's ids (padded with 0 at both ends) and, a word, the range of ids of its sounding phonemes."""
    ids = [0]
    ranges: list[tuple[int, int]] = []
    for index, word in enumerate(words):
        if index:
            ids.append(vocabulary[" "])
        first = last = len(ids)
        for character in word.phonemes:
            if character in vocabulary:
                ids.append(vocabulary[character])
                if character not in _NOT_HEARD:
                    last = len(ids)
        ranges.append((first, last))
    return [*ids, 0], ranges


def word_times(
    words: Sequence[SpokenWord], ranges: Sequence[tuple[int, int]], durations: NDArray[Any], offset: int = 0
) -> tuple[WordTime, ...]:
    """Turn a model's duration of each id (in :data:`UNIT`) into word times, ``offset`` samples later."""
    edges = [0, *(int(edge) * UNIT for edge in durations.cumsum())]
    return tuple(
        WordTime(word.text, offset + edges[first], offset + edges[last])
        for word, (first, last) in zip(words, ranges, strict=True)
        if edges[last] > edges[first]
    )
