"""GPT-Live, OpenAI's natively full-duplex model, through the official SDK: the realtime agent with another protocol.

The model decides for itself when it speaks; there is no server VAD, no response and no event that tells the client to stop
playing, so playback is raw. Its transcript is placed when it arrives: how the service's own timeline lies on the audio is not
known here. Without a prompt the service's own instructions hold, because it takes blank ones for none.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.gpt_realtime import APPEND
from adapters.gpt_realtime.address import Address, find_address
from adapters.gpt_realtime.link import Command, Link, ask
from adapters.gpt_realtime.meter import Meter, read_price
from adapters.gpt_realtime.playback import Utterance
from adapters.gpt_realtime.session import ServiceSession
from adapters.gpt_realtime.shape import PCM, check_session
from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken, Usage
from dsbeval.audio import RATE
from dsbeval.errors import AgentError, OptionError, SessionLostError

SILENT_TEXT_S = 2.0
"""How long the first audio of a session may come behind its first words."""

_PASSING = frozenset({"expired", "connection_lost"})


class GptLive(Agent):
    """A GPT-Live model.

    Parameters
    ----------
    model : str
        ``checkpoint`` is the same.
    voice : str
    base_url, key_env, concurrency, unverified, timeout
        As for ``gpt_realtime``.
    price : mapping
        US dollars: ``{minute: }``.
    """

    name = "gpt_live"

    def __init__(
        self,
        model: str = "gpt-live-1",
        voice: str = "marin",
        base_url: str = "",
        key_env: str = "",
        concurrency: int = 4,
        price: Mapping[str, float] | None = None,
        unverified: str = "",
        timeout: float = 10.0,
        checkpoint: str | None = None,
    ) -> None:
        if concurrency < 1 or timeout <= 0:
            raise OptionError(f"--model-arg concurrency, timeout: {concurrency!r}, {timeout!r}: give positive numbers")
        self.concurrency = concurrency
        self._timeout_s = timeout
        self._unverified = tuple(field.strip() for field in unverified.split(",") if field.strip())
        self._shape = {
            "model": checkpoint or model,
            "audio": {"format": dict(PCM), "output": {"voice": voice}},
        }
        self._address = find_address(base_url, "", "", key_env)
        told = {"model": checkpoint or model, "at": self._address.shown, "playback": "raw"}
        self._meter = Meter(told, read_price(price, ("minute",)))

    @property
    def capabilities(self) -> Capabilities:
        """24 kHz both ways, 20 ms at a time, in real time; a prompt and a voice, no seed."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, RATE, RATE, APPEND, clock="wall", seed=False, voice=True)

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session over a connection of its own. Raises :class:`AgentError` in the service's words."""
        asked = {**self._shape, **({"instructions": prompt} if prompt else {})}
        link = Link(self._address, LiveDialect(asked, self._unverified), self._timeout_s)
        return ServiceSession(link, LiveTalk(self._meter, self._address), self._meter, {"playback": "raw"})

    def usage(self) -> Usage:
        """Return the sessions and the billed seconds so far."""
        return self._meter.usage()


class LiveDialect:
    """How a Live session is opened, fed and closed."""

    waits_for = "session.started"
    append_type = "session.input_audio.append"
    farewell: str | None = "session.closed"

    def __init__(self, asked: dict[str, Any], unverified: Sequence[str]) -> None:
        self._asked, self._unverified = asked, unverified

    def connect(self, client: Any, options: dict[str, Any]) -> Any:
        """Return the SDK's connection manager."""
        return client.live.connect(websocket_connection_options=options)

    async def greet(self, connection: Any, address: Address) -> dict[str, Any]:
        """Start the session, and return it once the service has confirmed every field."""
        await ask(connection.session.start(session=self._asked))
        while True:
            event = json.loads(await connection.recv_bytes())
            if event.get("type") == "error":
                raise address.refusal(event.get("error") or {})
            if event.get("type") == self.waits_for:
                given = event.get("session") or {}
                check_session(self._asked, given, self._unverified, address.shown)
                names = ["id", "model", "audio", *([] if "instructions" in self._asked else ["instructions"])]
                return {name: given.get(name) for name in names}

    async def leave(self, connection: Any) -> None:
        """End the session in order: the answer states what is billed."""
        await connection.session.close()


class LiveTalk:
    """A Live conversation, from its events."""

    def __init__(self, meter: Meter, address: Address) -> None:
        self._meter, self._address = meter, address
        self._voice = Utterance("the session")
        self._seen: Counter[str] = Counter()
        self._seconds = 0.0
        self._transcript: list[str] = []
        self._wrote_at: float | None = None

    def hear(self, event: Any, at: float) -> Sequence[Emission]:
        """Take an event. Raises :class:`AgentError` for one that ends the case."""
        name = str(getattr(event, "type", None))
        self._seen[name] += 1
        match name:
            case "error":
                told = event.error
                raise self._address.refusal(told if isinstance(told, dict) else told.to_dict())
            case "session.output_audio.delta":
                try:
                    audio = self._voice.decode(base64.b64decode(event.delta or "", validate=True))
                except (binascii.Error, ValueError, TypeError):
                    raise AgentError(f"{self._address.shown}: an audio delta is not base64") from None
                self._voice.samples += audio.size
                return (Emission(audio, arrived=at),) if audio.size else ()
            case "session.output_transcript.delta":
                self._transcript.append(str(event.delta))
                if self._wrote_at is None:
                    self._wrote_at = at
                return (Emission(text=(TextToken(str(event.delta)),), arrived=at),)
            case "session.usage.updated":
                self._bill(event)
            case "session.closed":
                self._bill(event)
                reason = getattr(event, "reason", None)
                if reason != "close_requested":
                    line = f"{self._address.shown}: the service closed the session: {reason}"
                    raise SessionLostError(line) if reason in _PASSING else AgentError(line)
        return ()

    def _bill(self, event: Any) -> None:
        """Count what was billed since the last time: the service states the sum."""
        usage = getattr(event, "usage", None)
        stated = float(getattr(usage, "seconds", None) or 0.0)
        more, self._seconds = max(0.0, stated - self._seconds), max(stated, self._seconds)
        self._meter.time(more)

    def commands(self) -> Sequence[Command]:
        """Return nothing: there is nothing to tell the service."""
        return ()

    def pass_time(self, now: float) -> Sequence[Emission]:  # noqa: ARG002
        """Return nothing: all is given out when it arrives."""
        return ()

    def end(self) -> None:
        """Raise :class:`AgentError` where the whole session was written and not said. What is billed comes with the farewell."""
        if self._wrote_at is None or self._voice.samples:
            return
        if time.monotonic() - self._wrote_at > SILENT_TEXT_S:
            raise AgentError(f"{self._address.shown}: sent a transcript but no audio; nothing was heard of it")

    def facts(self) -> dict[str, Any]:
        """Return what came of the session."""
        return {
            "audio_s": round(self._voice.samples / RATE, 3),
            "transcript": "".join(self._transcript),
            "billed_s": self._seconds,
            "events": dict(sorted(self._seen.items())),
        }
