"""The user's side of a conversation as text: what was said, and how long the pauses inside a turn were.

No absolute time is in it. What is measured for a pause is its length by construction, rounded to a tenth of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dsbeval.audio import RATE

_TURN = re.compile(r"^Turn \d+$")
_PAUSE = re.compile(r"^\(pause of [\d.]+ s\)$")
_USER = "User: "


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """One turn of the user: its speech segments, with the pauses left out."""

    segments: tuple[str, ...]
    pauses: int

    @property
    def text(self) -> str:
        """The turn as one text."""
        return " ".join(self.segments)


def write_script(segments: Iterable[Mapping[str, Any]]) -> str:
    """Return the script of the user from the ``user`` segments of a rec.json.

    Speech segments that follow each other without a pause are one line: how a probe is cut is not the judge's affair.
    """
    lines: list[str] = []
    turn = None
    for segment in segments:
        if segment["turn"] != turn:
            turn = segment["turn"]
            lines.append(f"Turn {turn}")
        if segment["type"] == "speech":
            words = " ".join(str(segment["text"]).split())
            if lines[-1].startswith(_USER):
                lines[-1] += f" {words}"
            else:
                lines.append(_USER + words)
        else:
            seconds = (int(segment["end"]) - int(segment["start"])) / RATE
            lines.append(f"(pause of {round(seconds, 1):g} s)")
    return "\n".join(lines)


def read_script(script: str) -> list[SpokenTurn]:
    """Return the turns of a script that :func:`write_script` wrote."""
    turns: list[tuple[list[str], int]] = []
    for line in script.split("\n"):
        if _TURN.match(line) or not turns:
            turns.append(([], 0))
        if line.startswith(_USER):
            turns[-1][0].append(line.removeprefix(_USER))
        elif _PAUSE.match(line):
            turns[-1] = (turns[-1][0], turns[-1][1] + 1)
    return [SpokenTurn(tuple(said), pauses) for said, pauses in turns]
