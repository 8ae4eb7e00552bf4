"""Every fault of a realtime service has a stated outcome. All of them are had at once, each against a server of its own."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from adapters.gpt_realtime import GptRealtime
from dsbeval.audio import RATE
from dsbeval.errors import AgentError, SessionLostError
from tests.adapters.realtime_answers import close, complain, cut, limited, send_delta, send_text, stall
from tests.adapters.realtime_server import Answer, Plan, RealtimeServer
from tests.adapters.realtime_talk import LONGEST_S, Talked, Until, answered, at_once, said, talk

REPLY_S = 1.0
KEY = "sk-secret-of-the-user"


def answer(**more: Any) -> Answer:
    return Answer(**{"audio": said("reply", REPLY_S), "text": "I see what you mean.", "chunk_s": REPLY_S, **more})


@dataclass(frozen=True)
class Fault:
    """A fault and the conversation that meets it."""

    plan: Plan
    until: Until = field(default_factory=answered)
    arguments: dict[str, Any] = field(default_factory=dict)
    key: str | None = None


def midway(act: Any, **more: Any) -> Plan:
    return Plan([answer(midway=act, midway_s=0.5, speed=2.0, chunk_s=0.1, **more)])


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def alter(session: dict[str, Any]) -> None:
        *groups, name = path.split(".")
        for group in groups:
            session = session[group]
        session[name] = value

    return alter


RATE_LIMIT = {"type": "invalid_request_error", "code": "rate_limit_exceeded", "message": "Rate limit reached."}

FAULTS: dict[str, Fault] = {
    "none": Fault(Plan([answer()])),
    "cut": Fault(midway(cut)),
    "close_1001": Fault(midway(close(1001, "going away"))),
    "close_1000": Fault(midway(close(1000))),
    "close_1011": Fault(midway(close(1011, "internal error"))),
    "close_1008": Fault(midway(close(1008, "policy violation"))),
    "close_4000": Fault(midway(close(4000, "beta_api_shape_disabled"))),
    "error_event": Fault(Plan([answer()], first=complain("The server does not like it.", code="odd", param="x.y"))),
    "rate_limit_event": Fault(Plan([answer()], first=complain("Too many tokens.", code="rate_limit_exceeded"))),
    "failed_response": Fault(Plan([answer(status="failed", error=RATE_LIMIT)])),
    "failed_with_a_wait": Fault(
        Plan([answer(status="failed", error={**RATE_LIMIT, "message": "Please try again in 1.5s."})])
    ),
    "failed_at_a_limit": Fault(Plan([answer(status="failed", error=RATE_LIMIT)], first=limited(31.5))),
    "broken_response": Fault(Plan([answer(status="failed", error={"code": "insufficient_quota", "message": "Pay."})])),
    "not_updated": Fault(Plan(update="ignore"), arguments={"timeout": 0.7}),
    "other_vad": Fault(Plan(alter=change("audio.input.turn_detection.silence_duration_ms", 500))),
    "other_voice": Fault(Plan(alter=change("audio.output.voice", "marin"))),
    "other_voice_accepted": Fault(
        Plan([answer()], alter=change("audio.output.voice", "marin")), arguments={"unverified": "audio.output.voice"}
    ),
    "faster_than_real_time": Fault(Plan([answer(speed=20.0, chunk_s=0.5)])),
    "stall": Fault(Plan([answer(midway=stall(2.0), midway_s=0.5, chunk_s=0.5)])),
    "silence": Fault(Plan([]), until=lambda facts: "end_ms" in str(facts["user_speech"])),
    "transcript_only": Fault(Plan([answer(audio=None)])),
    "audio_only": Fault(Plan([answer(text=None)])),
    "late_delta": Fault(Plan([answer(late_s=0.3)])),
    "garbage": Fault(midway(send_delta("@@not base64@@"))),
    "half_a_sample": Fault(Plan([answer(midway=send_delta("AAAA"), midway_s=0.0)])),
    "not_json": Fault(midway(send_text("<html>502</html>"))),
    "refused_429": Fault(Plan(refuse=(429, "Slow down.", {"Retry-After": "7"}))),
    "refused_503": Fault(Plan(refuse=(503, "", {}))),
    "refused_404": Fault(Plan(refuse=(404, "No such model.", {}))),
    "refused_401": Fault(Plan(), arguments={"key_env": "TEST_REALTIME_KEY"}, key="sk-other"),
    "no_room": Fault(Plan(hangs_up=(1008, {"message": "All slots are in use.", "code": "session_limit_reached"}))),
    "beta_spelling": Fault(Plan([answer()], spelling="beta")),
    "both_spellings": Fault(Plan([answer()], spelling="both")),
}


def meet(fault: Fault) -> Talked:
    with RealtimeServer(fault.plan, key=fault.key) as server:
        agent = GptRealtime(base_url=server.base_url, silence_ms=200, **fault.arguments)
        talked = talk(agent, [(0.0, said("ack"))], fault.until)
        talked.facts["used"] = agent.usage().counts
        assert not [call.refused for call in server.calls if call.refused]
        return talked


def meet_nobody() -> Talked:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return talk(GptRealtime(base_url=f"http://127.0.0.1:{port}/v1"), [(0.0, said("ack"))])


def meet_a_web_page() -> Talked:
    """A peer that takes connections and is no websocket server."""
    import http.server
    import threading

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"hi")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            return talk(GptRealtime(base_url=f"http://127.0.0.1:{page.server_address[1]}/v1"), [(0.0, said("ack"))])
        finally:
            page.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def met() -> Iterator[dict[str, Talked]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_REALTIME_KEY", KEY)
        work = {name: functools.partial(meet, fault) for name, fault in FAULTS.items()}
        yield at_once({**work, "nobody": meet_nobody, "web_page": meet_a_web_page})


LOST = {
    "cut": "closed, code 1006",
    "close_1001": "closed, code 1001: going away",
    "close_1000": "closed, code 1000",
    "close_1011": "closed, code 1011: internal error",
    "rate_limit_event": "Too many tokens. (rate_limit_exceeded)",
    "failed_response": "Rate limit reached. (rate_limit_exceeded)",
    "failed_with_a_wait": "Please try again in 1.5s. (rate_limit_exceeded)",
    "failed_at_a_limit": "Rate limit reached. (rate_limit_exceeded)",
    "refused_429": "HTTP 429: Slow down.",
    "no_room": "All slots are in use. (session_limit_reached)",
    "refused_503": "HTTP 503",
}
ENDED = {
    "close_1008": "closed, code 1008: policy violation",
    "close_4000": "closed, code 4000: beta_api_shape_disabled",
    "error_event": "The server does not like it. (odd, x.y)",
    "broken_response": "Pay. (insufficient_quota)",
    "not_updated": "no session.updated within 0.7 s",
    "other_vad": "session.audio.input.turn_detection.silence_duration_ms was asked for as 200, but the service has 500",
    "other_voice": "session.audio.output.voice was asked for as 'alloy', but the service has 'marin'",
    "transcript_only": "has a transcript but no audio",
    "garbage": "is not base64",
    "half_a_sample": "in the middle of a sample",
    "not_json": "not JSON",
    "refused_404": "HTTP 404: No such model.; check --model-arg model and base_url",
    "refused_401": "check the key in TEST_REALTIME_KEY",
    "nobody": "cannot be reached",
    "web_page": "is not a websocket of this protocol",
}


@pytest.mark.parametrize("name", LOST)
def test_a_session_that_was_lost_may_be_had_again(met: dict[str, Talked], name: str) -> None:
    error = met[name].error
    assert isinstance(error, SessionLostError), error
    assert LOST[name] in str(error)
    assert "\n" not in str(error)
    assert met[name].facts["used"]["lost"] == 1


@pytest.mark.parametrize("name", ENDED)
def test_a_fault_that_will_not_pass_ends_the_case_in_the_services_words(met: dict[str, Talked], name: str) -> None:
    error = met[name].error
    assert isinstance(error, AgentError), error
    assert not isinstance(error, SessionLostError)
    assert ENDED[name] in str(error)
    assert "\n" not in str(error)


def test_every_fault_is_told_at_once(met: dict[str, Talked]) -> None:
    """Long before the conversation would have been given up."""
    assert not {name: met[name].took_s for name in (*LOST, *ENDED) if met[name].took_s > LONGEST_S / 2}


def test_a_service_says_how_long_it_is_to_be_left_alone(met: dict[str, Talked]) -> None:
    waits = {"refused_429": 7.0, "refused_503": None, "failed_with_a_wait": 1.5, "failed_at_a_limit": 31.5, "cut": None}
    found = {name: error.wait_s for name in waits if isinstance(error := met[name].error, SessionLostError)}
    assert found == waits


def test_no_error_holds_the_key(met: dict[str, Talked]) -> None:
    assert not [name for name, talked in met.items() if KEY in str(talked.error)]


@pytest.mark.parametrize(
    "name", ["none", "beta_spelling", "both_spellings", "faster_than_real_time", "other_voice_accepted"]
)
def test_a_reply_is_heard_once_in_real_time(met: dict[str, Talked], name: str) -> None:
    talked = met[name]
    assert talked.error is None
    ((start, end),) = talked.spoken
    assert end - start == pytest.approx(REPLY_S, abs=1e-3)
    assert np.array_equal(talked.model[round(start * RATE) :][: int(REPLY_S * RATE)], said("reply", REPLY_S))
    assert talked.text == "I see what you mean."
    assert talked.facts["spelling"] == ("beta" if name == "beta_spelling" else "ga")
    # Text is heard where its audio is.
    times = [at for at, _ in talked.tokens]
    assert times == sorted(times)
    assert start <= times[0]
    assert times[-1] <= end


def test_a_stall_leaves_a_hole(met: dict[str, Talked]) -> None:
    talked = met["stall"]
    assert talked.error is None
    sounding = talked.model != 0
    holes = np.diff(np.flatnonzero(sounding))
    # Half a second was there when the service stalled for two; on a busy machine it stalls longer.
    assert 1.4 < holes.max() / RATE < 3.0
    assert sounding.sum() == int(REPLY_S * RATE)


def test_a_service_that_never_speaks_is_recorded_as_silent(met: dict[str, Talked]) -> None:
    talked = met["silence"]
    assert talked.error is None
    assert not talked.model.any()
    assert talked.facts["responses"] == []
    assert len(talked.facts["user_speech"]) == 1


def test_audio_without_a_transcript_is_kept_and_marked(met: dict[str, Talked]) -> None:
    talked = met["audio_only"]
    assert talked.error is None
    assert talked.text == ""
    assert talked.spoken
    assert talked.facts["audio_without_transcript"] == 1
    assert "audio_without_transcript" not in met["none"].facts


def test_a_late_delta_still_plays(met: dict[str, Talked]) -> None:
    talked = met["late_delta"]
    assert talked.error is None
    assert (talked.model != 0).sum() == int(REPLY_S * RATE)
    assert talked.facts["deltas_after_done"] == 1
