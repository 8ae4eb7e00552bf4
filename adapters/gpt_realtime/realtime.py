"""The Realtime protocol: the session asked for in the GA shape, and what its events mean.

Conventions
-----------
* Events are told apart by the string of their type, in the GA spelling or the beta one. A server that sends both spellings of
  the same thing is heard in the first one only.
* Deltas belong to their response and item: one that comes after the response is done still plays, unless the client has
  dropped that response.
* An ``error`` event ends the case, in the service's words; so does a failed response. Some say that the case may be had again
  (:mod:`adapters.gpt_realtime.address`).
* A response that is complete and has text but no audio is an error: the service did not say what it wrote. Audio without text
  is kept, and the recording says so.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.gpt_realtime.address import Address
from adapters.gpt_realtime.link import Command, ask
from adapters.gpt_realtime.meter import Meter
from adapters.gpt_realtime.playback import Playhead, Utterance, spoken
from adapters.gpt_realtime.shape import check_session
from dsbeval.agent import Emission
from dsbeval.audio import RATE
from dsbeval.errors import AgentError
from dsbeval.usage import UNCOUNTED

SILENT_TEXT_S = 2.0
"""How long the audio of a response that is done, and has text only, is waited for."""

_BETA = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
}


class RealtimeDialect:
    """How a session is opened and fed."""

    waits_for = "session.updated"
    append_type = "input_audio_buffer.append"
    farewell: str | None = None

    def __init__(self, model: str, asked: dict[str, Any], unverified: Sequence[str]) -> None:
        self._model, self._asked, self._unverified = model, asked, unverified

    def connect(self, client: Any, options: dict[str, Any]) -> Any:
        """Return the SDK's connection manager."""
        return client.realtime.connect(model=self._model, websocket_connection_options=options)

    async def greet(self, connection: Any, address: Address) -> dict[str, Any]:
        """Ask for the session, and return it once the service has confirmed every field."""
        await ask(connection.session.update(session=self._asked))
        while True:
            event = json.loads(await connection.recv_bytes())
            if event.get("type") == "error":
                raise address.refusal(event.get("error") or {})
            if event.get("type") == "session.updated":
                given = event.get("session") or {}
                check_session(self._asked, given, self._unverified, address.shown)
                kept = {name: given.get(name) for name in ("id", "model", "audio") if given.get(name) is not None}
                if "instructions" not in self._asked:
                    kept["instructions"] = given.get("instructions")
                return kept

    async def leave(self, connection: Any) -> None:
        """Do nothing: the protocol has no farewell."""


@dataclass
class _Response:
    """A response of the service."""

    utterances: dict[str, Utterance] = field(default_factory=dict)
    status: str | None = None
    reason: str | None = None
    dropped: bool = False
    """The client has stopped playing it."""


