"""GPT-Live over the official SDK against a local server: these prove the wire exchange only, nothing about the service."""

from __future__ import annotations

import functools
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection

from adapters.controls import Silent
from adapters.gpt_live import SILENT_TEXT_S, GptLive
from adapters.gpt_realtime import GptRealtime
from dsbeval.agent import Interaction
from dsbeval.audio import RATE
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.dyadic.participant import SideError
from dsbeval.errors import AgentError, DsbevalError, SessionLostError
from tests.adapters.live_server import Line, LiveServer
from tests.adapters.realtime_server import Answer, Plan, RealtimeServer
from tests.adapters.realtime_talk import Talked, Until, at_once, said, speech_in, talk

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


async def cut(socket: ServerConnection) -> None:
    socket.transport.abort()


def closes(code: int) -> Callable[[ServerConnection], Awaitable[None]]:
    async def act(socket: ServerConnection) -> None:
        await socket.close(code, "a reason")

    return act


def sends(data: str) -> Callable[[ServerConnection], Awaitable[None]]:
    async def act(socket: ServerConnection) -> None:
        await socket.send(data)

    return act


def delta(audio: str) -> str:
    return json.dumps({"type": "session.output_audio.delta", "delta": audio})


COMPLAINT = json.dumps({"type": "error", "error": {"type": "server_error", "message": "Try again."}})


def never(facts: dict[str, Any]) -> bool:
    return False


def both_said(facts: dict[str, Any]) -> bool:
    return bool(facts["audio_s"] > 0.89)


def after(seconds: float) -> Until:
    begun: list[float] = []

    def until(facts: dict[str, Any]) -> bool:
        begun.append(time.monotonic())
        return begun[-1] - begun[0] > seconds

    return until


WRITTEN = Line(0.1, HELLO.audio[:0], "Only words.")

FAULTS: dict[str, tuple[LiveServer, Until]] = {
    "expired": (LiveServer([HELLO], ends="expired"), never),
    "content": (LiveServer([HELLO], ends="content"), never),
    "no_such_voice": (LiveServer(refuse="No such voice."), never),
    "other_model": (LiveServer(altered={"model": "gpt-live-2"}), never),
    "not_started": (LiveServer(starts=False), never),
    "refused_429": (LiveServer(status=(429, {"Retry-After": "7"})), never),
    "cut": (LiveServer([HELLO], act=cut), never),
    "close_1011": (LiveServer([HELLO], act=closes(1011)), never),
    "close_1008": (LiveServer([HELLO], act=closes(1008)), never),
    "error_event": (LiveServer([HELLO], act=sends(COMPLAINT)), never),
    "garbage": (LiveServer([HELLO], act=sends(delta("@@"))), never),
    "not_json": (LiveServer([HELLO], act=sends("<html>")), never),
    "words_alone": (LiveServer([WRITTEN]), after(SILENT_TEXT_S + 1.0)),
    "faster_than_real_time": (LiveServer([HELLO, Line(0.3, MORE.audio, MORE.text)]), both_said),
    "stall": (LiveServer([HELLO, Line(0.8 + 2.0, MORE.audio, MORE.text)]), both_said),
    "audio_alone": (LiveServer([Line(0.3, HELLO.audio, ""), Line(0.9, MORE.audio, "")]), both_said),
    "silence": (LiveServer(), after(1.0)),
}
LOST = {
    "expired": "closed the session: expired",
    "refused_429": "HTTP 429: Slow down.",
    "cut": "closed, code 1006",
    "close_1011": "closed, code 1011: a reason",
    "error_event": "Try again.",
}
ENDED = {
    "content": "closed the session: content",
    "no_such_voice": "No such voice. (invalid_voice)",
    "other_model": "session.model was asked for as 'gpt-live-1'",
    "not_started": "no session.started within 0.7 s",
    "close_1008": "closed, code 1008: a reason",
    "garbage": "is not base64",
    "not_json": "not JSON",
    "words_alone": "sent a transcript but no audio",
    "nobody": "cannot be reached",
}


@pytest.fixture(scope="module")
def met() -> dict[str, Talked]:
    """Every fault at once, each with a server of its own."""

    def meet(server: LiveServer, until: Until) -> Talked:
        with server:
            agent = GptLive(base_url=server.base_url, timeout=0.7 if not server.starts else 10.0)
            return talk(agent, [(0.0, said("ack"))], until)

    def meet_nobody() -> Talked:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        return talk(GptLive(base_url=f"http://127.0.0.1:{port}/v1"), [(0.0, said("ack"))], never)

    work: dict[str, Callable[[], Talked]] = {
        name: functools.partial(meet, server, until) for name, (server, until) in FAULTS.items()
    }
    return at_once({**work, "nobody": meet_nobody})


@pytest.mark.parametrize("name", [*LOST, *ENDED])
def test_a_fault_on_the_wire_is_an_error_in_one_line_or_a_session_that_was_lost(
    met: dict[str, Talked], name: str
) -> None:
    error = met[name].error
    assert isinstance(error, AgentError), error
    assert isinstance(error, SessionLostError) == (name in LOST)
    assert (LOST | ENDED)[name] in str(error)
    assert "\n" not in str(error)


def test_a_service_says_how_long_it_is_to_be_left_alone(met: dict[str, Talked]) -> None:
    error = met["refused_429"].error
    assert isinstance(error, SessionLostError)
    assert error.wait_s == 7.0


def test_audio_plays_in_real_time_with_a_hole_where_the_service_stalled(met: dict[str, Talked]) -> None:
    for name, hole_s in (("faster_than_real_time", 0.0), ("stall", 2.0)):
        talked = met[name]
        assert talked.error is None
        assert (talked.model != 0).sum() == HELLO.audio.size + MORE.audio.size
        holes = np.diff(np.flatnonzero(talked.model))
        assert holes.max() / RATE == pytest.approx(hole_s, abs=0.4)
        assert talked.text == "Hello there. Still here."


def test_silence_is_recorded_and_audio_without_a_transcript_is_kept(met: dict[str, Talked]) -> None:
    silent, alone = met["silence"], met["audio_alone"]
    assert (silent.error, alone.error) == (None, None)
    assert not silent.model.any()
    assert alone.text == ""
    assert (alone.model != 0).sum() == HELLO.audio.size + MORE.audio.size


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


def test_a_side_that_only_writes_is_an_error_of_the_conversation_and_not_silence() -> None:
    with LiveServer([WRITTEN]) as desk, pytest.raises(SideError, match=r"^side a: .* a transcript but no audio"):
        run_dyad(GptLive(base_url=desk.base_url), Silent(), ("", ""), (1, 2), window_s=SILENT_TEXT_S + 0.8)


def test_the_conformance_suite_is_passed() -> None:
    with LiveServer([HELLO, MORE]) as server:
        agent = GptLive(base_url=server.base_url)

        def fault_of(name: str) -> str | None:
            try:
                CHECKS[name](agent)
            except DsbevalError as error:
                return str(error)
            return None

        assert at_once({name: functools.partial(fault_of, name) for name in CHECKS}) == dict.fromkeys(CHECKS)
