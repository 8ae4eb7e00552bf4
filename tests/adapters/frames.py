"""Frames for a frame-synchronous agent, and what it returned for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dsbeval.agent import Agent, Emission, Session
from dsbeval.audio import Signal

FRAME = 1920


@dataclass(frozen=True)
class Said:
    emissions: tuple[Emission, ...]

    @property
    def audio(self) -> bytes:
        return b"".join(emission.audio.tobytes() for emission in self.emissions)

    @property
    def text(self) -> str:
        return "".join(token.text for emission in self.emissions for token in emission.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and (self.audio, self.text) == (other.audio, other.text)

    __hash__ = None  # type: ignore[assignment]


def noise(count: int, seed: int = 0, size: int = FRAME) -> list[Signal]:
    rng = np.random.default_rng(seed)
    return [(0.1 * rng.standard_normal(size)).astype(np.float32) for _ in range(count)]


def play(session: Session, frames: Iterable[Signal]) -> Said:
    out = [session.step(frame) for frame in frames]
    assert all(isinstance(emission, Emission) for emission in out)
    return Said(tuple(emission for emission in out if isinstance(emission, Emission)))


def converse(agent: Agent, frames: Iterable[Signal], prompt: str = "", seed: int = 1) -> Said:
    with agent.open(prompt, seed) as session:
        return play(session, frames)
