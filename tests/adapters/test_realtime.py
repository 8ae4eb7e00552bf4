"""GPT-Realtime over the official SDK and real websockets, against a local server built from the SDK's event types."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

from adapters.gpt_realtime import GptRealtime
from adapters.gpt_realtime.link import Link
from adapters.gpt_realtime.realtime import RealtimeDialect
from dsbeval.agent import Interaction
from dsbeval.audio import RATE
from dsbeval.conformance import CHECKS
from dsbeval.errors import AgentError, DsbevalError, OptionError, SessionLostError
from dsbeval.loading import load_agent, parse_args
from tests.adapters.realtime_server import DEFAULT_INSTRUCTIONS, Answer, Call, Plan, RealtimeServer
from tests.adapters.realtime_talk import Talked, at_once, said, talk

PRICE = "{text_in: 4, text_cached: 0.4, audio_in: 32, audio_cached: 0.4, text_out: 16, audio_out: 64}"


def reply(**more: Any) -> Answer:
    return Answer(**{"audio": said("reply", 0.8), "chunk_s": 0.8, **more})


# The session


Talks = dict[str, tuple[Talked, GptRealtime, Call]]


@pytest.fixture(scope="module")
def talks() -> Talks:
    """Three conversations, had at the same time."""

    def one(answer: Answer, *arguments: str) -> tuple[Talked, GptRealtime, Call]:
        with RealtimeServer(Plan([answer])) as server:
            agent = load_agent("gpt_realtime", parse_args([f"base_url={server.base_url}", *arguments]))
            assert isinstance(agent, GptRealtime)
            return talk(agent, [(0.0, said("ack"))], prompt="You are a calm listener."), agent, server.calls[0]

    return at_once(
        {
            "published": lambda: one(reply()),
            "priced": lambda: one(reply(), f"price={PRICE}", "silence_ms=200"),
            "uncounted": lambda: one(reply(usage=False), "silence_ms=200"),
        }
    )


def test_the_session_is_asked_for_as_published_and_audio_goes_out_20_ms_at_a_time(talks: Talks) -> None:
    talked, _, call = talks["published"]
    assert talked.error is None
    assert call.path == "/v1/realtime?model=gpt-realtime"
    assert "openai-beta" not in call.headers
    assert call.asked == [
        {
            "type": "session.update",
            "session": {
                "type": "realtime",
                "output_modalities": ["audio"],
                "instructions": "You are a calm listener.",
                "audio": {
                    "input": {
                        "format": {"type": "audio/pcm", "rate": 24000},
                        "turn_detection": {
                            "type": "server_vad",
                            "threshold": 0.5,
                            "silence_duration_ms": 800,
                            "prefix_padding_ms": 300,
                            "create_response": True,
                            "interrupt_response": True,
                        },
                        "transcription": None,
                        "noise_reduction": None,
                    },
                    "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy"},
                },
            },
        }
    ]
    assert {audio.size for audio in call.heard} == {480}
    heard = np.concatenate(call.heard)
    assert np.array_equal(heard[: said("ack").size], said("ack"))
    assert not heard[said("ack").size :].any()
    assert call.appended[-1] - call.appended[0] == pytest.approx(len(call.appended) * 0.02, abs=1.0)
    assert talked.facts["confirmed"]["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 800
    ((start, end),) = ((turn["start_ms"], turn["end_ms"]) for turn in talked.facts["user_speech"])
    assert start == 0
    assert 800 < end <= 800 + 20 + 1000 * said("ack").size // RATE
    assert call.closed == (1000, "")


@pytest.mark.parametrize(
    ("arguments", "prompt", "told"),
    [
        ({}, "", ""),
        ({"default_instructions": True}, "", DEFAULT_INSTRUCTIONS),
        ({"default_instructions": True}, "Be kind.", "Be kind."),
    ],
)
def test_without_a_prompt_there_are_no_instructions_unless_the_services_own_are_asked_for(
    arguments: dict[str, Any], prompt: str, told: str
) -> None:
    with RealtimeServer(Plan()) as server:
        with GptRealtime(base_url=server.base_url, **arguments).open(prompt, 0) as session:
            facts = session.facts()
        assert server.calls[0].session["instructions"] == told
    assert facts["confirmed"].get("instructions") == (told if told == DEFAULT_INSTRUCTIONS else None)


def test_every_case_has_a_connection_of_its_own() -> None:
    with RealtimeServer(Plan()) as server:
        agent = GptRealtime(base_url=server.base_url)
        for _ in range(3):
            with agent.open("", 0):
                pass
        assert len(server.calls) == 3
    assert agent.usage().counts["sessions"] == 3


def test_the_conformance_suite_is_passed() -> None:
    with RealtimeServer(Plan([reply(), reply()])) as server:
        agent = GptRealtime(base_url=server.base_url)

        def fault_of(name: str) -> str | None:
            try:
                CHECKS[name](agent)
            except DsbevalError as error:
                return str(error)
            return None

        found = at_once({name: functools.partial(fault_of, name) for name in CHECKS})
        assert found == dict.fromkeys(CHECKS)
        assert not [call.refused for call in server.calls if call.refused]
    assert agent.capabilities.interaction is Interaction.SERVER_VAD


# What it used


def test_tokens_are_counted_by_kind_and_priced_where_prices_are_given(talks: Talks) -> None:
    talked, agent, _ = talks["priced"]
    assert talked.error is None
    used = agent.usage()
    # The server's 200 in (120 of text, 64 of them cached; 80 of audio), 10 of text out, 20 a second of audio out.
    tokens = {"text_in": 56, "text_cached": 64, "audio_in": 80, "audio_cached": 0, "text_out": 10, "audio_out": 16}
    assert {kind: used.counts[kind] for kind in tokens} == tokens
    dollars = (56 * 4 + 64 * 0.4 + 80 * 32 + 10 * 16 + 16 * 64) / 1e6
    assert used.counts["cost_usd"] == pytest.approx(dollars)
    assert used.counts["responses"] == 1
    assert "responses_uncounted" not in used.counts
    assert talked.facts["tokens"] | tokens == talked.facts["tokens"]


def test_a_response_whose_usage_never_came_is_counted_as_such(talks: Talks) -> None:
    talked, agent, _ = talks["uncounted"]
    assert talked.error is None
    assert agent.usage().counts["responses_uncounted"] == 1


# Where it is


def test_azure_has_two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    with RealtimeServer(Plan(), key="azure-key") as server:
        endpoint = f"http://127.0.0.1:{server.port}"
        for arguments in ({}, {"api_version": "2025-04-01-preview"}):
            agent = GptRealtime(model="my-deployment", azure_endpoint=endpoint, **arguments)  # type: ignore[arg-type]
            with agent.open("", 0):
                pass
        (new, new_headers), (classic, classic_headers) = server.knocks
    assert new == "/openai/v1/realtime?model=my-deployment"
    assert classic == "/openai/realtime?api-version=2025-04-01-preview&deployment=my-deployment"
    assert new_headers["api-key"] == classic_headers["api-key"] == "azure-key"
    assert "authorization" not in classic_headers


def test_the_key_of_the_paid_service_reaches_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-paid")
    monkeypatch.setenv("MY_KEY", "sk-mine")
    with RealtimeServer(Plan()) as server:
        for arguments in ({}, {"key_env": "MY_KEY"}):
            with GptRealtime(base_url=server.base_url, **arguments).open("", 0):  # type: ignore[arg-type]
                pass
        keys = [headers["authorization"] for _, headers in server.knocks]
    assert keys == ["Bearer none", "Bearer sk-mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "there is no key: set the environment variable OPENAI_API_KEY"),
        ({"azure_endpoint": "https://x.openai.azure.com"}, "set the environment variable AZURE_OPENAI_API_KEY"),
        ({"base_url": "x.example"}, "is not an address such as http://127.0.0.1:8765/v1"),
        ({"base_url": "http://u:p@x.example/v1"}, "must not hold credentials"),
        ({"base_url": "http://x.example/v1", "azure_endpoint": "https://y"}, "name one of them"),
        ({"base_url": "http://x.example/v1", "api_version": "v1"}, "belongs to azure_endpoint"),
        ({"base_url": "http://x.example/v1", "playback": "loud"}, "playback: 'loud' is not one of raw, client"),
        ({"base_url": "http://x.example/v1", "threshold": 2}, "threshold: 2 is out of range"),
        ({"base_url": "http://x.example/v1", "price": {"text_in": 1}}, "price: needs exactly {text_in: 1.0"),
        ({"base_url": "http://x.example/v1", "price": "4,16"}, "price: needs exactly {text_in: 1.0"),
    ],
)
def test_an_argument_that_cannot_be_is_named_before_anything_is_opened(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises((OptionError, AgentError)) as caught:
        GptRealtime(**arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# The link


class Clogged(RealtimeDialect):
    """A peer that answers the greeting and then takes nothing: at the edge, since a real socket swallows a minute of audio."""

    def connect(self, client: Any, options: dict[str, Any]) -> Any:
        manager = super().connect(client, options)
        enter = manager.enter

        async def clogged() -> Any:
            import asyncio

            connection = await enter()

            async def never(data: str) -> None:
                await asyncio.sleep(60)

            connection.send_raw = never
            return connection

        manager.enter = clogged
        return manager


def append_all(link: Link, times: int) -> None:
    for _ in range(times):
        link.append(bytes(960))


def test_a_service_that_takes_no_audio_any_more_does_not_hold_up_the_steps() -> None:
    with RealtimeServer(Plan()) as server:
        agent = GptRealtime(base_url=server.base_url)
        link = Link(agent._address, Clogged("gpt-realtime", dict(agent._shape), ()), 10.0)
        link.open()
        try:
            append_all(link, 240)
            with pytest.raises(SessionLostError, match="has taken no audio for 5 s"):
                append_all(link, 20)
        finally:
            link.close()


def test_no_thread_is_left_behind() -> None:
    with RealtimeServer(Plan()) as server:
        session = GptRealtime(base_url=server.base_url).open("", 0)
        session.close()
        session.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "dsbeval-realtime"]
