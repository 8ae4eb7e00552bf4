"""``lychee_fd`` against a local HTTP and SSE service on a real socket: wire and call shape only, no model."""

from __future__ import annotations

import functools
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from adapters.lychee_fd import LycheeFD
from dsbeval.agent import Emission, Session
from dsbeval.audio import RATE, Signal, to_pcm16
from dsbeval.clock import LogicalClock, WallClock
from dsbeval.conformance import CHECKS
from dsbeval.errors import AgentError, OptionError, SessionLostError
from dsbeval.loading import load_agent
from dsbeval.recording import AgentSide
from dsbeval.speech.bank import load_bank
from tests.adapters import wire_talk
from tests.adapters.lychee_service import CHUNK, Line, Lychee, Plan, as_wav, noise, pcm, text
from tests.inner import run

pytest_plugins = ["pytester"]

QUIET: Signal = np.zeros(CHUNK, np.float32)


def agent_of(service: Lychee, **args: Any) -> LycheeFD:
    return LycheeFD(service.url, **{"connect_s": 2.0, "timeout_s": 2.0, "wait_s": 0.0, **args})


@contextmanager
def conversation(service: Lychee, **args: Any) -> Iterator[Session]:
    with service, agent_of(service, **args).open("You are a nurse.", 0) as session:
        yield session


heard_back = functools.partial(wire_talk.heard_back, quiet=QUIET, wait_s=0.08)


def sounding(emissions: Sequence[Emission]) -> Signal:
    return np.concatenate([np.zeros(0, np.float32), *(emission.audio for emission in emissions)])


def said(emissions: Sequence[Emission]) -> str:
    return "".join(token.text for emission in emissions for token in emission.text)


# The calls


