"""``raon``: Raon-SpeechChat behind its gateway, over the gateway's own frames.

Conventions
-----------
* 24 kHz float32 both ways, a frame is 1,920 samples. Exactly one frame is sent a tick of 80 ms of real time, and none before
  the gateway is READY: a backlog is dropped there without a word.
* Every frame that is sent is answered by one, silence included, so the answer lies on the timeline of the input: it is placed
  by counting samples, one frame after what it answers, and not by when it came. Where it comes more than
  :data:`BUFFER_S` after it is due, what a listener would have heard is a hole, and counting begins anew from there.
* A text delta comes with the audio that follows it. Structural tokens are taken out, a line break is a blank.
* An ERROR of the gateway is an *error* of the case, also where it would go on with a silent frame in place of the model's.
  Where it names a trouble of the gateway that may pass (overload, a worker that died), the case is begun again.
* It takes no seed: two runs differ.

Source: krafton-ai/Raon-SpeechChat-Demo, gateway and protocol; nothing here was run against its weights.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from adapters import _wire
from adapters._wire import BusyError, Message, Wire, patiently
from adapters.raon.text import TextFilter
from adapters.raon.wire import SILENT, Kind, address_of, packed, query_of, unpacked
from dsbeval.agent import NO_AUDIO, Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError, OptionError, near

FRAME = 1920
BUFFER_S = 0.24
"""The play-out buffer: three frames, which is what the gateway puts together at most."""
STYLES = ("custom", "raon_persona", "raon_persona_context")
OPENERS = ("auto", "listen", "speak")
_NO_WORKER = "no workers available"
_PASSING = ("overloaded_backlog", "worker_unhealthy", "idle_timeout", "internal_error")
"""Reasons of the gateway's own, in an ERROR or a CLOSE, that another session may not meet."""


class Raon(Agent):
    """The agent.

    Parameters
    ----------
    url : str
        Address of the gateway's chat: ``wss://host:8082/ws/chat``.
    style : str
        Where the system prompt goes: ``custom`` verbatim; ``raon_persona`` and ``raon_persona_context`` as the persona in
        the model's own template, with ``context`` beside it.
    context : str
        The context of ``raon_persona_context``.
    first : str
        ``listen`` or ``speak`` first; ``auto``: speaks first where the prompt says that it begins the conversation.
    voice : str
        Key of a speaker that the gateway has recorded. Empty: its default; ``none``: no speaker.
    temperature, top_k, top_p, eos_penalty, bc_penalty : float, int
        Sampling; the defaults are the gateway's.
    ready_s, timeout_s, wait_s : float
        Seconds within which it must be READY, after which a gateway that sends no audio is dead, and for which one without
        a free worker is asked again.
    verify : bool
        Whether its certificate is checked; a gateway makes its own, so that takes false.
    """

    name = "raon"

    def __init__(
        self,
        url: str = "wss://127.0.0.1:8082/ws/chat",
        style: str = "custom",
        context: str = "",
        first: str = "auto",
        voice: str = "",
        temperature: float = 0.7,
        top_k: int = 50,
        top_p: float = 0.8,
        eos_penalty: float = 0.0,
        bc_penalty: float = 0.0,
        ready_s: float = 60.0,
        timeout_s: float = 10.0,
        wait_s: float = 60.0,
        verify: bool = True,
    ) -> None:
        for option, value, known in (("style", style, STYLES), ("first", first, OPENERS)):
            if value not in known:
                raise OptionError(
                    f"--model-arg {option}: {value!r} is not one of {', '.join(known)}; {near(value, known)}"
                )
        if context and style != "raon_persona_context":
            raise OptionError("--model-arg context: is read with style=raon_persona_context alone")
        self._url, self._style, self._context, self._first, self._voice = (
            str(url),
            style,
            str(context),
            first,
            str(voice),
        )
        self._sampling: dict[str, object] = {
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "eos_penalty": eos_penalty, "bc_penalty": bc_penalty,
        }  # fmt: skip
        self._ready_s, self._timeout_s, self._wait_s = float(ready_s), float(timeout_s), float(wait_s)
        self._verify = verify

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames in real time."""
        return Capabilities(
            Interaction.FRAME_SYNCHRONOUS,
            input_rate=RATE,
            output_rate=RATE,
            frame=FRAME,
            clock="wall",
            seed=False,
            voice=True,
        )

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session on a connection of its own, once the gateway is READY."""
        query = query_of(
            prompt,
            style=self._style,
            context=self._context,
            first=self._first,
            voice=self._voice,
            sampling=self._sampling,
        )
        address = address_of(self._url, query)

        def opened() -> RaonSession:
            wire = Wire(self.name, address, connect_s=self._ready_s, verify=self._verify)
            try:
                return RaonSession(wire, self._ready_s, self._timeout_s)
            except BaseException:
                wire.close()
                raise

        return patiently(opened, self._wait_s)


