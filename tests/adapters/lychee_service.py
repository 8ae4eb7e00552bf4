"""A service for tests that speaks Lychee-FD's HTTP calls and events on a real socket.

Written from the description of the interface, not from its code. It is driven by its input: what it says, it says at the n-th
chunk of a session.
"""

from __future__ import annotations

import base64
import io
import json
import queue
import socket
import threading
import time
import wave
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

import numpy as np

from dsbeval.audio import Signal, to_pcm16
from tests.servers.http_thread import HttpThread

PREFIX = "/api/realtime/session"
CHUNK = 6400

Line = str | tuple[str, Any] | float | None
"""What a session says: an event, raw text, a pause in seconds; None cuts the stream."""
Plan = dict[int, list[Line]]


def pcm(audio: Signal, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Return an event with a block of audio at 24 kHz."""
    encoded = base64.b64encode(to_pcm16(audio).astype("<i2").tobytes()).decode()
    return "audio_chunk_pcm", {
        "pcm_b64": encoded,
        "sample_rate": 24_000,
        "num_samples": audio.size,
        "round_id": 1,
        **fields,
    }


def as_wav(audio: Signal, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Return the same block in the other form."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 24_000, 0, "NONE", ""))
        file.writeframes(to_pcm16(audio).astype("<i2").tobytes())
    return "audio_chunk", {"wav_b64": base64.b64encode(out.getvalue()).decode(), "round_id": 1, **fields}


def text(delta: str, seq: int | None = None, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "assistant_text", {"delta": delta, "event_id": 1, "seq": seq, "is_final": False, **fields}


def noise(seconds: float, seed: int = 0) -> Signal:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, round(seconds * 24_000)).astype(np.float32)


class Lychee:
    """The service; use it as a context manager.

    ``plans`` are of the n-th session: what it says when the n-th chunk has come (-1: when the stream is opened). ``answers`` are
    HTTP answers in place of the normal ones, by call (``"start"``, ``"events"``, ``"chunk"``), each used once.
    """

    def __init__(
        self,
        plans: Sequence[Plan] = (),
        *,
        answers: dict[str, list[tuple[int, str]]] | None = None,
        window_ms: Any = 400,
    ) -> None:
        self._plans = list(plans)
        self._answers = {call: list(given) for call, given in (answers or {}).items()}
        self._window_ms = window_ms
        self._lock = threading.Lock()
        self.started: list[dict[str, Any]] = []
        self.chunks: list[list[Signal]] = []
        self.came: list[list[float]] = []
        self.stopped: list[int] = []
        self.faults: list[str] = []
        """What the client did that the interface does not allow."""
        self.hang = threading.Event()
        self._queues: list[queue.SimpleQueue[Line]] = []
        self._listening: set[int] = set()

    # Life

    @property
    def url(self) -> str:
        return self._http.origin

    def __enter__(self) -> Self:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                service.post(self, body)

            def do_GET(self) -> None:
                service.get(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = HttpThread(Handler)
        return self

    def __exit__(self, *exception: Any) -> None:
        self.hang.set()
        for waiting in self._queues:
            waiting.put(None)
        self._http.stop()

    # The calls

    def _planned(self, handler: BaseHTTPRequestHandler, call: str) -> bool:
        with self._lock:
            given = self._answers.get(call)
            found = given.pop(0) if given else None
        if found is None:
            return False
        if found[0] == 0:
            self.hang.wait(30)
        reply(handler, *found)
        return True

    def post(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        parts = handler.path.removeprefix(PREFIX).strip("/").split("/")
        call = parts[-1]
        if self._planned(handler, call):
            return
        if call == "start":
            with self._lock:
                number = len(self.started)
                self.started.append(json.loads(body))
                self.chunks.append([])
                self.came.append([])
                self._queues.append(queue.SimpleQueue())
            known = {
                "session_id": f"s{number}",
                **({} if self._window_ms is None else {"chunk_size_ms": self._window_ms}),
            }
            reply(handler, 200, json.dumps(known))
            return
        number = int(parts[0].removeprefix("s"))
        if call == "stop":
            self.stopped.append(number)
            self._queues[number].put(("done", {}))
            reply(handler, 200, "{}")
            return
        if number not in self._listening:
            self.faults.append("a chunk before the stream of events was open")
        with wave.open(io.BytesIO(body)) as file:
            shape = (file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes())
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) * np.float32(
                1 / 32768
            )
        if shape != (16_000, 1, 2, CHUNK):
            self.faults.append(f"a chunk of {shape}")
        self.came[number].append(time.monotonic())
        self.chunks[number].append(samples)
        for line in self._plan(number).get(len(self.chunks[number]) - 1, []):
            self._queues[number].put(line)
        reply(handler, 200, "{}")

    def _plan(self, number: int) -> Plan:
        return self._plans[number] if number < len(self._plans) else {}

    def get(self, handler: BaseHTTPRequestHandler) -> None:
        if self._planned(handler, "events"):
            return
        number = int(handler.path.split("/")[-2].removeprefix("s"))
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("transfer-encoding", "chunked")
        self._listening.add(number)  # before the client can know it: its first chunk may come at once
        handler.end_headers()
        for line in self._plan(number).get(-1, []):
            self._queues[number].put(line)
        with suppress(OSError):  # the client may leave
            self._stream(handler, self._queues[number])

    def _stream(self, handler: BaseHTTPRequestHandler, lines: queue.SimpleQueue[Line]) -> None:
        def write(data: str) -> None:
            raw = data.encode()
            handler.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
            handler.wfile.flush()

        write(": open\n\n")
        while True:
            line = lines.get()
            if line is None:
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
                return
            if isinstance(line, float):
                self.hang.wait(line)
            elif isinstance(line, str):
                write(line)
            else:
                write(f"event: {line[0]}\ndata: {json.dumps(line[1])}\n\n")
                if line[0] == "done":
                    handler.wfile.write(b"0\r\n\r\n")
                    return


def reply(handler: BaseHTTPRequestHandler, status: int, body: str) -> None:
    try:
        handler.send_response(status or 200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(body.encode())))
        handler.end_headers()
        handler.wfile.write(body.encode())
    except OSError:
        handler.close_connection = True
