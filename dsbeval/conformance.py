"""The conformance suite: what every agent must do before a number about it means anything.

Each check takes an agent and raises :class:`ConformanceError` in one line. ``pytest tests/conformance --model=NAME``
runs them all; they are plain functions, so a notebook can too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dsbeval.agent import Agent, Brief, Emission, PrivilegedAgent, PrivilegedSession, Session, check_emissions
from dsbeval.audio import RATE, Signal, frames, resample
from dsbeval.clock import make_clock
from dsbeval.dyadic.participant import DyadBrief, PrivilegedDyadAgent
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.errors import DsbevalError
from dsbeval.spans import Span


class ConformanceError(DsbevalError):
    """The agent breaks its contract; the message says which part and what to mend."""


Check = Callable[[Agent], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Register a check under its name."""
    CHECKS[function.__name__] = function
    return function


@functools.cache
def user_audio() -> Signal:
    """Return 4 s of user side at 24 kHz: real speech from the bank, with silence about it."""
    from dsbeval.speech.bank import load_bank

    speech = load_bank()["reply"].audio
    out = np.zeros(4 * RATE, np.float32)
    out[RATE // 2 : RATE // 2 + speech.size] = speech
    return out


@dataclass(frozen=True)
class Heard:
    """All that a session gave back."""

    emissions: tuple[Emission, ...]

    @property
    def audio(self) -> Signal:
        """The audio of all emissions, joined."""
        return np.concatenate([e.audio for e in self.emissions]) if self.emissions else np.zeros(0, np.float32)

    @property
    def text(self) -> str:
        """The text of all emissions, joined."""
        return "".join(token.text for e in self.emissions for token in e.text)


def open_session(agent: Agent, prompt: str, seed: int) -> Session:
    """Open a session as the episode or the bridge does.

    A calibration agent of cases/ifeval is told a case in the second half of the input, one of cases/dyadic the first side of a
    scenario, which it opens.
    """
    if isinstance(agent, PrivilegedDyadAgent):
        return agent.open_dyad(DyadBrief(next(iter(load_scenarios().scenarios.values())), "a"), "a", prompt, seed)
    if not isinstance(agent, PrivilegedAgent):
        return agent.open(prompt, seed)
    session = agent.open_case(Brief("TAKE_TURN", Span(0, RATE), barge_in=False, readback_target=""), prompt, seed)
    assert isinstance(session, PrivilegedSession)
    session.cue(1, Span(0, RATE))
    session.cue(2, Span(2 * RATE, 4 * RATE))
    return session


def paced(agent: Agent, audio: Signal) -> Iterator[Signal]:
    """Yield the frames of ``audio`` (24 kHz) at the agent's rate; for an agent on the wall clock, when they are due."""
    capabilities = agent.capabilities
    clock = make_clock(capabilities.clock, "none", capabilities.clock_frame)
    for index, frame in enumerate(frames(resample(audio, RATE, capabilities.input_rate), capabilities.frame), start=1):
        clock.ready(index * capabilities.clock_frame)
        yield frame


def converse(agent: Agent, session: Session, audio: Signal, *, finish: bool = True) -> Heard:
    """Feed ``audio`` (24 kHz) to a session, frame by frame, and keep everything it returns.

    An agent on the wall clock is fed in real time.
    """
    capabilities = agent.capabilities
    out: list[Emission] = []
    for frame in paced(agent, audio):
        out.extend(check_emissions(session.step(frame.copy()), capabilities, agent.name))
        if out and out[-1].done:
            return Heard(tuple(out))
    if finish:
        out.extend(check_emissions(session.finish(), capabilities, agent.name))
    return Heard(tuple(out))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


@check
def capabilities_are_constant(agent: Agent) -> None:
    """The declaration does not change by use."""
    before = agent.capabilities
    with open_session(agent, "", 0) as session:
        converse(agent, session, user_audio()[: RATE // 2])
    _require(agent.capabilities == before, f"{agent.name}: capabilities changed by use; declare them once")


@check
def every_frame_is_answered_within_the_contract(agent: Agent) -> None:
    """Each step and finish return a valid emission: float32, one channel, finite, at the declared rate."""
    with open_session(agent, "You are a helpful voice assistant.", 1) as session:
        heard = converse(agent, session, user_audio())
    seconds = heard.audio.size / agent.capabilities.output_rate
    _require(seconds < 120, f"{agent.name}: {seconds:.0f} s of audio for 4 s of input; mend output_rate")
    _require(agent.capabilities.text or not heard.text, f"{agent.name}: gives text but declares text=False")


@check
def a_frame_is_heard_and_not_changed(agent: Agent) -> None:
    """The agent does not write into the frame that it is given."""
    frame = np.full(agent.capabilities.frame, 0.01, np.float32)
    frame.flags.writeable = False
    with open_session(agent, "", 0) as session:
        try:
            session.step(frame)
        except ValueError as error:
            message = f"{agent.name}: writes into the frame it hears ({error}); copy it first"
            raise ConformanceError(message) from error


@check
def an_emission_is_not_changed_later(agent: Agent) -> None:
    """What a step returned stays as it was: the agent does not reuse its output buffer."""
    capabilities = agent.capabilities
    with open_session(agent, "", 0) as session:
        kept: list[tuple[Signal, Signal]] = []
        for frame in paced(agent, user_audio()):
            returned = check_emissions(session.step(frame), capabilities, agent.name)
            kept.extend((emission.audio, emission.audio.copy()) for emission in returned)
    changed = any(not np.array_equal(now, then) for now, then in kept)
    _require(not changed, f"{agent.name}: returns a buffer that it changes later; return a copy")


@check
def close_may_be_called_again(agent: Agent) -> None:
    """A session is closed by its context and again by whoever likes."""
    session = open_session(agent, "", 0)
    with session:
        converse(agent, session, user_audio()[:RATE])
    session.close()


@check
def an_unfinished_session_leaves_nothing_behind(agent: Agent) -> None:
    """A session that is dropped in mid-turn does not move the next one."""
    with open_session(agent, "", 3) as session:
        first = converse(agent, session, user_audio())
    with open_session(agent, "Answer at length.", 4) as session:
        converse(agent, session, user_audio()[: RATE + RATE // 3], finish=False)
    with open_session(agent, "", 3) as session:
        if not agent.capabilities.seed:
            return  # it could be opened anew; there is no telling more
        again = converse(agent, session, user_audio())
    _require(_same(first, again), f"{agent.name}: a session depends on the one before; open must give a fresh state")


@check
def a_conversation_may_be_cut_off(agent: Agent) -> None:
    """Where nobody is left to hear an answer, what is still told keeps the contract, and asks for no audio to be heard."""
    with open_session(agent, "You are brief.", 5) as session:
        converse(agent, session, user_audio()[: RATE + RATE // 3], finish=False)
        told = Heard(check_emissions(session.cut_off(), agent.capabilities, agent.name))
    _require(agent.capabilities.text or not told.text, f"{agent.name}: cut_off gives text but text=False is declared")


@check
def equal_seeds_give_equal_bytes(agent: Agent) -> None:
    """Prompt, seed and input decide everything; an agent that cannot promise that declares seed=False."""
    if not agent.capabilities.seed:
        return
    runs = []
    for _ in range(2):
        with open_session(agent, "You are brief.", 11) as session:
            runs.append(converse(agent, session, user_audio()))
    _require(_same(*runs), f"{agent.name}: equal seeds give unlike output; seed every source, or declare seed=False")


@check
def any_prompt_is_taken(agent: Agent) -> None:
    """An empty prompt, a long one, quotes and other scripts are all prompts."""
    for prompt in ("", "Be brief. " * 200, 'Say "hello" {name} <b>\n\nÜber 東京 🙂'):
        with open_session(agent, prompt, 0) as session:
            converse(agent, session, user_audio()[: RATE // 4])


def _same(one: Heard, other: Heard) -> bool:
    return one.text == other.text and one.audio.tobytes() == other.audio.tobytes()
