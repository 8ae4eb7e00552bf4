"""OpenAI Realtime, and servers that speak its protocol, through the official SDK.

A new connection a case. The session is asked for in the GA shape and has to come back as it was asked for. Audio goes out in
20 ms appends on the wall clock; what comes back is stamped when it arrives. Whoever decides when to speak is the service, by
its server VAD: threshold 0.5, 800 ms of silence, 300 ms of padding, as published.

Playback
--------
* ``raw`` (default, as published): nothing is cut. What has arrived plays to its end, also where the user comes in.
* ``client``: as a client with a loudspeaker does it. When the service says that the user has started to speak, what has not
  been played is dropped, and the service is told how much of its item was heard.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.gpt_realtime.address import Address, find_address
from adapters.gpt_realtime.link import Dialect, Link
from adapters.gpt_realtime.meter import Meter, read_price
from adapters.gpt_realtime.realtime import RealtimeDialect, RealtimeTalk
from adapters.gpt_realtime.session import ServiceSession
from adapters.gpt_realtime.shape import session_of
from dsbeval.agent import Agent, Capabilities, Interaction, Session, Usage
from dsbeval.audio import RATE
from dsbeval.errors import OptionError

PLAYBACKS = ("raw", "client")
APPEND = RATE // 50
"""Samples of an append: 20 ms."""
TOKEN_PRICES = ("text_in", "text_cached", "audio_in", "audio_cached", "text_out", "audio_out")


class GptRealtime(Agent):
    """A speech model behind the Realtime protocol.

    Parameters
    ----------
    model : str
        The model, or the deployment on Azure. ``checkpoint`` is the same.
    voice : str
    playback : "raw" or "client"
    threshold, silence_ms, prefix_ms : float, int, int
        Server VAD.
    base_url : str
        A compatible server, such as http://127.0.0.1:8765/v1.
    azure_endpoint, api_version : str
        An Azure resource; with a version its classic address is used, without one the ``/openai/v1`` one.
    key_env : str
        The environment variable of the key. Default: OPENAI_API_KEY, on Azure AZURE_OPENAI_API_KEY, and none for ``base_url``, so
        that the key of a paid service reaches no other host.
    concurrency : int
        Sessions at once, over all workers of a run.
    price : mapping
        US dollars a million tokens: ``{text_in: , text_cached: , audio_in: , audio_cached: , text_out: , audio_out: }``.
    unverified : str
        Fields of the session, separated by commas, that a compatible server need not echo: ``audio.output.voice,instructions``.
    default_instructions : bool
        Without a prompt, leave the service's own instructions in place. Otherwise they are set to nothing.
    timeout : float
        Seconds until a session must stand.

    Raises
    ------
    OptionError, AgentError
        For an argument that cannot be, a key or a package that is missing.
    """

    name = "gpt_realtime"

    def __init__(
        self,
        model: str = "gpt-realtime",
        voice: str = "alloy",
        playback: str = "raw",
        threshold: float = 0.5,
        silence_ms: int = 800,
        prefix_ms: int = 300,
        base_url: str = "",
        azure_endpoint: str = "",
        api_version: str = "",
        key_env: str = "",
        concurrency: int = 4,
        price: Mapping[str, float] | None = None,
        unverified: str = "",
        default_instructions: bool = False,
        timeout: float = 10.0,
        checkpoint: str | None = None,
    ) -> None:
        if playback not in PLAYBACKS:
            raise OptionError(f"--model-arg playback: {playback!r} is not one of {', '.join(PLAYBACKS)}")
        for name, value, fits in (
            ("threshold", threshold, 0 <= threshold <= 1),
            ("silence_ms", silence_ms, silence_ms > 0),
            ("prefix_ms", prefix_ms, prefix_ms >= 0),
            ("concurrency", concurrency, concurrency >= 1),
            ("timeout", timeout, timeout > 0),
        ):
            if not fits:
                raise OptionError(f"--model-arg {name}: {value!r} is out of range")
        self.concurrency = concurrency
        self._model = checkpoint or model
        self._playback = playback
        self._timeout_s = timeout
        self._default_instructions = default_instructions
        self._unverified = tuple(field.strip() for field in unverified.split(",") if field.strip())
        self._shape = session_of(voice, threshold, silence_ms, prefix_ms)
        self._address = find_address(base_url, azure_endpoint, str(api_version), key_env)
        told = {"model": self._model, "at": self._address.shown, "playback": playback}
        self._meter = Meter(told, read_price(price, TOKEN_PRICES))

    @property
    def capabilities(self) -> Capabilities:
        """24 kHz both ways, 20 ms at a time, in real time; a prompt and a voice, no seed."""
        return Capabilities(Interaction.SERVER_VAD, RATE, RATE, APPEND, clock="wall", seed=False, voice=True)

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session over a connection of its own. Raises :class:`AgentError` in the service's words."""
        asked = dict(self._shape)
        if prompt or not self._default_instructions:
            asked["instructions"] = prompt
        dialect = RealtimeDialect(self._model, asked, self._unverified)
        talk = RealtimeTalk(self._meter, client_playback=self._playback == "client", address=self._address)
        return ServiceSession(self._link(dialect), talk, self._meter, {"playback": self._playback})

    def _link(self, dialect: Dialect) -> Link:
        return Link(self._address, dialect, self._timeout_s)

    def usage(self) -> Usage:
        """Return the sessions, responses and tokens so far."""
        return self._meter.usage()


__all__ = ["APPEND", "PLAYBACKS", "Address", "GptRealtime"]
