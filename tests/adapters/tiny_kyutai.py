"""Tiny checkpoints of Moshi and Mimi with random weights, in the files and formats in which the real ones are released.

What they say is noise. Everything else is real: the package, its loaders, the streaming transformers and the codec, a trained
sentencepiece model. ``codebooks`` is 8 in the released models; 2 make the same code run in a third of the time.
"""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

LM_FILE = "model.safetensors"
MIMI_FILE = "tokenizer-e351c8d8-checkpoint125.safetensors"
TEXT_FILE = "tokenizer_spm_32k_3.model"
TEXT_CARD = 420
CONTEXT = 50
SENTENCES = (
    "You are brief.",
    "You are a helpful voice assistant.",
    "Answer at length.",
    "Be brief and kind.",
    "You are a coach who listens and asks one question at a time.",
    "You enjoy having a good conversation.",
    "The guest has ordered two coffees and a glass of water.",
    "Please say your name, your number and what happened.",
    "<system> Do not interrupt the speaker. <system>",
)


def build(folder: Path, codebooks: int = 2, *, config: bool = True, **changes: Any) -> Path:
    """Write a checkpoint into ``folder`` and return it; ``changes`` go into config.json."""
    import torch
    from moshi.models import loaders
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(20)
    settings = lm_settings(codebooks)
    lm = loaders.get_moshi_lm(None, lm_kwargs=settings, device="cpu", dtype=torch.float32)
    with torch.no_grad():
        for name, weight in lm.named_parameters():
            if name.startswith(("depformer_in.", "linears.", "text_linear.")):
                weight.mul_(4.0)  # as they are drawn, no token depends on anything that was heard
            elif name.startswith("emb."):
                weight.mul_(3.0)
    save_file(released_names(lm.state_dict(), codebooks), folder / LM_FILE)
    save_file(mimi_weights(codebooks), folder / MIMI_FILE)
    (folder / TEXT_FILE).write_bytes(text_model())
    (folder / "mimi.json").write_text(json.dumps(mimi_settings(codebooks)))
    if config:
        names = {"model_type": "moshi", "mimi_config_name": "mimi.json"}
        (folder / "config.json").write_text(json.dumps({**settings, **names, **changes}))
    return folder


def delays(codebooks: int) -> list[int]:
    own = [0] + [1] * (codebooks - 1)
    return [0, *own, *own]


def lm_settings(codebooks: int, card: int = 64, dep_q: int | None = None) -> dict[str, Any]:
    from moshi.models import loaders

    depth = dep_q or codebooks
    return {
        **loaders._lm_kwargs,
        "dim": 16, "text_card": TEXT_CARD, "card": card, "num_heads": 2, "num_layers": 1, "hidden_scale": 2.0, "context": CONTEXT,
        "depformer_dim": 8, "depformer_dim_feedforward": 16, "depformer_num_heads": 2, "depformer_num_layers": 1,
        "depformer_context": depth, "n_q": 2 * codebooks, "dep_q": depth, "delays": delays(codebooks),
    }  # fmt: skip


def mimi_settings(codebooks: int, card: int = 64) -> dict[str, Any]:
    from moshi.models import loaders

    settings: dict[str, Any] = copy.deepcopy(loaders._mimi_config)
    settings["seanet"].update(dimension=8, n_filters=2, ratios=[48, 20], n_residual_layers=0)
    settings["quantizer"].update(dimension=8, n_q=codebooks, bins=card, input_dimension=8, output_dimension=8)
    settings["transformer"].update(
        d_model=8,
        num_heads=2,
        num_layers=1,
        context=CONTEXT,
        dim_feedforward=16,
        input_dimension=8,
        output_dimensions=[8],
    )
    return settings


def mimi_weights(codebooks: int, card: int = 64) -> dict[str, Any]:
    """Return the codec's weights, drawn so that it tells sounds apart.

    As the package draws them every code is 0: the codebooks are empty until they are trained, and the convolutions let
    nothing through but their biases.
    """
    import torch
    from moshi.models import loaders

    mimi = loaders.get_mimi(None, mimi_config=mimi_settings(codebooks, card), num_codebooks=codebooks)
    with torch.no_grad():
        for name, weight in mimi.named_parameters():
            if name.startswith(("encoder.", "decoder.")):
                weight.mul_(0.0 if name.endswith("bias") else 2.0)
        for name, buffer in mimi.named_buffers():
            if name.endswith("embedding_sum"):
                buffer.normal_(std=0.3)
            elif name.endswith("cluster_usage"):
                buffer.fill_(1.0)
    return {name: tensor.contiguous().clone() for name, tensor in mimi.state_dict().items()}


def released_names(state: dict[str, Any], depth: int) -> dict[str, Any]:
    """Return weights as they are released: the projections of a depth transformer's steps are one tensor in the file."""
    import torch

    out: dict[str, Any] = {}
    parts: dict[str, dict[int, Any]] = {}
    for name, tensor in state.items():
        head, projection, tail = name.partition("_projs.")
        if not projection:
            out[name] = tensor.contiguous().clone()
            continue
        parts.setdefault(head, {})[int(tail.partition(".")[0])] = tensor
    for head, steps in parts.items():
        whole = torch.cat([steps[i] for i in range(len(steps))])
        out[f"{head}_proj_weight" if head.endswith(".in") else f"{head}_proj.weight"] = whole.clone()
    return out


def text_model() -> bytes:
    """Return a sentencepiece model with the special ids of the real one, which spells what it does not know in bytes."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20), model_writer=model, vocab_size=TEXT_CARD, model_type="unigram",
        unk_id=0, bos_id=1, eos_id=2, pad_id=3, hard_vocab_limit=False, byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    return model.getvalue()
