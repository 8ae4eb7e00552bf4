"""A local server that speaks the GA Realtime protocol over real websockets.

Every event that it sends is built as the SDK's own event type, and every event that it receives is validated by the SDK's: a
field that a type does not know is refused as the service refuses it. It hears the user with a detector of its own (by
energy), keeps to the VAD settings that the session asks for, cancels a response when the user comes in, and checks
truncations against what it has sent. What it says, and what goes wrong on the wire, is a :class:`Plan`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import numpy as np
from openai import BaseModel
from openai.types import realtime as rt
from openai.types.realtime.conversation_item import ConversationItem
from openai.types.realtime.realtime_client_event import RealtimeClientEvent
from pydantic import TypeAdapter, ValidationError
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from dsbeval.audio import RATE, Signal, to_pcm16

LOUD = 0.01
"""RMS of a frame in which somebody speaks."""
DEFAULT_INSTRUCTIONS = "You are a helpful, witty and friendly AI."
CLIENT_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeClientEvent)
ITEM: TypeAdapter[Any] = TypeAdapter(ConversationItem)

BETA = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
}

Act = Callable[["Call"], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """What is said to a turn of the user.

    ``speed``: how much faster than it plays the audio is sent; infinite: at once. ``midway`` happens when ``midway_s`` of
    audio have been sent. ``late_s`` of audio come after the response is done.
    """

    audio: Signal | None
    text: str | None = "All right."
    speed: float = float("inf")
    chunk_s: float = 0.1
    midway_s: float = 0.0
    midway: Act | None = None
    late_s: float = 0.0
    usage: bool = True
    status: str = "completed"
    error: dict[str, str] | None = None


@dataclass(frozen=True)
class Plan:
    """How a connection goes: what it is refused with, how it is greeted, what it hears.

    ``answers`` are given to the turns of the user one after the other, and then no more.
    """

    answers: Sequence[Answer] = ()
    refuse: tuple[int, str, dict[str, str]] | None = None
    hangs_up: tuple[int, dict[str, str]] | None = None
    """Close code, and the error event before it, instead of a greeting."""
    update: str = "confirm"  # "confirm", "ignore"
    alter: Callable[[dict[str, Any]], None] | None = None
    first: Act | None = None
    """Happens when the first audio arrives."""
    spelling: str = "ga"  # "ga", "beta", "both"


@dataclass
class Item:
    """An item of the conversation, as the server knows it."""

    id: str
    role: str
    response: str = ""
    sent_ms: float = 0.0


@dataclass
class Call:
    """One connection: what came and went, with times."""

    server: RealtimeServer
    socket: ServerConnection
    plan: Plan
    path: str
    headers: dict[str, str]
    session: dict[str, Any] = field(default_factory=dict)
    appended: list[float] = field(default_factory=list)
    heard: list[Signal] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Client events other than audio."""
    sent: list[tuple[float, str]] = field(default_factory=list)
    items: dict[str, Item] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    closed: tuple[int | None, str] | None = None
    answered: int = 0
    _speaking: bool = False
    _quiet: float = 0.0
    _ms: float = 0.0
    _user_item: str = ""
    _response: asyncio.Task[None] | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    # Sending

    async def send(self, kind: Callable[..., BaseModel], type: str, **fields: Any) -> None:
        """Send an event of an SDK type; a field that it does not know or a value that it does not take is a fault of the test."""
        event = kind(event_id=self.server.id("event"), type=type, **fields)
        check_known(event)
        data = json.loads(event.to_json(exclude_unset=True))
        spellings = {
            "ga": [type],
            "beta": [BETA.get(type, type)],
            "both": list(dict.fromkeys([type, BETA.get(type, type)])),
        }
        for spelled in spellings[self.plan.spelling]:
            await self.send_raw(json.dumps({**data, "type": spelled}), spelled)

    async def send_raw(self, data: str, name: str = "raw") -> None:
        self.sent.append((time.monotonic(), name))
        await self.socket.send(data)

    async def error(self, message: str, type: str = "invalid_request_error", **more: Any) -> None:
        told = rt.RealtimeError(message=message, type=type, **more)
        await self.send(rt.RealtimeErrorEvent, "error", error=told)

    # The connection

    async def run(self) -> None:
        if "openai-beta" in self.headers:
            await self.error("The Realtime Beta API is no longer supported.", code="beta_api_shape_disabled")
            await self.socket.close(4000, "beta_api_shape_disabled")
            return
        if self.plan.hangs_up is not None:
            code, error = self.plan.hangs_up
            await self.error(**error)
            await self.socket.close(code, "no room")
            return
        self.session = default_session(self.path)
        await self.send(rt.SessionCreatedEvent, "session.created", session=self.session)
        try:
            async for message in self.socket:
                await self._take(message)
        except ConnectionClosed:
            pass
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.closed = (self.socket.close_code, self.socket.close_reason or "")

    async def _take(self, message: str | bytes) -> None:
        try:
            event = CLIENT_EVENT.validate_json(message)
            check_known(event)
        except (ValidationError, UnknownField) as error:
            self.refused.append(str(error))
            await self.error(f"Unknown parameter or invalid value: {error}", code="unknown_parameter")
            return
        if event.type == "input_audio_buffer.append":
            await self._append(base64.b64decode(event.audio, validate=True))
            return
        self.asked.append(json.loads(message))
        if event.type == "session.update":
            await self._update(self.asked[-1]["session"])
        elif event.type == "conversation.item.truncate":
            await self._truncate(event)

    async def _update(self, asked: dict[str, Any]) -> None:
        if "type" not in asked:
            await self.error(
                "Missing required parameter: 'session.type'.", param="session.type", code="missing_required_parameter"
            )
            return
        merge(self.session, asked)
        if self.plan.update == "ignore":
            return
        given = json.loads(json.dumps(self.session))
        if self.plan.alter is not None:
            self.plan.alter(given)
        await self.send(rt.SessionUpdatedEvent, "session.updated", session=given)

    async def _truncate(self, event: Any) -> None:
        item = self.items.get(event.item_id)
        if item is None or item.role != "assistant" or event.audio_end_ms <= 0:
            self.refused.append(f"truncate {event.item_id} at {event.audio_end_ms}")
            await self.error("Only model output audio messages can be truncated", code="invalid_value")
        elif event.audio_end_ms > item.sent_ms:
            self.refused.append(f"truncate at {event.audio_end_ms} of {item.sent_ms}")
            message = f"Audio content of {item.sent_ms:.0f}ms is already shorter than {event.audio_end_ms}ms"
            await self.error(message, code="invalid_value")
        else:
            fields = {"item_id": item.id, "content_index": event.content_index, "audio_end_ms": event.audio_end_ms}
            await self.send(rt.ConversationItemTruncatedEvent, "conversation.item.truncated", **fields)

    # Hearing

    async def _append(self, pcm: bytes) -> None:
        first = not self.appended
        self.appended.append(time.monotonic())
        audio = np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768)
        self.heard.append(audio)
        if first and self.plan.first is not None:
            self.start(self.plan.first(self))
        length = 1000 * audio.size / RATE
        self._ms += length
        vad = self.session["audio"]["input"]["turn_detection"]
        if float(np.sqrt((audio**2).mean())) > LOUD:
            self._quiet = 0.0
            if not self._speaking:
                self._speaking = True
                self._user_item = self.server.id("item")
                start = max(0, round(self._ms - length - vad["prefix_padding_ms"]))
                await self._started(start)
        elif self._speaking:
            self._quiet += length
            if self._quiet >= vad["silence_duration_ms"]:
                self._speaking = False
                await self._stopped()

    async def _started(self, at_ms: int) -> None:
        fields = {"audio_start_ms": at_ms, "item_id": self._user_item}
        await self.send(rt.InputAudioBufferSpeechStartedEvent, "input_audio_buffer.speech_started", **fields)
        if self._response is not None and not self._response.done():
            self._response.cancel()

    async def _stopped(self) -> None:
        name = self._user_item
        self.items[name] = Item(name, "user")
        fields = {"audio_end_ms": round(self._ms), "item_id": name}
        await self.send(rt.InputAudioBufferSpeechStoppedEvent, "input_audio_buffer.speech_stopped", **fields)
        await self.send(rt.InputAudioBufferCommittedEvent, "input_audio_buffer.committed", item_id=name)
        item = {
            "id": name,
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_audio"}],
        }
        await self.send(rt.ConversationItemAdded, "conversation.item.added", item=ITEM.validate_python(item))
        await self.send(rt.ConversationItemDone, "conversation.item.done", item=ITEM.validate_python(item))
        if self.answered < len(self.plan.answers):
            from tests.adapters.realtime_answers import respond

            answer = self.plan.answers[self.answered]
            self.answered += 1
            self._response = self.start(respond(self, answer))

    def start(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Do something beside the reading. A connection that is gone ends it."""

        async def quietly() -> None:
            with contextlib.suppress(ConnectionClosed):
                await work

        task = asyncio.ensure_future(quietly())
        self._tasks.add(task)
        return task


class RealtimeServer:
    """Connections get the plans in order of arrival, the last one again and again; use it as a context manager."""

    def __init__(self, *plans: Plan, key: str | None = None) -> None:
        self._plans, self._key = plans or (Plan(),), key
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: Server | None = None
        self.calls: list[Call] = []
        self.knocks: list[tuple[str, dict[str, str]]] = []
        self.open_now = self.most_open = 0

    def id(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers):04d}"

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(next(iter(self._server.sockets)).getsockname()[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> Server:
        return await serve(self._handle, "127.0.0.1", 0, process_request=self._knock, max_size=None, close_timeout=1)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def _plan(self, index: int) -> Plan:
        return self._plans[min(index, len(self._plans) - 1)]

    async def _knock(self, socket: ServerConnection, request: Request) -> Response | None:
        plan = self._plan(len(self.knocks))
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        self.knocks.append((request.path, headers))
        socket.plan = plan  # type: ignore[attr-defined]
        if self._key is not None and self._key not in (
            headers.get("authorization", "").removeprefix("Bearer "),
            headers.get("api-key"),
        ):
            return refusal(
                socket, 401, '{"error": {"message": "Incorrect API key provided: ' + self._key[:3] + '"}}', {}
            )
        return None if plan.refuse is None else refusal(socket, *plan.refuse)

    async def _handle(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        headers = {name.lower(): value for name, value in socket.request.headers.raw_items()}
        call = Call(self, socket, socket.plan, socket.request.path, headers)  # type: ignore[attr-defined]
        self.calls.append(call)
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            await call.run()
        finally:
            self.open_now -= 1


def refusal(socket: ServerConnection, status: int, body: str, headers: dict[str, str]) -> Response:
    response = socket.respond(HTTPStatus(status), body)
    for name, value in headers.items():
        response.headers[name] = value
    return response


# The protocol's types


class UnknownField(Exception):  # noqa: N818
    """A field that the SDK's type of an event does not have."""


def check_known(event: BaseModel, path: str = "") -> None:
    """Raise :class:`UnknownField` for a field that no SDK type knows; the SDK itself keeps it silently."""
    unknown = sorted(set(event.model_extra or ()) - {"id", "object", "expires_at"})
    if unknown:
        raise UnknownField(f"{path}{unknown[0]}")
    for name in event.model_fields_set:
        value = getattr(event, name)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, BaseModel):
                check_known(part, f"{path}{name}.")


