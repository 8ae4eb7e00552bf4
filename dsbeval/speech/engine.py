"""The contract of a speech synthesiser.

Conventions
-----------
* An engine speaks one segment at a time, at 24 kHz (:data:`dsbeval.audio.RATE`), in one of the voices it names. A voice
  may be followed by a pace, ``bm_lewis@0.9``: the same speaker, ten per cent slower.
* Equal text, voice and seed give equal samples on one machine. Another seed is another take of the same line.
* Word times come from the engine's own durations, never from an aligner: integer samples from the start of the
  utterance, half open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dsbeval.audio import Signal
from dsbeval.errors import OptionError, near


@dataclass(frozen=True, slots=True)
class WordTime:
    """A word as written, and the samples ``[start, end)`` in which it is heard."""

    word: str
    start: int
    end: int


@dataclass(frozen=True, eq=False, slots=True)
class Utterance:
    """A spoken text: audio at 24 kHz and the times of its words."""

    audio: Signal
    words: tuple[WordTime, ...]


class Engine(Protocol):
    """What makes speech of text."""

    @property
    def name(self) -> str:
        """The name that :func:`dsbeval.speech.engines.load_engine` takes."""

    @property
    def version(self) -> str:
        """All that decides the samples (model, pronunciation rules); another version is another rendering."""

    @property
    def facts(self) -> dict[str, str]:
        """What a reader of the manifest should know: version, hash of the model, licence."""

    @property
    def voices(self) -> tuple[str, ...]:
        """The voices, without a pace."""

    def synthesize(self, text: str, voice: str, seed: int) -> Utterance:
        """Speak ``text``. ``[word](/phonemes/)`` gives a word's pronunciation."""


def split_voice(voice: str, known: tuple[str, ...]) -> tuple[tuple[str, ...], float]:
    """Split ``bm_george+bm_lewis@0.9`` into the voices that are blended (usually one) and the pace.

    Raises :class:`OptionError` for an unknown voice or a pace outside 0.5 to 2.
    """
    name, _, pace = voice.partition("@")
    names = tuple(name.split("+"))
    for one in names:
        if one not in known:
            raise OptionError(f"voice {one!r} is not one of the engine's; {near(one, known)}")
    try:
        speed = float(pace) if pace else 1.0
    except ValueError:
        speed = 0.0
    if not 0.5 <= speed <= 2.0:
        raise OptionError(f"voice {voice!r}: the pace after @ must be a number from 0.5 to 2.0, as in {name}@0.9")
    return names, speed