@pytest.mark.parametrize("check", CHECKS)
def test_it_conforms_to_the_wire_at_no_pace(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsbeval.conformance.make_clock", lambda *args, **kwargs: LogicalClock())
    plan: Plan = {k: [text(f" {k}", seq=k), pcm(noise(0.4, seed=k))] for k in range(1, 9)}
    with Lychee([plan, plan, plan]) as service:
        CHECKS[check](load_agent("lychee_fd", {"url": service.url}))
    assert service.faults == []


def test_a_session_is_started_with_the_documented_settings_and_no_prompt() -> None:
    service = Lychee()
    with conversation(service, voice="user_voice", start_speak_factor=1.5):
        pass
    [settings] = service.started
    assert settings == {
        "start_speak_factor": 1.5, "start_listen_factor": 1.2, "end_speak_factor": 1.0, "prompt_voice": "user_voice",
        "tts_chunk_size": 10, "strict_infer_window": True, "infer_window_ms": 400, "incremental_backend": "auto",
    }  # fmt: skip
    assert service.stopped == [0]
    capabilities = LycheeFD().capabilities
    assert (capabilities.prompt, capabilities.seed, capabilities.clock) == (False, False, "wall")


def test_chunks_go_up_as_whole_wavs_in_real_time_with_the_events_open_before_the_first() -> None:
    voice = np.random.default_rng(1).uniform(-0.5, 0.5, 3 * CHUNK).astype(np.float32)
    service, clock = Lychee(), WallClock()
    with conversation(service) as session:
        for index in range(3):
            clock.ready((index + 1) * 9600)
            session.step(voice[index * CHUNK : (index + 1) * CHUNK])
    assert service.faults == []
    assert np.array_equal(np.concatenate(service.chunks[0]) * 32768, to_pcm16(voice))
    assert np.diff(service.came[0]) == pytest.approx([0.4, 0.4], abs=0.15)


def test_another_window_of_the_service_is_named() -> None:
    with (
        Lychee(window_ms=160) as service,
        pytest.raises(AgentError, match="takes chunks of 160 ms; add --model-arg chunk_ms=160"),
    ):
        agent_of(service).open("", 0)
    with Lychee(window_ms=None) as service:
        agent_of(service).open("", 0).close()
    for wrong in (100, "soon"):
        with pytest.raises(OptionError, match=r"--model-arg chunk_ms: is .*160 ms or more"):
            LycheeFD(chunk_ms=wrong)  # type: ignore[arg-type]


# The events


def test_audio_and_text_come_down_and_a_chunk_of_nothing_is_nothing() -> None:
    block = noise(0.4)
    # After a pause, so that all of it is looked at together.
    lines: list[Line] = [
        0.05, ("status", {}), ("heartbeat", {}), text("Hello"), text(" you"), pcm(block), ("stage_timing", {}),
    ]  # fmt: skip
    with conversation(Lychee([{1: lines}])) as session:
        assert heard_back(session) == []
        out = heard_back(session, wait_s=0.4)
    assert said(out) == "Hello you"
    assert np.array_equal(to_pcm16(sounding(out)), to_pcm16(block))
    assert [len(emission.text) for emission in out] == [2]


def test_audio_is_heard_when_it_comes_and_queued_where_it_comes_faster_than_it_plays() -> None:
    blocks = [noise(0.4, seed=k) for k in range(5)]
    service = Lychee([{0: [pcm(block) for block in blocks]}])
    side = AgentSide(RATE)
    with conversation(service) as session:
        start = time.monotonic()
        out = heard_back(session)
        for emission in out:
            assert emission.arrived is not None
            side.accept(emission, round((emission.arrived - start) * RATE))
    whole = np.concatenate(blocks)
    begun = side.channel.cursor - whole.size
    assert 0 <= begun < RATE // 4
    assert np.array_equal(to_pcm16(side.channel.played(begun, side.channel.cursor)), to_pcm16(whole))


def test_a_stall_of_two_seconds_leaves_a_hole() -> None:
    first, second = noise(0.5, seed=1), noise(0.4, seed=2)
    lines: list[Line] = [pcm(first), 2.0, pcm(second)]
    side = AgentSide(RATE)
    with conversation(Lychee([{0: lines}]), timeout_s=5.0) as session:
        start = time.monotonic()
        for emission in heard_back(session, wait_s=2.3):
            assert emission.arrived is not None
            side.accept(emission, round((emission.arrived - start) * RATE))
    sounding = np.flatnonzero(side.channel.played(0, side.channel.cursor))
    assert np.diff(sounding).max() / RATE == pytest.approx(1.5, abs=0.2)
    assert sounding.size == pytest.approx(first.size + second.size, abs=10)


def test_an_interrupt_drops_what_has_not_been_played() -> None:
    first, second = noise(3.0, seed=1), noise(0.4, seed=2)
    lines: list[Line] = [pcm(first), 0.3, ("audio_interrupt", {"reason": "user_speech"}), pcm(second, round_id=2)]
    side = AgentSide(RATE)
    with conversation(Lychee([{0: lines}])) as session:
        start = time.monotonic()
        for emission in heard_back(session, wait_s=0.5):
            assert emission.arrived is not None
            side.accept(emission, round((emission.arrived - start) * RATE))
    cut = side.channel.cursor - second.size
    assert cut / RATE == pytest.approx(0.3, abs=0.2)
    assert np.array_equal(to_pcm16(side.channel.played(cut, side.channel.cursor)), to_pcm16(second))


@pytest.mark.parametrize("forms", [(pcm, as_wav), (as_wav, pcm)])
def test_a_block_that_comes_in_both_forms_is_heard_once(forms: tuple[Any, Any]) -> None:
    blocks = [noise(0.4, seed=k) for k in range(2)]
    lines: list[Line] = [form(block) for block in blocks for form in forms]
    with conversation(Lychee([{0: lines}])) as session:
        out = heard_back(session)
    assert np.array_equal(to_pcm16(sounding(out)), to_pcm16(np.concatenate(blocks)))


def test_a_block_or_a_delta_that_is_delivered_twice_is_taken_once_and_silence_is_not_taken_for_one() -> None:
    block, quiet = noise(0.4), np.zeros(2400, np.float32)
    lines: list[Line] = [
        text("one", seq=1), pcm(block), text("one", seq=1), pcm(block), pcm(quiet), pcm(quiet), text(" two", seq=2),
        pcm(block, round_id=2), text(" free"), text(" free"), text("break", seq=3, break_before=True), text("", seq=4),
    ]  # fmt: skip
    with conversation(Lychee([{0: lines}])) as session:
        out = heard_back(session)
    assert sounding(out).size == 2 * block.size + 2 * quiet.size
    assert said(out) == "one two free free break"


def test_an_event_may_say_its_name_in_its_data() -> None:
    raw = 'data: {"type": "assistant_text", "delta": "hi"}\n\n'
    with conversation(Lychee([{0: [raw]}])) as session:
        assert said(heard_back(session)) == "hi"


def test_a_session_is_stopped_once() -> None:
    service = Lychee()
    with conversation(service) as session:
        heard_back(session)
        session.close()
        session.close()
    assert service.stopped == [0]


@pytest.mark.parametrize("end", ["finish", "cut_off"])
def test_a_service_of_another_version_is_not_taken_for_a_silent_one(end: str) -> None:
    lines: list[Line] = [
        ("frame_audio", {"protocol_version": "realtime_unified_v1"}),
        ("frame_text", {}),
        ("status", {}),
    ]
    with conversation(Lychee([{0: lines}])) as session:
        session.step(QUIET)
        time.sleep(0.1)
        with pytest.raises(AgentError, match=r"only events that are not known here \(frame_audio, frame_text\)"):
            getattr(session, end)()


# Faults


BROKEN_OFF = r"the connection was cut|the connection broke|ended the stream"
OVER = "ended the session before it was stopped"
LOST = (BROKEN_OFF, OVER)
"""What another session may not meet: the case is begun again."""


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([None], BROKEN_OFF),
        ([pcm(noise(0.4)), None], BROKEN_OFF),
        ([("error", {"message": "CUDA\nout of memory"})], "says: CUDA out of memory"),
        ([("error", {})], "says: an error without a message"),
        ([("status", {"frame_error": "bad frame"})], "says: bad frame"),
        ([("done", {}), pcm(noise(0.4))], OVER),
        (["event: audio_chunk_pcm\ndata: {\n\n"], "sent an event 'audio_chunk_pcm' that is not JSON: '{'"),
        (["event: status\ndata: 3\n\n"], "sent an event 'status' that is not an object: '3'"),
        ([("audio_chunk_pcm", {"pcm_b64": "!!!"})], "sent pcm_b64 that is not base64"),
        ([("audio_chunk_pcm", {"pcm_b64": "QUFB"})], "sent 3 bytes of PCM16, which is no whole number"),
        ([("audio_chunk_pcm", {})], "sent audio without pcm_b64"),
        ([("audio_chunk", {"wav_b64": "QUFB"})], "sent a WAV that cannot be read"),
        ([pcm(noise(0.1), sample_rate=16_000)], "sent audio at 16000 Hz; 24000 Hz"),
        ([pcm(noise(0.1), num_samples=7)], "says 7 samples and sent 2400"),
    ],
)
def test_what_goes_wrong_in_a_session_is_one_line(lines: list[Line], message: str) -> None:
    with conversation(Lychee([{1: lines}])) as session:
        heard_back(session)
        with pytest.raises(AgentError, match=rf"^agent lychee_fd: http://127.0.0.1:\d+: .*({message})") as info:
            heard_back(session, 2, wait_s=0.15)
    assert isinstance(info.value, SessionLostError) == (message in LOST)


