"""``lychee_fd``: Lychee-FD behind its own service, audio up as HTTP chunks, everything down as server-sent events.

Conventions
-----------
* A chunk of 400 ms (16 kHz) is sent each 400 ms of real time, as a complete WAV; the stream of events is open before
  the first. The service is told to keep to its window, so that a late chunk does not become a long round.
* Audio (24 kHz) comes only while the model speaks, and carries no position: it is heard from when it comes, and queued
  where it comes faster than it plays. Time is never the sum of chunks.
* An interrupt of the service drops what has not been played.
* It takes no system prompt and no seed: the service has a fixed system message, and every level of a case sounds alike to it.

Source: HITsz-TMG/Lychee-FD (arXiv 2607.06540), HTTP interface; nothing here was run against its weights.
"""

from __future__ import annotations

import io
import time
import wave
from collections.abc import Sequence
from contextlib import suppress

from adapters import _wire
from adapters._wire import patiently
from adapters.lychee_fd.events import Collector
from adapters.lychee_fd.service import EventStream, Service
from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session
from dsbeval.audio import RATE, Signal, to_pcm16
from dsbeval.errors import AgentError, OptionError

HEARS = 16_000
SHORTEST_MS = 160
"""The smallest window that the service has."""


class LycheeFD(Agent):
    """The agent.

    Parameters
    ----------
    url : str
        Address of the backend: ``http://host:7860``.
    voice : str
        One of the service's voices.
    chunk_ms : int
        Length of a chunk, and the service's window.
    start_speak_factor, start_listen_factor, end_speak_factor : float
        Weights of the control tokens; the defaults are the service's.
    tts_chunk_size : int
        Speech tokens that are synthesised together.
    connect_s, timeout_s, wait_s : float
        Seconds within which a session must be open, after which a service that sends no event is dead, and for which one that
        is not ready (503) or busy (429) is asked again.
    verify : bool
        Whether the certificate of an ``https`` address is checked.
    """

    name = "lychee_fd"

    def __init__(
        self,
        url: str = "http://127.0.0.1:7860",
        voice: str = "default_female",
        chunk_ms: int = 400,
        start_speak_factor: float = 1.2,
        start_listen_factor: float = 1.2,
        end_speak_factor: float = 1.0,
        tts_chunk_size: int = 10,
        connect_s: float = 30.0,
        timeout_s: float = 30.0,
        wait_s: float = 60.0,
        verify: bool = True,
    ) -> None:
        if not str(chunk_ms).isdigit() or int(chunk_ms) < SHORTEST_MS:
            raise OptionError(
                f"--model-arg chunk_ms: is {chunk_ms!r}; the service's window is {SHORTEST_MS} ms or more"
            )
        self._url, self._chunk_ms = str(url), chunk_ms
        self._settings: dict[str, object] = {
            "start_speak_factor": start_speak_factor,
            "start_listen_factor": start_listen_factor,
            "end_speak_factor": end_speak_factor,
            "prompt_voice": str(voice),
            "tts_chunk_size": tts_chunk_size,
            "strict_infer_window": True,
            "infer_window_ms": chunk_ms,
            "incremental_backend": "auto",
        }
        self._connect_s, self._timeout_s, self._wait_s = float(connect_s), float(timeout_s), float(wait_s)
        self._verify = verify

    @property
    def capabilities(self) -> Capabilities:
        """Chunks in real time; neither a system prompt nor a seed."""
        return Capabilities(
            Interaction.CHUNKED, input_rate=HEARS, output_rate=RATE, frame=HEARS * self._chunk_ms // 1000, clock="wall",
            prompt=False, seed=False, voice=True,
        )  # fmt: skip

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a new session of the service, with its events under way."""
        service = Service(self.name, self._url, self._connect_s, self._timeout_s, verify=self._verify)
        try:
            session, window_ms = patiently(lambda: service.start(self._settings), self._wait_s)
            if window_ms not in (None, self._chunk_ms):
                raise service.error(f"takes chunks of {window_ms} ms; add --model-arg chunk_ms={window_ms}")
            return LycheeSession(service, session, service.events(session))
        except BaseException:
            service.close()
            raise


class LycheeSession(Session):
    """One session of the service."""

    def __init__(self, service: Service, name: str, stream: EventStream) -> None:
        self._service, self._name, self._stream = service, name, stream
        self._collector = Collector(service)
        self._closed = False

    def step(self, heard: Signal) -> Sequence[Emission]:
        """Send a chunk and return what has come."""
        try:
            self._service.chunk(self._name, wav(heard), time.time())
        except AgentError:
            self._arrived()  # what the service said of it is the better error
            raise
        return self._arrived()

    def finish(self) -> Sequence[Emission]:
        """Return what has come. Raises :class:`AgentError` where nothing of it could be understood, or nothing was said aloud."""
        out = self._arrived()
        self._collector.check_understood()
        self._collector.check_spoken(_wire.now())
        return out

    def cut_off(self) -> Sequence[Emission]:
        """As at the end: a session that was not understood is no silence."""
        return self.finish()

    def _arrived(self) -> Sequence[Emission]:
        for event in self._stream.arrived():
            self._collector.add(event)
        return self._collector.taken()

    def close(self) -> None:
        """Stop the session and let go of the connections."""
        if self._closed:
            return
        self._closed = True
        with suppress(AgentError):  # it may be over already
            self._service.stop(self._name)
        self._stream.close()
        self._service.close()


def wav(audio: Signal) -> bytes:
    """Return a chunk as a complete WAV file, PCM16."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(HEARS)
        file.writeframes(to_pcm16(audio).astype("<i2").tobytes())
    return out.getvalue()
