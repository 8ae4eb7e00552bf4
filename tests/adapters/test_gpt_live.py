"""GPT-Live over the official SDK against a local server: these prove the wire exchange only, nothing about the service."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from adapters.gpt_live import GptLive
from adapters.gpt_realtime import GptRealtime
from dsbeval.agent import Interaction
from dsbeval.audio import RATE
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.errors import AgentError, SessionLostError
from tests.adapters.live_server import Line, LiveServer
from tests.adapters.realtime_server import Answer, Plan, RealtimeServer
from tests.adapters.realtime_talk import at_once, said, speech_in, talk

HELLO = Line(0.3, said("reply", 0.5), "Hello there. ")
MORE = Line(1.2, said("reply", 0.4), "Still here.")


def test_the_wire_exchange_from_start_to_farewell() -> None:
    with LiveServer([HELLO, MORE]) as server:
        agent = GptLive(base_url=server.base_url, price={"minute": 0.06})
        talked = talk(agent, [(0.0, said("ack"))], lambda facts: facts["audio_s"] > 0.89)
    assert talked.error is None
    assert server.paths == ["/v1/live/sessions"]
    start, *rest = server.asked
    assert start["session"] == {
        "model": "gpt-live-1",
        "audio": {"format": {"type": "audio/pcm", "rate": 24000}, "output": {"voice": "marin"}},
        "instructions": "Be brief.",
    }
    assert [event["type"] for event in rest] == ["session.close"]
    assert {audio.size for audio in server.heard} == {480}
    assert np.array_equal(np.concatenate(server.heard)[: said("ack").size], said("ack"))
    for (begin, end), line, sent in zip(talked.spoken, (HELLO, MORE), server.sent, strict=True):
        assert end - begin == pytest.approx(line.audio.size / RATE, abs=1e-3)
        assert begin == pytest.approx(sent - talked.start, abs=0.2)
    assert talked.text == "Hello there. Still here."
    # The service states sums; what it states last, in its farewell, is what counts.
    used = agent.usage().counts
    assert used["billed_s"] == 30.0
    assert used["cost_usd"] == pytest.approx(0.03)
    assert agent.capabilities.interaction is Interaction.FRAME_SYNCHRONOUS


@pytest.mark.parametrize(
    ("server", "kind", "message"),
    [
        (LiveServer([HELLO], ends="expired"), SessionLostError, "closed the session: expired"),
        (LiveServer([HELLO], ends="content"), AgentError, "closed the session: content"),
        (LiveServer(refuse="No such voice."), AgentError, "No such voice. (invalid_voice)"),
        (LiveServer(altered={"model": "gpt-live-2"}), AgentError, "session.model was asked for as 'gpt-live-1'"),
    ],
)
def test_faults_on_the_wire(server: LiveServer, kind: type[AgentError], message: str) -> None:
    with server:
        talked = talk(GptLive(base_url=server.base_url), [(0.0, said("ack"))], lambda facts: False)
    assert type(talked.error) is kind
    assert message in str(talked.error)


def test_without_a_prompt_the_services_own_instructions_are_kept_in_the_recording() -> None:
    with LiveServer() as server:
        with GptLive(base_url=server.base_url).open("", 0) as session:
            assert session.facts()["confirmed"]["instructions"] == "Be yourself."
        assert "instructions" not in server.asked[0]["session"]


def test_two_services_talk_to_each_other_in_real_time() -> None:
    """GPT-Live opens and is heard by the realtime side's VAD, which answers it, raw and with client playback."""
    opening = Line(0.2, said("monologue", 1.0), "Good morning, this is the front desk.")

    def converse(playback: str) -> None:
        answers = Plan([Answer(said("reply", 0.5), "Good morning.", chunk_s=0.5)])
        with LiveServer([opening]) as desk, RealtimeServer(answers) as caller:
            live = GptLive(base_url=desk.base_url)
            realtime = GptRealtime(base_url=caller.base_url, silence_ms=300, playback=playback)
            dyad = run_dyad(live, realtime, ("You are the desk.", "You call."), (1, 2), window_s=3.5, lead_in_s=0.1)
            assert caller.calls[0].session["instructions"] == "You call."
        assert "".join(token.text for token in dyad.text_b) == "Good morning."
        assert "".join(token.text for token in dyad.text_a) == opening.text
        sides = dyad.meta["sides"]
        assert sides["a"]["session"]["playback"] == "raw"
        assert sides["b"]["session"]["playback"] == playback
        assert [response["status"] for response in sides["b"]["session"]["responses"]] == ["completed"]
        spoken = {side: speech_in(dyad.audio(side), 0.2) for side in ("a", "b")}
        assert spoken["b"][0][0] > spoken["a"][0][1]  # it answers when the other has ended

    at_once({playback: functools.partial(converse, playback) for playback in ("raw", "client")})
