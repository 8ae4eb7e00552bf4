"""Short conversations on the wall clock with an agent behind a service, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from dsbeval.agent import Agent
from dsbeval.audio import RATE, Signal, to_pcm16
from dsbeval.clock import WallClock
from dsbeval.ifeval.line import Line
from dsbeval.speech.bank import load_bank

T = TypeVar("T")


@dataclass
class Talked:
    """What is left of a conversation."""

    model: Signal
    text: str = ""
    tokens: Sequence[tuple[float, str]] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    took_s: float = 0.0
    start: float = 0.0
    """``time.monotonic()`` at the first sample."""

    @property
    def spoken(self) -> list[tuple[float, float]]:
        """Where the channel is not silent, in seconds; holes of less than 50 ms are parts of speech."""
        return speech_in(self.model)


def speech_in(channel: Signal, hole_s: float = 0.05) -> list[tuple[float, float]]:
    sounding = np.flatnonzero(channel)
    if not sounding.size:
        return []
    breaks = np.flatnonzero(np.diff(sounding) > hole_s * RATE)
    starts = sounding[np.concatenate([[0], breaks + 1])]
    ends = sounding[np.concatenate([breaks, [sounding.size - 1]])] + 1
    return [(int(start) / RATE, int(end) / RATE) for start, end in zip(starts, ends, strict=True)]


Until = Callable[[dict[str, Any]], bool]
LONGEST_S = 40.0
"""Of a conversation that waits for something on a busy machine."""


def answered(times: int = 1) -> Until:
    """Wait for so many responses to be done."""
    return lambda facts: sum(response["status"] is not None for response in facts["responses"]) >= times


ANSWERED = answered()


def talk(
    agent: Agent,
    turns: Sequence[tuple[float, Signal]],
    until: Until = ANSWERED,
    rest_s: float = 0.3,
    prompt: str = "Be brief.",
    comes_in: Signal | None = None,
) -> Talked:
    """Let the user speak at given seconds, and go on until something is among the facts and has been played.

    ``comes_in`` is said when the agent has been heard for a second. Return what came of it, also where that is an exception.
    """
    clock, begun = WallClock(), time.monotonic()
    try:
        with agent.open(prompt, 0) as session:
            line = Line(session, agent.capabilities, agent.name, clock)
            for number, (at, audio) in enumerate(turns, 1):
                line.say(number, audio, int(at * RATE))
            if comes_in is not None:
                while not line.side.channel.cursor and line.now < LONGEST_S * RATE:
                    line.run_until(line.now + RATE // 50)
                line.run_until(line.now + RATE)
                line.say(len(turns) + 1, comes_in, line.now)
            while line.now < LONGEST_S * RATE:
                line.run_until(line.now + RATE // 4)
                played = line.now >= line.side.channel.cursor
                if played and line.now >= turns[-1][0] * RATE and until(dict(session.facts())):
                    break
            line.run_until(line.now + int(rest_s * RATE))
            line.finish(line.now)
            facts = dict(session.facts())
            _, model = line.record(line.now)
    except Exception as error:
        return Talked(np.zeros(0, np.float32), error=error, took_s=time.monotonic() - begun)
    tokens = [(token.sample / RATE, token.text) for token in line.side.text]
    text = "".join(text for _, text in tokens)
    assert clock._start is not None
    return Talked(model, text, tokens, facts, None, time.monotonic() - begun, clock._start)


def at_once(work: dict[str, Callable[[], T]], at_most: int = 10) -> dict[str, T]:
    """Do several things in real time at the same time; it takes as long as the longest of them, if they are not too many."""
    with ThreadPoolExecutor(min(at_most, len(work))) as pool:
        running = {name: pool.submit(one) for name, one in work.items()}
        return {name: future.result() for name, future in running.items()}


def said(name: str, seconds: float | None = None, start_s: float = 0.0) -> Signal:
    """Speech of the bank of the calibration agents, with no sample of exact zero, so that it can be told from silence."""
    audio = load_bank()[name].audio
    audio = audio[int(start_s * RATE) : None if seconds is None else int((start_s + seconds) * RATE)].copy()
    steps = to_pcm16(audio)
    steps[steps == 0] = 1
    return (steps / np.float32(32768)).astype(np.float32)
