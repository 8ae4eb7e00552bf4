"""The contract of every agent: what it declares, what it is fed, what it may return.

An adapter only translates. The harness resamples, buffers and times; it calls, in this order::

    agent.capabilities                     once
    with agent.open(prompt, seed) as session:      a fresh state each time
        session.step(frame) -> Emission    one frame at the declared input rate, again and again
        session.finish() -> Emission       once, after the last frame: a turn-based agent answers here
        session.cut_off() -> Emission      instead, where nobody is left to hear an answer: a conversation whose window is over

Conventions
-----------
* A frame is a float32 array of exactly ``capabilities.frame`` samples at ``capabilities.input_rate``.
* The audio of an emission is float32, one channel, at ``capabilities.output_rate``, of any length. More than a frame
  is a burst: it is queued and plays out in real time.
* The emission of the frame that begins at time t is heard from ``t + output_delay`` on (default: one frame, since a
  frame cannot be answered before it has been heard).
* An exception in an agent is an *error* of the case, never a failed probe. A
  :class:`~dsbeval.errors.SessionLostError` says that the case may be had again from its beginning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dsbeval.audio import RATE, Signal, check_signal
from dsbeval.errors import AgentError, AudioError
from dsbeval.spans import Span

NO_AUDIO: Signal = np.zeros(0, np.float32)
NO_AUDIO.flags.writeable = False


class Interaction(StrEnum):
    """How an agent takes part in a conversation; it chooses the protocol's timings."""

    FRAME_SYNCHRONOUS = "frame_synchronous"
    SERVER_VAD = "server_vad"
    TURN_BASED = "turn_based"
    CHUNKED = "chunked"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent declares about itself.

    Parameters
    ----------
    interaction : Interaction
    input_rate, output_rate : int
        Samples a second of what it hears and of what it returns.
    frame : int
        Samples a step, at the input rate. Must be a whole number of samples on the 24 kHz clock.
    clock : "logical" or "wall"
        Logical: its state moves only with its input, so it is stepped as fast as the machine allows.
    prompt, seed, voice, text : bool
        Whether it takes a system prompt, a seed and a voice, and whether it gives text.
    output_delay : int or None
        Input samples from the start of a heard frame to the start of its emission; None is one frame.
    privileged : bool
        Whether it must be told the case itself. Only calibration agents are.
    context_s : float or None
        Seconds of a session that the model can look back on; None where that is not known. A session that is longer is
        played on and marked.
    """

    interaction: Interaction
    input_rate: int = RATE
    output_rate: int = RATE
    frame: int = 480
    clock: Literal["logical", "wall"] = "logical"
    prompt: bool = True
    seed: bool = True
    voice: bool = False
    text: bool = True
    output_delay: int | None = None
    privileged: bool = False
    context_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("input_rate", "output_rate", "frame"):
            value = getattr(self, name)
            if not isinstance(value, int) or value <= 0:
                raise AgentError(f"capabilities.{name} is {value!r}; a positive whole number is needed")
        if self.frame * RATE % self.input_rate:
            raise AgentError(
                f"capabilities.frame is {self.frame} samples at {self.input_rate} Hz, which is not a whole number of "
                f"samples at {RATE} Hz; choose another frame (80 ms is {self.input_rate * 80 // 1000})"
            )
        object.__setattr__(self, "interaction", Interaction(self.interaction))

    @property
    def clock_frame(self) -> int:
        """A frame in samples of the session clock."""
        return self.frame * RATE // self.input_rate

    @property
    def clock_delay(self) -> int:
        """The output delay in samples of the session clock."""
        return self.clock_frame if self.output_delay is None else self.output_delay * RATE // self.input_rate

    def as_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, for recordings and fingerprints."""
        return asdict(self) | {"interaction": str(self.interaction)}


@dataclass(frozen=True, slots=True)
class TextToken:
    """A piece of the agent's own text, ``offset_s`` seconds after the start of the audio it comes with.

    Without audio that start is where further audio would be heard; a negative offset then points into what is queued.
    """

    text: str
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Emission:
    """What a step returns.

    ``flush`` drops everything that has not been played yet, before this emission is queued. ``done`` says that the
    agent has ended the conversation; it is not stepped again. ``rate`` may repeat the rate of the audio, and is then
    checked against the declared one. ``arrived`` is the ``time.monotonic()`` at which a real-time service delivered it;
    only the wall clock reads it.
    """

    audio: Signal = field(default_factory=lambda: NO_AUDIO)
    text: tuple[TextToken, ...] = ()
    done: bool = False
    flush: bool = False
    rate: int | None = None
    arrived: float | None = None