def test_silence_for_ever_is_an_error_at_the_deadline_and_a_service_that_only_listens_is_not() -> None:
    with conversation(Lychee(), timeout_s=0.3) as session:
        session.step(QUIET)
        time.sleep(0.4)
        with pytest.raises(AgentError, match=r"no event within 0\.3 s"):
            session.step(QUIET)
    beating = Lychee([{k: [("heartbeat", {})] for k in range(9)}])
    with conversation(beating, timeout_s=0.3) as session:
        assert heard_back(session, 6) == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_is_not_ready_is_asked_again_until_the_time_is_over(status: int) -> None:
    with Lychee(answers={"start": [(status, "loading"), (status, "loading")]}) as service:
        with pytest.raises(AgentError, match=rf"/start answers HTTP {status} \(loading\)"):
            agent_of(service).open("", 0)
        agent_of(service, wait_s=1.5).open("", 0).close()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"start": [(500, "no voice")]}, r"/start answers HTTP 500 \(no voice\)"),
        ({"start": [(200, "<html>")]}, "started no session: '<html>'"),
        ({"start": [(200, "[]")]}, r"started no session: '\[\]'"),
        ({"start": [(0, "")]}, r"no answer within 0\.4 s; raise --model-arg timeout_s"),
        ({"events": [(404, "gone")]}, r"/events answers HTTP 404 \(gone\)"),
        ({"events": [(200, "{}")]}, r"opened no stream of events \(it sends application/json\)"),
        ({"events": [(0, "")]}, r"opened no stream of events within 0\.4 s|no event within"),
    ],
)
def test_a_session_that_does_not_begin_is_one_line(answers: dict[str, Any], message: str) -> None:
    with Lychee(answers=answers) as service, pytest.raises(AgentError, match=message):
        agent_of(service, connect_s=0.4, timeout_s=0.8).open("", 0)


