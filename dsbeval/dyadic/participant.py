"""One side of a bridge: an agent with its thread, what it hears, what it has emitted, and where that is heard.

Conventions
-----------
* In tick t a side hears what was placed in the other's channel for it; what it emits
  then is heard in tick t+1 at the earliest.
* Frames that are not 80 ms: smaller ones are stepped several times a tick, larger ones when enough ticks have passed. The
  emission of the frame that begins at s is heard from ``s + max(output_delay, frame + tick - gcd(frame, tick))`` on: the
  smallest constant delay that the tick allows, so no frame length makes holes. That is one tick for every frame that
  divides a tick, and a frame for every whole number of ticks.
* Every call of an agent comes from one thread of its own, so a model finds its thread-local state.
"""

from __future__ import annotations

import functools
import math
import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dsbeval.agent import Agent, Emission, Interaction, PrivilegedAgent, Session, check_emissions
from dsbeval.audio import RATE, Signal
from dsbeval.clock import BACKPRESSURE_CHUNKS, Clock
from dsbeval.dyadic.ear import TICK, Ear
from dsbeval.dyadic.rows import Side
from dsbeval.dyadic.schema import AnyScenario
from dsbeval.errors import AgentError, DsbevalError, OptionError
from dsbeval.recording import AgentSide

T = TypeVar("T")


class SideError(AgentError):
    """One side broke the conversation: it could not be opened, raised, or broke its contract."""

    def __init__(self, side: Side, agent: str, error: Exception) -> None:
        if isinstance(error, DsbevalError):
            what = " ".join(str(error).split())
        else:
            frames = traceback.extract_tb(error.__traceback__)
            where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
            what = f"agent {agent}: {type(error).__name__}: {' '.join(str(error).split())}{where}"
        super().__init__(f"side {side}: {what}")
        self.side = side
        self.agent = agent


@dataclass(frozen=True, slots=True)
class DyadBrief:
    """What a calibration agent is told about its conversation. No other agent ever sees one."""

    scenario: AnyScenario
    opener: Side