class RealtimeTalk:
    """A conversation, from its events."""

    def __init__(self, meter: Meter, *, client_playback: bool, address: Address) -> None:
        self._meter, self._client, self._address = meter, client_playback, address
        self._responses: dict[str, _Response] = {}
        self._head = Playhead()
        self._commands: list[Command] = []
        self._spelling: dict[str, str] = {}
        self._seen: Counter[str] = Counter()
        self._user: list[dict[str, Any]] = []
        self._truncated: list[dict[str, Any]] = []
        self._tokens: Counter[str] = Counter()
        self._marks: Counter[str] = Counter()
        self._silent: dict[str, float] = {}
        self._ended = False
        self._reset_s: float | None = None

    # Events

    def hear(self, event: Any, at: float) -> Sequence[Emission]:
        """Take an event. Raises :class:`AgentError` for one that ends the case."""
        said = str(getattr(event, "type", None))
        name = _BETA.get(said, said)
        self._seen[said] += 1
        if name in _BETA.values() and self._spelling.setdefault(name, said) != said:
            return ()  # the other spelling of what has been heard
        match name:
            case "error":
                raise self._address.refusal(_plain(getattr(event, "error", None)), self._reset_s)
            case "rate_limits.updated":
                self._reset_s = _reset(getattr(event, "rate_limits", None))
            case "response.created":
                self._response(_get(event, "response", "id"))
            case "response.output_audio.delta":
                return self._audio(event, at)
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                self._utterance(event).words.append(str(getattr(event, "delta", None) or ""))
            case "response.output_audio_transcript.done":
                spoken_item = self._utterance(event)
                if not spoken_item.words and getattr(event, "transcript", None):
                    spoken_item.words.append(str(event.transcript))
            case "response.done":
                self._done(event, at)
            case "input_audio_buffer.speech_started":
                self._user.append({"start_ms": getattr(event, "audio_start_ms", None)})
                return self._interrupt(at) if self._client else ()
            case "input_audio_buffer.speech_stopped":
                if self._user:
                    self._user[-1]["end_ms"] = getattr(event, "audio_end_ms", None)
        return ()

    def _response(self, name: Any) -> _Response:
        return self._responses.setdefault(str(name), _Response())

    def _utterance(self, event: Any) -> Utterance:
        response = self._response(getattr(event, "response_id", None))
        item = str(getattr(event, "item_id", None))
        index = int(getattr(event, "content_index", None) or 0)
        return response.utterances.setdefault(item, Utterance(item, index))

    def _audio(self, event: Any, at: float) -> Sequence[Emission]:
        response, utterance = self._response(getattr(event, "response_id", None)), self._utterance(event)
        if response.dropped:
            self._marks["deltas_dropped"] += 1
            return ()
        if response.status is not None:
            self._marks["deltas_after_done"] += 1
        try:
            audio = utterance.decode(base64.b64decode(getattr(event, "delta", None) or "", validate=True))
        except (binascii.Error, ValueError, TypeError):
            raise AgentError(f"{self._address.shown}: an audio delta of {utterance.item} is not base64") from None
        if not audio.size:
            return ()
        utterance.samples += audio.size
        utterance.pieces.append((self._head.play(audio.size, at), audio.size))
        return (Emission(audio, arrived=at),)

    def _done(self, event: Any, at: float) -> None:
        told = getattr(event, "response", None)
        name = str(getattr(told, "id", None))
        response = self._response(name)
        details = _plain(getattr(told, "status_details", None))
        response.status = getattr(told, "status", None) or "completed"
        response.reason = details.get("reason")
        for kind, count in self._meter.response(getattr(told, "usage", None)).items():
            self._tokens[kind] += count
        if response.status == "failed":
            told_error = details.get("error") or {"message": f"response {name} failed"}
            raise self._address.refusal(told_error, self._reset_s)
        for utterance in response.utterances.values():
            if not response.dropped:
                self._finish(utterance)
            if utterance.samples and not utterance.words:
                self._marks["audio_without_transcript"] += 1
        if response.status == "completed" and any(u.words and not u.samples for u in response.utterances.values()):
            self._silent[name] = at + SILENT_TEXT_S

    def _finish(self, utterance: Utterance) -> None:
        try:
            utterance.finish()
        except AgentError as error:
            raise AgentError(f"{self._address.shown}: {error}") from None

    # The user comes in

    def _interrupt(self, at: float) -> Sequence[Emission]:
        """Stop what plays, and tell the service how much of it was heard."""
        for response in self._responses.values():
            over = response.status is not None and all(u.heard(at) == u.samples for u in response.utterances.values())
            if over or response.dropped:
                continue
            response.dropped = True
            for utterance in response.utterances.values():
                heard = utterance.heard(at)
                utterance.cut = at
                if not utterance.samples:
                    continue
                heard_ms = heard * 1000 // RATE
                unheard_ms = (utterance.samples - heard) * 1000 // RATE
                self._truncated.append({"item": utterance.item, "audio_end_ms": heard_ms, "unheard_ms": unheard_ms})
                if heard_ms:  # a service refuses to cut an item at its very beginning
                    self._commands.append(_truncate(utterance, heard_ms))
        if self._head.ends <= at:
            return ()
        self._head.flush(at)
        return (Emission(flush=True, arrived=at),)

    def commands(self) -> Sequence[Command]:
        """Return what is to be told to the service, once."""
        out, self._commands = self._commands, []
        return out

    # Time

    def pass_time(self, now: float) -> Sequence[Emission]:
        """Return the text that has come to be heard."""
        for name, until in self._silent.items():
            self._check_silent(name, now >= until)
        texts = [
            text for response in self._responses.values() for u in response.utterances.values() for text in u.due(now)
        ]
        return (spoken(texts, self._head),) if texts else ()

    def _check_silent(self, name: str, due: bool) -> None:
        utterances = self._responses[name].utterances.values()
        if due and any(utterance.words and not utterance.samples for utterance in utterances):
            raise AgentError(
                f"{self._address.shown}: response {name} has a transcript but no audio; nothing was heard of it"
            )

    def end(self) -> None:
        """Count the responses whose usage will not come, and look for text without audio once more."""
        if not self._ended:
            self._ended = True
            unfinished = sum(response.status is None for response in self._responses.values())
            if unfinished:
                self._meter.count(responses=unfinished, **{UNCOUNTED: unfinished})
        for name in self._silent:
            self._check_silent(name, due=True)

    def facts(self) -> dict[str, Any]:
        """Return what became of the responses, what the service heard of the user, what was cut."""
        beta = any(said != name for name, said in self._spelling.items())
        return {
            "responses": [
                {
                    "id": name,
                    "status": response.status,
                    **({"reason": response.reason} if response.reason else {}),
                    "audio_s": round(sum(u.samples for u in response.utterances.values()) / RATE, 3),
                    "transcript": "".join(word for u in response.utterances.values() for word in u.words),
                }
                for name, response in self._responses.items()
            ],
            "user_speech": self._user,
            **({"truncated": self._truncated} if self._client else {}),
            "tokens": dict(self._tokens),
            "events": dict(sorted(self._seen.items())),
            "spelling": ("beta" if beta else "ga") if self._spelling else None,
            **self._marks,
        }


def _truncate(utterance: Utterance, audio_end_ms: int) -> Command:
    def command(connection: Any) -> Awaitable[None]:
        sent: Awaitable[None] = connection.conversation.item.truncate(
            item_id=utterance.item, content_index=utterance.content_index, audio_end_ms=audio_end_ms
        )
        return sent

    return command


def _get(event: Any, *names: str) -> Any:
    for name in names:
        event = getattr(event, name, None)
    return event


def _reset(limits: Any) -> float | None:
    """Return when the last of the limits that have been reached ends, in seconds; None where none has."""
    ends = [
        float(getattr(limit, "reset_seconds", None) or 0)
        for limit in limits or ()
        if getattr(limit, "remaining", None) == 0
    ]
    return max(ends, default=None)


def _plain(told: Any) -> dict[str, Any]:
    """Return an object of the SDK as plain data; empty for none."""
    if told is None:
        return {}
    return dict(told) if isinstance(told, dict) else dict(told.to_dict())
