"""A text model writes the words: against a real HTTP server on this machine, which stands for the service."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from adapters.cascade import Cascade
from adapters.cascade.chat import ChatWriter
from adapters.cascade.floor import Floor
from adapters.cascade.words import Kind, Moment
from dsbeval.errors import AgentError
from tests.adapters.cascade_talk import HELLO, feed, user

Answer = Callable[[dict[str, Any]], tuple[int, str]]


@contextmanager
def service(answer: Answer) -> Iterator[tuple[str, list[tuple[str, dict[str, Any], str | None]]]]:
    """Run a service that answers with status and body; yield its address and what it was asked."""
    asked: list[tuple[str, dict[str, Any], str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, question, self.headers.get("Authorization")))
            status, body = answer(question)
            self.send_response(status)
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # a client that did not wait
                self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
        server.shutdown()


def completion(words: object) -> tuple[int, str]:
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": words}}]})


def ask(base: str, kind: Kind = Kind.ANSWER, timeout_s: float = 10.0, key_env: str = "") -> str:
    moment = Moment(kind, "what is this", Floor(), "You are a guide.", (("user", "hello"), ("assistant", "Hello.")))
    return ChatWriter(base, "small", timeout_s, key_env).write(moment, random.Random(0))


def test_the_model_is_asked_with_prompt_history_and_words() -> None:
    with service(lambda _: completion(" It is a lake. ")) as (base, asked):
        assert ask(base + "/") == "It is a lake."
    ((path, question, key),) = asked
    assert (path, key) == ("/v1/chat/completions", None)
    assert question["model"] == "small"
    roles = [message["role"] for message in question["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert question["messages"][0]["content"].startswith("You are a guide.")
    assert question["messages"][-1]["content"] == "what is this"


def test_the_key_is_sent_only_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    with service(lambda _: completion("Yes.")) as (base, asked):
        ask(base, key_env="SOME_KEY")
    assert asked[0][2] == "Bearer secret"
    with pytest.raises(AgentError, match="no environment variable OTHER_KEY"):
        ChatWriter("http://127.0.0.1:1/v1", "small", 1.0, "OTHER_KEY")


def test_a_listening_sound_does_not_wait_for_a_model() -> None:
    with service(lambda _: completion("Long words.")) as (base, asked):
        assert ask(base, Kind.BACKCHANNEL) != "Long words."
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _: (500, "no"), "answered 500"),
        (lambda _: (404, "{}"), "answered 404"),
        (lambda _: (200, "not json"), "not a chat completion"),
        (lambda _: (200, '{"choices": []}'), "not a chat completion"),
        (lambda _: (200, "[]"), "not a chat completion"),
        (lambda _: completion("  ...  "), "without words"),
        (lambda _: completion(None), "without words"),
    ],
)
def test_a_bad_answer_is_an_error(answer: Answer, message: str) -> None:
    with service(answer) as (base, _), pytest.raises(AgentError, match=message) as caught:
        ask(base)
    assert "\n" not in str(caught.value)


def test_a_late_answer_is_an_error() -> None:
    def late(_: dict[str, Any]) -> tuple[int, str]:
        time.sleep(1.0)
        return completion("Too late.")

    with service(late) as (base, _), pytest.raises(AgentError, match=r"did not answer within 0.2 s"):
        ask(base, timeout_s=0.2)


def test_a_service_that_is_not_there_is_an_error() -> None:
    with service(lambda _: completion("Yes.")) as (base, _):
        pass
    with pytest.raises(AgentError, match="cannot be reached"):
        ask(base)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"llm": "localhost:8080", "llm_model": "m"}, "base address"),
        ({"llm": "http://localhost/v1"}, "needs the name of a model"),
        ({"llm": "http://localhost/v1", "llm_model": "m", "llm_timeout": 0}, "positive number"),
        ({"llm": "http://localhost/v1", "llm_model": "m", "llm_timeout": "soon"}, "positive number"),
    ],
)
def test_a_wrong_argument_is_an_error(argument: dict[str, Any], message: str) -> None:
    with pytest.raises(AgentError, match=message):
        Cascade(**argument)


def test_the_agent_says_the_words_of_the_model_and_an_error_ends_the_case() -> None:
    person = user(0.5, HELLO, 5.0)
    with service(lambda _: completion("The lake is right behind you.")) as (base, asked):
        agent = Cascade(llm=base, llm_model="small")
        with agent.open("Be kind.", 0) as session:
            assert feed(session, person.audio).text == "The lake is right behind you."
    assert "garden" in asked[0][1]["messages"][-1]["content"]
    with agent.open("Be kind.", 0) as session, pytest.raises(AgentError, match="cannot be reached"):
        feed(session, person.audio)