class PrivilegedDyadAgent(Agent):
    """An instrument: an agent that is told the scenario, to show that the suite measures what it says."""

    @abstractmethod
    def open_dyad(self, brief: DyadBrief, side: Side, prompt: str, seed: int) -> Session:
        """Return a session that knows its scenario and its side."""

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Refuse: without the scenario there is nothing to play."""
        raise AgentError(f"{self.name} is a calibration agent and must be told the scenario; use it with cases/dyadic")


def check_agent(agent: Agent, option: str = "--model") -> None:
    """Raise :class:`OptionError` for an agent that cannot hold a live conversation."""
    if isinstance(agent, PrivilegedAgent):
        raise OptionError(
            f"{option}: {agent.name} is a calibration agent of cases/ifeval and plays its cases only; name another"
        )
    if agent.capabilities.interaction is Interaction.TURN_BASED:
        raise OptionError(
            f"{option}: {agent.name} is turn_based: it answers once, after the full input, and a live conversation has "
            "no such end; add --model-arg turns=endpointed, which lets it answer each turn"
        )


# The side


@dataclass(frozen=True, slots=True)
class _Stepped:
    emissions: tuple[Emission, ...]
    cost_s: float


class Participant:
    """An agent on its side of a bridge.

    Parameters
    ----------
    side : "a" or "b"
    agent : Agent
    clock : Clock
        When what it emits arrives.
    partner_rate : int
        Samples a second of what it hears, before resampling.
    muted_until : int
        What would begin to be heard before this session sample is dropped with its text.
    threaded : bool
        Whether it is stepped in a thread of its own.
    """

    def __init__(
        self, side: Side, agent: Agent, clock: Clock, partner_rate: int, *, muted_until: int, threaded: bool
    ) -> None:
        self.side, self.agent = side, agent
        self._clock = clock
        self.muted_until = muted_until
        capabilities = self._capabilities = agent.capabilities
        frame = self._clock_frame = capabilities.clock_frame
        self.delay = max(capabilities.clock_delay, frame + TICK - math.gcd(frame, TICK))
        self.ear = Ear(partner_rate, capabilities.input_rate, capabilities.frame)
        self.voice = AgentSide(capabilities.output_rate)
        chunked = capabilities.interaction is Interaction.CHUNKED
        self.behind = BACKPRESSURE_CHUNKS if chunked and threaded else 0
        """Steps that may be under way when a tick ends."""
        self._thread = ThreadPoolExecutor(1, f"dsbeval-side-{side}") if threaded else None
        self._session: Session | None = None
        self._under_way: deque[tuple[int, Future[list[_Stepped]]]] = deque()
        self._heard = 0  # session samples that went into frames
        self._hung_up = False  # the agent said so, in its own thread
        self.ends: int | None = None
        """Where the last thing that a finished agent said ends."""
        self.muted: list[tuple[int, int]] = []
        """Start and length (at the agent's rate) of what was dropped."""
        self.events: list[dict[str, Any]] = []

    def open(self, prompt: str, seed: int, brief: DyadBrief | None) -> None:
        """Open the session. Raises :class:`SideError`."""

        def opened() -> Session:
            if not isinstance(self.agent, PrivilegedDyadAgent):
                session = self.agent.open(prompt, seed)
            elif brief is None:
                session = self.agent.open(prompt, seed)  # refuses, and says why
            else:
                session = self.agent.open_dyad(brief, self.side, prompt, seed)
            if not isinstance(session, Session):
                kind = type(session).__name__
                raise AgentError(f"agent {self.agent.name}: open returned a {kind}; return a dsbeval.agent.Session")
            return session

        self._session = self._result(self._call(opened))

    def cut_off(self, now: int) -> None:
        """End the conversation at ``now``: take the words that are known only then. Raises :class:`SideError`.

        Steps under way are waited for, so that what the session tells of itself does not depend on how long they took; what they
        return would be heard after the end.
        """
        while self._under_way:
            self._result(self._under_way.popleft()[1])
        for emission in self._result(self._call(self._cut_off)):
            self.voice.accept(emission, now)

    def _cut_off(self) -> tuple[Emission, ...]:
        if self._hung_up or self._session is None:
            return ()
        return check_emissions(self._session.cut_off(), self._capabilities, self.agent.name)

    def close(self) -> None:
        """Close the session and end the thread. Raises :class:`SideError`."""
        session, self._session = self._session, None
        for _, step in self._under_way:
            step.cancel()
        self._under_way.clear()
        try:
            if session is not None:
                self._result(self._call(session.close))
        finally:
            if self._thread is not None:
                self._thread.shutdown()

    def hear(self, audio: Signal, now: int) -> None:
        """Hear what was played in the tick that ends at ``now``, and begin the steps of the frames that it completes."""
        self.ear.push(audio)
        frames = [self.ear.frame() for _ in range((now - self._heard) // self._clock_frame)]
        if frames:
            self._under_way.append((self._heard, self._call(functools.partial(self._step, frames))))
            self._heard += len(frames) * self._clock_frame

    def settle(self, now: int, *, at_most: int | None = None, due_before: int | None = None) -> float:
        """Accept what is done, in order, and wait as far as asked; return the seconds that were waited for.

        Parameters
        ----------
        now : int
            Session sample up to which the partner has heard; nothing is placed before it.
        at_most : int or None
            Wait until no more than this many steps are under way.
        due_before : int or None
            Wait for every step whose emission may be heard before this session sample.
        """
        waited = 0.0
        while self._under_way:
            start, step = self._under_way[0]
            needed = (at_most is not None and len(self._under_way) > at_most) or (
                due_before is not None and start + self.delay < due_before
            )
            if not step.done():
                if not needed:
                    break
                begun = self._clock.timer()
                step.exception()  # waits
                waited += self._clock.timer() - begun
            self._under_way.popleft()
            for stepped in self._result(step):
                self._accept(start, stepped, now)
                start += self._clock_frame
        return waited

    def _call(self, work: Callable[[], T]) -> Future[T]:
        if self._thread is not None:
            return self._thread.submit(work)
        done: Future[T] = Future()
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)
        return done

    def _result(self, done: Future[T]) -> T:
        try:
            return done.result()
        except Exception as error:
            raise SideError(self.side, self.agent.name, error) from error

    def _step(self, frames: list[Signal]) -> list[_Stepped]:
        """Step the agent; runs in its thread. A finished one is not stepped again, even if frames were under way."""
        done: list[_Stepped] = []
        for frame in frames:
            if self._hung_up or self._session is None:
                break
            begun = self._clock.timer()
            returned = self._session.step(frame)
            cost = self._clock.timer() - begun
            emissions = check_emissions(returned, self._capabilities, self.agent.name)
            self._hung_up = any(emission.done for emission in emissions)
            done.append(_Stepped(emissions, cost))
        return done

    def _accept(self, start: int, stepped: _Stepped, now: int) -> None:
        end = start + self._clock_frame
        self._clock.stepped(end, stepped.cost_s)
        for emission in stepped.emissions:
            arrival = max(self._clock.arrival(end, start + self.delay, emission.arrived), now)
            if arrival < self.muted_until:
                if emission.audio.size or emission.text:
                    self.muted.append((arrival, emission.audio.size))
            else:
                self.voice.accept(emission, arrival)
            if emission.done and self.ends is None:
                channel = self.voice.channel
                self.ends = max(arrival, channel.clock(channel.cursor))
                self.events.append(event("agent_done", arrival, side=self.side))

    def played(self, start: int, end: int) -> Signal:
        """Return what the side plays between two session samples, at its own rate."""
        channel = self.voice.channel
        return channel.played(channel.native(start), channel.native(end))

    def realtime(self, pace: Clock) -> dict[str, Any]:
        """Return what the side's own clock has to report; nothing where that is the bridge's."""
        return {} if self._clock is pace else self._clock.report()

    def facts(self) -> dict[str, Any]:
        """Return what is kept about the side in rec.json."""
        told = {} if self._session is None else dict(self._session.facts())
        return {
            "agent": self.agent.name,
            "capabilities": self._capabilities.as_dict(),
            "prompt_taken": self._capabilities.prompt,
            "answered_after": self.delay,
            "heard_late": self.ear.late,
            **({"session": told} if told else {}),
        }


def event(name: str, sample: int, **facts: Any) -> dict[str, Any]:
    """Return an event at a session sample, as rec.json keeps it."""
    return {"event": name, "sample": sample, "t": round(sample / RATE, 3), **facts}
