"""The servers of :mod:`tests.servers` as judges: what judging asks of them besides."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge
from dsbeval.judge.cost import Price
from tests.servers import Answer, AnthropicServer, OpenAIServer, Seen
from tests.servers.anthropic_messages import message
from tests.servers.openai_chat import completion

Server = OpenAIServer | AnthropicServer
SERVERS: dict[str, type[OpenAIServer] | type[AnthropicServer]] = {"openai": OpenAIServer, "anthropic": AnthropicServer}
KEY = "sk-test-a-key-that-must-not-be-seen"


class Waits:
    """Stands in for sleeping: keeps how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def provider_of(server: Server) -> str:
    return "openai" if isinstance(server, OpenAIServer) else "anthropic"


def open_judge(
    server: Server,
    waits: Waits | None = None,
    *,
    model: str = "judge-1",
    timeout_s: float = 20.0,
    price: Price | None = None,
) -> Judge:
    """Return a judge that asks this server."""
    judge = make_judge(
        f"{provider_of(server)}:{model}",
        server.base_url,
        price=price,
        timeout_s=timeout_s,
        sleep=waits if waits is not None else Waits(),
    )
    assert judge is not None
    return judge


def refusal(name: str) -> Answer:
    """Return a refusal as the service words it."""
    if name == "openai":
        return completion("judge-1", None, refusal="I can't help with grading that.")
    return message("judge-1", "", stop_reason="refusal", explanation="I can't help with grading that.")


def cut_reply(name: str, text: str) -> Answer:
    """Return a reply that ran into the token limit."""
    if name == "openai":
        return completion("judge-1", text, finish_reason="length")
    return message("judge-1", text, stop_reason="max_tokens")


def prompt_of(seen: Seen) -> str:
    """Return all the text of a request, system and user."""
    body = seen.body
    return "\n".join([body.get("system", ""), *(m["content"] for m in body["messages"])])


class Gate:
    """Holds requests back until so many are open at once; fewer than that and they are answered with an error."""

    def __init__(self, count: int, timeout_s: float = 20.0) -> None:
        self._barrier = threading.Barrier(count)
        self._timeout_s = timeout_s
        self.broken = False

    def wait(self) -> None:
        try:
            self._barrier.wait(self._timeout_s)
        except threading.BrokenBarrierError:
            self.broken = True


class GatedServer(OpenAIServer):
    """Answers only when so many requests are open at once, and keeps how many were open at most."""

    def __init__(self, reply: str, gate: Gate) -> None:
        super().__init__(lambda seen: reply)
        self._gate = gate
        self._count = threading.Lock()
        self.open = 0
        self.most = 0

    def _answer(self, seen: Seen) -> Answer:
        out = super()._answer(seen)
        with self._count:
            self.open += 1
            self.most = max(self.most, self.open)
        self._gate.wait()
        with self._count:
            self.open -= 1
        return out


class HangingServer(OpenAIServer):
    """Answers so many requests and hangs on all the others, until it is closed."""

    def __init__(self, reply: str, answers: int) -> None:
        super().__init__(lambda seen: reply)
        self._left = answers
        self._count = threading.Lock()
        self.hanging = threading.Event()

    def _answer(self, seen: Seen) -> Answer:
        out = super()._answer(seen)
        with self._count:
            self._left -= 1
            hang = self._left < 0
        if hang:
            self.hanging.set()
            self._closing.wait()
        return out


def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the machine's own settings of the SDKs away."""
    for name in ("OPENAI", "ANTHROPIC"):
        for setting in ("API_KEY", "BASE_URL", "AUTH_TOKEN", "CUSTOM_HEADERS", "LOG", "ORG_ID", "PROJECT_ID"):
            monkeypatch.delenv(f"{name}_{setting}", raising=False)
    monkeypatch.delenv("DSBEVAL_JUDGE_API_KEY", raising=False)


def envelope_error(server: Server, status: int, words: str, **headers: Any) -> Answer:
    """Return an error of the service, with headers (underscores stand for hyphens)."""
    return server.error(status, words, headers={k.replace("_", "-"): v for k, v in headers.items()})
