"""The turn-taking wrapper: a turn-based agent answers after each user turn that has ended."""

from __future__ import annotations

import numpy as np
import pytest

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.errors import OptionError
from dsbeval.ifeval.line import Line
from dsbeval.loading import load_agent
from dsbeval.recording import Channel
from dsbeval.speech.bank import load_bank
from dsbeval.turns import Endpointed


class Listener(Agent):
    """A turn-based agent that answers with one second of sound and says how much it was fed."""

    name = "listener"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(Interaction.TURN_BASED, input_rate=16_000, frame=320)

    def open(self, prompt: str, seed: int) -> Session:
        return _Listening()


class _Listening(Session):
    def __init__(self) -> None:
        self.fed = 0

    def step(self, heard: Signal) -> Emission:
        self.fed += heard.size
        return Emission()

    def finish(self) -> Emission:
        return Emission(np.full(2 * RATE, 0.5, np.float32), (TextToken(f"{self.fed / 16000:.2f} "),))


def talk(agent: Agent, gap_s: float) -> tuple[list[tuple[float, float]], list[float], list[float]]:
    """Say the same sentence twice, ``gap_s`` apart; return the agent's sounds, its texts, and where the user stopped."""
    speech = load_bank()["reply"].audio
    with agent.open("", 0) as session:
        line = Line(session, agent.capabilities, agent.name)
        first = line.say(1, speech, RATE // 2)
        second = line.say(2, speech, first.end + int(gap_s * RATE))
        line.run_until(second.end + 4 * RATE)
        _, model = line.record(line.now)
    loud = np.abs(model) > 0.25
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(np.int8), [0]])))
    sounds = [(a / RATE, b / RATE) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return sounds, [float(t.text) for t in line.side.text], [first.end / RATE, second.end / RATE]


def test_it_answers_after_each_turn_that_has_ended() -> None:
    sounds, fed, ends = talk(Endpointed(Listener()), gap_s=4.0)
    assert len(sounds) == len(fed) == 2
    for (onset, _), end in zip(sounds, ends, strict=True):
        assert 0.8 <= onset - end <= 1.2  # the silence, and the detector's hang-over
    # Each answer was given all that the user had said so far.
    assert fed == pytest.approx([sounds[0][0], sounds[1][0]], abs=0.05)


def test_a_pause_shorter_than_the_endpoint_is_not_the_end_of_a_turn() -> None:
    sounds, _, ends = talk(Endpointed(Listener()), gap_s=0.6)
    assert len(sounds) == 1
    assert sounds[0][0] > ends[1]
    assert len(talk(Endpointed(Listener(), endpoint_ms=300), gap_s=0.6)[0]) == 2


def test_what_is_not_played_yet_is_kept_or_dropped_when_the_user_comes_in() -> None:
    kept, _, _ = talk(Endpointed(Listener()), gap_s=1.6)
    dropped, _, _ = talk(Endpointed(Listener(), barge_in="stop"), gap_s=1.6)
    assert kept[0][1] - kept[0][0] == pytest.approx(2.0, abs=0.01)
    assert dropped[0][1] - dropped[0][0] < 1.2
    assert len(dropped) == 2


def test_it_is_chosen_by_a_model_argument() -> None:
    agent = load_agent("turn_based", {"turns": "endpointed", "endpoint_ms": 500})
    assert agent.capabilities.interaction is Interaction.SERVER_VAD
    assert agent.name == "turn_based"
    assert load_agent("turn_based", {"turns": "full"}).capabilities.interaction is Interaction.TURN_BASED


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("silent", {"turns": "endpointed"}, "silent is frame_synchronous"),
        ("turn_based", {"turns": "often"}, "not one of full, endpointed"),
        ("turn_based", {"turns": "endpointed", "endpoint_ms": -1}, "positive number"),
        ("turn_based", {"turns": "endpointed", "barge_in": "x"}, "not one of keep, stop"),
    ],
)
def test_a_wrong_argument_is_one_line(name: str, args: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_agent(name, args)


def test_a_channel_keeps_what_was_played_when_it_is_flushed() -> None:
    channel = Channel(RATE)
    channel.place(np.ones(1000, np.float32), 0)
    channel.flush(400)
    assert channel.place(np.full(10, 0.5, np.float32), 100) == 400
    assert channel.render(500).tolist() == [1.0] * 400 + [0.5] * 10 + [0.0] * 90
