"""``raon`` against a local gateway that speaks its frames on a real socket: wire and call shape only, no model."""

from __future__ import annotations

import functools
import itertools
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.raon import Raon
from adapters.raon.text import TextFilter
from dsbeval.agent import Emission, Session, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.clock import LogicalClock, WallClock
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.errors import AgentError, DsbevalError, SessionLostError
from dsbeval.loading import load_agent
from dsbeval.recording import AgentSide
from reports.reading import read_settings
from tests.adapters import wire_talk
from tests.adapters.raon_gateway import (
    AUDIO,
    CLOSE,
    ERROR,
    PING,
    READY,
    SEQ_DELTA,
    TEXT,
    Act,
    Gateway,
    closes,
    cuts,
    hangs,
    instead,
    sends,
    silence,
    stalls,
)
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

FRAME = 1920
QUIET: Signal = np.zeros(FRAME, np.float32)


def agent_of(gateway: Gateway, **args: Any) -> Raon:
    return Raon(gateway.url, **{"ready_s": 2.0, "timeout_s": 0.5, "wait_s": 0.0, **args})


@contextmanager
def conversation(gateway: Gateway, prompt: str = "", **args: Any) -> Iterator[Session]:
    with gateway, agent_of(gateway, **args).open(prompt, 0) as session:
        yield session


heard_back = functools.partial(wire_talk.heard_back, quiet=QUIET, wait_s=0.03)


# The gateway's frames


