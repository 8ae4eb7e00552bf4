"""Make the golden signal and let the stock library find its speech. Run from the repository root; see ../README.md."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import silero_vad
import torch
from hibari import Hibari

from dsbeval.audio import RATE, read_audio, resample, write_audio
from dsbeval.vad import energy_spans

HERE = Path(__file__).parent
GAIN = 10 ** (-6 / 20)

# Silence before each sentence in seconds, and the sentence. 0.32 s is merged once the VAD's hang-over is taken off.
SCRIPT = [(0.5, "Can I get a large fries with that?"), (0.32, "No, wait."), (1.2, "Never mind."), (0.7, "")]


def main() -> None:
    tts = Hibari()
    pieces: list[np.ndarray] = []
    speech: list[list[int]] = []
    at = 0
    for seed, (silence, text) in enumerate(SCRIPT):
        pieces.append(np.zeros(round(silence * RATE), np.float32))
        at += pieces[-1].size
        if not text:
            continue
        said = tts(text, seed=seed)
        extent = energy_spans(said, RATE // 100).extent
        assert extent is not None
        pieces.append(said[extent.start : extent.end] * np.float32(GAIN))
        speech.append([at, at + pieces[-1].size])
        at += pieces[-1].size
    write_audio(HERE / "speech.flac", np.concatenate(pieces))

    audio = read_audio(HERE / "speech.flac", channels=1)
    found = silero_vad.get_speech_timestamps(
        torch.from_numpy(resample(audio, RATE, 16_000)),
        silero_vad.load_silero_vad(onnx=True),
        min_speech_duration_ms=90,
        min_silence_duration_ms=90,
    )
    stock = [[span["start"], span["end"]] for span in found]
    merged: list[list[int]] = []
    for start, end in stock:
        if merged and (start - merged[-1][1]) / 16_000 < 0.3:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    (HERE / "spans.json").write_text(
        json.dumps({"speech_24k": speech, "stock_16k": stock, "stock_16k_merged": merged}, indent=1) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
