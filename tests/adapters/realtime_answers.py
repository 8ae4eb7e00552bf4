"""How the local realtime server answers, event by event, and the faults that it can have on the wire."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
from openai.types import realtime as rt
from openai.types.realtime.response_content_part_added_event import Part as PartAdded
from openai.types.realtime.response_content_part_done_event import Part as PartDone

from dsbeval.audio import RATE, Signal
from tests.adapters.realtime_server import ITEM, Act, Answer, Call, Item, pcm_base64, pieces

TOKENS_A_SECOND = 20
"""Of spoken audio; the usage of a response holds as many, beside 10 of text out, 56 + 64 cached of text in, 80 of audio in."""


async def respond(call: Call, answer: Answer) -> None:
    """Send a response from ``response.created`` to ``response.done``; a user who comes in cancels it."""
    response = call.server.id("resp")
    item = Item(call.server.id("item"), "assistant", response)
    call.items[item.id] = item
    told: dict[str, Any] = {"id": response, "object": "realtime.response", "output_modalities": ["audio"], "output": []}
    await call.send(rt.ResponseCreatedEvent, "response.created", response={**told, "status": "in_progress"})
    try:
        await _item(call, answer, response, item)
    except asyncio.CancelledError:
        details = {"type": "cancelled", "reason": "turn_detected"}
        done = {**told, "status": "cancelled", "status_details": details, **_usage(answer, item)}
        await call.send(rt.ResponseDoneEvent, "response.done", response=done)
        return
    status: dict[str, Any] = {"status": answer.status}
    if answer.error is not None:
        status["status_details"] = {"type": "failed", "error": answer.error}
    await call.send(rt.ResponseDoneEvent, "response.done", response={**told, **status, **_usage(answer, item)})
    if answer.late_s and answer.audio is not None:
        await _audio(call, answer.audio[-int(answer.late_s * RATE) :], response, item)


async def _item(call: Call, answer: Answer, response: str, item: Item) -> None:
    place = {"response_id": response, "item_id": item.id, "output_index": 0, "content_index": 0}
    message = {"id": item.id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    added = ITEM.validate_python(message)
    of_output = {"response_id": response, "output_index": 0}
    await call.send(rt.ResponseOutputItemAddedEvent, "response.output_item.added", item=added, **of_output)
    await call.send(rt.ConversationItemAdded, "conversation.item.added", item=added)
    part = PartAdded(type="audio", transcript="")
    await call.send(rt.ResponseContentPartAddedEvent, "response.content_part.added", part=part, **place)

    audio = np.zeros(0, np.float32) if answer.audio is None else answer.audio
    early = audio[: audio.size - int(answer.late_s * RATE)]
    words = [] if answer.text is None else answer.text.split(" ")
    chunks = list(pieces(early, answer.chunk_s)) or [early]
    sent = acted = 0
    for index, chunk in enumerate(chunks):
        # The transcript is ahead of the audio, as the service's is.
        for number in range(index * len(words) // len(chunks), (index + 1) * len(words) // len(chunks)):
            delta = words[number] + (" " if number + 1 < len(words) else "")
            kind = rt.ResponseAudioTranscriptDeltaEvent
            await call.send(kind, "response.output_audio_transcript.delta", delta=delta, **place)
        if answer.midway is not None and not acted and sent >= answer.midway_s * RATE:
            acted = 1
            await answer.midway(call)
        if chunk.size:
            await _audio(call, chunk, response, item)
        sent += chunk.size
        if math.isfinite(answer.speed):
            await asyncio.sleep(chunk.size / RATE / answer.speed)

    if audio.size:
        await call.send(rt.ResponseAudioDoneEvent, "response.output_audio.done", **place)
    if answer.text is not None:
        kind_done = rt.ResponseAudioTranscriptDoneEvent
        await call.send(kind_done, "response.output_audio_transcript.done", transcript=answer.text, **place)
    done_part = PartDone(type="audio", transcript=answer.text)
    await call.send(rt.ResponseContentPartDoneEvent, "response.content_part.done", part=done_part, **place)
    content = [{"type": "output_audio", "transcript": answer.text}]
    done = ITEM.validate_python({**message, "status": "completed", "content": content})
    await call.send(rt.ConversationItemDone, "conversation.item.done", item=done)
    await call.send(rt.ResponseOutputItemDoneEvent, "response.output_item.done", item=done, **of_output)


async def _audio(call: Call, audio: Signal, response: str, item: Item) -> None:
    item.sent_ms += 1000 * audio.size / RATE
    place = {"response_id": response, "item_id": item.id, "output_index": 0, "content_index": 0}
    await call.send(rt.ResponseAudioDeltaEvent, "response.output_audio.delta", delta=pcm_base64(audio), **place)


def _usage(answer: Answer, item: Item) -> dict[str, Any]:
    if not answer.usage:
        return {}
    audio_out = round(item.sent_ms / 1000 * TOKENS_A_SECOND)
    inward = {
        "text_tokens": 120,
        "audio_tokens": 80,
        "cached_tokens": 64,
        "cached_tokens_details": {"text_tokens": 64, "audio_tokens": 0},
    }
    return {
        "usage": {
            "input_tokens": 200,
            "output_tokens": 10 + audio_out,
            "total_tokens": 210 + audio_out,
            "input_token_details": inward,
            "output_token_details": {"text_tokens": 10, "audio_tokens": audio_out},
        }
    }


# Faults on the wire


async def cut(call: Call) -> None:
    """Break the connection without a word."""
    call.socket.transport.abort()


def close(code: int, reason: str = "") -> Act:
    """Close the connection with a code."""

    async def act(call: Call) -> None:
        await call.socket.close(code, reason)

    return act


def stall(seconds: float) -> Act:
    """Send nothing for a while."""

    async def act(call: Call) -> None:
        await asyncio.sleep(seconds)

    return act


def limited(reset_s: float) -> Act:
    """Say that the tokens are used up for a while."""

    async def act(call: Call) -> None:
        limits = [
            {"name": "requests", "limit": 100, "remaining": 90, "reset_seconds": 600.0},
            {"name": "tokens", "limit": 4000, "remaining": 0, "reset_seconds": reset_s},
        ]
        await call.send(rt.RateLimitsUpdatedEvent, "rate_limits.updated", rate_limits=limits)

    return act


def complain(message: str, **more: Any) -> Act:
    """Send an ``error`` event."""

    async def act(call: Call) -> None:
        await call.error(message, **more)

    return act


def send_text(data: str) -> Act:
    """Send a text frame that is no event."""

    async def act(call: Call) -> None:
        await call.send_raw(data)

    return act


def send_delta(delta: str) -> Act:
    """Send an audio delta that holds ``delta`` as it is."""

    async def act(call: Call) -> None:
        item = next(item for item in reversed(call.items.values()) if item.role == "assistant")
        place = {"response_id": item.response, "item_id": item.id, "output_index": 0, "content_index": 0}
        await call.send(rt.ResponseAudioDeltaEvent, "response.output_audio.delta", delta=delta, **place)

    return act
