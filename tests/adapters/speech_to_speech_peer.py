"""The protocol layer of ``speech-to-speech`` (PyPI) as a server in a process of its own; it prints its port when it listens.

Its queues, sessions, events and resampling are that package's. What would be models stands at their edge: speech by energy,
and answers of a rising tone, sent a tenth of a second at a time. The first is as many seconds long as the instructions say, where
they are a number; the others, and those to other instructions, last one second.

Run: ``python speech_to_speech_peer.py CLIENTS``.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from queue import Queue
from typing import Any

import numpy as np
import uvicorn
from speech_to_speech.api.openai_realtime.pipeline_unit import PipelineUnit
from speech_to_speech.api.openai_realtime.service import RealtimeService
from speech_to_speech.api.openai_realtime.websocket_router import create_app
from speech_to_speech.pipeline.cancel_scope import CancelScope
from speech_to_speech.pipeline.control import is_control_message
from speech_to_speech.pipeline.events import (
    AssistantOutputEvent,
    AssistantResponseDoneEvent,
    SpeechStartedEvent,
    SpeechStoppedEvent,
    TranscriptionCompletedEvent,
)
from speech_to_speech.pipeline.messages import AUDIO_RESPONSE_DONE, AudioOutput

RATE = 16_000
LOUD = 0.01
SILENCE_MS = 300
LONGEST_S = 20
WORDS = "This is an answer of another make, which goes on for a while."


def hear(unit: PipelineUnit, answered: threading.Event) -> None:
    """Play the VAD and the recogniser."""
    heard_ms, quiet_ms, started_ms = 0.0, 0.0, None
    while True:
        item = unit.input_queue.get()
        if is_control_message(item):
            heard_ms, quiet_ms, started_ms = 0.0, 0.0, None
            answered.clear()
            unit.output_queue.put(item)  # the unit is free for the next client when it has gone all the way round
            continue
        audio = np.frombuffer(item[0], np.int16).astype(np.float32) / 32768
        length = 1000 * audio.size / RATE
        heard_ms += length
        if np.sqrt((audio**2).mean()) > LOUD:
            quiet_ms = 0.0
            if started_ms is None:
                started_ms = heard_ms - length
                unit.text_output_queue.put(SpeechStartedEvent(audio_start_ms=int(started_ms)))
        elif started_ms is not None:
            quiet_ms += length
            if quiet_ms >= SILENCE_MS:
                seconds = (heard_ms - started_ms) / 1000
                unit.text_output_queue.put(SpeechStoppedEvent(audio_end_ms=int(heard_ms), duration_s=seconds))
                unit.text_output_queue.put(TranscriptionCompletedEvent(transcript="something was said"))
                started_ms = None


def answer(unit: PipelineUnit, answered: threading.Event) -> None:
    """Play the language model and the synthesiser."""
    time_axis = np.arange(LONGEST_S * RATE) / RATE
    tone = (8000 * np.sin(2 * np.pi * (200 + 10 * time_axis) * time_axis) + 100).astype(np.int16)
    while True:
        request = unit.text_prompt_queue.get()
        if is_control_message(request):
            continue
        marks: dict[str, Any] = {
            "response_key": request.response_key,
            "cancel_generation": unit.cancel_scope.generation,
        }
        unit.output_queue.put(AssistantOutputEvent(text=WORDS, **marks))
        told = request.runtime_config.session.instructions or ""
        samples = (int(told) if told.isdigit() and not answered.is_set() else 1) * RATE
        answered.set()
        for start in range(0, samples, RATE // 10):
            unit.output_queue.put(AudioOutput(audio=tone[start : min(start + RATE // 10, samples)], **marks))
            time.sleep(0.01)
        unit.output_queue.put(AssistantResponseDoneEvent(**marks))
        unit.output_queue.put(AudioOutput(audio=AUDIO_RESPONSE_DONE, **marks))


def make_unit(index: int) -> PipelineUnit:
    """Return what serves one client at a time, with its threads."""
    prompts: Queue[Any] = Queue()
    listening, playing = threading.Event(), threading.Event()
    listening.set()
    unit = PipelineUnit(
        index=index, service=RealtimeService(text_prompt_queue=prompts, should_listen=listening),
        cancel_scope=CancelScope(), should_listen=listening, response_playing=playing, input_queue=Queue(),
        output_queue=Queue(), text_output_queue=Queue(), text_prompt_queue=prompts, handlers=[],
    )  # fmt: skip
    answered = threading.Event()
    threading.Thread(target=hear, args=(unit, answered), daemon=True).start()
    threading.Thread(target=answer, args=(unit, answered), daemon=True).start()
    return unit


def main(clients: int) -> None:
    pool = [make_unit(index) for index in range(clients)]
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(pool=pool, stop_event=threading.Event()), log_level="warning"))
    print(listener.getsockname()[1], flush=True)  # noqa: T201
    server.run(sockets=[listener])


if __name__ == "__main__":
    main(int(sys.argv[1]))
