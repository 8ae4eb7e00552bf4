"""Let a turn-based agent take turns: an endpointing wrapper, one for every turn-based agent.

A turn-based model answers once, after the full input (as published). Wrapped, it answers after each user turn that
has ended: 800 ms without speech, heard by Silero. Each answer comes from a fresh session of the agent that is fed
everything the user has said so far, so a stateless model keeps the context; what the agent itself has said is not fed
back.

``--model-arg turns=endpointed`` wraps; ``--model-arg endpoint_ms=800`` sets the silence, ``--model-arg
barge_in=stop`` drops what has not been played when the user speaks over it (``keep``, the default, cuts nothing: as
published for raw playback).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsbeval.agent import NOTHING, Agent, Capabilities, Emission, Interaction, Session, Usage, check_emissions
from dsbeval.audio import RATE, Signal
from dsbeval.errors import OptionError
from dsbeval.spans import to_samples
from dsbeval.vad import OnlineDetector

TURNS = ("full", "endpointed")
BARGE_INS = ("keep", "stop")


class Endpointed(Agent):
    """A turn-based agent that answers each user turn when it has ended."""

    def __init__(self, agent: Agent, endpoint_ms: float = 800.0, barge_in: str = "keep") -> None:
        if endpoint_ms <= 0:
            raise OptionError(f"--model-arg endpoint_ms: {endpoint_ms!r} is not a positive number of milliseconds")
        if barge_in not in BARGE_INS:
            raise OptionError(f"--model-arg barge_in: {barge_in!r} is not one of {', '.join(BARGE_INS)}")
        self._agent = agent
        self._silence = to_samples(endpoint_ms / 1000, RATE)
        self._stop = barge_in == "stop"
        self.name = agent.name

    @property
    def concurrency(self) -> int | None:
        """As the agent's own. Asked for late, like the capabilities."""
        return self._agent.concurrency

    @concurrency.setter
    def concurrency(self, value: int | None) -> None:
        self._agent.concurrency = value

    @property
    def capabilities(self) -> Capabilities:
        """As the agent's own, but it takes part like a service with server VAD.

        Asked for late: an agent in its own process is started for it. Raises :class:`OptionError` for an agent that is not
        turn-based.
        """
        own = self._agent.capabilities
        self.name = self._agent.name
        if own.interaction is not Interaction.TURN_BASED:
            raise OptionError(
                f"--model-arg turns=endpointed: is for turn-based agents; {self.name} is {own.interaction}"
            )
        return replace(own, interaction=Interaction.SERVER_VAD)

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session that answers each turn."""
        return _EndpointedSession(self._agent, prompt, seed, self._silence, stop=self._stop)

    def usage(self) -> Usage | None:
        """As the agent's own."""
        return self._agent.usage()

    def close(self) -> None:
        """Close the agent."""
        self._agent.close()


class _EndpointedSession(Session):
    def __init__(self, agent: Agent, prompt: str, seed: int, silence: int, *, stop: bool) -> None:
        self._agent, self._prompt, self._seed = agent, prompt, seed
        self._silence, self._stop = silence, stop
        capabilities = agent.capabilities
        self._clock_frame = capabilities.clock_frame
        self._detector = OnlineDetector(capabilities.input_rate)
        self._heard: list[Signal] = []
        self._now = 0
        self._answered = 0  # speech that began before this sample has had its answer
        self._cut = 0  # the barge-in that has been given way to

    def step(self, heard: Signal) -> Emission | Sequence[Emission]:
        self._heard.append(heard)
        self._detector.push(heard)
        self._now += self._clock_frame
        turns = [span for span in self._detector.spans if span[0] >= self._answered]
        if not turns:
            return NOTHING
        if self._detector.onset is not None:
            if self._stop and self._answered and self._cut < turns[0][0]:
                self._cut = turns[0][0]
                return Emission(flush=True)
            return NOTHING
        if self._now - self._detector.silent_since < self._silence:
            return NOTHING
        self._answered = self._now
        return self._answer()

    def _answer(self) -> Sequence[Emission]:
        capabilities = self._agent.capabilities
        with self._agent.open(self._prompt, self._seed) as session:
            out: list[Emission] = []
            for frame in self._heard:
                out.extend(check_emissions(session.step(frame), capabilities, self._agent.name))
            out.extend(check_emissions(session.finish(), capabilities, self._agent.name))
        audio = np.concatenate([emission.audio for emission in out])
        return (Emission(audio, tuple(token for emission in out for token in emission.text)),)
