"""The gateway's frames, one kind byte and a payload, and the query by which a conversation is begun."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from urllib.parse import urlencode


class Kind(IntEnum):
    """The first byte of a frame."""

    READY = 0
    AUDIO = 1
    TEXT = 2
    SEQ_TRACE = 3
    SEQ_DELTA = 4
    ERROR = 5
    CLOSE = 6
    PING = 7
    PONG = 8


SILENT = (Kind.SEQ_TRACE, Kind.SEQ_DELTA, Kind.PING, Kind.PONG)
"""Kinds that say nothing of the conversation."""

_BEGINS = re.compile(r"\byou (?:begin|open|start) (?:this|the) (?:conversation|call)\b", re.IGNORECASE)


def packed(kind: Kind, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return bytes([kind]) + payload


def unpacked(frame: bytes) -> tuple[Kind, bytes] | None:
    """Return the kind and the payload of a frame; None for one that is none."""
    try:
        return Kind(frame[0]), frame[1:]
    except (IndexError, ValueError):
        return None


def begins(prompt: str) -> bool:
    """Return whether a system prompt says that the agent begins the conversation."""
    return _BEGINS.search(prompt) is not None


def query_of(
    prompt: str, *, style: str, context: str, first: str, voice: str, sampling: Mapping[str, object]
) -> dict[str, str]:
    """Return the query parameters of a conversation, by the gateway's names."""
    speaks = begins(prompt) if first == "auto" else first == "speak"
    out = {
        "prompt": f"eng:full_duplex:{'speak' if speaks else 'listen'}-first",
        "prompt_language": "eng",
        "system_prompt_style": style if prompt else "generic",
    }
    if prompt and style == "custom":
        out["custom_system_prompt"] = prompt
    elif prompt:
        out["system_prompt_persona"] = prompt
        if style == "raon_persona_context":
            out["system_prompt_context"] = context
    out["speaker_mode"] = {"": "default", "none": "none"}.get(voice, "recorded")
    if out["speaker_mode"] == "recorded":
        out["speaker_key"] = voice
    return out | {name: str(value) for name, value in sampling.items()}


def address_of(url: str, query: Mapping[str, str]) -> str:
    """Return the address of a conversation."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
