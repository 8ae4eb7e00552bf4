"""The synthesiser by the names of the model's own: 40 ms of a tone for each code."""

from pathlib import Path
from typing import Any

import torch

FAULT = ""
RATE = 24_000
calls: list[tuple[Any, ...]] = []


class Vocoder:
    """What is loaded."""

    def __init__(self) -> None:
        self.sample_rate = RATE


def get_audio_detokenizer(token_hop_len: int = 25 * 30) -> Vocoder:
    assert Path("pretrained_models/Fun-CosyVoice3-0.5B-2512").is_dir(), "the working folder is the clone"
    return Vocoder()


def token2wav(
    cosyvoice3_model: Vocoder,
    tokens: list[int],
    embedding: Any = None,
    token_hop_len: int = 25 * 30,
    pre_lookahead_len: int = 3,
) -> Any:
    assert isinstance(tokens, list)
    assert all(0 <= token < 6561 for token in tokens)
    calls.append(("token2wav", len(tokens), embedding, token_hop_len, pre_lookahead_len))
    samples = cosyvoice3_model.sample_rate // 25
    levels = torch.tensor(tokens, dtype=torch.float32) / 6561 * 0.5
    audio = levels.repeat_interleave(samples)[None] * (1 - 2 * (torch.arange(samples * len(tokens)) // 48 % 2))
    if FAULT == "nan":
        audio[0, 5] = float("nan")
    return audio[:, :0] if FAULT == "mute" else audio
