"""What adapters of remote models share: a WebSocket that is read in a thread of its own, and errors in one line.

Conventions
-----------
* Each message is stamped with :func:`now` (``time.monotonic()``) when it has come, not when it is looked at.
* Every wait has a deadline. Nothing that goes wrong on a wire is anything but an :class:`AgentError`: an *error* of the
  case, never a failed probe. A session is never patched.
* A connection that is cut, and a service that goes away (:data:`PASSING_CLOSES`), is a :class:`SessionLostError`: the case
  may be begun again from its first sample. Whatever a second try would meet again is not.
* A service that says that it is busy (429, 503, no free worker) is asked again until ``wait_s`` has passed, while the
  session is being opened.
"""

from __future__ import annotations

import os
import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dsbeval.errors import AgentError, SessionLostError

if TYPE_CHECKING:
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.connection import Connection

BUSY = (429, 503)
"""HTTP states by which a service says: later."""
PASSING_CLOSES = frozenset({1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014})
"""Close codes of a connection that was cut or a server that goes away; 1000 too, since a case is never over before we say so."""
RETRY_S = 1.0
CLOSE_S = 2.0
LARGEST = 2**26
"""Bytes of a message: ten minutes of audio are less."""

T = TypeVar("T")

now = time.monotonic
"""The clock by which arrivals are stamped; a test may put its own there."""


class BusyError(AgentError):
    """A service has no room for another session now."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message and when it came."""

    data: str | bytes
    at: float


class Wire:
    """An open WebSocket. Raises :class:`AgentError` in one line, whatever goes wrong on it.

    Parameters
    ----------
    agent : str
        Whose errors these are.
    address : str
        ``ws://`` or ``wss://``.
    connect_s : float
        Seconds within which the connection must be open.
    headers : dict
        Headers of the request that opens it.
    verify : bool
        Whether the certificate of a ``wss`` address is checked.
    """

    def __init__(
        self,
        agent: str,
        address: str,
        *,
        connect_s: float = 10.0,
        headers: dict[str, str] | None = None,
        verify: bool = True,
    ) -> None:
        self._agent, self._address = agent, address.partition("?")[0]
        self._stack = ExitStack()
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._ended: AgentError | None = None
        self._socket = self._connected(address, connect_s, headers or {}, verify=verify)
        self._reader = threading.Thread(target=self._read, name=f"{agent} wire", daemon=True)
        self._reader.start()

    def _connected(self, address: str, connect_s: float, headers: dict[str, str], *, verify: bool) -> Connection:
        from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
        from websockets.sync.client import connect

        context = None
        if address.startswith("wss:") and not verify:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            socket: Connection = connect(
                address,
                additional_headers=headers,
                ssl=context,
                open_timeout=connect_s,
                close_timeout=CLOSE_S,
                ping_interval=None,  # a server that computes cannot answer; every wait has its own deadline
                compression=None,
                max_size=LARGEST,
            )
            self._stack.enter_context(socket)
        except (InvalidURI, ValueError):
            raise self.error("is not an address; give ws://host:port/path or wss://host:port/path") from None
        except InvalidStatus as error:
            raise self._refused(error) from None
        except TimeoutError:
            raise self.error(f"no connection within {connect_s:g} s; is the server running there?") from None
        except ConnectionRefusedError:
            raise self.error("connection refused; is the server running there?") from None
        except (OSError, EOFError, InvalidHandshake) as error:
            raise self.error(f"cannot be connected to: {_said(error)}") from None
        return socket

    def _refused(self, error: InvalidStatus) -> AgentError:
        response = error.response
        body = " ".join((response.body or b"").decode("utf-8", "replace").split())[:200]
        what = f"answers HTTP {response.status_code}{f' ({body})' if body else ''} instead of opening a session"
        kind = BusyError if response.status_code in BUSY else AgentError
        return kind(str(self.error(what)))

    def error(self, what: str) -> AgentError:
        """Return an error that names the agent and the address."""
        return AgentError(f"agent {self._agent}: {self._address}: {what}")

    def lost(self, what: str) -> SessionLostError:
        """Return the same for a session that broke off, and that may be had again."""
        return SessionLostError(str(self.error(what)))

    def _closed(self, closed: ConnectionClosed) -> AgentError:
        frame = closed.rcvd
        if frame is None:
            if closed.sent is not None and closed.sent.code == 1009:
                return self.error(f"sent a message of more than {LARGEST} bytes; send audio in smaller pieces")
            return self.lost("the connection was cut without being closed")
        what = f"closed the connection with code {frame.code}{f' ({frame.reason})' if frame.reason else ''}"
        return self.lost(what) if frame.code in PASSING_CLOSES else self.error(what)

    def _broke(self, error: Exception) -> SessionLostError:
        return self.lost(f"the connection broke: {_said(error)}")

    # The thread

    def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                data = self._socket.recv()
                self._messages.put(Message(data, now()))
        except ConnectionClosed as closed:
            self._ended = self._closed(closed)
        except Exception as error:
            self._ended = self._broke(error)
        self._messages.put(None)

    # The session's side

    def send(self, data: str | bytes) -> None:
        """Send a message."""
        from websockets.exceptions import ConnectionClosed

        try:
            self._socket.send(data)
        except ConnectionClosed as closed:
            raise self._closed(closed) from None
        except OSError as error:
            raise self._broke(error) from None

    def receive(self, deadline: float, what: str, mend: str) -> Message:
        """Return the next message; wait for it until ``deadline`` (of :func:`time.monotonic`).

        ``what`` has not come then, and ``mend`` is what can be done about it.
        """
        try:
            message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise self.error(f"{what}; {mend}") from None
        return self._checked(message)

    def arrived(self) -> Iterator[Message]:
        """Yield the messages that have come, without waiting. A closed connection is an error after the last of them."""
        while True:
            try:
                message = self._messages.get_nowait()
            except queue.Empty:
                return
            yield self._checked(message)

    def _checked(self, message: Message | None) -> Message:
        if message is None:
            self._messages.put(None)  # it stays closed
            assert self._ended is not None
            raise self._ended
        return message

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with suppress(OSError):
            self._stack.close()
        self._reader.join(CLOSE_S)


def patiently(open_it: Callable[[], T], wait_s: float) -> T:
    """Return what ``open_it`` returns; while it says :class:`BusyError`, ask again until ``wait_s`` has passed."""
    until = time.monotonic() + wait_s
    while True:
        try:
            return open_it()
        except BusyError:
            rest = until - time.monotonic()
            if rest <= 0:
                raise
            time.sleep(min(RETRY_S, rest))


def key_of(agent: str, key_env: str) -> str | None:
    """Return the key in an environment variable, or None where no variable is named. Raises :class:`AgentError`."""
    if not key_env:
        return None
    key = os.environ.get(key_env)
    if not key:
        raise AgentError(f"agent {agent}: the environment variable {key_env} is not set; it holds the service's key")
    return key


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
