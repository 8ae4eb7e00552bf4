"""The synthesisers that there are, loaded by name."""

from __future__ import annotations

from dsbeval.errors import OptionError, near
from dsbeval.speech.engine import Engine

ENGINES = ("hibari", "kokoro")


def load_engine(name: str) -> Engine:
    """Load an engine: ``hibari`` or ``kokoro`` (needs its model files).

    Raises :class:`OptionError` for an unknown name and :class:`DsbevalError` when the engine's files are not there.
    """
    if name == "hibari":
        from dsbeval.speech.hibari import HibariEngine

        return HibariEngine()
    if name == "kokoro":
        from dsbeval.speech.kokoro import KokoroEngine

        return KokoroEngine()
    raise OptionError(f"engine {name!r} is not known; {near(name, ENGINES)}")
