"""Registers stand-ins for the model's classes with transformers, by the model's own function."""

from typing import Any

import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoProcessor,
    BatchFeature,
    PretrainedConfig,
    PreTrainedModel,
)

TEXT = "It is<|sil|> fine ü.<|audio_eos|>"
FAULT = ""
calls: list[tuple[Any, ...]] = []


class StandInConfig(PretrainedConfig):  # type: ignore[misc]
    """The configuration."""

    model_type = "funaudiochat"


class StandInProcessor:
    """Ids are bytes; 1000 and up are marks."""

    marks = ("<|sil|>", "<|audio_bos|>", "<|audio_eos|>")

    @classmethod
    def from_pretrained(cls, folder: str, **kwargs: Any) -> "StandInProcessor":
        return cls()

    def apply_chat_template(
        self, conversation: list[dict[str, str]], add_generation_prompt: bool = False, tokenize: bool = True
    ) -> str:
        assert add_generation_prompt
        assert not tokenize
        calls.append(("template", conversation))
        return "".join(turn["content"] for turn in conversation)

    def __call__(self, *, text: str, audio: Any, return_tensors: str, return_token_type_ids: bool) -> Any:
        assert return_tensors == "pt"
        assert not return_token_type_ids
        assert text.count("<|AUDIO|>") == len(audio)
        assert all(piece.dtype == np.float32 and piece.ndim == 1 and 0 < piece.size <= 480_000 for piece in audio)
        calls.append(("processor", [piece.size for piece in audio]))
        loud = torch.tensor([[float(np.abs(piece).max()) for piece in audio]])
        return BatchFeature({"input_ids": torch.zeros(1, len(text), dtype=torch.int64), "input_features": loud})

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        assert skip_special_tokens
        out, held = "", b""
        for one in ids:
            if one < 1000:
                held += bytes([one])
            else:
                out, held = out + held.decode(errors="replace") + self.marks[one - 1000], b""
        return out + held.decode(errors="replace")


def text_ids() -> list[int]:
    ids, rest = [1001], TEXT
    while rest:
        mark = next((m for m in StandInProcessor.marks if rest.startswith(m)), None)
        ids += [1000 + StandInProcessor.marks.index(mark)] if mark else list(rest[0].encode())
        rest = rest[len(mark or rest[0]) :]
    return ids


class StandIn(PreTrainedModel):  # type: ignore[misc]
    """The model. It answers with one text and codes that are drawn."""

    config_class = StandInConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.weight = torch.nn.Linear(2, 2)
        self.sp_gen_kwargs: dict[str, bool] = {}
        self.post_init()

    def generate(self, *, input_ids: Any, input_features: Any, **kwargs: Any) -> tuple[Any, Any]:
        calls.append(("generate", dict(self.sp_gen_kwargs), kwargs))
        if FAULT == "raises":
            raise RuntimeError("CUDA out of memory")
        words = [] if FAULT == "wordless" else text_ids()
        codes = torch.randint(3000, 6561, (1, 5 * len(text_ids())))
        codes[0, -5:] = 6562  # the end of speech is not a code
        return torch.cat([input_ids, torch.tensor([words], dtype=torch.int64)], 1), codes


def register_funaudiochat() -> None:
    AutoConfig.register("funaudiochat", StandInConfig)
    AutoProcessor.register(StandInConfig, StandInProcessor)
    AutoModelForSeq2SeqLM.register(StandInConfig, StandIn)
