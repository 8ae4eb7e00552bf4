"""Spell check of a pack's words against an English word list and the pack's own lexicon.

Conventions
-----------
* A word is letters with apostrophes inside; hyphenated words are checked in their parts. A known word with one of the
  endings ``'s 'd 'll 've 're 'm`` is known.
* ``lexicon.txt`` in the pack's folder holds what no word list has: names of people, places and drugs. One word a line,
  ``#`` starts a comment, case does not matter.
* The word list is that of pyspellchecker, imported when it is needed.
"""

from __future__ import annotations

import re
from pathlib import Path

from dsbeval.errors import PackError

LEXICON = "lexicon.txt"

_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_ENDING = re.compile(r"'(?:s|d|ll|ve|re|m)$")


def read_lexicon(root: Path) -> frozenset[str]:
    """Return a pack's own words in lower case; empty when it has no lexicon. Raises :class:`PackError`."""
    path = root / LEXICON
    if not path.exists():
        return frozenset()
    words: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        word = line.partition("#")[0].strip()
        if word and not _WORD.fullmatch(word):
            raise PackError(f"{path}: line {number}: {word!r} is not one word of letters; write one word a line")
        if word:
            words.add(word.lower())
    return frozenset(words)


class Speller:
    """The word list and a pack's lexicon. Raises :class:`ImportError` when pyspellchecker is not installed."""

    def __init__(self, lexicon: frozenset[str] = frozenset()) -> None:
        from spellchecker import SpellChecker

        self._list = SpellChecker(distance=1)  # a second edit takes seconds a word and guesses worse
        self._lexicon = lexicon

    def known(self, word: str) -> bool:
        """Whether a word is in the word list or the lexicon, as it is or without its ending."""
        lower = word.lower()
        stem = _ENDING.sub("", lower)
        return any(form in self._lexicon or form in self._list for form in {lower, stem})

    def unknown(self, text: str) -> list[str]:
        """Return the words of a text that are not known, each once, in order."""
        return [word for word in dict.fromkeys(_WORD.findall(text)) if not self.known(word)]

    def nearest(self, word: str) -> str | None:
        """Return the known word that was probably meant, or None."""
        found = self._list.correction(word.lower())
        return None if found is None or found == word.lower() else str(found)
