"""A barge-in on the wall clock: the published timing, and what the two kinds of playback do with what was not heard."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from adapters.gpt_realtime import GptRealtime
from dsbeval.agent import Interaction
from dsbeval.audio import RATE, Signal
from dsbeval.clock import WallClock
from dsbeval.ifeval.episode import _play
from dsbeval.ifeval.line import Line
from dsbeval.ifeval.protocol import PROTOCOLS
from dsbeval.spans import to_samples
from dsbeval.speech.assemble import UserTurn
from tests.adapters.realtime_server import Answer, Call, Plan, RealtimeServer
from tests.adapters.realtime_talk import at_once, said, speech_in

MONOLOGUE = said("monologue", 5.0)
WORDS = "Well let me tell you all about it from the very first day to the very last one of them"
SECOND = said("reply", 0.8)


@dataclass
class BargedIn:
    model: Signal
    marks: dict[str, int]
    text: str
    facts: dict[str, Any]
    call: Call
    start: float

    def sent(self, kind: str) -> list[float]:
        """When the server sent events of a type, in seconds of the session."""
        return [at - self.start for at, name in self.call.sent if name == kind]


def barge_in(playback: str) -> BargedIn:
    """Play two short turns as an episode does, by the protocol of server VAD, on the wall clock."""
    protocol = PROTOCOLS[Interaction.SERVER_VAD]
    turns = (UserTurn(said("ack"), ()), UserTurn(said("reply", 0.6), ()))
    answers = [Answer(MONOLOGUE, WORDS, chunk_s=5.0), Answer(SECOND, "Yes.", chunk_s=0.8)]
    with RealtimeServer(Plan(answers)) as server:
        agent, clock = GptRealtime(base_url=server.base_url, playback=playback), WallClock()
        with agent.open("You talk a lot.", 0) as session:
            line = Line(session, agent.capabilities, agent.name, clock)
            played = _play(line, turns, tuple(turn.audio for turn in turns), 3.0, protocol, Interaction.SERVER_VAD)
            _, model = line.record(played.end)
            facts = dict(session.facts())
    marks = {event["event"]: event["sample"] for event in reversed(line.events)}  # the first of each kind
    assert clock._start is not None
    text = "".join(token.text for token in line.side.text)
    assert not server.calls[0].refused
    return BargedIn(model, marks, text, facts, server.calls[0], clock._start)


@pytest.fixture(scope="module")
def both() -> dict[str, BargedIn]:
    return at_once({playback: functools.partial(barge_in, playback) for playback in ("raw", "client")})


@pytest.mark.parametrize("playback", ["raw", "client"])
def test_the_user_comes_in_three_seconds_after_the_onset_of_the_reply(both: dict[str, BargedIn], playback: str) -> None:
    one = both[playback]
    assert one.marks["turn2_onset"] - one.marks["agent_onset"] == 3 * RATE
    assert one.marks["agent_onset"] / RATE == pytest.approx(speech_in(one.model)[0][0], abs=0.15)
    # On the wall, as the server saw it: from its first audio to the first frame of the second turn.
    frame = to_samples(0.02, RATE)
    loud = [at for at, audio in zip(one.call.appended, one.call.heard, strict=True) if np.abs(audio).max() > 1e-3]
    came_in = min(at for at in loud if at - one.start > one.marks["turn2_onset"] / RATE) - one.start
    answered = one.sent("response.output_audio.delta")[0]
    assert came_in - answered == pytest.approx(3.0 + frame / RATE, abs=0.3)


def test_raw_playback_cuts_nothing(both: dict[str, BargedIn]) -> None:
    raw = both["raw"]
    ((start, end),) = speech_in(raw.model)
    begin = round(start * RATE)
    assert np.array_equal(raw.model[begin : begin + MONOLOGUE.size], MONOLOGUE)
    # The second answer waits until the first has been played.
    assert np.array_equal(raw.model[begin + MONOLOGUE.size : round(end * RATE)], SECOND)
    assert raw.text.startswith(WORDS)
    assert [event["type"] for event in raw.call.asked] == ["session.update"]
    assert "truncated" not in raw.facts


def test_client_playback_drops_what_was_not_heard_and_tells_the_service(both: dict[str, BargedIn]) -> None:
    client, raw = both["client"], both["raw"]
    first, second = speech_in(client.model)
    heard = client.model[round(first[0] * RATE) : round(first[1] * RATE)]
    # Up to the cut it is what raw playback has; the cut is where the service said that the user speaks.
    assert np.array_equal(heard, MONOLOGUE[: heard.size])
    started = client.sent("input_audio_buffer.speech_started")[1]
    assert first[1] == pytest.approx(started, abs=0.2)
    assert heard.size < MONOLOGUE.size
    # The second answer comes when it comes.
    assert np.array_equal(client.model[round(second[0] * RATE) : round(second[1] * RATE)], SECOND)
    assert second[0] == pytest.approx(client.sent("response.output_audio.delta")[-1], abs=0.2)
    # The service was told what was heard, once, and took it.
    truncations = [event for event in client.call.asked if event["type"] == "conversation.item.truncate"]
    assert [event["audio_end_ms"] for event in truncations] == [heard.size * 1000 // RATE]
    assert len(client.sent("conversation.item.truncated")) == 1
    (cut,) = client.facts["truncated"]
    assert cut["audio_end_ms"] + cut["unheard_ms"] == pytest.approx(1000 * MONOLOGUE.size / RATE, abs=2)
    # What was not heard was not said.
    said_first = client.text.removesuffix("Yes.")
    assert WORDS.startswith(said_first.strip())
    assert len(said_first) / len(WORDS) == pytest.approx(heard.size / MONOLOGUE.size, abs=0.08)
    assert len(client.text) < len(raw.text)
