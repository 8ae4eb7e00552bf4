"""An F-Actor with random weights in the layout of the released one, tiny or of its size, and a stand-in for its codec."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from adapters.f_actor import FActor
from adapters.f_actor.codec import FRAME, RATE, Codes
from dsbeval.audio import Signal

STAND_IN = "tests.adapters.f_actor_parts:StandInCodec"
HIDDEN = 32


@functools.cache
def tones() -> Signal:
    """Return a frame of each of the tones, shape (400, 1764)."""
    table: Signal = np.sin(2 * math.pi * np.outer(np.arange(100, 500), np.arange(FRAME) / RATE)).astype(np.float32)
    return table


class StandInCodec:
    """NOT NanoCodec: a stand-in with its rate, frame, codebooks and entries, and an encoder that looks both ways.

    A frame's codes tell its level and that of the three frames on either side, so audio that leaks from the future shows.
    A frame of codes sounds as a tone whose level and pitch they set.
    """

    rate = RATE
    reach = 3

    def encode(self, audio: Signal) -> Codes:
        levels = np.abs(audio.reshape(-1, FRAME)).max(1)
        padded = np.pad(levels, self.reach)
        frames = levels.size
        spans = [padded[k : k + frames] for k in range(2 * self.reach + 1)]
        mixed = (levels, sum(spans[self.reach + 1 :]), sum(spans[: self.reach]), sum(spans))
        scaled = np.clip(np.stack(mixed) * 500, 0, 4031)
        return np.asarray(scaled, np.int64)

    def decode(self, codes: Codes) -> Signal:
        levels, pitches = codes[0] / np.float32(8064), codes[1] % len(tones())
        out: Signal = (levels[:, None] * tones()[pitches]).astype(np.float32).reshape(-1)
        return out


class ShortStandInCodec(StandInCodec):
    """Gives text-only frames: codes, and no audio for them."""

    def decode(self, codes: Codes) -> Signal:
        return np.zeros(0, np.float32)


class NanStandInCodec(StandInCodec):
    """Decodes to NaN."""

    def decode(self, codes: Codes) -> Signal:
        return np.full(codes.shape[1] * FRAME, np.nan, np.float32)


class OtherRateStandInCodec(StandInCodec):
    """Works at 24 kHz."""

    rate = 24_000


def build_tokenizer(folder: Path) -> int:
    """Write a tokenizer of bytes with the model's own tokens; return its size."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from adapters.f_actor.backbone import COUNTED, MARKS, PADS

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name) for name in ("<|begin|>", "<|end|>", *PADS, *MARKS, *COUNTED)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>")
    fast.save_pretrained(str(folder))
    return len(fast)


def llama(vocabulary: int, *, released: bool = False) -> Any:
    """Return the settings of a tiny backbone, or of Llama-3.2-1B."""
    from transformers import LlamaConfig

    hidden, inside, layers, heads, shared = (2048, 8192, 16, 32, 8) if released else (HIDDEN, 64, 2, 4, 2)
    return LlamaConfig(
        vocab_size=128_321 if released else vocabulary,  # 128,256 of Llama and 65 of its own
        hidden_size=hidden,
        intermediate_size=inside,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )


def shapes_of(config: Any, entries: int = 4032) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights in the file."""
    import torch
    from transformers import LlamaForCausalLM

    with torch.device("meta"):
        shapes = {name: tuple(tensor.shape) for name, tensor in LlamaForCausalLM(config).state_dict().items()}
    del shapes["lm_head.weight"]  # tied, so not in the file
    audio, hidden = entries + 2, int(config.hidden_size)
    shapes |= {"dsu_head.weight": (8 * audio, hidden), "dsu_head.bias": (8 * audio,)}
    shapes |= {f"audio_embeds.{i}.weight": (audio, hidden) for i in range(8)}
    shapes |= {"speaker_embed_proj.weight": (hidden, 192), "speaker_embed_proj.bias": (hidden,)}
    return shapes


def write_voices(folder: Path, rng: np.random.Generator) -> None:
    voices = {name: rng.standard_normal(192).tolist() for name in ("tom", "brian")}
    (folder / "speaker_embeddings.json").write_text(json.dumps(voices))


def build_checkpoint(
    folder: Path, *, entries: int = 4032, seed: int = 0, shards: bool = False, end_bias: float = 0.0
) -> Path:
    """Write a tiny checkpoint: config, tokenizer, weights of backbone and heads, voices. Weights do not depend on torch.

    ``end_bias`` is added to what every audio head says for the end of the dialogue.
    """
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(1)  # two threads on a busy machine are several times slower at this size
    folder.mkdir(parents=True, exist_ok=True)
    config = llama(build_tokenizer(folder))
    config.save_pretrained(str(folder))
    shapes, audio = shapes_of(config, entries), entries + 2
    rng = np.random.default_rng(seed)
    weights: dict[str, Any] = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape, np.float32) * np.float32(0.2)
        weights[name] = torch.from_numpy(np.ones(shape, np.float32) if "norm" in name else values)
    weights["dsu_head.bias"][entries + 1 :: audio] += end_bias
    if shards:
        names = sorted(weights)
        parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
        for part, held in parts.items():
            save_file({name: weights[name] for name in held}, str(folder / part), metadata={"format": "pt"})
        places = {name: part for part, held in parts.items() for name in held}
        index = {"metadata": {"total_size": 0}, "weight_map": places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    write_voices(folder, rng)
    return folder


def tiny(folder: Path, **arguments: Any) -> FActor:
    """Return the agent on a tiny checkpoint, with the stand-in codec and a short window."""
    given: dict[str, Any] = {"checkpoint": str(folder), "device": "cpu", "codec": STAND_IN, "window": 8} | arguments
    return FActor(**given)


def words(audio: Signal) -> str:
    """Recognise nothing: say how many samples there are, if ten."""
    return "ten" if audio.size == 10 else ""
