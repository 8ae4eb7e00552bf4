"""``websocket`` against a server on a real socket that speaks the frame protocol, and misspeaks it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from adapters.websocket import WebSocketAgent
from dsbeval.agent import Emission, Session, TextToken, check_emissions
from dsbeval.audio import Signal
from dsbeval.conformance import CHECKS
from dsbeval.errors import AgentError, SessionLostError
from dsbeval.loading import load_agent
from dsbeval.recording import AgentSide
from tests.adapters.ws_peer import FRAME, Act, Peer, closes, cuts, hangs, says, sends, stalls, tone
from tests.inner import run

pytest_plugins = ["pytester"]

SILENCE: Signal = np.zeros(FRAME, np.float32)


def agent_of(peer: Peer, **args: Any) -> WebSocketAgent:
    return WebSocketAgent(peer.url, **{"timeout_s": 0.5, "connect_s": 2.0, "wait_s": 0.0, **args})


@contextmanager
def conversation(peer: Peer, **args: Any) -> Iterator[Session]:
    with peer, agent_of(peer, **args).open("Be brief.", 7) as session:
        yield session


def emitted(session: Session, heard: Signal = SILENCE) -> Sequence[Emission]:
    returned = session.step(heard)
    assert isinstance(returned, tuple)
    return returned


# The protocol


@pytest.mark.parametrize("check", CHECKS)
def test_it_conforms_in_lockstep(check: str) -> None:
    with Peer() as peer:
        CHECKS[check](load_agent("websocket", {"url": peer.url}))


def test_float32_goes_over_and_comes_back_bit_for_bit() -> None:
    heard = tone(FRAME / 24_000)
    with conversation(Peer()) as session:
        [emission] = emitted(session, heard)
    assert emission.audio.tobytes() == heard.tobytes()


def test_pcm16_is_rounded_once_and_full_scale_is_1() -> None:
    heard = np.zeros(FRAME, np.float32)
    heard[:6] = [0.0, 1 / 32768, -1.0, 1.0, 1.4 / 32768, -1.6 / 32768]
    with conversation(Peer(hello=hello(encoding="pcm16"))) as session:
        [emission] = emitted(session, heard)
    assert (emission.audio[:6] * 32768).tolist() == [0, 1, -32768, 32767, 1, -2]


def hello(**changes: Any) -> dict[str, Any]:
    base = {"type": "hello", "version": 1, "capabilities": {"interaction": "frame_synchronous", "frame": FRAME}}
    return {**base, **changes}


def test_the_server_is_told_prompt_and_seed_and_when_it_is_over() -> None:
    peer = Peer()
    with conversation(peer) as session:
        for _ in range(3):
            session.step(SILENCE)
        assert session.finish() == ()
        session.close()
        session.close()
    assert peer.opened == [{"type": "open", "version": 1, "prompt": "Be brief.", "seed": 7}]
    assert peer.frames == [3]
    assert peer.closes == [1000]


def test_capabilities_are_the_servers_and_asked_for_once() -> None:
    with Peer(input_rate=16_000, output_rate=22_050, interaction="turn_based", seed=False, output_delay=0) as peer:
        agent = agent_of(peer)
        for _ in range(3):
            found = agent.capabilities
        assert (found.input_rate, found.output_rate, str(found.interaction)) == (16_000, 22_050, "turn_based")
        assert (found.seed, found.prompt, found.output_delay, found.privileged) == (False, True, 0, False)
        assert len(peer.paths) == 1


def test_text_comes_with_the_audio_that_follows_it_and_a_flush_drops_what_was_sent_before() -> None:
    piece = tone(0.01)
    messages: list[str | bytes] = [
        piece.tobytes(),
        json.dumps({"type": "flush"}),
        json.dumps({"type": "text", "text": "hello", "offset_s": 0.2}),
        piece.tobytes(),
        piece.tobytes(),
        json.dumps({"type": "text", "text": " you"}),
    ]
    with conversation(Peer([{0: sends(*messages)}])) as session:
        first, second, third = emitted(session)
        assert (first.flush, first.text) == (True, (TextToken("hello", 0.2),))
        assert (second.flush, second.text, second.audio.size) == (False, (), piece.size)
        assert (third.text, third.audio.size) == ((TextToken(" you"),), 0)
        assert len(emitted(session)) == 1


def test_a_server_may_hang_up_and_what_it_says_later_is_not_heard() -> None:
    late = (json.dumps({"type": "done"}), tone(0.1).tobytes(), json.dumps({"type": "text", "text": "late"}))
    peer = Peer([{1: sends(*late)}])
    with conversation(peer) as session:
        emitted(session)
        [last] = emitted(session)
        assert last.done
        assert last.audio.size == 0


def test_a_key_is_sent_and_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    with Peer() as peer:
        agent_of(peer, key_env="MY_KEY").open("", 0).close()
        assert peer.headers[0]["authorization"] == "Bearer s3cret"
        with pytest.raises(AgentError, match="the environment variable NO_KEY is not set"):
            agent_of(peer, key_env="NO_KEY").open("", 0)


# In real time


def test_in_real_time_messages_count_from_when_they_come() -> None:
    peer = Peer([{0: sends(), 1: stalls(0.3)}], clock="wall")
    with conversation(peer) as session:
        assert emitted(session) == ()
        begun = time.monotonic()
        session.step(SILENCE)
        assert time.monotonic() - begun < 0.2
        time.sleep(0.4)
        [emission] = emitted(session)[:1]
    assert emission.arrived is not None
    assert 0.25 < emission.arrived - begun < 0.45


def test_in_real_time_a_stall_of_two_seconds_leaves_a_hole() -> None:
    peer = Peer([{0: sends(tone(0.5).tobytes()), 1: stalls(2.0)}], clock="wall")
    side = AgentSide(24_000)
    with conversation(peer, timeout_s=5.0) as session:
        start = time.monotonic()
        for heard, wait_s in ((SILENCE, 0.0), (tone(0.02), 2.2), (SILENCE, 0.0)):
            for emission in emitted(session, heard):
                side.accept(emission, round(((emission.arrived or 0) - start) * 24_000))
            time.sleep(wait_s)
    played = side.channel.played(0, side.channel.cursor)
    holes = np.diff(np.flatnonzero(np.abs(played) > 1e-6))
    assert 1.4 < holes.max() / 24_000 < 2.2


def test_in_real_time_audio_that_comes_faster_than_it_plays_is_queued() -> None:
    peer = Peer([{0: sends(tone(1.0).tobytes(), tone(1.0).tobytes()), 1: sends()}], clock="wall")
    side = AgentSide(24_000)
    with conversation(peer) as session:
        start = time.monotonic()
        session.step(SILENCE)
        time.sleep(0.2)
        for emission in check_emissions(session.step(SILENCE), agent_of(peer).capabilities, "peer"):
            side.accept(emission, round(((emission.arrived or 0) - start) * 24_000))
    assert side.channel.cursor == pytest.approx(2 * 24_000, abs=0.2 * 24_000)
    assert np.abs(side.channel.played(side.channel.cursor - 24_000, side.channel.cursor)).max() > 0.2


def test_in_real_time_a_flush_keeps_what_came_before_it() -> None:
    piece = tone(0.01).tobytes()
    with conversation(Peer([{0: sends(piece, json.dumps({"type": "flush"}), piece)}], clock="wall")) as session:
        session.step(SILENCE)
        time.sleep(0.1)
        out = [(emission.flush, emission.audio.size) for emission in emitted(session)]
    assert out[:3] == [(False, 240), (True, 0), (False, 240)]


def test_in_real_time_a_server_that_leaves_without_a_word_is_an_error_and_one_that_is_done_is_not() -> None:
    for act, error in ((closes(1000), True), (sends(json.dumps({"type": "done"})), False)):
        peer = Peer([{0: act}], clock="wall")
        with conversation(peer) as session:
            session.step(SILENCE)
            time.sleep(0.1)
            if error:
                with pytest.raises(AgentError, match="closed the connection with code 1000"):
                    session.step(SILENCE)
            else:
                assert emitted(session)[-1].done


def test_in_real_time_silence_for_ever_ends_at_the_deadline() -> None:
    peer = Peer([{k: sends() for k in range(100)}], clock="wall")
    with conversation(peer, timeout_s=0.2) as session:
        session.step(SILENCE)
        time.sleep(0.25)
        with pytest.raises(AgentError, match=r"nothing has come for 0\.2 s"):
            session.step(SILENCE)


# Faults


LOST = (
    (cuts, "the connection was cut without being closed"),
    (closes(1000), "closed the connection with code 1000"),
    (closes(1011, "out of memory"), r"closed the connection with code 1011 \(out of memory\)"),
    (closes(1001), "closed the connection with code 1001"),
)
"""What another session may not meet: the case is begun again."""


@pytest.mark.parametrize(
    ("act", "message"),
    [
        *LOST,
        (closes(1008, "not you"), r"closed the connection with code 1008 \(not you\)"),
        (says("error", message="model\nfailed"), "says: model failed"),
        (says("error"), "says: an error without a message"),
        (hangs, r"a frame was not answered within 0\.5 s \(next is missing\); raise --model-arg timeout_s"),
        (sends("{"), "sent a text that is not JSON: '{'"),
        (sends("[]"), "sent a message of type None"),
        (says("nxt"), "sent a message of type 'nxt'; did you mean next"),
        (says("ready"), "sent 'ready' in the middle of a session"),
        (sends(b"\0\0\0\0\0\0\0"), "7 bytes, which is no whole number of float32 samples"),
        (says("text", text=3), "text: is 3; a string is needed"),
        (says("text", text="x", offset_s=-1), "offset_s: is -1; seconds"),
    ],
)
def test_what_goes_wrong_in_a_session_is_one_line(act: Act, message: str) -> None:
    with conversation(Peer([{2: act}])) as session:
        emitted(session)
        emitted(session)
        with pytest.raises(AgentError, match=f"^agent websocket: ws://127.0.0.1:[0-9]+: .*{message}") as info:
            emitted(session)
    assert isinstance(info.value, SessionLostError) == ((act, message) in LOST)


def test_a_nan_is_named_by_the_harness() -> None:
    peer = Peer([{0: sends(np.array([0, np.nan], "<f4").tobytes())}])
    with conversation(peer) as session, pytest.raises(AgentError, match="NaN or infinite value at sample 1"):
        check_emissions(session.step(SILENCE), agent_of(peer).capabilities, "websocket")


def test_a_stall_costs_nothing_in_lockstep() -> None:
    with conversation(Peer([{1: stalls(0.3)}])) as session:
        assert [len(emitted(session)) for _ in range(3)] == [1, 1, 1]


def test_audio_without_text_and_text_without_audio_are_taken() -> None:
    said = json.dumps({"type": "text", "text": "only words"})
    with conversation(Peer([{0: sends(said), 1: sends(tone(1.0).tobytes())}])) as session:
        assert [(e.audio.size, len(e.text)) for e in (*emitted(session), *emitted(session))] == [(0, 1), (24_000, 0)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "ready"}, "began with 'ready'; a server begins with hello"),
        ({"version": 2}, "speaks version 2 of the protocol; 1 is needed"),
        ({"encoding": "opus"}, "hello: encoding: is 'opus'; it is float32 or pcm16"),
        ({"capabilities": None}, "hello: capabilities: is missing"),
        ({"capabilities": {}}, "hello: capabilities.interaction: None is not a valid Interaction"),
        ({"capabilities": {"interaction": "duplex"}}, "'duplex' is not a valid Interaction"),
        (
            {"capabilities": {"interaction": "chunked", "frames": 1}},
            "capabilities.frames: is not known; did you mean frame",
        ),
        (
            {"capabilities": {"interaction": "chunked", "frame": 481, "input_rate": 44_100}},
            "not a whole number of samples",
        ),
        ({"capabilities": {"interaction": "chunked", "seed": 1}}, "capabilities.seed: is 1; true or false"),
        ({"capabilities": {"interaction": "chunked", "clock": "fast"}}, "clock: is 'fast'; it is logical or wall"),
        ({"capabilities": {"interaction": "chunked", "output_delay": -1}}, "output_delay: is -1"),
        ({"capabilities": {"interaction": "chunked", "privileged": True}}, "capabilities.privileged: is not known"),
    ],
)
def test_a_hello_that_is_wrong_is_one_line(changes: dict[str, Any], message: str) -> None:
    with Peer(hello=hello(**changes)) as peer, pytest.raises(AgentError, match=message):
        _ = agent_of(peer).capabilities


def test_a_server_that_declares_itself_anew_is_named() -> None:
    with Peer() as peer:
        agent = agent_of(peer)
        _ = agent.capabilities
        peer.hello = hello(encoding="pcm16")
        with pytest.raises(AgentError, match="says something else in hello than before"):
            agent.open("", 0)


def test_a_server_that_is_never_ready_is_an_error_at_the_deadline() -> None:
    with Peer([{"open": hangs}]) as peer, pytest.raises(AgentError, match=r"ready has not come within 0\.3 s"):
        agent_of(peer, connect_s=0.3).open("", 0)
    with Peer([{"open": says("error", message="no such voice")}]) as peer:
        with pytest.raises(AgentError, match="says: no such voice"):
            agent_of(peer).open("", 0)
        agent_of(peer).open("", 0).close()


def test_nobody_there_is_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(AgentError, match="connection refused; is the server running there"):
        _ = WebSocketAgent(f"ws://127.0.0.1:{port}").capabilities
    with pytest.raises(AgentError, match="is not an address; give ws://"):
        _ = WebSocketAgent("http://127.0.0.1:1").capabilities
    with pytest.raises(AgentError, match="where is the server"):
        WebSocketAgent()


def test_a_peer_that_does_not_speak_websocket_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"ws://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(AgentError, match=r"no connection within 0\.2 s"):
            _ = WebSocketAgent(url, connect_s=0.2).capabilities


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_until_the_time_is_over(status: int) -> None:
    with Peer(refusals=[(status, "no room"), (status, "no room")]) as peer:
        with pytest.raises(AgentError, match=rf"answers HTTP {status} \(no room\) instead of opening a session"):
            agent_of(peer).open("", 0)
        agent_of(peer, wait_s=1.5).open("", 0).close()
        assert len(peer.paths) == 3


def test_another_refusal_is_not_asked_again() -> None:
    with Peer(refusals=[(401, "who are you?")]) as peer:
        with pytest.raises(AgentError, match=r"answers HTTP 401 \(who are you\?\)"):
            agent_of(peer, wait_s=5.0).open("", 0)
        assert len(peer.paths) == 1


# A run


def test_a_fault_is_an_error_of_its_case_or_it_is_begun_again_and_nothing_else_is_lost(
    pytester: pytest.Pytester,
) -> None:
    again: dict[object, Act] = {}
    acts: list[dict[object, Act]] = [
        {},
        {100: cuts},
        again,
        {200: closes(1011, "worker died")},
        again,
        {"open": says("error", message="no such prompt")},
        {50: says("error", message="out of memory")},
        {60: sends("garbage")},
        {70: hangs},
        {80: sends(*[tone(2.0).tobytes()] * 3), 90: sends(json.dumps({"type": "text", "text": "words"}))},
        {300: sends(json.dumps({"type": "done"}), tone(0.5).tobytes())},
        {},
    ]
    with Peer(acts) as peer:
        inner = run(
            pytester, "--model=websocket", f"--model-arg=url={peer.url}", "--model-arg=timeout_s=1",
            "--levels=L0", f"--limit={len(acts) - 2}",
        )  # fmt: skip
    rows = inner.rows()
    broken = [index for index, row in enumerate(rows) if row["outcome"] == "error"]
    assert broken == [3, 4, 5, 6]
    assert all(rows[k]["outcome"] in ("passed", "failed") for k in (0, 1, 2, 7, 8, 9))
    assert [row.get("restarts") for row in rows] == [None, 1, 1, *[None] * 7]
    said = [rows[k]["message"].partition(": ")[2].partition(": ")[2] for k in broken]
    assert said == [
        "says: no such prompt",
        "says: out of memory",
        "sent a text that is not JSON: 'garbage'",
        "a frame was not answered within 1 s (next is missing); raise --model-arg timeout_s, or mend the server",
    ]
    assert inner.counts["missing"] == 0
    assert "Traceback" not in inner.out
    recordings = {path.name.partition(".")[0] for path in (inner.run_dir / "recordings").glob("*.rec.json")}
    assert recordings == {rows[k]["id"] for k in (0, 1, 2, 7, 8, 9)}
    done = json.loads((inner.run_dir / "recordings" / f"{rows[8]['id']}.rec.json").read_text())
    assert "agent_done" in [event["event"] for event in done["events"]]
