"""The bridge: two live agents on one clock, each hearing what the other has just said, and nobody in between.

Conventions
-----------
* Ticks of 80 ms, 1,920 samples at 24 kHz. In tick t each side hears what the other emitted in tick t-1; a burst plays out
  in real time (:class:`dsbeval.recording.Channel`).
* Sessions are opened one after the other, side a first, before the clock starts.
* *Lead-in*: what the side that does not open would begin to say in the first ``lead_in_s`` is dropped with its text; it
  is stepped and hears all the while.
* The conversation ends with the window, or in the tick in which the last thing that a finished agent said has been
  heard. Then ``cut_off()`` is called and not ``finish()``: nobody could hear an answer, but words of what was heard may be
  known only now.
* The two steps of a tick are independent and run at the same time, each in a thread of its own. Where they run changes no
  byte. One object on both sides is stepped in turn: the contract does not say that an agent may be used from two threads.
* Chunked agents: frames gather until a chunk is whole, the chunk is worked on while the ticks go on, and the bridge waits
  where more than two chunks are under way. On the logical clock it also waits in the tick in which the answer may be
  heard, so that how long a chunk took leaves no trace.
* *Logical clock*: as fast as the machine, no jitter. *Wall clock*: as soon as one side needs it, the whole bridge is
  paced in real time, and the recording says so. What arrives late is then heard in the next tick.

Source: DyaFDB (arXiv 2610.08125), protocol. What follows a flush, a burst and other frame lengths is the contract of
:mod:`dsbeval.agent`; see also :mod:`dsbeval.dyadic.participant`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dsbeval.agent import Agent, Interaction
from dsbeval.audio import RATE
from dsbeval.clock import Clock, LogicalClock, WallClock, make_clock
from dsbeval.dyadic.ear import TICK
from dsbeval.dyadic.participant import DyadBrief, Participant, SideError, check_agent, event
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES, Side
from dsbeval.dyadic.schema import other
from dsbeval.errors import OptionError
from dsbeval.recording import TimedText
from dsbeval.spans import to_samples

WINDOW_S = 60.0
WINDOWS_S = (30.0, 60.0, 120.0)
"""The published windows."""
LEAD_IN_S = 1.5


def run_dyad(
    agent_a: Agent,
    agent_b: Agent,
    prompts: tuple[str, str],
    seeds: tuple[int, int],
    *,
    opener: Side = "a",
    window_s: float = WINDOW_S,
    lead_in_s: float = LEAD_IN_S,
    concurrent: bool = True,
    latency: str = "none",
    wall: WallClock | None = None,
    brief: DyadBrief | None = None,
    meta: Mapping[str, Any] | None = None,
) -> DyadRecording:
    """Let two agents talk to each other and return the recording.

    Parameters
    ----------
    agent_a, agent_b : Agent
        Whom the sides a and b are played by. They may be of different kinds, rates and frame lengths.
    prompts, seeds : pair
        Of side a and side b.
    opener : "a" or "b"
        Whose prompt says that it begins; the other side's output is dropped during the lead-in.
    window_s, lead_in_s : float
    concurrent : bool
        Whether the two steps of a tick run at the same time.
    latency : "none" or "measured"
        Whether agents on the logical clock are charged the compute time that they took.
    wall : WallClock or None
        The clock of a bridge that a wall-clock agent takes part in; a test may put its own there.
    brief : DyadBrief or None
        What calibration agents are told.
    meta : mapping or None
        Kept in the recording.

    Raises
    ------
    SideError
        When one side cannot be opened, raises or breaks its contract.
    OptionError
        When an agent cannot take part, or the window is too short for a tick.
    """
    for agent in (agent_a, agent_b):
        check_agent(agent)
    ticks = -(-to_samples(window_s, RATE) // TICK)
    if ticks < 1 or lead_in_s < 0:
        raise OptionError(f"--window: {window_s:g} s with a lead-in of {lead_in_s:g} s; give a positive window")
    paced = any(agent.capabilities.clock == "wall" for agent in (agent_a, agent_b))
    pace: Clock = (wall or WallClock()) if paced else LogicalClock()
    threaded = concurrent and agent_a is not agent_b
    lead_in = to_samples(lead_in_s, RATE)
    agents: dict[Side, Agent] = {"a": agent_a, "b": agent_b}
    sides = {
        side: Participant(
            side,
            agent,
            pace if agent.capabilities.clock == "wall" else _logical(agent, latency),
            agents[other(side)].capabilities.output_rate,
            muted_until=0 if side == opener else lead_in,
            threaded=threaded,
        )
        for side, agent in agents.items()
    }
    with _opened(sides, dict(zip(SIDES, prompts, strict=True)), dict(zip(SIDES, seeds, strict=True)), brief):
        waits = _converse(sides, pace, ticks, paced=paced)
        length = _length(sides, ticks)
        for side in sides.values():
            side.cut_off(length)
        facts = {
            **(meta or {}),
            "opener": opener,
            "window_s": window_s,
            "lead_in_s": lead_in_s,
            "tick": TICK,
            "clock": "wall" if paced else "logical",
            "prompts": dict(zip(SIDES, prompts, strict=True)),
            "seeds": dict(zip(SIDES, seeds, strict=True)),
            "sides": {side: participant.facts() for side, participant in sides.items()},
            **_realtime(sides, pace, paced=paced),
        }
    events = [event("lead_in_end", lead_in)] if 0 < lead_in <= length else []
    events += [*waits, *(entry for side in sides.values() for entry in side.events), *_muted(sides)]
    return DyadRecording(
        a=sides["a"].voice.channel.render(length),
        b=sides["b"].voice.channel.render(length),
        text_a=_heard_text(sides["a"], length),
        text_b=_heard_text(sides["b"], length),
        events=tuple(sorted(events, key=lambda entry: int(entry["sample"]))),
        meta=facts,
    )


def _converse(sides: dict[Side, Participant], pace: Clock, ticks: int, *, paced: bool) -> list[dict[str, Any]]:
    """Let the ticks pass; return the events of waiting for a chunked agent in real time."""
    waits: list[dict[str, Any]] = []
    for tick in range(ticks):
        start, end = tick * TICK, (tick + 1) * TICK
        if any(side.ends is not None and side.ends <= start for side in sides.values()):
            break
        for side in sides.values():
            # In real time what is not there yet is late; on the logical clock it is waited for.
            side.settle(start, due_before=None if paced else end)
        heard = {name: sides[other(name)].played(start, end) for name in SIDES}
        pace.ready(end)
        for name, side in sides.items():
            side.hear(heard[name], end)
        for name, side in sides.items():
            waited = side.settle(end, at_most=side.behind)
            if paced and side.behind and waited:
                waits.append(event("backpressure", end, side=name, waited_s=round(waited, 3)))
    return waits


def _length(sides: dict[Side, Participant], ticks: int) -> int:
    ends = [-(-side.ends // TICK) for side in sides.values() if side.ends is not None]
    return max(1, min([ticks, *ends])) * TICK


@contextmanager
def _opened(
    sides: dict[Side, Participant], prompts: dict[Side, str], seeds: dict[Side, int], brief: DyadBrief | None
) -> Iterator[None]:
    try:
        for name, side in sides.items():
            side.open(prompts[name], seeds[name], brief)
        yield
    except BaseException:
        for side in sides.values():  # the first fault is the one to tell of
            with suppress(SideError):
                side.close()
        raise
    errors: list[SideError] = []
    for side in sides.values():
        try:
            side.close()
        except SideError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _logical(agent: Agent, latency: str) -> Clock:
    capabilities = agent.capabilities
    chunked = capabilities.interaction is Interaction.CHUNKED
    return make_clock("logical", latency, capabilities.clock_frame, chunked=chunked)


def _realtime(sides: dict[Side, Participant], pace: Clock, *, paced: bool) -> dict[str, Any]:
    reports: dict[str, Any] = {"bridge": pace.report()} if paced else {}
    reports |= {side: report for side, participant in sides.items() if (report := participant.realtime(pace))}
    return {"realtime": reports} if reports else {}


def _muted(sides: dict[Side, Participant]) -> Iterator[dict[str, Any]]:
    for name, side in sides.items():
        if side.muted:
            seconds = sum(size for _, size in side.muted) / side.voice.channel.rate
            yield event("muted", side.muted[0][0], side=name, emissions=len(side.muted), seconds=round(seconds, 3))


def _heard_text(side: Participant, length: int) -> tuple[TimedText, ...]:
    # A recogniser places words back in what it heard: those of dropped audio are dropped too.
    return tuple(token for token in side.voice.text if side.muted_until <= token.sample < length)
