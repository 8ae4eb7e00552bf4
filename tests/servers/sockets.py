"""A WebSocket server in a thread: a handler a connection, and whatever the test wants it to do wrong."""

from __future__ import annotations

import http
import os
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

Handler = Callable[[ServerConnection], None]


class SocketServer:
    """A server on 127.0.0.1; use it as a context manager. ``paths`` holds the path of each request.

    ``refusals`` are HTTP answers to the first handshakes, instead of a connection: ``(status, text)``.
    """

    def __init__(self, handler: Handler, refusals: list[tuple[int, str]] | None = None) -> None:
        self._handler = handler
        self._refusals = list(refusals or [])
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.closes: list[int | None] = []
        """The code with which each connection was closed by the client; None where it was not."""

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def _handshake(self, connection: ServerConnection, request: Request) -> Response | None:
        self.paths.append(request.path)
        self.headers.append({key.lower(): value for key, value in request.headers.raw_items()})
        if not self._refusals:
            return None
        status, text = self._refusals.pop(0)
        return connection.respond(http.HTTPStatus(status), text)

    def _handle(self, connection: ServerConnection) -> None:
        try:
            self._handler(connection)
        except ConnectionClosed as closed:
            self.closes.append(closed.rcvd.code if closed.rcvd else None)
        else:
            self.closes.append(connection.protocol.close_code)

    def __enter__(self) -> Self:
        self._server: Server = serve(
            self._handle,
            "127.0.0.1",
            0,
            process_request=self._handshake,
            compression=None,
            max_size=None,
            close_timeout=1,
        )
        self.port: int = self._server.socket.getsockname()[1]
        self._conversations: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def _accept(self) -> None:
        # Not serve_forever: it waits for nobody when it ends, and keeps its descriptors open.
        while True:
            try:
                accepted = self._server.socket.accept()
            except OSError:
                return
            self._conversations.append(threading.Thread(target=self._server.handler, args=accepted, daemon=True))
            self._conversations[-1].start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.socket.close()
        self._thread.join()
        for conversation in self._conversations:
            conversation.join(2.0)
        for end in (self._server.shutdown_watcher, self._server.shutdown_notifier):
            if isinstance(end, int):
                os.close(end)
            else:
                end.close()


def cut(connection: ServerConnection) -> None:
    """Break a connection without closing it, as a server that dies does."""
    connection.socket.shutdown(2)
