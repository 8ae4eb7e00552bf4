"""A server of the frame protocol for tests: an echo that is told what to do wrong at which frame."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from websockets.sync.server import ServerConnection

from dsbeval.audio import Signal
from tests.servers.sockets import SocketServer, cut

FRAME = 480
CAPABILITIES: dict[str, Any] = {"interaction": "frame_synchronous", "frame": FRAME}

Act = Callable[["Peer", ServerConnection], bool | None]
"""What a peer does at a frame, in place of the echo; True: it has answered the frame itself, with ``next`` or without."""


class Peer(SocketServer):
    """Echoes each frame. ``acts`` are of the n-th conversation: what is done at ``"open"``, ``"finish"`` or a frame."""

    def __init__(
        self,
        acts: Sequence[dict[object, Act]] = (),
        *,
        hello: dict[str, Any] | str | None = None,
        refusals: list[tuple[int, str]] | None = None,
        **capabilities: Any,
    ) -> None:
        super().__init__(self._talk, refusals)
        self.capabilities = {**CAPABILITIES, **capabilities}
        self.hello: dict[str, Any] | str = hello or {"type": "hello", "version": 1, "capabilities": self.capabilities}
        self.opened: list[dict[str, Any]] = []
        self.frames: list[int] = []
        self._acts = list(acts)
        self._lock = threading.Lock()
        self.hang = threading.Event()
        """What a peer waits for that never answers; set when the test is over."""

    @property
    def wall(self) -> bool:
        return self.capabilities.get("clock") == "wall"

    def __exit__(self, *exception: Any) -> None:
        self.hang.set()
        super().__exit__(*exception)

    def say(self, socket: ServerConnection, kind: str, **values: Any) -> None:
        socket.send(json.dumps({"type": kind, **values}))

    def next(self, socket: ServerConnection) -> None:
        if not self.wall:
            self.say(socket, "next")

    def _talk(self, socket: ServerConnection) -> None:
        socket.send(self.hello if isinstance(self.hello, str) else json.dumps(self.hello))
        acts: dict[object, Act] = {}
        number = heard = 0
        for message in socket:
            at: object
            if isinstance(message, bytes):
                at, heard = heard, heard + 1
                assert len(message) in (4 * FRAME, 2 * FRAME)
            else:
                at = json.loads(message)["type"]
                if at == "open":
                    with self._lock:
                        number = len(self.opened)
                        self.opened.append(json.loads(message))
                        self.frames.append(0)
                    acts = self._acts[number] if number < len(self._acts) else {}
            self.frames[number] = heard
            act = acts.get(at)
            if act is not None and act(self, socket):
                continue
            if at == "open":
                self.say(socket, "ready")
            elif isinstance(message, bytes):
                socket.send(message)
                self.next(socket)
            elif at == "finish":
                self.next(socket)


# What can go wrong


def cuts(peer: Peer, socket: ServerConnection) -> bool:
    socket.send(tone(0.1).tobytes())
    cut(socket)
    return True


def closes(code: int, reason: str = "") -> Act:
    def act(peer: Peer, socket: ServerConnection) -> bool:
        socket.close(code, reason)
        return True

    return act


def says(kind: str, **values: Any) -> Act:
    """Say something and leave it at that: ``next`` is not sent."""

    def act(peer: Peer, socket: ServerConnection) -> bool:
        peer.say(socket, kind, **values)
        return True

    return act


def sends(*messages: str | bytes) -> Act:
    """Send messages, and then ``next``."""

    def act(peer: Peer, socket: ServerConnection) -> bool:
        for message in messages:
            socket.send(message)
        peer.next(socket)
        return True

    return act


def hangs(peer: Peer, socket: ServerConnection) -> bool:
    peer.hang.wait(30)
    return True


def stalls(seconds: float) -> Act:
    def act(peer: Peer, socket: ServerConnection) -> None:
        peer.hang.wait(seconds)

    return act


def tone(seconds: float, rate: int = 24_000) -> Signal:
    time = np.arange(int(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)
