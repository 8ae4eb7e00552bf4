"""Tiny checkpoints of Moshi and Mimi with random weights, in the files and formats in which the real ones are released.

What they say is noise. Everything else is real: the package, its loaders, the streaming transformers and the codec, a trained
sentencepiece model. ``codebooks`` is 8 in the released models; 2 make the same code run in a third of the time.
"""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.personaplex.prompt import TONE

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
    torch.set_num_threads(1)
    torch.manual_seed(20)
    settings = lm_settings(codebooks)
    lm = loaders.get_moshi_lm(None, lm_kwargs=settings, device="cpu", dtype=torch.float32)
    with torch.no_grad():
        for name, weight in lm.named_parameters():
            if name.startswith(("depformer_in.", "linears.", "text_linear.")):
                weight.mul_(4.0)  # as they are drawn, no token depends on anything that was heard
            elif name.startswith("emb."):
                weight.mul_(3.0)
    save_file(packed(lm.state_dict()), folder / LM_FILE)
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

    sizes: dict[str, dict[str, Any]] = {
        "seanet": {"dimension": 8, "n_filters": 2, "ratios": [960], "n_residual_layers": 0},
        "quantizer": {"dimension": 8, "n_q": codebooks, "bins": card, "input_dimension": 8, "output_dimension": 8},
        "transformer": {
            "d_model": 8, "num_heads": 2, "num_layers": 1, "context": CONTEXT, "dim_feedforward": 16, "input_dimension": 8,
            "output_dimensions": [8],
        },
    }  # fmt: skip
    parts = {part: {**getattr(loaders, f"_{part}_kwargs"), **own} for part, own in sizes.items()}
    return {"sample_rate": 24_000, "channels": 1, "frame_rate": 12.5, **parts}


def mimi_weights(codebooks: int, card: int = 64) -> dict[str, Any]:
    """Return the codec's weights, drawn so that it tells sounds apart.

    As the package draws them every code is 0: the codebooks are empty until they are trained, and the convolutions let
    nothing through but their biases.
    """
    import torch
    from moshi.models import loaders

    torch.manual_seed(20)
    if hasattr(loaders, "_mimi_config"):
        mimi = loaders.get_mimi(None, mimi_config=mimi_settings(codebooks, card), num_codebooks=codebooks)
    else:  # the fork cannot build one without a file
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loaders, "load_model", lambda model, file: None)
            mimi = loaders.get_mimi("none.safetensors")
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


def packed(state: dict[str, Any]) -> dict[str, Any]:
    """Return weights as they are released: the projections of a depth transformer's steps are one tensor in the file."""
    import torch

    out: dict[str, Any] = {}
    parts: dict[str, dict[int, Any]] = {}
    for name, tensor in state.items():
        head, projection, tail = name.partition("_projs.")
        if projection:
            parts.setdefault(head, {})[int(tail.partition(".")[0])] = tensor
        else:
            out[name] = tensor.contiguous().clone()
    for head, steps in parts.items():
        name = f"{head}_proj_weight" if head.endswith(".in") else f"{head}_proj.weight"
        out[name] = torch.cat([steps[index] for index in range(len(steps))])
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


# PersonaPlex: the depth transformer predicts both sides, and its prompt is spelled in codes of the released codec


def personaplex_settings(codebooks: int) -> dict[str, Any]:
    return {**lm_settings(codebooks, card=2048, dep_q=2 * codebooks), "context": 3000}


def build_personaplex(folder: Path, codebooks: int = 2) -> Path:
    """Write a checkpoint in the form of NVIDIA's release, with a stored voice and the same one packed, and return it."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    settings = personaplex_settings(codebooks)
    shapes = released_shapes(settings)
    save_file({name: torch.from_numpy(drawn(name, shape)) for name, shape in shapes.items()}, folder / LM_FILE)
    save_file(mimi_weights(codebooks, card=2048), folder / MIMI_FILE)
    (folder / TEXT_FILE).write_bytes(text_model())
    (folder / "mimi.json").write_text(json.dumps(mimi_settings(codebooks, card=2048)))
    (folder / "config.json").write_text(
        json.dumps({**settings, "model_type": "personaplex", "mimi_config_name": "mimi.json"})
    )
    voice = io.BytesIO()
    torch.save(stored_voice(codebooks), voice)
    with tarfile.open(folder / "voices.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("voices/NATF2.pt")
        member.size = voice.tell()
        voice.seek(0)
        archive.addfile(member, voice)
    return folder


def build_personaplex_for_fork(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Write the same with 8 codebooks, and make the fork's tables of sizes as tiny until ``patch`` is undone."""
    from moshi.models import loaders

    patch.setattr(loaders, "_lm_kwargs", {**loaders._lm_kwargs, **personaplex_settings(8)})
    sizes = mimi_settings(8, card=2048)
    for part, table in (
        ("seanet", "_seanet_kwargs"),
        ("quantizer", "_quantizer_kwargs"),
        ("transformer", "_transformer_kwargs"),
    ):
        patch.setattr(loaders, table, sizes[part])
    return build_personaplex(folder, 8)


def stored_voice(codebooks: int, frames: int = 7, dim: int = 16) -> dict[str, Any]:
    """Return a voice in the form of the release: the model's input in each frame, and the token ring as it was left."""
    import torch

    rng = np.random.default_rng(7)
    ring = rng.integers(0, 2048, (1, 1 + 2 * codebooks, 4))
    ring[:, 0] = 3
    ring[:, 1 + codebooks :] = np.array(TONE[:codebooks])[None, :, None]
    embeddings = rng.standard_normal((frames, 1, 1, dim)).astype(np.float32)
    return {"embeddings": torch.from_numpy(embeddings), "cache": torch.from_numpy(ring)}


def released_shapes(settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    import torch
    from moshi.models.lm import LMModel

    state = LMModel(device="meta", dtype=torch.float32, **settings).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in packed(state).items()}


def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights that depend on their name and on nothing else, so that two packages on any machine have the same."""
    if name.endswith("alpha"):
        return np.ones(shape, np.float32)
    gain = 4.0 if name.startswith(("depformer_in.", "linears.", "text_linear.")) else 1.0
    scale = gain if "emb" in name else gain / np.sqrt(shape[-1])
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (scale * rng.standard_normal(shape)).astype(np.float32)
