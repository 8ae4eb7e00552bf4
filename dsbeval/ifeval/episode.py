"""An episode: one case played to one agent, and the recording it leaves.

The turn manager streams turn 1, then turn 2 as its probe delivers it: *take-turn* after a fixed gap or when the
agent's reply has ended, *barge-in* a stated time after the onset of the agent's speech. It listens to the agent only
to know when to go on; it never alters the user's stream.

Source: DSB-IFEval, "Running an episode"; timings in :mod:`dsbeval.ifeval.protocol`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsbeval.agent import Agent, Brief, Interaction, PrivilegedAgent, Session
from dsbeval.audio import RATE, Signal
from dsbeval.caveats import caveats
from dsbeval.clock import Clock, make_clock
from dsbeval.errors import AgentError
from dsbeval.ifeval.line import Line
from dsbeval.ifeval.pack import Case, Pack
from dsbeval.ifeval.protocol import PROTOCOLS, Protocol
from dsbeval.ifeval.windows import scored_window
from dsbeval.recording import Recording
from dsbeval.spans import Span, to_samples
from dsbeval.speech.acoustics import Acoustics, background, in_session
from dsbeval.speech.assemble import UserTurn, user_turns
from dsbeval.vad import OnlineDetector


def case_seed(seed: int, case: Case) -> int:
    """Return the seed of a case: the same at every level of a conversation, so that levels differ by the prompt alone."""
    trial = f"/t{case.trial}" if case.trial > 1 else ""
    return _seed(f"{seed}/{case.conversation_id}{trial}")


def room_seed(case: Case) -> int:
    """Return the seed of the room that a user is heard in: of the conversation alone, so that it is the same in every run."""
    return _seed(f"0/{case.conversation_id}")


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") & 0x7FFFFFFF


def agent_clock(agent: Agent, latency: str = "none") -> Clock:
    """Return the clock of a session with ``agent``: what it declares, and whether its compute time is charged."""
    capabilities = agent.capabilities
    chunked = capabilities.interaction is Interaction.CHUNKED
    return make_clock(capabilities.clock, latency, capabilities.clock_frame, chunked=chunked)


def record_case(
    agent: Agent, pack: Pack, case: Case, seed: int = 0, *, clock: Clock | None = None, acoustics: Acoustics = "clean"
) -> Recording:
    """Play ``case`` to ``agent`` and return the recording, with everything in it that scoring needs.

    Raises what the agent raises, and :class:`~dsbeval.errors.AgentError` when it breaks its contract.
    """
    turns = user_turns(pack, case.audio_key)
    probe = pack.probes[case.probe]
    rule = probe.at(case.level)
    prompt, own_seed = pack.prompt(case), case_seed(seed, case)
    room = room_seed(case)
    brief = Brief(
        action=case.scored_as.value,
        window=scored_window(rule, turns[1]),
        barge_in=probe.barge_in_after_s is not None,
        readback_target=pack.readback_target(case),
    )
    capabilities = agent.capabilities
    clock = clock or agent_clock(agent)
    protocol = PROTOCOLS[capabilities.interaction]
    if capabilities.clock == "wall":  # what the turn manager hears with is loaded now, not while a service waits
        OnlineDetector(capabilities.output_rate).push(np.zeros(capabilities.output_rate // 10, np.float32))
    with _open(agent, brief, prompt, own_seed) as session:
        under = background(np.concatenate([turn.audio for turn in turns]), acoustics, room)
        line = Line(session, capabilities, agent.name, clock, under)
        heard = tuple(in_session(turn.audio, acoustics, room) for turn in turns)
        played = _play(line, turns, heard, probe.barge_in_after_s, protocol, capabilities.interaction)
        facts = dict(session.facts())
    window = scored_window(rule, turns[1], played.turn2.start)
    user, model = line.record(max(played.end, window.start + 1))
    meta = {
        **case_facts(pack, case),
        "prompt_taken": capabilities.prompt,
        "agent": agent.name,
        "capabilities": capabilities.as_dict(),
        "protocol": protocol.as_dict(),
        "seed": own_seed,
        "acoustics": acoustics,
        "turn1_onset_s": round(played.turn1.start / RATE, 3),
        "turn2_onset_s": round(played.turn2.start / RATE, 3),
        **({"realtime": report} if (report := clock.report()) else {}),
        **({"session": facts} if facts else {}),
        "barge_in": probe.barge_in_after_s is not None,
        "barge_in_forced": played.forced,
        "window": window_facts(window),
        "user": placed_segments(turns[0], played.turn1.start, 1) + placed_segments(turns[1], played.turn2.start, 2),
    }
    if found := caveats(meta, user.size):
        meta["caveats"] = found
    return Recording(user, model, line.side.text, tuple(sorted(line.events, key=lambda e: int(e["sample"]))), meta)


def _open(agent: Agent, brief: Brief, prompt: str, seed: int) -> Session:
    if isinstance(agent, PrivilegedAgent):
        return agent.open_case(brief, prompt, seed)
    session = agent.open(prompt, seed)
    if not isinstance(session, Session):
        raise AgentError(
            f"agent {agent.name}: open returned a {type(session).__name__}; return a dsbeval.agent.Session"
        )
    return session


@dataclass(frozen=True, slots=True)
class _Played:
    turn1: Span
    turn2: Span
    end: int
    forced: bool


def _play(
    line: Line,
    turns: tuple[UserTurn, UserTurn],
    heard: tuple[Signal, ...],
    barge_in: float | None,
    protocol: Protocol,
    interaction: Interaction,
) -> _Played:
    turn1 = line.say(1, heard[0], 0, turns[0].audio.size)
    line.run_until(turn1.end)
    at, forced = _turn2_onset(line, turn1.end, barge_in, protocol)
    turn2 = line.say(2, heard[1], at, turns[1].audio.size)
    line.run_until(turn2.end)
    end = _wind_down(line, turn2.end, protocol)
    if interaction is Interaction.TURN_BASED:  # it answers now, and the answer plays out
        end = max(end, line.finish(turn2.end)) + to_samples(protocol.trailing_s, RATE)
    else:
        end = max(end, line.finish(end))
    return _Played(turn1, turn2, end, forced)


def _turn2_onset(line: Line, turn1_end: int, barge_in: float | None, protocol: Protocol) -> tuple[int, bool]:
    """Wait as the probe and the protocol say; return where turn 2 begins, and whether a barge-in found nothing to come in on."""
    if barge_in is not None:
        onset = line.wait_for_onset(turn1_end, to_samples(protocol.onset_timeout_s, RATE))
        if onset is None:
            line.event("barge_in_timeout", line.now, waited_s=protocol.onset_timeout_s)
            return line.now, True
        line.event("agent_onset", onset)
        return max(onset + to_samples(barge_in, RATE), line.now), False
    if protocol.between_s is not None:
        return turn1_end + to_samples(protocol.between_s, RATE), False
    _follow_reply(line, turn1_end, protocol.reply_wait_s, protocol)
    return line.now, False


def _wind_down(line: Line, turn2_end: int, protocol: Protocol) -> int:
    """Run the tail, and the reply to turn 2 where the protocol waits for one; return where the session ends."""
    tail_end = turn2_end + to_samples(protocol.tail_s, RATE)
    line.run_until(tail_end)
    if not protocol.final_wait_s:
        return tail_end
    _follow_reply(line, turn2_end, protocol.final_wait_s, protocol)
    end = line.now + to_samples(protocol.trailing_s, RATE)
    line.run_until(end)
    return end


def _follow_reply(line: Line, after: int, wait_s: float, protocol: Protocol) -> None:
    onset = line.wait_for_onset(after, to_samples(wait_s, RATE))
    if onset is not None:
        line.event("agent_onset", onset)
        line.wait_for_silence(to_samples(protocol.settle_s, RATE), onset + to_samples(protocol.reply_limit_s, RATE))


# What rec.json keeps of a case, whoever recorded it


def case_facts(pack: Pack, case: Case) -> dict[str, Any]:
    """Return what is known of a case before it is recorded."""
    return {
        "test_case_id": case.id,
        "conversation_id": case.conversation_id,
        "audio_key": case.audio_key,
        "role": case.role,
        "probe": case.probe,
        "instance": case.instance,
        "level": case.level,
        **({"trial": case.trial} if case.trial > 1 else {}),
        "expected_action": case.action.value,
        "scored_as": case.scored_as.value,
        "thresholds": dict(case.thresholds),
        "readback_target": pack.readback_target(case),
        "l4_expected": case.l4_expected,
        "resolved_action": pack.resolved_action(case),
        "prompt": pack.prompt(case),
    }


def window_facts(window: Span) -> dict[str, Any]:
    """Return a window in samples, and in seconds for people."""
    start_s, end_s = window.seconds(RATE)
    return {"start": window.start, "end": window.end, "start_s": start_s, "end_s": end_s}


def placed_segments(turn: UserTurn, onset: int, number: int) -> list[dict[str, Any]]:
    """Return the segments of a turn on the session clock, as rec.json keeps them."""
    return [
        {
            "turn": number,
            "type": segment.kind,
            "part": segment.part,
            "start": onset + segment.span.start,
            "end": onset + segment.span.end,
            "start_s": round((onset + segment.span.start) / RATE, 3),
            "end_s": round((onset + segment.span.end) / RATE, 3),
            "text": segment.text,
        }
        for segment in turn.segments
    ]
