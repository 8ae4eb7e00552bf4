"""``websocket``: any agent behind a WebSocket that speaks the frame protocol of ``docs/adapters.md``.

Conventions
-----------
* One connection a session. The server says what it is (``hello``), the client opens (``open``), the server is ``ready``.
* *Lockstep* (``"clock": "logical"``, the default): each binary frame, and ``finish``, is answered by any number of
  messages and then by ``next``; nothing is sent before that has come. How long it takes leaves no trace.
* *Real time* (``"clock": "wall"``): frames are sent when they are due, messages come when they come and are heard from
  then on; there is no ``next``.
* After ``done`` nothing is read any more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from adapters import _wire
from adapters._wire import Message, Wire, key_of, patiently
from adapters.websocket.protocol import VERSION, Collector, Hello, audio_bytes, message_of, read_hello
from dsbeval.agent import Agent, Capabilities, Emission, Session
from dsbeval.audio import Signal
from dsbeval.errors import AgentError


class WebSocketAgent(Agent):
    """The agent.

    Parameters
    ----------
    url : str
        Address of the server: ``ws://host:port/path``.
    timeout_s : float
        Seconds within which a step must be answered; in real time, after which a server that sends nothing is dead.
    connect_s : float
        Seconds within which a connection must be open and the server ready.
    wait_s : float
        Seconds for which a busy server (429, 503) is asked again.
    key_env : str
        Environment variable that holds a bearer token. Empty: none is sent.
    verify : bool
        Whether the certificate of a ``wss`` address is checked.
    """

    name = "websocket"

    def __init__(
        self,
        url: str = "",
        timeout_s: float = 60.0,
        connect_s: float = 10.0,
        wait_s: float = 30.0,
        key_env: str = "",
        verify: bool = True,
    ) -> None:
        if not url:
            raise AgentError("agent websocket: where is the server? give --model-arg url=ws://host:port/path")
        self._url = str(url)
        self._timeout_s, self._connect_s, self._wait_s = float(timeout_s), float(connect_s), float(wait_s)
        self._key_env, self._verify = str(key_env), verify
        self._hello: Hello | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the server says about itself; asked once."""
        if self._hello is None:
            wire, self._hello = self._connect()
            wire.close()
        return self._hello.capabilities

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session on a connection of its own."""
        wire, hello = self._connect()
        try:
            if self._hello is not None and hello != self._hello:
                raise wire.error("says something else in hello than before; a server declares itself once")
            self._hello = hello
            return WebSocketSession(wire, hello, prompt, seed, self._timeout_s, self._connect_s)
        except BaseException:
            wire.close()
            raise

    def _connect(self) -> tuple[Wire, Hello]:
        key = key_of(self.name, self._key_env)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}

        def connected() -> Wire:
            return Wire(self.name, self._url, connect_s=self._connect_s, headers=headers, verify=self._verify)

        wire = patiently(connected, self._wait_s)
        try:
            return wire, read_hello(wire, _answer(wire, "hello", self._connect_s))
        except BaseException:
            wire.close()
            raise


class WebSocketSession(Session):
    """One conversation on one connection."""

    def __init__(self, wire: Wire, hello: Hello, prompt: str, seed: int, timeout_s: float, ready_s: float) -> None:
        self._wire, self._hello, self._timeout_s = wire, hello, timeout_s
        self._collector = Collector(wire, hello)
        self._heard_of = _wire.now()
        wire.send(message_of("open", version=VERSION, prompt=prompt, seed=seed))
        read = _answer(wire, "ready", ready_s)
        self._collector.expect_ready(read)

    def step(self, heard: Signal) -> Sequence[Emission]:
        """Send a frame and return what the server answers to it; in real time, what has come."""
        return self._answered("a frame", audio_bytes(heard, self._hello.encoding))

    def finish(self) -> Sequence[Emission]:
        """Tell the server that the user side has ended and return what it says then."""
        return self._answered("finish", message_of("finish"))

    def _answered(self, what: str, sent: str | bytes) -> Sequence[Emission]:
        collector = self._collector
        try:
            self._wire.send(sent)
        except AgentError:
            self._drain()  # the server may have said that it is done before it left
            if not collector.complete:
                raise
        if self._hello.capabilities.clock == "wall":
            self._drain()
            return collector.taken()
        deadline = time.monotonic() + self._timeout_s
        while not collector.complete:
            late = f"{what} was not answered within {self._timeout_s:g} s (next is missing)"
            collector.add(self._wire.receive(deadline, late, "raise --model-arg timeout_s, or mend the server"))
        return collector.taken()

    def _drain(self) -> None:
        for message in self._wire.arrived():
            self._heard_of = message.at
            self._collector.add(message)
            if self._collector.complete:
                return
        if _wire.now() - self._heard_of > self._timeout_s:
            raise self._wire.error(
                f"nothing has come for {self._timeout_s:g} s; raise --model-arg timeout_s, or mend the server"
            )

    def close(self) -> None:
        """Say so and close the connection."""
        with suppress(AgentError):  # it may be closed already
            self._wire.send(message_of("close"))
        self._wire.close()


def _answer(wire: Wire, what: str, within_s: float) -> Message:
    late = f"{what} has not come within {within_s:g} s"
    mend = "raise --model-arg connect_s, or see whether the server speaks the protocol of docs/adapters.md"
    return wire.receive(time.monotonic() + within_s, late, mend)