@pytest.mark.parametrize("check", CHECKS)
def test_it_conforms_to_the_wire_at_no_pace(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsbeval.conformance.make_clock", lambda *args, **kwargs: LogicalClock())
    with Gateway() as gateway:
        CHECKS[check](load_agent("raon", {"url": gateway.url}))
    assert gateway.faults == []


def test_exactly_one_frame_goes_out_a_tick_of_real_time_and_none_before_ready() -> None:
    gateway = Gateway(quiet_s=0.15)
    clock = WallClock()
    with conversation(gateway) as session:
        for index in range(1, 11):
            clock.ready(index * FRAME)
            session.step(QUIET)
        time.sleep(0.05)
    assert gateway.faults == []
    [came] = gateway.came
    assert len(came) == 10
    assert np.median(np.diff(came)) == pytest.approx(0.08, abs=0.02)
    assert came[-1] - came[0] == pytest.approx(9 * 0.08, abs=0.06)
    assert gateway.goodbyes == [b"client_disconnect"]


def played(gateway: Gateway, frames: int, voice: Signal) -> tuple[AgentSide, list[Emission]]:
    """Play ``voice`` to a gateway in real time and return the agent's side as the episode makes it."""
    clock, side, out = WallClock(), AgentSide(RATE), []
    with conversation(gateway, timeout_s=5.0) as session:
        for index in range(frames + 1):
            end = (index + 1) * FRAME
            clock.ready(end)
            heard = voice[index * FRAME : end] if index < frames else QUIET
            for emission in wire_talk.emissions(session.step(heard)):
                side.accept(emission, clock.arrival(end, 0, emission.arrived))
                out.append(emission)
    return side, out


def noise(frames: int) -> Signal:
    return np.random.default_rng(3).uniform(-0.5, 0.5, frames * FRAME).astype(np.float32)


def test_answers_are_placed_by_counting_so_that_jitter_leaves_no_hole() -> None:
    voice = noise(12)
    gateway = Gateway([{k: stalls(s) for k, s in ((2, 0.1), (3, 0.06), (7, 0.15), (8, 0.02))}])
    side, out = played(gateway, 12, voice)
    got = np.concatenate([emission.audio for emission in out])
    assert got.size >= 9 * FRAME
    start = side.channel.cursor - got.size
    # The echo is the frame before, and an answer is heard a frame later.
    assert start == pytest.approx(FRAME, abs=RATE // 20)
    assert np.array_equal(side.channel.played(start, side.channel.cursor), got)
    assert np.array_equal(got[FRAME:], voice[: got.size - FRAME])


def test_what_comes_later_than_the_buffer_is_a_hole_and_counting_begins_anew() -> None:
    gateway = Gateway([{3: stalls(0.6)}])
    side, out = played(gateway, 14, noise(14))
    audio = np.concatenate([emission.audio for emission in out])
    hole = side.channel.cursor - FRAME - audio.size
    assert hole == pytest.approx(0.6 * RATE, abs=0.12 * RATE)
    late = side.channel.cursor - (out[-1].audio.size + FRAME)
    assert np.abs(side.channel.played(late, late + FRAME)).max() > 0.1  # and no further hole behind it


def test_audio_that_comes_faster_than_real_time_plays_out_in_real_time() -> None:
    side, out = played(Gateway([{1: sends(AUDIO + silence(25))}]), 4, noise(4))
    assert side.channel.cursor == pytest.approx(FRAME + sum(e.audio.size for e in out), abs=RATE // 50)
    assert sum(emission.audio.size for emission in out) >= 28 * FRAME


def test_text_comes_with_the_audio_behind_it_and_without_structure() -> None:
    frames = [
        sends(TEXT + b"\nGood "),
        sends(TEXT + b"<|fim_mid", SEQ_DELTA + b"tokens=1,2"),
        sends(TEXT + b"dle|>morn", TEXT + b"ing\n"),
        sends(),
    ]
    with conversation(Gateway([dict(enumerate(frames))])) as session:
        out = heard_back(session, 4)
    assert [[token.text for token in emission.text] for emission in out] == [["Good "], [], ["morn", "ing "], []]
    assert all(emission.audio.size == FRAME for emission in out)


def test_words_whose_audio_has_not_come_are_not_lost() -> None:
    with conversation(Gateway([{1: instead(TEXT + b"and so")}])) as session:
        out = heard_back(session, 2)
    assert (out[-1].text, out[-1].audio.size) == ((TextToken("and so"),), 0)


def test_a_ping_is_answered() -> None:
    gateway = Gateway([{"ready": sends(PING + b"a"), 0: sends(PING + b"b")}])
    with conversation(gateway) as session:
        heard_back(session, 2)
    assert gateway.pongs == [b"a", b"b"]
    assert gateway.faults == []


_WORDS = st.lists(
    st.sampled_from(["hi", " you", "\n", "ä", "\n\n", " <", "|", "<|", ">", "東", "<|audio_start|>", "<|im_end|>"])
)


@settings(deadline=None, max_examples=60)
@given(pieces=_WORDS, cuts=st.lists(st.integers(0, 80), max_size=6))
def test_where_a_delta_is_cut_changes_no_word(pieces: list[str], cuts: list[int]) -> None:
    data = "".join(pieces).encode()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = TextFilter()
    said = "".join(parts.push(data[a:b]) for a, b in itertools.pairwise(edges))
    whole = TextFilter()
    assert said == whole.push(data)
    assert "audio_start" not in said
    assert "\n" not in said
    assert "  " not in said


# Parameters


@pytest.mark.parametrize(
    ("args", "prompt", "expected"),
    [
        (
            {},
            "",
            {"system_prompt_style": "generic", "prompt": "eng:full_duplex:listen-first", "speaker_mode": "default"},
        ),
        ({}, "A & b=c?\nÜ", {"system_prompt_style": "custom", "custom_system_prompt": "A & b=c?\nÜ"}),
        (
            {"style": "raon_persona"},
            "Nurse.",
            {"system_prompt_style": "raon_persona", "system_prompt_persona": "Nurse."},
        ),
        (
            {"style": "raon_persona_context", "context": "At night."},
            "Nurse.",
            {
                "system_prompt_style": "raon_persona_context",
                "system_prompt_persona": "Nurse.",
                "system_prompt_context": "At night.",
            },
        ),
        ({"voice": "anna"}, "", {"speaker_mode": "recorded", "speaker_key": "anna"}),
        ({"voice": "none"}, "", {"speaker_mode": "none"}),
        ({"first": "speak"}, "x", {"prompt": "eng:full_duplex:speak-first"}),
        ({"temperature": 0.9, "top_k": 66, "top_p": 0.95}, "x", {"temperature": "0.9", "top_k": "66", "top_p": "0.95"}),
        (
            {},
            "x",
            {"temperature": "0.7", "top_k": "50", "top_p": "0.8", "eos_penalty": "0.0", "prompt_language": "eng"},
        ),
    ],
)
def test_prompt_voice_and_sampling_are_asked_for_by_the_gateways_names(
    args: dict[str, Any], prompt: str, expected: dict[str, str]
) -> None:
    gateway = Gateway()
    with conversation(gateway, prompt, **args):
        pass
    [query] = gateway.queries
    assert {key: query[key] for key in expected} == expected
    style = query["system_prompt_style"]
    assert ("custom_system_prompt" in query) == (style == "custom")
    assert ("system_prompt_persona" in query) == style.startswith("raon_persona")


def test_it_speaks_first_where_its_prompt_says_that_it_begins() -> None:
    suite = load_scenarios()
    scenario = next(iter(suite.scenarios.values()))
    for opener, first in (("a", "speak"), ("b", "listen")):
        gateway = Gateway()
        with conversation(gateway, suite.prompt(scenario, "a", opener)):  # type: ignore[arg-type]
            pass
        assert gateway.queries[0]["prompt"] == f"eng:full_duplex:{first}-first"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"style": "persona"}, "--model-arg style: 'persona' is not one of custom, raon_persona"),
        ({"first": "me"}, "--model-arg first: 'me' is not one of auto, listen, speak"),
        ({"context": "x"}, "--model-arg context: is read with style=raon_persona_context alone"),
    ],
)
def test_a_wrong_argument_is_one_line(args: dict[str, Any], message: str) -> None:
    with pytest.raises(DsbevalError, match=message):
        Raon(**args)


