"""The hybrid system prompt of PersonaPlex: what the model is made to say, think and hear before the conversation begins.

Conventions
-----------
* The prompt is played through the model's own clock, a frame for each step: the voice, a spacer of silence, the text at
  one token a frame, a spacer again. Each frame costs 80 ms of the model's context.
* In every frame of it the user is heard as a tone and, but for the voice, the agent as silence; both are constant codes.
* A code of the first codebook and the text lie at the frame's own position in the token ring, the other codebooks one later.

Source: NVIDIA/personaplex, ``moshi/models/lm.py`` and ``moshi/offline.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PAD = 3
SPACER = 6
"""Frames of silence, after the voice and after the text: half a second in whole frames."""
SILENCE = (948, 243, 1178, 546, 1736, 1030, 1978, 2008)
TONE = (430, 1268, 381, 1611, 1095, 1495, 56, 472)
TAG = "<system>"

Codes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What the agent is made to think and to say in one frame."""

    text: int
    agent: Codes


@dataclass(frozen=True, slots=True)
class Call:
    """What is forced upon the tokens that one call of the released package generates; None is left to the model."""

    text: int | None
    first: int | None
    rest: Codes


def wrapped(prompt: str) -> str:
    """Return the prompt between its tags; empty stays empty, and tags that are there are not doubled."""
    text = prompt.strip()
    if not text or (text.startswith(TAG) and text.endswith(TAG) and len(text) > len(TAG)):
        return text
    return f"{TAG} {text} {TAG}"


def script(voice: Sequence[Codes], text: Sequence[int], codebooks: int) -> list[Frame]:
    """Return the frames of a prompt: voice, spacer, text, spacer."""
    silence = SILENCE[:codebooks]
    spacer = [Frame(PAD, silence)] * SPACER
    return [*(Frame(PAD, codes) for codes in voice), *spacer, *(Frame(token, silence) for token in text), *spacer]


def calls(frames: Sequence[Frame], before: Codes | None = None) -> list[Call]:
    """Return the calls of the released package that play ``frames``.

    The call that reads position q generates position q+1. From the start of a session the first frame's text and first code
    are therefore never generated: start tokens stand there, in NVIDIA's package too. After a stored voice, whose last codes
    are ``before``, every frame is. The last call generates the first frame of the conversation, of which the prompt holds no
    more than the codes that are a position late.
    """
    own = frames if before is not None else frames[1:]
    late = [frame.agent[1:] for frame in frames]
    rests = late if before is None else [before, *late]
    return [
        *(Call(frame.text, frame.agent[0], rest) for frame, rest in zip(own, rests, strict=False)),
        Call(None, None, rests[-1]),
    ]
