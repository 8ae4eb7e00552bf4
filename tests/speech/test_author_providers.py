"""Both providers through their real SDKs, against servers that speak the real protocols."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

import pytest

from dsbeval.speech.author import AuthorError
from dsbeval.speech.author.providers import PROVIDERS, Anthropic, OpenAI, Provider, Reply, Settings
from tests.servers import Answer, AnthropicServer, OpenAIServer, Seen
from tests.servers.anthropic_messages import message
from tests.servers.openai_chat import completion

Server = OpenAIServer | AnthropicServer
SERVERS: dict[str, type[OpenAIServer] | type[AnthropicServer]] = {"openai": OpenAIServer, "anthropic": AnthropicServer}
BOTH = pytest.mark.parametrize("name", SERVERS)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
KEY = "sk-test-a-key-that-must-not-be-seen"


@pytest.fixture(autouse=True)
def _no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        for setting in ("API_KEY", "BASE_URL", "AUTH_TOKEN", "CUSTOM_HEADERS", "LOG"):
            monkeypatch.delenv(f"{name}_{setting}", raising=False)


def open_provider(server: Server, **settings: Any) -> Provider:
    name = "openai" if isinstance(server, OpenAIServer) else "anthropic"
    return PROVIDERS[name](Settings(**{"base_url": server.base_url, "max_retries": 2, **settings}))


def ask(provider: Provider, temperature: float = 0.7, model: str = "writer-1") -> Reply:
    return provider.ask(
        "You write JSON.", "Write.", model=model, temperature=temperature, max_tokens=1500, schema=SCHEMA
    )


def asked_once(server: Server, **settings: Any) -> Reply:
    with open_provider(server, **settings) as provider:
        return ask(provider)


def failure(server: Server, **settings: Any) -> str:
    with pytest.raises(AuthorError) as error:
        asked_once(server, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


@BOTH
def test_the_settings_reach_the_wire(name: str) -> None:
    with SERVERS[name](['{"a": 1}']) as server:
        assert asked_once(server) == Reply('{"a": 1}', 0.7)
    (seen,) = server.seen
    body = seen.body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("writer-1", 0.7, 1500)
    if name == "openai":
        assert [m["role"] for m in body["messages"]] == ["system", "user"]
        assert body["response_format"] == {"type": "json_object"}
    else:
        assert (body["system"], body["messages"]) == ("You write JSON.", [{"role": "user", "content": "Write."}])
        assert body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}


def test_anthropic_is_asked_in_the_version_that_has_a_temperature() -> None:
    # The test server refuses a temperature in the newest version, as the service does.
    with AnthropicServer(['{"a": 1}']) as server:
        assert asked_once(server).temperature == 0.7
    assert [seen.headers["anthropic-version"] for seen in server.seen] == ["2023-06-01"]


@BOTH
def test_a_model_without_temperature_is_asked_again_without_it_and_says_so(name: str) -> None:
    with SERVERS[name](['{"a": 1}'] * 2, refuses=["temperature"]) as server, open_provider(server) as provider:
        assert [ask(provider).temperature for _ in range(2)] == [None, None]
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, False]  # learnt once


@BOTH
def test_a_refused_parameter_is_remembered_by_model(name: str) -> None:
    def plan(seen: Seen) -> Answer | str:
        if seen.model == "thinker" and "temperature" in seen.body:
            return server.error(400, "`temperature` is deprecated for this model.")
        return '{"a": 1}'

    with SERVERS[name](plan) as server, open_provider(server) as provider:
        assert ask(provider, model="thinker").temperature is None
        assert ask(provider, model="writer").temperature == 0.7


@pytest.mark.parametrize(
    ("name", "parameter"), [("openai", "response_format"), ("anthropic", "output_config"), ("openai", "max_tokens")]
)
def test_json_mode_and_token_limit_are_given_up_where_a_server_has_none(name: str, parameter: str) -> None:
    with SERVERS[name](['{"a": 1}'], refuses=[parameter]) as server:
        assert asked_once(server).text == '{"a": 1}'
    last = server.seen[-1].body
    assert parameter not in last
    if parameter == "max_tokens":
        assert last["max_completion_tokens"] == 1500


@BOTH
def test_a_parameter_that_must_be_there_is_not_given_up(name: str) -> None:
    with SERVERS[name](refuses=["messages"]) as server:
        assert "HTTP 400" in failure(server)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (completion("m", None, refusal="I can't help with that."), "the model refused: I can't help with that."),
        (
            completion("m", '{"situation": "A wo', finish_reason="length"),
            "the reply was cut at 1500 tokens; be shorter",
        ),
        (completion("m", "", finish_reason="content_filter"), "the service's content filter withheld the reply"),
        (message("m", "", stop_reason="refusal", explanation="Not this."), "the model refused: Not this."),
        (message("m", "I can't.", stop_reason="refusal"), "the model refused: I can't."),
        (message("m", '{"situation": "A wo', stop_reason="max_tokens"), "the reply was cut at 1500 tokens; be shorter"),
    ],
)
def test_a_reply_that_is_no_answer_says_why(answer: Answer, problem: str) -> None:
    kind = OpenAIServer if "choices" in answer.body else AnthropicServer
    with kind([answer]) as server:
        assert asked_once(server).problem == problem


def test_a_thinking_block_is_not_part_of_the_text() -> None:
    with AnthropicServer([message("m", '{"a": 1}', thought="Let me {think}.")]) as server:
        assert asked_once(server).text == '{"a": 1}'


@BOTH
def test_a_rate_limit_is_waited_out_as_the_service_says(name: str) -> None:
    with SERVERS[name]() as server:
        limit = server.error(429, "Rate limit reached.", headers={"retry-after": "0.6"})
    with SERVERS[name]([limit, '{"a": 1}']) as server:
        start = time.monotonic()
        assert asked_once(server).text == '{"a": 1}'
        waited = time.monotonic() - start
    assert len(server.seen) == 2
    assert waited >= 0.6


@BOTH
@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_server_error_is_asked_again(name: str, status: int) -> None:
    with SERVERS[name]() as server:
        broken = server.error(status, "Overloaded.", headers={"retry-after-ms": "1"})
    with SERVERS[name]([broken, broken, '{"a": 1}']) as server:
        assert asked_once(server).text == '{"a": 1}'
    assert len(server.seen) == 3


@BOTH
@pytest.mark.parametrize(
    ("status", "mend"),
    [
        (401, "check the key"),
        (403, "check the key and what it may use"),
        (404, "check --model and --base-url"),
        (429, "run the same command again later, it goes on where it stopped"),
        (500, "run the same command again, it goes on where it stopped"),
    ],
)
def test_an_error_that_stays_is_one_line_with_a_mend(name: str, status: int, mend: str) -> None:
    with SERVERS[name]() as server:
        error = server.error(status, "It said\nthis.", headers={"retry-after-ms": "1"})
    with SERVERS[name]([error] * 3) as server:
        said = failure(server)
    assert said == f"{name} at {server.base_url}: HTTP {status}: It said this.; {said.rpartition('; ')[2]}"
    assert mend in said
    assert len(server.seen) == (3 if status in (429, 500) else 1)


@BOTH
def test_a_timeout_is_one_line(name: str) -> None:
    with SERVERS[name]([Answer(delay_s=30, body={})]) as server:
        start = time.monotonic()
        said = failure(server, timeout_s=0.3, max_retries=0)
        assert time.monotonic() - start < 10
    assert said.endswith("no answer within 0.3 s; raise --timeout or run again later")


@BOTH
def test_a_server_that_is_not_there_is_one_line(name: str) -> None:
    with SERVERS[name]() as server:
        pass
    said = failure(server, max_retries=0)
    assert said == f"{name} at {server.base_url}: cannot be reached; is the server running, and is --base-url right?"


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>Welcome</html>", content_type="text/html"),
        Answer(body=b'{"choices": [', content_type="application/json"),
        Answer(body={"models": []}),
        Answer(body=b"[]"),
    ],
    ids=["a web page", "half a JSON body", "another API", "a list"],
)
def test_an_address_that_is_not_the_service_is_one_line(name: str, answer: Answer) -> None:
    with SERVERS[name]([answer] * 3) as server:
        assert "check --base-url" in failure(server, max_retries=0)


# Keys


@BOTH
def test_a_missing_key_is_one_line_before_anything_is_asked(name: str) -> None:
    with pytest.raises(AuthorError) as error:
        PROVIDERS[name](Settings())
    assert str(error.value) == (
        f"--provider: {name} needs a key; set the environment variable {name.upper()}_API_KEY, "
        "or name a server of your own with --base-url"
    )


@BOTH
def test_a_missing_sdk_is_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # what the import system does for a package that is not there
    with pytest.raises(AuthorError) as error:
        PROVIDERS[name](Settings(base_url="http://127.0.0.1:1"))
    assert str(error.value) == f"--provider: the SDK of {name} is not installed; install it: pip install {name}"


@BOTH
def test_the_key_of_the_service_does_not_reach_another_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    with SERVERS[name](['{"a": 1}']) as server:
        asked_once(server)
    (seen,) = server.seen
    assert KEY not in str(seen.headers)
    assert seen.key == "none"


@BOTH
def test_a_key_that_is_named_is_sent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVERS_KEY", KEY)
    with SERVERS[name](['{"a": 1}'], key=KEY) as server:
        assert asked_once(server, key_env="MY_SERVERS_KEY").text == '{"a": 1}'


@BOTH
def test_a_key_that_comes_back_is_blanked_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVERS_KEY", KEY)
    with SERVERS[name](key="another") as server:  # answers 401 and repeats the key
        said = failure(server, key_env="MY_SERVERS_KEY")
    assert KEY not in said
    assert "[key]" in said
    with SERVERS[name]([f"Your key is {KEY}."]) as server:
        assert asked_once(server, key_env="MY_SERVERS_KEY").text == "Your key is [key]."


def test_credentials_in_an_address_are_not_shown() -> None:
    with OpenAI(Settings(base_url="http://user:secret@127.0.0.1:9/v1?token=secret")) as provider:
        assert provider.address == "http://127.0.0.1:9/v1"


def test_the_official_services_are_asked_at_their_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    classes: Iterable[type[Provider]] = (OpenAI, Anthropic)
    found = []
    for cls in classes:
        with cls(Settings()) as provider:
            found.append(provider.address)
    assert found == ["https://api.openai.com/v1", "https://api.anthropic.com"]