NOTHING = Emission()


class Session(ABC):
    """One conversation of an agent: a context manager that owns all of its state."""

    @abstractmethod
    def step(self, heard: Signal) -> Emission | Sequence[Emission]:
        """Hear one frame and return what the agent emits while hearing it, or several emissions in their order."""

    def finish(self) -> Emission | Sequence[Emission]:
        """Return what the agent says once the user side has ended; called once, after the last step."""
        return NOTHING

    def cut_off(self) -> Emission | Sequence[Emission]:
        """Return what is known only now of what was said; called once, instead of :meth:`finish`, where nothing more is heard.

        The words of a recogniser that waits for the end of an utterance, with negative offsets, as of ``finish``. It is also the
        place to raise what can only be told of a whole session: that a service spoke, and of nothing that is known here.
        """
        return NOTHING

    def facts(self) -> Mapping[str, Any]:
        """Return what is to be kept about the session in rec.json, as plain data; asked after the last step."""
        return {}

    def close(self) -> None:  # noqa: B027  optional: most sessions hold nothing
        """Let go of the state. Called exactly as often as somebody likes; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Usage:
    """What an agent has used of a service since it was built.

    Parameters
    ----------
    of : mapping
        What was used, in words: the model, where it is, how it was asked. Equal ones are added up.
    counts : mapping
        Sessions, tokens, seconds; ``cost_usd`` where every one of them has a price.
    """

    of: Mapping[str, str]
    counts: Mapping[str, float]


class Agent(ABC):
    """A model on its device. Loaded once a worker, opened once a case."""

    name: str = ""
    concurrency: int | None = None
    """How many of its sessions may be open at once, over all workers of a run; None: as many as there are."""

    checkpoint_files: ClassVar[tuple[str, ...]] = ()
    """Patterns of the files that it reads of a ``--checkpoint``; empty where it does not take one from the hub."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the agent declares; constant for its life."""

    @abstractmethod
    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state. An empty prompt means none."""

    def usage(self) -> Usage | None:
        """Return what has been used of a service so far, counted from when the agent was built; None: nothing is counted."""
        return None

    def close(self) -> None:  # noqa: B027  optional
        """Free the device. A second call does nothing."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a calibration agent is told about its case, in samples from the onset of turn 2.

    No other agent ever sees one.
    """

    action: str
    window: Span
    barge_in: bool
    readback_target: str


class PrivilegedSession(Session):
    """A session that is told when the user's turns begin and end."""

    @abstractmethod
    def cue(self, turn: int, span: Span) -> None:
        """Turn 1 or 2 occupies ``span`` of the session clock; told before its first frame is heard."""


class PrivilegedAgent(Agent):
    """An instrument: an agent that is told the case, to show that the suite measures what it says."""

    @abstractmethod
    def open_case(self, brief: Brief, prompt: str, seed: int) -> PrivilegedSession:
        """Return a session that knows its case."""

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Refuse: without the case there is nothing to play."""
        raise AgentError(f"{self.name} is a calibration agent and must be told the case; use it with cases/ifeval")


def check_emissions(returned: object, capabilities: Capabilities, agent: str) -> tuple[Emission, ...]:
    """Return what a step returned as a tuple, each emission checked by :func:`check_emission`."""
    several = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(check_emission(emission, capabilities, agent) for emission in several)


def check_emission(emission: object, capabilities: Capabilities, agent: str) -> Emission:
    """Return ``emission`` if it keeps the contract; otherwise raise :class:`AgentError` in one line."""
    if not isinstance(emission, Emission):
        raise AgentError(f"agent {agent}: step returned a {type(emission).__name__}; return dsbeval.agent.Emission")
    try:
        check_signal(emission.audio, f"agent {agent}")
    except AudioError as error:
        raise AgentError(str(error)) from None
    if emission.rate is not None and emission.rate != capabilities.output_rate:
        raise AgentError(
            f"agent {agent}: audio is at {emission.rate} Hz but capabilities.output_rate is {capabilities.output_rate} Hz; "
            "declare the rate that the model returns"
        )
    for token in emission.text:
        if not isinstance(token, TextToken):
            raise AgentError(f"agent {agent}: text must be a tuple of TextToken, not {token!r}")
    return emission
