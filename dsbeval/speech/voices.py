"""The voices of a pack: ``voices.yaml`` and the choice of one for a conversation.

Conventions
-----------
* One voice a conversation, held over all its conditions: ``sha256(audio_key) mod N`` over the list, in its order. So
  the list's order and length are data: a change re-casts the whole pack.
* A take is seed 0 unless ``takes`` names another for a segment (``IFD-R1-C2-i1/s3: 2``): the way to mend one bad
  rendering.
* ``pronunciations`` gives phonemes of words that the rules get wrong (drug names, places), in the alphabet of
  hibari-tts; British voices take ``british`` where it is given.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dsbeval.errors import PackError, near
from dsbeval.yamlfile import Entry, read_yaml

VOICES = "voices.yaml"


class Voice(Entry):
    """One speaker. ``age`` is how old the voice sounds, not a fact about anybody."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    sex: Literal["female", "male"]
    accent: Literal["American", "British"]
    age: Literal["young", "middle", "older"]
    engines: dict[str, str]


class Pronunciation(Entry):
    """Phonemes of one word."""

    phonemes: Annotated[str, Field(min_length=1, pattern=r"^[^/()\[\]]+$")]
    british: str | None = None


class VoicesFile(Entry):
    """The file ``voices.yaml``."""

    voices: Annotated[list[Voice], Field(min_length=1)]
    takes: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    pronunciations: dict[str, Pronunciation] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _unique(self) -> VoicesFile:
        ids = [voice.id for voice in self.voices]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"voice {name!r} appears twice; ids are unique")
        return self


class Cast:
    """Who speaks what, and how a word is said."""

    def __init__(self, root: Path) -> None:
        self._path = root / VOICES
        file = read_yaml(self._path, VoicesFile)
        self.voices = tuple(file.voices)
        self.takes = dict(file.takes)
        self._says = {word.lower(): entry for word, entry in file.pronunciations.items()}
        words = "|".join(sorted(map(re.escape, self._says), key=len, reverse=True))
        self._pattern = re.compile(rf"\b({words})\b", re.IGNORECASE) if words else None

    def voice(self, audio_key: str) -> Voice:
        """Return the speaker of a conversation."""
        return self.voices[int(hashlib.sha256(audio_key.encode()).hexdigest(), 16) % len(self.voices)]

    def engine_voice(self, voice: Voice, engine: str) -> str:
        """Return the engine's name of a speaker. Raises :class:`PackError` when the speaker has none there."""
        if engine not in voice.engines:
            raise PackError(
                f"{self._path}: {voice.id}: engines: has no {engine!r} voice; {near(engine, voice.engines)}"
            )
        return voice.engines[engine]

    def take(self, audio_key: str, name: str) -> int:
        """Return the seed of a segment."""
        return self.takes.get(f"{audio_key}/{name}", 0)

    def spoken(self, text: str, voice: Voice) -> str:
        """Return the text with the pronunciations that the list gives."""
        if self._pattern is None:
            return text

        def marked(match: re.Match[str]) -> str:
            entry = self._says[match[0].lower()]
            phonemes = entry.british if voice.accent == "British" and entry.british else entry.phonemes
            return f"[{match[0]}](/{phonemes}/)"

        return self._pattern.sub(marked, text)
