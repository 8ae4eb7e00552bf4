"""A gateway for tests that speaks Raon's frames on a real socket, and is as strict about them as the real one is said to be.

It echoes: the answer to a frame is the frame before it. Written from the description of the protocol, not from its code.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from websockets.sync.server import ServerConnection

from tests.servers.sockets import SocketServer, cut

FRAME_BYTES = 1920 * 4
READY, AUDIO, TEXT, SEQ_DELTA, ERROR, CLOSE, PING, PONG = (bytes([k]) for k in (0, 1, 2, 4, 5, 6, 7, 8))

Act = Callable[["Gateway", ServerConnection, bytes], bool | None]
"""What is done at a frame; True: in place of the echo."""


class Gateway(SocketServer):
    """``acts`` are of the n-th conversation: what is done at ``"ready"`` or at the n-th frame."""

    def __init__(
        self,
        acts: Sequence[dict[object, Act]] = (),
        *,
        quiet_s: float = 0.0,
        refusals: list[tuple[int, str]] | None = None,
    ) -> None:
        super().__init__(self._chat, refusals)
        self._acts = list(acts)
        self._quiet_s = quiet_s
        self._lock = threading.Lock()
        self.queries: list[dict[str, str]] = []
        self.faults: list[str] = []
        """What the client did that a gateway does not allow."""
        self.came: list[list[float]] = []
        """When each frame of each conversation came."""
        self.pongs: list[bytes] = []
        self.goodbyes: list[bytes] = []
        self.hang = threading.Event()

    @property
    def url(self) -> str:
        return f"{super().url}/ws/chat"

    def __exit__(self, *exception: Any) -> None:
        self.hang.set()
        super().__exit__(*exception)

    def _chat(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        with self._lock:
            number = len(self.queries)
            self.queries.append(dict(parse_qsl(urlsplit(socket.request.path).query, keep_blank_values=True)))
            self.came.append([])
        acts = self._acts[number] if number < len(self._acts) else {}
        if self._quiet_s:
            try:
                socket.recv(timeout=self._quiet_s)
                self.faults.append("a frame before READY")
            except TimeoutError:
                pass
        if (act := acts.get("ready")) is None or not act(self, socket, b""):
            socket.send(READY)
        before = bytes(FRAME_BYTES)
        for message in socket:
            if isinstance(message, str) or message[:1] not in (AUDIO, CLOSE, PONG):
                self.faults.append(f"a client frame of kind {message[:1]!r}")
                socket.send(CLOSE + b"invalid_client_frame")
                return
            if message[:1] == CLOSE:
                self.goodbyes.append(message[1:])
                return
            if message[:1] == PONG:
                self.pongs.append(message[1:])
                continue
            if len(message) != 1 + FRAME_BYTES:
                self.faults.append(f"a frame of {len(message) - 1} bytes")
            came = self.came[number]
            came.append(time.monotonic())
            act = acts.get(len(came) - 1)
            if act is None or not act(self, socket, before):
                socket.send(AUDIO + before)
            before = message[1:]


# What may happen at a frame


def sends(*frames: bytes) -> Act:
    """Send frames of the gateway before the echo."""

    def act(gateway: Gateway, socket: ServerConnection, before: bytes) -> None:
        for frame in frames:
            socket.send(frame)

    return act


def instead(*frames: bytes) -> Act:
    """Send frames of the gateway in place of the echo."""

    def act(gateway: Gateway, socket: ServerConnection, before: bytes) -> bool:
        for frame in frames:
            socket.send(frame)
        return True

    return act


def cuts(gateway: Gateway, socket: ServerConnection, before: bytes) -> bool:
    socket.send(AUDIO + before[:400])
    cut(socket)
    return True


def closes(code: int, reason: str = "", said: bytes = b"") -> Act:
    def act(gateway: Gateway, socket: ServerConnection, before: bytes) -> bool:
        if said:
            socket.send(said)
        socket.close(code, reason)
        return True

    return act


def hangs(gateway: Gateway, socket: ServerConnection, before: bytes) -> bool:
    gateway.hang.wait(30)
    return True


def stalls(seconds: float) -> Act:
    def act(gateway: Gateway, socket: ServerConnection, before: bytes) -> None:
        gateway.hang.wait(seconds)

    return act


def silence(frames: int = 1) -> bytes:
    return np.zeros(1920 * frames, "<f4").tobytes()
