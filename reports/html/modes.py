"""Where a report has its audio: words that options use, in a module that imports nothing."""

from __future__ import annotations

from typing import Literal

Audio = Literal["portable", "linked", "none"]
AUDIO: tuple[Audio, ...] = ("portable", "linked", "none")
"""*portable*: small clips; *linked*: the recordings, as links that cost no space on this disk; *none*: no audio."""