def test_it_declares_that_it_takes_no_seed() -> None:
    assert Raon().capabilities.seed is False


@pytest.mark.parametrize(
    ("args", "watched"),
    [
        (("--model=raon", "--partner=echo"), True),
        (("--model=echo", "--partner=raon"), True),
        (("--model=raon", "--partner=echo", "--no-garble-watch"), False),
        (("--model=raon",), False),
        (("--model=echo", "--partner=silent"), False),
        (("--model=echo", "--partner=silent", "--garble-watch"), True),
    ],
)
def test_conversations_with_it_are_watched_for_garble_unless_a_run_says_otherwise(
    pytester: pytest.Pytester, args: tuple[str, ...], watched: bool
) -> None:
    config = pytester.parseconfig(
        "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-p", "reports.plugin", *args
    )
    assert (read_settings(config).garble_watch is not None) == watched


# Faults


LOST = (
    (cuts, "the connection was cut without being closed"),
    (closes(1000), "closed the connection with code 1000"),
    (closes(1011, "boom"), r"closed the connection with code 1011 \(boom\)"),
    (closes(1000, said=CLOSE + b"overloaded_backlog"), "closed the conversation: overloaded_backlog"),
    (closes(1000, said=ERROR + b"worker_unhealthy"), "says: worker_unhealthy"),
)
"""What another session may not meet: the case is begun again."""


@pytest.mark.parametrize(
    ("act", "message"),
    [
        *LOST,
        (closes(1008, "no more"), r"closed the connection with code 1008 \(no more\)"),
        (closes(1000, said=CLOSE + b"invalid_client_frame"), "closed the conversation: invalid_client_frame"),
        (instead(ERROR + b"decode failed\nframe 3", AUDIO + silence()), "says: decode failed frame 3"),
        (instead(ERROR), "says: an error without a message"),
        (instead(b""), r"sent a frame of unknown kind \(empty\)"),
        (instead(b"\x2a1"), r"sent a frame of unknown kind \(2a\)"),
        (instead(AUDIO + b"123"), "sent 3 bytes of audio, which is no whole number"),
        (instead(READY), "said READY a second time"),
    ],
)
def test_what_goes_wrong_in_a_conversation_is_one_line(act: Act, message: str) -> None:
    with conversation(Gateway([{2: act}])) as session:
        heard_back(session, 2)
        with pytest.raises(AgentError, match=rf"^agent raon: ws://127.0.0.1:\d+/ws/chat: .*({message})") as info:
            heard_back(session, 3)
    assert isinstance(info.value, SessionLostError) == ((act, message) in LOST)


def test_a_text_message_is_not_of_the_protocol() -> None:
    def talks(gateway: Gateway, socket: Any, before: bytes) -> None:
        socket.send("hello")

    with conversation(Gateway([{0: talks}])) as session, pytest.raises(AgentError, match="sent a text message"):
        heard_back(session)


