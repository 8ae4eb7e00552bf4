"""A local server that speaks the GPT-Live protocol as far as a conversation needs it, built from the SDK's event types.

It proves the wire exchange and nothing about the service: its audio is paced, and billed, as the test says.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
from openai import BaseModel
from openai.types import live
from openai.types.live.client_event import ClientEvent
from pydantic import TypeAdapter
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from dsbeval.audio import RATE, Signal
from tests.adapters.realtime_server import check_known, pcm_base64, refusal

CLIENT_EVENT: TypeAdapter[Any] = TypeAdapter(ClientEvent)


@dataclass(frozen=True)
class Line:
    """What the model says of its own accord, ``at_s`` after the first audio of the user."""

    at_s: float
    audio: Signal
    text: str


@dataclass
class LiveServer:
    """``lines`` are said in every session; ``ends`` closes it with a reason after the last; ``altered`` is confirmed instead.

    ``act`` happens after the last line; ``status`` is what a handshake is refused with; ``starts``: whether it ever says so.
    """

    lines: Sequence[Line] = ()
    ends: str | None = None
    refuse: str | None = None
    altered: dict[str, Any] = field(default_factory=dict)
    act: Callable[[ServerConnection], Awaitable[None]] | None = None
    status: tuple[int, dict[str, str]] | None = None
    starts: bool = True
    paths: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    heard: list[Signal] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    _server: Server | None = None
    _session: dict[str, Any] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def start() -> Server:
            return await serve(self._handle, "127.0.0.1", 0, process_request=self._knock, close_timeout=1)

        self._server = asyncio.run_coroutine_threadsafe(start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def stop() -> None:
            assert self._server is not None
            self._server.close()
            await self._server.wait_closed()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _knock(self, socket: ServerConnection, request: Request) -> Response | None:
        return None if self.status is None else refusal(socket, self.status[0], "Slow down.", self.status[1])

    async def _send(self, socket: ServerConnection, kind: Callable[..., BaseModel], type: str, **fields: Any) -> None:
        event = kind(type=type, **fields)
        check_known(event)
        await socket.send(event.to_json(exclude_unset=True))

    async def _handle(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.paths.append(socket.request.path)
        speaking: asyncio.Task[None] | None = None
        try:
            async for message in socket:
                event = CLIENT_EVENT.validate_json(message)
                check_known(event)
                if event.type == "session.input_audio.append":
                    pcm = base64.b64decode(event.audio, validate=True)
                    self.heard.append(np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768))
                    speaking = speaking or asyncio.ensure_future(self._speak(socket))
                    continue
                self.asked.append(json.loads(message))
                if event.type == "session.start":
                    await self._start(socket)
                elif event.type == "session.close":
                    await self._closed(socket, "close_requested")
        except ConnectionClosed:
            pass
        finally:
            if speaking is not None:
                speaking.cancel()
                await asyncio.gather(speaking, return_exceptions=True)

    async def _start(self, socket: ServerConnection) -> None:
        if self.refuse is not None:
            error = {"code": "invalid_voice", "message": self.refuse, "type": "invalid_request_error"}
            await self._send(socket, live.ErrorEvent, "error", event_id="e0", error=error)
            return
        if not self.starts:
            return
        told = {"id": "live_1", "expires_at": 2_000_000_000, "status": "active", **self.asked[-1]["session"]}
        self._session = {"instructions": "Be yourself.", **told, **self.altered}
        await self._send(socket, live.SessionStartedEvent, "session.started", event_id="e1", session=self._session)

    async def _speak(self, socket: ServerConnection) -> None:
        begun = time.monotonic()
        try:
            for number, line in enumerate(self.lines):
                await asyncio.sleep(max(0.0, begun + line.at_s - time.monotonic()))
                times = {"start_ms": int(line.at_s * 1000), "end_ms": int((line.at_s + line.audio.size / RATE) * 1000)}
                kind = live.OutputTranscriptDeltaEvent
                name = "session.output_transcript.delta"
                if line.text:
                    await self._send(socket, kind, name, event_id=f"t{number}", delta=line.text, **times)
                self.sent.append(time.monotonic())
                delta = pcm_base64(line.audio)
                if not line.audio.size:
                    continue
                await self._send(socket, live.OutputAudioDeltaEvent, "session.output_audio.delta", delta=delta)
                usage = {"seconds": float(number + 1)}
                await self._send(
                    socket, live.SessionUsageUpdatedEvent, "session.usage.updated", event_id=f"u{number}", usage=usage
                )
            if self.act is not None:
                await self.act(socket)
            if self.ends is not None:
                await self._closed(socket, self.ends)
        except ConnectionClosed:
            pass

    async def _closed(self, socket: ServerConnection, reason: str) -> None:
        facts = {"reason": reason, "session": self._session, "usage": {"seconds": 30.0}}
        await self._send(socket, live.SessionClosedEvent, "session.closed", event_id="e9", **facts)
        await socket.close()