class RaonSession(Session):
    """One conversation on one connection; made when the gateway is READY."""

    def __init__(self, wire: Wire, ready_s: float, timeout_s: float) -> None:
        self._wire, self._timeout_s = wire, timeout_s
        self._filter = TextFilter()
        self._text: list[TextToken] = []
        self._origin = self._heard_of = 0.0
        self._begun = False
        self._received = 0
        self._await_ready(ready_s)

    def _await_ready(self, ready_s: float) -> None:
        deadline = time.monotonic() + ready_s
        while True:
            late = f"is not READY within {ready_s:g} s"
            message = self._wire.receive(deadline, late, "raise --model-arg ready_s; /health says why")
            kind, _ = self._read(message)
            if kind is Kind.READY:
                return
            if kind is Kind.AUDIO:
                raise self._wire.error("sent audio before it was READY")

    def step(self, heard: Signal) -> Sequence[Emission]:
        """Send a frame and return what has come."""
        at = _wire.now()
        if not self._begun:  # the first frame has just ended; what answers it is heard from here on
            self._begun, self._origin, self._heard_of = True, at, at
        try:
            self._wire.send(packed(Kind.AUDIO, heard.astype("<f4").tobytes()))
        except AgentError:
            self._arrived()  # what it said before it left is the better error
            raise
        out = self._arrived()
        if at - self._heard_of > self._timeout_s:
            raise self._wire.error(
                f"has sent no audio for {self._timeout_s:g} s; raise --model-arg timeout_s, or see /health"
            )
        return out

    def finish(self) -> Sequence[Emission]:
        """Return what has come, with the words whose audio has not; the frames under way would play after the end."""
        out = self._arrived()
        return (*out, Emission(text=tuple(self._text), arrived=self._due())) if self._text else out

    def _arrived(self) -> Sequence[Emission]:
        out: list[Emission] = []
        for message in self._wire.arrived():
            kind, payload = self._read(message)
            if kind is Kind.AUDIO:
                out.append(self._placed(payload, message.at))
            elif kind is Kind.TEXT:
                if said := self._filter.push(payload):
                    self._text.append(TextToken(said))
            elif kind is Kind.READY:
                raise self._wire.error("said READY a second time")
        return tuple(out)

    def _placed(self, payload: bytes, at: float) -> Emission:
        """Return audio with the time at which it is heard: by counting samples, or anew where it is later than the buffer."""
        if len(payload) % 4:
            raise self._wire.error(f"sent {len(payload)} bytes of audio, which is no whole number of float32 samples")
        audio = np.frombuffer(payload, "<f4").astype(np.float32) if payload else NO_AUDIO
        due = self._due()
        if at - due > BUFFER_S:
            self._origin += at - due
            due = at
        self._received += audio.size
        self._heard_of = at
        text, self._text = tuple(self._text), []
        return Emission(audio, text, arrived=due)

    def _due(self) -> float:
        """Return when the next sample is to be heard."""
        return self._origin + self._received / RATE

    def _read(self, message: Message) -> tuple[Kind, bytes]:
        """Return a frame of the gateway; answer a ping, and raise where it says that something is wrong."""
        if isinstance(message.data, str):
            raise self._wire.error(f"sent a text message ({message.data[:60]!r}); its frames are binary")
        found = unpacked(message.data)
        if found is None:
            raise self._wire.error(
                f"sent a frame of unknown kind ({message.data[:1].hex() or 'empty'}); is this a gateway?"
            )
        kind, payload = found
        said = " ".join(payload.decode("utf-8", "replace").split())
        if kind is Kind.ERROR:
            error = self._error(said, f"says: {said or 'an error without a message'}")
            raise BusyError(str(error)) if _NO_WORKER in said.lower() else error
        if kind is Kind.CLOSE:
            raise self._error(said, f"closed the conversation: {said or 'no reason given'}")
        if kind is Kind.PING:
            self._wire.send(packed(Kind.PONG, payload))
        return (Kind.SEQ_TRACE, b"") if kind in SILENT else (kind, payload)

    def _error(self, said: str, what: str) -> AgentError:
        passing = any(reason in said.lower() for reason in _PASSING)
        return self._wire.lost(what) if passing else self._wire.error(what)

    def close(self) -> None:
        """Say so and close the connection."""
        with suppress(AgentError):  # it may be closed already
            self._wire.send(packed(Kind.CLOSE, b"client_disconnect"))
        self._wire.close()
