"""Messages between the harness and an agent in its own process: a small versioned header, JSON, float32 samples.

Conventions
-----------
* A message is a header of 24 bytes, little endian (magic ``DSBH``, version, kind, flags, number of the call, number of
  the session, bytes of JSON, bytes of samples), then the JSON, then the samples as ``<f4``.
* Calls are answered one by one; an answer repeats the number of its call. Anything else is not a stray message but a
  fault: what writes here besides the host side would be taken for speech.
* A :class:`~dsbeval.agent.Emission` keeps all its fields. JSON floats are written by ``repr``, so times are the same bits
  on both sides.
* Both sides import this module: numpy and the standard library only.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from dsbeval.agent import NO_AUDIO, Emission, TextToken
from dsbeval.audio import Signal

PROTOCOL = 3
"""Changes whenever a message changes."""

MAGIC = b"DSBH"
HEADER = struct.Struct("<4sBBHIIII")
MAX_JSON = 16 << 20
MAX_SAMPLES = 256 << 20
"""Bytes; 256 MiB are 46 minutes at 24 kHz. A longer message is garbage, not speech."""

CHUNK = 1 << 16
"""Bytes that are read at once: a frame and its answer, as a rule."""

READ_ONLY = 1
"""Flag: the array that was sent is read-only, and so is the one that arrives."""


class WireError(Exception):
    """What arrived is not the protocol; the text is one line and continues "its process sent"."""


class Kind(IntEnum):
    """What a message is."""

    HELLO = 1
    LOAD = 2
    READY = 3
    OPEN = 4
    STEP = 5
    FINISH = 6
    CLOSE = 7
    STOP = 8
    ANSWER = 9
    ERROR = 10
    FACTS = 11
    USAGE = 12
    CUT_OFF = 13


_KINDS = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``call`` numbers the calls, ``session`` says which session it is about (0: none)."""

    kind: Kind
    call: int = 0
    session: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
    signal: Signal = field(default_factory=lambda: NO_AUDIO)

    def encode(self) -> bytes:
        """Return the bytes of the message. Raises :class:`TypeError` for data that JSON cannot hold."""
        text = json.dumps(self.data).encode("ascii") if self.data else b""
        samples = np.ascontiguousarray(self.signal, "<f4").tobytes()
        flags = 0 if self.signal.flags.writeable else READ_ONLY
        head = HEADER.pack(MAGIC, PROTOCOL, self.kind, flags, self.call, self.session, len(text), len(samples))
        return head + text + samples


def receive(read: Callable[[int], bytearray]) -> Message:
    """Read one message; ``read(n)`` returns exactly n bytes. Raises :class:`WireError` when it is none."""
    head = bytes(read(HEADER.size))
    magic, version, kind, flags, call, session, text_size, sample_size = HEADER.unpack(head)
    if magic != MAGIC:
        raise WireError(f"bytes that are no message ({head[:12]!r} ...)")
    if version != PROTOCOL:
        raise WireError(f"a message of protocol {version}, and this is protocol {PROTOCOL}; run one version of dsbeval")
    if kind not in _KINDS or text_size > MAX_JSON or sample_size > MAX_SAMPLES or sample_size % 4:
        raise WireError(f"a header that makes no sense (kind {kind}, {text_size} and {sample_size} bytes)")
    data: Any = {}
    if text_size:
        try:
            data = json.loads(bytes(read(text_size)))
        except ValueError:
            raise WireError("a message that is not JSON") from None
        if not isinstance(data, dict):
            raise WireError(f"a message that is a {type(data).__name__}, not an object")
    signal = np.frombuffer(read(sample_size), "<f4").astype(np.float32, copy=False) if sample_size else NO_AUDIO
    if sample_size and flags & READ_ONLY:
        signal.flags.writeable = False
    return Message(Kind(kind), call, session, data, signal)


def pack(returned: Emission | Sequence[Emission]) -> tuple[dict[str, Any], Signal]:
    """Return what a step returned as JSON and samples. The emissions must have been checked."""
    several = (returned,) if isinstance(returned, Emission) else tuple(returned)
    signals = [emission.audio for emission in several if emission.audio.size]
    data = {"one": isinstance(returned, Emission), "emissions": [_as_dict(emission) for emission in several]}
    return data, np.concatenate(signals) if signals else NO_AUDIO


def _as_dict(emission: Emission) -> dict[str, Any]:
    out: dict[str, Any] = {"samples": int(emission.audio.size)}
    if emission.text:
        out["text"] = [[str(token.text), float(token.offset_s)] for token in emission.text]
    out |= {name: True for name in ("done", "flush") if getattr(emission, name)}
    if emission.rate is not None:
        out["rate"] = int(emission.rate)
    if emission.arrived is not None:
        out["arrived"] = float(emission.arrived)
    return out


def unpack(message: Message, clock_offset: float = 0.0) -> Emission | tuple[Emission, ...]:
    """Return what a step returned in the other process, as it returned it: one emission or several.

    ``clock_offset`` is this process's ``time.monotonic()`` minus the other's. Raises :class:`WireError`.
    """
    out: list[Emission] = []
    at = 0
    try:
        for entry in message.data["emissions"]:
            samples = int(entry["samples"])
            audio = message.signal[at : at + samples] if samples else NO_AUDIO
            at += samples
            arrived = entry.get("arrived")
            out.append(
                Emission(
                    audio,
                    tuple(TextToken(str(text), float(offset)) for text, offset in entry.get("text", ())),
                    done=bool(entry.get("done", False)),
                    flush=bool(entry.get("flush", False)),
                    rate=entry.get("rate"),
                    arrived=None if arrived is None else float(arrived) + clock_offset,
                )
            )
        one = bool(message.data["one"])
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"an answer without what a step returns ({type(error).__name__}: {error})") from None
    if at != message.signal.size:
        raise WireError(f"{message.signal.size} samples where its emissions have {at}")
    return out[0] if one and len(out) == 1 else tuple(out)
