"""A threaded HTTP server with planned answers: what the two protocols share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self

from tests.servers.http_thread import HttpThread


@dataclass(frozen=True)
class Seen:
    """One request as it came over the wire. Header names are lower case."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def key(self) -> str | None:
        """The API key, in whichever header it came."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key")


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. ``body`` is sent as JSON unless it is bytes already; after ``cut`` bytes of it the connection breaks."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    content_type: str = "application/json"
    cut: int | None = None

    @property
    def payload(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class WireServer:
    """A server of one protocol; use it as a context manager. ``seen`` holds the requests in order of arrival."""

    def __init__(self, plan: Iterable[Answer | str] | Callable[[Seen], Answer | str] = ()) -> None:
        self._choose: Callable[[Seen], Answer | str] | None = plan if callable(plan) else None
        self._plan: list[Answer | str] = [] if callable(plan) else list(plan)
        self.seen: list[Seen] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()

    # Of the protocol

    def refuse(self, seen: Seen) -> Answer | None:
        """Return the refusal of a request that the real service would refuse."""
        raise NotImplementedError

    def reply(self, text: str, seen: Seen) -> Answer:
        """Return a normal answer with this text."""
        raise NotImplementedError

    def error(self, status: int, message: str, **more: Any) -> Answer:
        """Return an error as the service words it."""
        raise NotImplementedError

    # Life

    @property
    def origin(self) -> str:
        return self._http.origin

    @property
    def unused(self) -> int:
        """How many planned answers nobody has asked for."""
        return len(self._plan)

    def __enter__(self) -> Self:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                out = answer(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, raw))
                try:
                    self.send_response(out.status)
                    for name, value in {"content-type": out.content_type, **out.headers}.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(out.payload)))
                    self.end_headers()
                    self.wfile.write(out.payload[: out.cut])
                    self.close_connection |= out.cut is not None
                except OSError:
                    self.close_connection = True  # the client gave up, which is what a timeout test wants

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = HttpThread(Handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.stop()

    def _answer(self, seen: Seen) -> Answer:
        with self._lock:
            self.seen.append(seen)
            out = self.refuse(seen)
            if out is None:
                planned = self._planned(seen)
                out = self.reply(planned, seen) if isinstance(planned, str) else planned
        self._closing.wait(out.delay_s)
        return out

    def _planned(self, seen: Seen) -> Answer | str:
        if self._choose is not None:
            return self._choose(seen)
        # 418 is no status that an SDK repeats: a test that asks once too often fails at once.
        return self._plan.pop(0) if self._plan else self.error(418, "the test planned no further answer")


def missing(body: Any, names: Iterable[str]) -> str | None:
    """Return the first of the required fields that a body lacks."""
    return next((name for name in names if not isinstance(body, dict) or name not in body), None)