@pytest.mark.parametrize("silent", [hangs, instead(), instead(TEXT + b"words alone")])
def test_a_gateway_that_sends_no_audio_any_more_is_an_error_at_the_deadline(silent: Act) -> None:
    gateway = Gateway([dict.fromkeys(range(1, 50), silent)])
    with conversation(gateway, timeout_s=0.3) as session:
        heard_back(session, 2)
        time.sleep(0.35)
        with pytest.raises(AgentError, match=r"has sent no audio for 0\.3 s"):
            session.step(QUIET)


def test_a_gateway_that_is_never_ready_is_an_error_at_the_deadline() -> None:
    with Gateway([{"ready": hangs}]) as gateway, pytest.raises(AgentError, match=r"is not READY within 0\.3 s"):
        agent_of(gateway, ready_s=0.3).open("", 0)
    with Gateway([{"ready": instead(AUDIO + silence())}]) as gateway:
        with pytest.raises(AgentError, match="sent audio before it was READY"):
            agent_of(gateway).open("", 0)
        agent_of(gateway).open("", 0).close()


def test_a_gateway_without_a_free_worker_is_asked_again() -> None:
    full = instead(ERROR + b"No workers available")
    with Gateway([{"ready": full}, {"ready": full}]) as gateway:
        with pytest.raises(AgentError, match="says: No workers available"):
            agent_of(gateway).open("", 0)
        agent_of(gateway, wait_s=1.5).open("", 0).close()
    with Gateway(refusals=[(503, "starting"), (429, "")]) as gateway:
        with pytest.raises(AgentError, match=r"answers HTTP 503 \(starting\)"):
            agent_of(gateway).open("", 0)
        with pytest.raises(AgentError, match=r"answers HTTP 429"):
            agent_of(gateway).open("", 0)
        agent_of(gateway).open("", 0).close()


def test_nobody_there_is_one_line_without_the_prompt() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{free.getsockname()[1]}/ws/chat"
    with pytest.raises(AgentError, match=rf"^agent raon: {url}: connection refused; is the server running there\?$"):
        Raon(url).open("secret persona", 0)


# A run


def test_a_fault_is_an_error_of_its_case_or_it_is_begun_again_and_nothing_else_is_lost_at_fifteen_times_real_time(
    pytester: pytest.Pytester,
) -> None:
    again: dict[object, Act] = {}
    acts: list[dict[object, Act]] = [
        {20: sends(TEXT + b"\nhello"), 30: sends(AUDIO + silence(25))},
        {30: cuts},
        again,
        {30: closes(1000, said=CLOSE + b"overloaded_backlog")},
        again,
        {"ready": instead(ERROR + b"no such speaker")},
        {30: stalls(2 / 15)},
        {30: hangs},
        {},
    ]
    with Gateway(acts) as gateway:
        inner = run(
            pytester, "-p", "tests.adapters.fastwall", "--model=raon", f"--model-arg=url={gateway.url}",
            "--levels=L0,L1", "--roles=R6", "--probes=C1,C3", f"--limit={len(acts) - 2}",
        )  # fmt: skip
    rows = inner.rows()
    assert [row["outcome"] == "error" for row in rows] == [False, False, False, True, False, True, False], inner.out
    assert [row.get("restarts") for row in rows] == [None, 1, 1, None, None, None, None]
    assert inner.summary["restarts"] == {"cases": 2, "restarts": 2}
    assert [rows[k]["message"].partition("chat: ")[2] for k in (3, 5)] == [
        "says: no such speaker",
        "has sent no audio for 10 s; raise --model-arg timeout_s, or see /health",
    ]
    assert inner.counts["missing"] == 0
    assert gateway.faults == []
    assert "Traceback" not in inner.out
    spoke = [row["measurements"]["spoke"] for row in rows if row["outcome"] != "error"]
    assert spoke == [True] * 5
    recording = json.loads((inner.run_dir / "recordings" / f"{rows[2]['id']}.rec.json").read_text())
    [restart] = recording["restarts"]
    assert restart["reason"].endswith("closed the conversation: overloaded_backlog")
