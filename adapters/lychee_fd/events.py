"""The service's events, made into emissions.

Conventions
-----------
* The service sends its audio in two forms (``audio_chunk_pcm``, ``audio_chunk``): that of the first block is used, and the
  other passed over.
* A block that is not silence and has come before in its round has been delivered twice, and is heard once; the service
  itself never repeats one. Text is told apart by its number.
* A session that had words and never any audio, though its first words came :data:`SILENT_TEXT_S` before its end, is an error:
  the service did not say what it wrote.
* What is not about sound or words (``status``, ``heartbeat``, ``stage_timing``, ``state_change``) is passed over, and so is
  what is unknown. A session of which nothing at all could be understood is an error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from typing import Any

import numpy as np

from adapters.lychee_fd.service import Event, Service
from dsbeval.agent import NO_AUDIO, Emission, TextToken
from dsbeval.audio import RATE, Signal

SILENT_TEXT_S = 5.0
"""How long the first audio of a session may come behind its first words."""

_FORMS = ("audio_chunk_pcm", "audio_chunk")
_PASSED_OVER = frozenset({"status", "heartbeat", "stage_timing", "state_change"})


class Collector:
    """What has come since it was last asked."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._out: list[Emission] = []
        self._text: list[TextToken] = []
        self._at = 0.0
        self._form: str | None = None
        self._blocks: set[tuple[Any, bytes]] = set()
        self._numbers: set[tuple[Any, Any]] = set()
        self._said = ""
        self._unknown: dict[str, int] = {}
        self._understood = False
        self._wrote_at: float | None = None
        self._spoke = False

    def add(self, event: Event) -> None:
        """Take an event. Raises :class:`~dsbeval.errors.AgentError` for an error of the service, or garbage."""
        data, self._at = event.data, event.at
        if problem := data.get("frame_error"):
            raise self._service.error(f"says: {' '.join(str(problem).split())}")
        match event.name:
            case "audio_chunk_pcm" | "audio_chunk":
                self._understood = True
                self._add_audio(event.name, data)
            case "assistant_text":
                self._understood = True
                self._add_text(data)
            case "audio_interrupt":
                self._understood = True
                self._out.append(Emission(flush=True, arrived=event.at))
            case "error":
                said = data.get("message") or data.get("error") or data.get("detail") or "an error without a message"
                raise self._service.error(f"says: {' '.join(str(said).split())}")
            case "done":
                raise self._service.lost("ended the session before it was stopped")
            case name if name not in _PASSED_OVER:
                self._unknown[name] = self._unknown.get(name, 0) + 1

    def _add_audio(self, form: str, data: dict[str, Any]) -> None:
        self._form = self._form or form
        if form != self._form:
            return
        self._spoke = True
        audio = self._pcm(data) if form == "audio_chunk_pcm" else self._wav(data)
        block = (data.get("round_id"), hashlib.sha256(audio.tobytes()).digest())
        if audio.any():
            if block in self._blocks:
                return
            self._blocks.add(block)
        self._out.append(Emission(audio, tuple(self._text), arrived=self._at))
        self._text.clear()

    def _pcm(self, data: dict[str, Any]) -> Signal:
        raw = self._decoded(data, "pcm_b64")
        if len(raw) % 2:
            raise self._service.error(f"sent {len(raw)} bytes of PCM16, which is no whole number of samples")
        audio = (np.frombuffer(raw, "<i2").astype(np.float32) / 32768.0).astype(np.float32)
        self._check_rate(data.get("sample_rate", RATE))
        if data.get("num_samples", audio.size) != audio.size:
            raise self._service.error(f"says {data['num_samples']} samples and sent {audio.size}")
        return audio

    def _wav(self, data: dict[str, Any]) -> Signal:
        import soundfile as sf

        try:
            audio, rate = sf.read(io.BytesIO(self._decoded(data, "wav_b64")), dtype="float32", always_2d=True)
        except (sf.LibsndfileError, TypeError) as error:
            raise self._service.error(f"sent a WAV that cannot be read ({error})") from None
        self._check_rate(rate)
        return np.ascontiguousarray(audio[:, 0])

    def _decoded(self, data: dict[str, Any], field: str) -> bytes:
        try:
            return base64.b64decode(data[field], validate=True)
        except KeyError:
            raise self._service.error(f"sent audio without {field}") from None
        except (binascii.Error, ValueError, TypeError) as error:
            raise self._service.error(f"sent {field} that is not base64 ({error})") from None

    def _check_rate(self, rate: object) -> None:
        if rate != RATE:
            raise self._service.error(f"sent audio at {rate} Hz; {RATE} Hz is what it was said to speak at")

    def _add_text(self, data: dict[str, Any]) -> None:
        delta, number = data.get("delta"), data.get("seq")
        if number is not None:
            key = (data.get("event_id"), number)
            if key in self._numbers:
                return
            self._numbers.add(key)
        if not isinstance(delta, str) or not delta:
            return
        if data.get("break_before") and self._said and not self._said.endswith((" ", "\n")):
            delta = f" {delta}"
        self._said = (self._said + delta)[-1:]
        if self._wrote_at is None:
            self._wrote_at = self._at
        self._text.append(TextToken(delta))

    def taken(self) -> tuple[Emission, ...]:
        """Return the emissions in their order and begin anew; words that no audio follows are one of their own."""
        if self._text:
            self._out.append(Emission(NO_AUDIO, tuple(self._text), arrived=self._at))
            self._text.clear()
        out = tuple(self._out)
        self._out.clear()
        return out

    def check_understood(self) -> None:
        """Raise :class:`~dsbeval.errors.AgentError` where a service spoke, and only of what is not known here."""
        if not self._understood and self._unknown:
            names = ", ".join(sorted(self._unknown))
            raise self._service.error(f"sent only events that are not known here ({names}); it is of another version")

    def check_spoken(self, now: float) -> None:
        """Raise :class:`~dsbeval.errors.AgentError` where the whole session was written and not said."""
        if not self._spoke and self._wrote_at is not None and now - self._wrote_at > SILENT_TEXT_S:
            raise self._service.error(
                "has sent words and no audio in the whole session, so nothing was heard of it; see whether token2wav runs"
            )
