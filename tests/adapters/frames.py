"""Frames for a frame-synchronous agent, and what it returned for them, alone and on the line of an episode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsbeval.agent import Agent, Emission, Session
from dsbeval.audio import Signal
from dsbeval.ifeval.line import Line

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


def on_the_line(agent: Agent, impulses: tuple[int, ...], frames: int = 8) -> tuple[np.ndarray, list[Emission]]:
    """Play clicks at session samples over a quiet hiss; return the recorded channel of the agent and what it emitted."""
    user = np.concatenate(noise(frames)) * np.float32(0.01)
    user[list(impulses)] = 1000.0  # the tiny codec tells few sounds apart
    emitted: list[Emission] = []
    with agent.open("", 3) as session:
        step = session.step

        def noted(heard: Any) -> Any:
            emitted.append(step(heard))  # type: ignore[arg-type]
            return emitted[-1]

        session.step = noted  # type: ignore[method-assign]
        line = Line(session, agent.capabilities, agent.name)
        line.say(1, user, 0)
        line.run_until(user.size)
    return line.record(user.size + FRAME)[1], emitted
