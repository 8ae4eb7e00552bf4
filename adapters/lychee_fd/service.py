"""The service's HTTP side: a session is started, fed and stopped, and its events are read in a thread of their own."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters import _wire
from adapters._wire import BUSY, LARGEST, BusyError
from dsbeval.errors import AgentError, SessionLostError

if TYPE_CHECKING:
    from httpx2 import Response

_SESSION = "/api/realtime/session"
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the service and when it came."""

    name: str
    data: dict[str, Any]
    at: float


class Service:
    """The service at an address. Raises :class:`AgentError` in one line, whatever goes wrong."""

    def __init__(self, agent: str, url: str, connect_s: float, timeout_s: float, *, verify: bool = True) -> None:
        import httpx2

        self._agent, self._url, self._timeout_s, self._connect_s = agent, url.rstrip("/"), timeout_s, connect_s
        if not self._url.startswith(("http://", "https://")):
            raise self.error("is not an address; give http://host:port")
        verify = verify and self._url.startswith("https:")  # reading the certificates of the machine takes a while
        self._client = httpx2.Client(verify=verify, timeout=httpx2.Timeout(timeout_s, connect=connect_s))

    def error(self, what: str) -> AgentError:
        """Return an error that names the agent and the address."""
        return AgentError(f"agent {self._agent}: {self._url}: {what}")

    def lost(self, what: str) -> SessionLostError:
        """Return the same for a session that broke off, and that may be had again."""
        return SessionLostError(str(self.error(what)))

    def start(self, settings: dict[str, object]) -> tuple[str, int | None]:
        """Start a session; return its name and the length of a chunk, where the service says it.

        Raises :class:`BusyError` where it is not ready or has no room.
        """
        response = self._post("/start", self._connect_s, json=settings)
        try:
            found = response.json()
            return str(found["session_id"]), found.get("chunk_size_ms")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.error(f"started no session: {response.text[:80]!r}") from None

    def chunk(self, session: str, body: bytes, sent_at: float) -> None:
        """Send a chunk of audio: a complete WAV."""
        headers = {"content-type": "audio/wav", "x-client-chunk-sent-epoch-ms": str(round(sent_at * 1000))}
        try:
            self._post(f"/{session}/chunk", self._timeout_s, content=body, headers=headers)
        except BusyError as error:
            raise SessionLostError(
                str(error)
            ) from None  # nothing is sent twice: the case is begun again, or not at all

    def stop(self, session: str) -> None:
        """Stop a session."""
        self._post(f"/{session}/stop", STOP_S)

    def _post(self, path: str, within_s: float, **body: Any) -> Response:
        import httpx2

        try:
            response = self._client.post(f"{self._url}{_SESSION}{path}", timeout=within_s, **body)
        except httpx2.HTTPError as error:
            raise self.failed(error, within_s) from None
        self.check(response, path)
        return response

    def check(self, response: Response, path: str) -> None:
        """Raise for an answer that is not the one that was asked for."""
        if response.is_success:
            return
        body = " ".join(response.text.split())[:200]
        kind = BusyError if response.status_code in BUSY else AgentError
        raise kind(str(self.error(f"{path} answers HTTP {response.status_code}{f' ({body})' if body else ''}")))

    def events(self, session: str) -> EventStream:
        """Return the events of a session, once their stream is open."""
        return EventStream(self, session)

    def stream(self, session: str) -> Any:
        """Return the context of the response that carries the events."""
        import httpx2

        within = httpx2.Timeout(self._timeout_s, connect=self._connect_s)
        return self._client.stream("GET", f"{self._url}{_SESSION}/{session}/events", timeout=within)

    @property
    def connect_s(self) -> float:
        """Seconds within which the stream must be open."""
        return self._connect_s

    def failed(self, error: Exception, within_s: float | None = None) -> AgentError:
        """Return what an exception of a call means; of the stream of events without ``within_s``."""
        import httpx2

        if isinstance(error, httpx2.ConnectError):
            refused = "refused" in str(error).lower()
            return self.error(
                f"connection {'refused' if refused else f'failed ({error})'}; is the service running there?"
            )
        if isinstance(error, httpx2.TimeoutException):
            late = f"no event within {self._timeout_s:g} s" if within_s is None else f"no answer within {within_s:g} s"
            return self.error(f"{late}; raise --model-arg timeout_s, or see the service's log")
        if isinstance(error, httpx2.RemoteProtocolError):
            return self.lost(f"the connection was cut ({error})")
        return self.lost(f"the connection broke: {type(error).__name__}: {' '.join(str(error).split())}".rstrip(": "))

    def close(self) -> None:
        """Let go of the connections; a second call does nothing."""
        self._client.close()


class EventStream:
    """The events of a session, each stamped when it has come."""

    def __init__(self, service: Service, session: str) -> None:
        self._service, self._session = service, session
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._ended: AgentError | None = None
        self._open = threading.Event()
        self._response: Response | None = None
        self._reader = threading.Thread(target=self._read, name="lychee_fd events", daemon=True)
        self._reader.start()
        self._await_open()

    def _await_open(self) -> None:
        within = self._service.connect_s
        if not self._open.wait(within):
            raise self._service.error(f"opened no stream of events within {within:g} s; raise --model-arg connect_s")
        if self._response is None and self._ended is not None:
            raise self._ended

    def _read(self) -> None:
        import httpx2

        try:
            with self._service.stream(self._session) as response:
                if not response.is_success:
                    response.read()
                    self._service.check(response, "/events")
                kind = response.headers.get("content-type", "nothing")
                if not kind.startswith("text/event-stream"):
                    raise self._service.error(f"opened no stream of events (it sends {kind})")
                self._response = response
                self._open.set()
                for event in httpx2.EventSource(response, max_event_size=LARGEST):
                    self._events.put(self._parsed(event.event, event.data))
            self._ended = self._service.lost("ended the stream of events in mid-session")
        except AgentError as error:
            self._ended = error
        except Exception as error:
            self._ended = self._service.failed(error)
        self._events.put(None)
        self._open.set()

    def _parsed(self, name: str, data: str) -> Event:
        at = _wire.now()
        try:
            found = json.loads(data) if data else {}
        except ValueError:
            raise self._service.error(f"sent an event {name!r} that is not JSON: {data[:80]!r}") from None
        if not isinstance(found, dict):
            raise self._service.error(f"sent an event {name!r} that is not an object: {data[:80]!r}")
        if name == "message":  # an event without a name of its own says it in its data
            name = str(found.get("type") or found.get("event") or name)
        return Event(name, found, at)

    def arrived(self) -> Iterator[Event]:
        """Yield the events that have come, without waiting. A stream that has ended is an error after the last of them."""
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if event is None:
                self._events.put(None)  # it stays ended
                assert self._ended is not None
                raise self._ended
            yield event

    def close(self) -> None:
        """Stop reading; a second call does nothing."""
        if self._response is not None:
            with suppress(OSError, KeyError, AttributeError):  # the thread waits in this socket, and only this wakes it
                self._response.extensions["network_stream"].get_extra_info("socket").shutdown(2)
        self._reader.join(STOP_S)
