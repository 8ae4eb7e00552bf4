"""The session that is asked for, and whether the service gives it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsbeval.audio import RATE
from dsbeval.errors import AgentError

PCM = {"type": "audio/pcm", "rate": RATE}


def session_of(voice: str, threshold: float, silence_ms: int, prefix_ms: int) -> dict[str, Any]:
    """Return a session in the GA shape. Every field of the VAD is named: what is left out keeps a default of the service."""
    return {
        "type": "realtime",
        "output_modalities": ["audio"],
        "audio": {
            "input": {
                "format": dict(PCM),
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": threshold,
                    "silence_duration_ms": silence_ms,
                    "prefix_padding_ms": prefix_ms,
                    "create_response": True,
                    "interrupt_response": True,
                },
                "transcription": None,
                "noise_reduction": None,
            },
            "output": {"format": dict(PCM), "voice": voice},
        },
    }


def check_session(asked: Mapping[str, Any], given: Any, unverified: Sequence[str], where: str) -> None:
    """Raise :class:`AgentError` for the first field that the service did not confirm as it was asked for.

    ``unverified`` names fields, or groups of them, that it need not confirm.
    """
    for field, wanted, found in _fields(asked, given, ""):
        if any(field == name or field.startswith(f"{name}.") for name in unverified) or _same(wanted, found):
            continue
        raise AgentError(
            f"{where}: session.{field} was asked for as {_shown(wanted)}, but the service has {_shown(found)}; use a server "
            f"that takes it, or accept that with --model-arg unverified={field}"
        )


def _fields(asked: Mapping[str, Any], given: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    for name, wanted in asked.items():
        found = given.get(name) if isinstance(given, Mapping) else None
        if isinstance(wanted, Mapping):
            yield from _fields(wanted, found, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", wanted, found


def _same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) and isinstance(found, (int, float)) and not isinstance(found, bool):
        return math.isclose(wanted, found, abs_tol=1e-6)
    if wanted in (None, ""):
        return found in (None, "")
    return bool(wanted == found)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
