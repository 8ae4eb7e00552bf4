"""The messages of the frame protocol, version 1: what they hold, and what is said of one that is wrong.

A text message is a JSON object with a ``type``; a binary message is audio. ``docs/adapters.md`` describes them all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

import numpy as np

from adapters._wire import Message, Wire
from dsbeval.agent import NO_AUDIO, Capabilities, Emission, TextToken
from dsbeval.audio import Signal, to_pcm16
from dsbeval.errors import AgentError, near

VERSION = 1
Encoding = Literal["float32", "pcm16"]
_WIDTH = {"float32": 4, "pcm16": 2}
_DECLARED = {field.name: field.type for field in fields(Capabilities) if field.name != "privileged"}
_FROM_SERVER = ("hello", "ready", "text", "flush", "next", "done", "error")


@dataclass(frozen=True, slots=True)
class Hello:
    """What a server says of itself."""

    capabilities: Capabilities
    encoding: Encoding


def message_of(kind: str, **values: Any) -> str:
    """Return a text message."""
    return json.dumps({"type": kind, **values}, ensure_ascii=False)


def audio_bytes(audio: Signal, encoding: Encoding) -> bytes:
    """Return audio as it goes over the wire: mono, little-endian."""
    return audio.astype("<f4").tobytes() if encoding == "float32" else to_pcm16(audio).astype("<i2").tobytes()


def audio_of(data: bytes, encoding: Encoding) -> Signal | None:
    """Return the audio of a binary message; None where it is no whole number of samples."""
    if len(data) % _WIDTH[encoding]:
        return None
    if encoding == "float32":
        return np.frombuffer(data, "<f4").astype(np.float32)
    return (np.frombuffer(data, "<i2").astype(np.float32) / 32768.0).astype(np.float32)


def parse(wire: Wire, message: Message) -> dict[str, Any]:
    """Return a text message of the server. Raises :class:`AgentError` for one that is none, or an error of the server."""
    if isinstance(message.data, bytes):
        raise wire.error(f"sent {len(message.data)} bytes of audio where it must say hello or ready")
    try:
        data = json.loads(message.data)
    except ValueError:
        raise wire.error(f"sent a text that is not JSON: {message.data[:80]!r}") from None
    kind = data.get("type") if isinstance(data, dict) else None
    if kind not in _FROM_SERVER:
        raise wire.error(f"sent a message of type {kind!r}; {near(str(kind), _FROM_SERVER)}")
    if kind == "error":
        raise wire.error(f"says: {' '.join(str(data.get('message', 'an error without a message')).split())}")
    return cast("dict[str, Any]", data)


def read_hello(wire: Wire, message: Message) -> Hello:
    """Return what a server declares. Raises :class:`AgentError` naming the field that is wrong."""
    data = parse(wire, message)
    if data["type"] != "hello":
        raise wire.error(f"began with {data['type']!r}; a server begins with hello")
    if data.get("version") != VERSION:
        raise wire.error(f"speaks version {data.get('version')!r} of the protocol; {VERSION} is needed")
    encoding = data.get("encoding", "float32")
    if encoding not in _WIDTH:
        raise wire.error(f"hello: encoding: is {encoding!r}; it is float32 or pcm16")
    return Hello(_capabilities(wire, data.get("capabilities")), encoding)


def _capabilities(wire: Wire, declared: object) -> Capabilities:
    if not isinstance(declared, Mapping):
        raise wire.error("hello: capabilities: is missing; declare at least interaction")
    for name, value in declared.items():
        if name not in _DECLARED:
            raise wire.error(f"hello: capabilities.{name}: is not known; {near(str(name), _DECLARED)}")
        if "bool" in str(_DECLARED[name]) and not isinstance(value, bool):
            raise wire.error(f"hello: capabilities.{name}: is {value!r}; true or false is needed")
    if declared.get("clock", "logical") not in ("logical", "wall"):
        raise wire.error(f"hello: capabilities.clock: is {declared['clock']!r}; it is logical or wall")
    delay = declared.get("output_delay")
    if delay is not None and (not isinstance(delay, int) or delay < 0):
        raise wire.error(
            f"hello: capabilities.output_delay: is {delay!r}; a number of input samples is needed, or null"
        )
    try:
        return Capabilities(**{"interaction": None, **declared})
    except ValueError as error:
        raise wire.error(f"hello: capabilities.interaction: {error}") from None
    except AgentError as error:
        raise wire.error(f"hello: {error}") from None


class Collector:
    """What has come since it was last asked, made into emissions.

    Text comes with the audio that follows it; what no audio follows is an emission of its own.
    """

    def __init__(self, wire: Wire, hello: Hello) -> None:
        self._wire, self._encoding = wire, hello.encoding
        self._wall = hello.capabilities.clock == "wall"
        self._out: list[Emission] = []
        self._text: list[TextToken] = []
        self._flush = False
        self._at = 0.0
        self.complete = False
        """Whether the answer is whole, or the conversation over."""
        self._done = False

    def expect_ready(self, message: Message) -> None:
        """Raise :class:`AgentError` where the message is not ``ready``."""
        kind = parse(self._wire, message)["type"]
        if kind != "ready":
            raise self._wire.error(f"answered open with {kind!r}; it answers ready, or error with a message")

    def add(self, message: Message) -> None:
        """Take a message."""
        self._at = message.at
        if isinstance(message.data, bytes):
            audio = audio_of(message.data, self._encoding)
            if audio is None:
                what = f"{len(message.data)} bytes, which is no whole number of {self._encoding} samples"
                raise self._wire.error(f"sent a binary message of {what}")
            self._emit(audio)
            return
        data = parse(self._wire, message)
        match data["type"]:
            case "text":
                self._text.append(self._token(data))
            case "flush" if self._wall:  # what came before it may have been heard
                self._out.append(Emission(flush=True, arrived=self._at))
            case "flush":
                self._out.clear()
                self._text.clear()
                self._flush = True
            case "next":
                self.complete = True
            case "done":
                self._done = self.complete = True
            case kind:
                raise self._wire.error(f"sent {kind!r} in the middle of a session")

    def _token(self, data: Mapping[str, Any]) -> TextToken:
        text, offset = data.get("text"), data.get("offset_s", 0.0)
        if not isinstance(text, str):
            raise self._wire.error(f"text: is {text!r}; a string is needed")
        if isinstance(offset, bool) or not isinstance(offset, (int, float)) or not 0 <= offset < 3600:
            raise self._wire.error(f"text: offset_s: is {offset!r}; seconds from the start of the audio are needed")
        return TextToken(text, float(offset))

    def _emit(self, audio: Signal = NO_AUDIO, *, done: bool = False) -> None:
        arrived = self._at if self._wall else None
        self._out.append(Emission(audio, tuple(self._text), done=done, flush=self._flush, arrived=arrived))
        self._text.clear()
        self._flush = False

    def taken(self) -> tuple[Emission, ...]:
        """Return the emissions in their order and begin anew."""
        if self._text or self._flush or self._done:
            self._emit(done=self._done)
        out = tuple(self._out)
        self._out.clear()
        self.complete = False
        return out
