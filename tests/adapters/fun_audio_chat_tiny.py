"""Run the agent on the model's own classes with tiny random weights: ``python fun_audio_chat_tiny.py CLONE SCRATCH``.

The clone's code is copied; CosyVoice3 alone is a stand-in. Prints what was seen, and raises where something is wrong.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from adapters.fun_audio_chat import VOCODER, FunAudioChat
from dsbeval.agent import Emission

MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>", "<|sil|>")
STAND_IN = Path(__file__).with_name("fun_audio_chat_stand_in")


def lay_out(clone: Path, to: Path) -> None:
    """Copy the clone's code, with the stand-in of the synthesiser in its place; its end of text is one of ours."""
    shutil.copytree(clone / "funaudiochat", to / "funaudiochat")
    (to / "utils").mkdir()
    (to / "utils" / "__init__.py").touch()
    constants = (clone / "utils" / "constant.py").read_text(encoding="utf-8")
    (to / "utils" / "constant.py").write_text(
        f"{constants}\nDEFAULT_S2M_GEN_KWARGS |= {{'eos_token_id': 258, 'pad_token_id': 256}}\n", encoding="utf-8"
    )
    shutil.copy(STAND_IN / "utils" / "cosyvoice_detokenizer.py", to / "utils")
    (to / VOCODER).mkdir(parents=True)


def build(folder: Path) -> None:
    """Write a checkpoint of the model's own classes: config, weights, both tokenizers, feature extractor."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    tokenizers: Any = importlib.import_module("tokenizers")
    configuration: Any = importlib.import_module("funaudiochat.configuration_funaudiochat")
    modeling: Any = importlib.import_module("funaudiochat.modeling_funaudiochat")
    processing: Any = importlib.import_module("funaudiochat.processing_funaudiochat")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    text = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={one: i for i, one in enumerate(letters)}, merges=[]))
    text.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    text.decoder = tokenizers.decoders.ByteLevel()
    text.add_special_tokens([tokenizers.AddedToken(mark) for mark in MARKS])
    text_tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=text, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    ends = {"<|audio_bos|>": 6561, "<|audio_eos|>": 6562, "<|audio_pad|>": 6563}
    codes = {f"<|audio_{i}|>": i for i in range(6561)} | ends
    speech = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab=codes, unk_token="<|audio_pad|>"))
    speech.add_special_tokens([tokenizers.AddedToken(mark) for mark in ends])
    speech_tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=speech, pad_token="<|audio_pad|>", audio_group_size=5
    )
    extractor = transformers.WhisperFeatureExtractor(feature_size=16)
    processing.FunAudioChatProcessor(extractor, speech_tokenizer, text_tokenizer).save_pretrained(str(folder))
    ids = {mark: text_tokenizer.convert_tokens_to_ids(mark) for mark in MARKS}
    qwen = {"model_type": "qwen3", "head_dim": 8, "num_key_value_heads": 2}
    config = configuration.FunAudioChatConfig(
        text_config=qwen | {
            "vocab_size": len(text_tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "audio_bos_index": ids["<|audio_bos|>"], "sil_index": ids["<|sil|>"],
            "audio_eos_index": ids["<|audio_eos|>"], "pad_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|im_end|>"],
        },
        audio_config={
            "num_mel_bins": 16, "d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32,
            "output_dim": 32, "codebook_size": 6565, "bos_token_id": 6561, "eos_token_id": 6562, "pad_token_id": 6563,
            "crq_transformer_config": qwen | {
                "vocab_size": 8, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
                "num_attention_heads": 2,
            },
        },
        audio_token_index=ids["<|AUDIO|>"],
    )  # fmt: skip
    torch.manual_seed(0)
    modeling.FunAudioChatForConditionalGeneration(config).save_pretrained(str(folder))


def answer(agent: FunAudioChat, seconds: float, seed: int) -> Emission:
    with agent.open("You are brief.", seed) as session:
        rng = np.random.default_rng(0)
        for _ in range(round(seconds / 0.08)):
            session.step((rng.standard_normal(1280) * 0.1).astype(np.float32))
        found = session.finish()
    assert isinstance(found, Emission)
    return found


def main(clone: Path, scratch: Path) -> None:
    lay_out(clone, scratch / "code")
    sys.path.insert(0, str(scratch / "code"))
    build(scratch / "checkpoint")
    agent = FunAudioChat(
        str(scratch / "checkpoint"), str(scratch / "code"), device="cpu", dtype="float32", max_new_tokens=20
    )
    found = [answer(agent, 2.0, seed) for seed in (1, 1, 2)]
    assert found[0].audio.size
    assert found[0].text
    assert found[0].audio.tobytes() == found[1].audio.tobytes() != found[2].audio.tobytes()
    print(f"equal seeds, equal audio: {found[0].audio.size} samples, text {found[0].text!r}")  # noqa: T201
    longer = answer(agent, 64.0, 1)
    print(f"64 s in several pieces: {longer.audio.size} samples")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