def default_session(path: str) -> dict[str, Any]:
    """Return a session as the service starts it, from the SDK's type."""
    pcm = {"type": "audio/pcm", "rate": RATE}
    session = rt.RealtimeSessionCreateRequest.model_validate(
        {
            "type": "realtime",
            "model": path.partition("model=")[2] or "gpt-realtime",
            "output_modalities": ["audio"],
            "instructions": DEFAULT_INSTRUCTIONS,
            "audio": {
                "input": {
                    "format": pcm,
                    "turn_detection": {
                        "type": "server_vad",
                        "threshold": 0.5,
                        "prefix_padding_ms": 300,
                        "silence_duration_ms": 500,
                        "create_response": True,
                        "interrupt_response": True,
                    },
                },
                "output": {"format": pcm, "voice": "marin", "speed": 1.0},
            },
        }
    )
    return {"id": "sess_0001", "object": "realtime.session", **json.loads(session.to_json())}


def merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Merge a partial update, as the service does."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


def pcm_base64(audio: Signal) -> str:
    return base64.b64encode(to_pcm16(audio).tobytes()).decode()


def pieces(audio: Signal, seconds: float) -> Iterable[Signal]:
    size = max(1, int(seconds * RATE))
    return (audio[start : start + size] for start in range(0, audio.size, size))
