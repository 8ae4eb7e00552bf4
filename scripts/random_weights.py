"""Random weights at the sizes of the released models, in the files in which they are released.

They are drawn on the device, where that takes seconds, and written by the packages that write the real ones.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from adapters.personaplex import VOICE
from tests.adapters import f_actor_parts, nanocodec_parts
from tests.adapters import tiny_kyutai as tiny

CODEC = "codec"
"""Folder of F-Actor's codec, inside that of its weights."""
NEEDED_GB = {"moshi": 16, "personaplex": 19, "f_actor": 4}
"""Disk that the files of a model take at most."""


def write_tiny(name: str, folder: Path) -> None:
    """Write tiny weights of a model."""
    if name == "f_actor":
        f_actor_parts.build_checkpoint(folder)
        nanocodec_parts.build_nanocodec(folder / CODEC)
    else:
        {"moshi": tiny.build, "personaplex": tiny.build_personaplex}[name](folder)


def write_released_size(name: str, folder: Path, device: str) -> int:
    """Write weights of the released size of a model; return how many there are."""
    folder.mkdir()
    return _f_actor(folder, device) if name == "f_actor" else _kyutai(name, folder, device)


def _drawn(shapes: dict[str, tuple[int, ...]], device: str) -> dict[str, Any]:
    import torch

    weights = {}
    for name, shape in shapes.items():
        tensor = torch.empty(shape, dtype=torch.bfloat16, device=device)
        gain = name.endswith("alpha") or "norm" in name
        weights[name] = (tensor.fill_(1.0) if gain else tensor.normal_(std=shape[-1] ** -0.5)).cpu()
    return weights


def _count(weights: dict[str, Any]) -> int:
    return sum(int(tensor.numel()) for tensor in weights.values())


def _kyutai(name: str, folder: Path, device: str) -> int:
    import torch
    from moshi.models import loaders
    from safetensors.torch import save_file

    settings = dict(loaders._lm_kwargs)
    if name == "personaplex":
        settings["dep_q"] = settings["n_q"]
    weights = _drawn(tiny.released_shapes(settings), device)
    save_file(weights, folder / tiny.LM_FILE)
    mimi = loaders.get_mimi(None, num_codebooks=8)
    with torch.no_grad():
        for key, buffer in mimi.named_buffers():
            if key.endswith("embedding_sum"):
                buffer.normal_()
    save_file({key: tensor.contiguous().clone() for key, tensor in mimi.state_dict().items()}, folder / tiny.MIMI_FILE)
    (folder / tiny.TEXT_FILE).write_bytes(tiny.text_model())
    if name == "personaplex":
        (folder / "config.json").write_text(json.dumps({"model_type": "personaplex"}))
        voice = io.BytesIO()
        torch.save(tiny.stored_voice(8, frames=50, dim=int(settings["dim"])), voice)
        with tarfile.open(folder / "voices.tgz", "w:gz") as archive:
            member = tarfile.TarInfo(f"voices/{VOICE}.pt")
            member.size = voice.tell()
            voice.seek(0)
            archive.addfile(member, voice)
    return _count(weights)


def _f_actor(folder: Path, device: str) -> int:
    from safetensors.torch import save_file

    config = f_actor_parts.llama(f_actor_parts.build_tokenizer(folder), released=True)
    config.save_pretrained(str(folder))
    weights = _drawn(f_actor_parts.shapes_of(config), device)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    f_actor_parts.write_voices(folder, np.random.default_rng(0))
    nanocodec_parts.build_nanocodec(folder / CODEC, released=True)
    return _count(weights)
