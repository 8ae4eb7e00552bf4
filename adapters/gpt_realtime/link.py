"""A connection in a thread of its own: what arrives is stamped at once, what is sent never blocks a step.

Conventions
-----------
* Every wait is bounded: the handshake by ``timeout_s``, a silent peer by websocket pings, audio that nobody takes by
  :data:`BACKLOG_S`, closing by :data:`CLOSE_S`.
* The SDK's own reconnecting is off: it does not restore a conversation.
* The reader only stamps and queues; the session reads the queue in its own steps, so nothing else needs a lock.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from adapters.gpt_realtime.address import Address
from dsbeval.errors import AgentError, SessionLostError

BACKLOG_S = 5.0
APPEND_S = 0.02
CLOSE_S = 2.0
PING_S = 10.0

Command = Callable[[Any], Awaitable[None]]
"""Something that is done with the SDK's connection."""


async def ask(sent: Awaitable[None]) -> None:
    """Send a greeting. A service that has hung up already may have said why, and that is read next."""
    from websockets.exceptions import ConnectionClosed

    with contextlib.suppress(ConnectionClosed):
        await sent


class Dialect(Protocol):
    """What a protocol does with a connection of the SDK."""

    def connect(self, client: Any, options: dict[str, Any]) -> Any:
        """Return the SDK's connection manager."""

    async def greet(self, connection: Any, address: Address) -> dict[str, Any]:
        """Ask for the session and return it as the service confirms it. Raises :class:`AgentError`."""

    waits_for: str
    """What :meth:`greet` waits for, in the words of an error."""

    append_type: str
    """The event that audio is sent in."""

    farewell: str | None
    """The event that ends a session in order, where the protocol has one."""

    async def leave(self, connection: Any) -> None:
        """Ask for it."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came over the wire, and when (``time.monotonic``); or the end of it."""

    at: float
    data: bytes = b""
    failure: AgentError | None = None


class Link:
    """One connection.

    Parameters
    ----------
    address : Address
    dialect : Dialect
    timeout_s : float
        Until the session must stand.
    """

    def __init__(self, address: Address, dialect: Dialect, timeout_s: float) -> None:
        self._address, self._dialect, self._timeout_s = address, dialect, timeout_s
        self._inbox: SimpleQueue[Arrival] = SimpleQueue()
        self._opened: Future[dict[str, Any]] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outbox: asyncio.Queue[tuple[float, Command]] = asyncio.Queue()
        self._stop = asyncio.Event()
        self._parse: Callable[[bytes], Any] | None = None
        self._queued = self._sent = 0
        self.slowest_s = 0.0
        """The longest that a message waited to be sent."""
        self._thread = threading.Thread(target=self._run, name="dsbeval-realtime", daemon=True)

    def open(self) -> dict[str, Any]:
        """Connect and return the session as the service confirms it. Raises :class:`AgentError`."""
        self._thread.start()
        return self._opened.result()

    def append(self, audio: bytes) -> None:
        """Send a piece of audio. Raises :class:`SessionLostError` when the service has stopped taking any."""
        event = {"type": self._dialect.append_type, "audio": base64.b64encode(audio).decode("ascii")}
        data = json.dumps(event)
        # As it is, without the SDK's check of its shape: that takes longer than all the rest of an append.
        self.send(lambda connection: connection.send_raw(data))
        if (self._queued - self._sent) * APPEND_S > BACKLOG_S:
            raise SessionLostError(f"{self._address.shown}: has taken no audio for {BACKLOG_S:g} s")

    def send(self, command: Command) -> None:
        """Do something with the connection, in order."""
        if self._loop is not None and not self._loop.is_closed():
            self._queued += 1
            with contextlib.suppress(RuntimeError):  # closed in this very moment: the reader says why
                self._loop.call_soon_threadsafe(self._outbox.put_nowait, (time.monotonic(), command))

    def arrivals(self) -> Iterator[tuple[float, Any]]:
        """Yield what has arrived since the last time, stamped and read by the SDK. Raises what ended the connection."""
        while not self._inbox.empty():
            arrival = self._inbox.get()
            if arrival.failure is not None:
                self._inbox.put(arrival)  # it is no less over the next time
                raise arrival.failure
            assert self._parse is not None
            try:
                event = self._parse(arrival.data)
            except ValueError as error:
                raise self._address.explain(error, "") from None
            yield arrival.at, event

    def close(self) -> None:
        """Close the connection and end the thread. A second call does nothing."""
        if self._loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    # In the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException, doing: str = "took too long") -> None:
        explained = self._address.explain(error, doing)
        if not self._opened.done():
            self._opened.set_exception(explained)
        self._inbox.put(Arrival(time.monotonic(), failure=explained))

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Not all of these are in the SDK's table, but it hands them on to websockets.
        options = {
            "open_timeout": self._timeout_s,
            "close_timeout": CLOSE_S / 2,
            "ping_interval": PING_S,
            "ping_timeout": PING_S,
        }
        doing = f"no connection within {self._timeout_s:g} s"
        try:
            connection = await self._dialect.connect(self._address.client, options).enter()
        except Exception as error:
            self._fail(error, doing)
            return
        try:
            doing = f"no {self._dialect.waits_for} within {self._timeout_s:g} s"
            async with asyncio.timeout(self._timeout_s):
                told = await self._dialect.greet(connection, self._address)
            self._parse = connection.parse_event
            self._opened.set_result(told)
            await self._converse(connection)
        except Exception as error:
            self._fail(error, doing)
        finally:
            with contextlib.suppress(Exception):
                await connection.close()

    async def _converse(self, connection: Any) -> None:
        reader = asyncio.create_task(self._read(connection))
        writer = asyncio.create_task(self._write(connection))
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({reader, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not reader.done() and self._dialect.farewell is not None:
            with contextlib.suppress(Exception):
                await self._dialect.leave(connection)
                await asyncio.wait({reader}, timeout=CLOSE_S)
        for task in (writer, stop):
            task.cancel()
        if not reader.done():
            reader.cancel()
        await asyncio.gather(reader, writer, stop, return_exceptions=True)

    async def _read(self, connection: Any) -> None:
        try:
            while True:
                data = await connection.recv_bytes()
                self._inbox.put(Arrival(time.monotonic(), data))
                if self._stop.is_set() and json.loads(data).get("type") == self._dialect.farewell:
                    return
        except Exception as error:
            self._fail(error)

    async def _write(self, connection: Any) -> None:
        with contextlib.suppress(Exception):  # the reader says why
            while True:
                queued, command = await self._outbox.get()
                await command(connection)
                self._sent += 1
                self.slowest_s = max(self.slowest_s, time.monotonic() - queued)