@pytest.mark.parametrize("status", [409, 429, 503])
def test_in_mid_session_nothing_is_sent_twice(status: int) -> None:
    service = Lychee(answers={"chunk": [(status, "stopping")]})
    with (
        conversation(service, wait_s=5.0) as session,
        pytest.raises(AgentError, match=f"chunk answers HTTP {status}") as info,
    ):
        session.step(QUIET)
    assert isinstance(info.value, SessionLostError) == (status != 409)
    assert service.chunks == [[]]


def test_nobody_there_is_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(
        AgentError, match=rf"^agent lychee_fd: {url}: connection refused; is the service running there\?$"
    ):
        LycheeFD(url).open("", 0)
    with pytest.raises(AgentError, match="is not an address; give http://host:port"):
        LycheeFD("ws://127.0.0.1").open("", 0)


# A run


def test_a_fault_is_an_error_of_its_case_or_it_is_begun_again_and_nothing_else_is_lost_at_fifteen_times_real_time(
    pytester: pytest.Pytester,
) -> None:
    reply = load_bank()["reply"].audio
    parts = [reply[k : k + 9600] for k in range(0, reply.size, 9600)]
    speech: list[Line] = [text("Well.", seq=1), *(pcm(part, round_id=k) for k, part in enumerate(parts))]
    plans: list[Plan] = [
        {12: speech},
        {12: [pcm(parts[0]), None]},
        {12: speech},
        {12: [("error", {"message": "out of memory"})]},
        {12: [*speech[:2], 2 / 15, *speech[2:]], 25: [("audio_interrupt", {"reason": "user"})]},
        {12: [text("words alone", seq=1)]},
        {k: [("heartbeat", {})] for k in range(200)},
    ]
    answers = {"start": [(503, "loading")]}
    with Lychee(plans, answers=answers) as service:
        inner = run(
            pytester, "-p", "tests.adapters.fastwall", "--model=lychee_fd", f"--model-arg=url={service.url}",
            "--levels=L0,L1", "--roles=R6", "--probes=C1", f"--limit={len(plans) - 1}",
        )  # fmt: skip
    rows = inner.rows()
    assert [row["outcome"] == "error" for row in rows] == [False, False, True, False, True, False], inner.out
    assert [row.get("restarts") for row in rows] == [None, 1, None, None, None, None]
    assert rows[2]["message"] == f"agent lychee_fd: {service.url}: says: out of memory"
    assert "has sent words and no audio in the whole session" in rows[4]["message"]
    assert [row["measurements"]["spoke"] for row in rows if row["outcome"] != "error"] == [True, True, True, False]
    assert inner.counts["missing"] == 0
    assert service.faults == []
    assert "Traceback" not in inner.out
    assert sorted(service.stopped) == list(range(len(plans)))
