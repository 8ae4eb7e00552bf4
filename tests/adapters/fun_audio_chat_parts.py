"""A clone whose code is a stand-in, and a checkpoint of it, loaded as Fun-Audio-Chat's are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from adapters.fun_audio_chat import VOCODER, FunAudioChat

STAND_IN = Path(__file__).with_name("fun_audio_chat_stand_in")


def build_clone(folder: Path) -> Path:
    """Lay the stand-in's code out as the repository's is, with a folder where CosyVoice3 would be."""
    for name in ("funaudiochat", "utils"):
        shutil.copytree(STAND_IN / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / VOCODER).mkdir(parents=True)
    return folder


def build_checkpoint(folder: Path) -> Path:
    """Write the stand-in's weights."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "funaudiochat", "architectures": ["StandIn"]}))
    weights = {"weight.weight": torch.zeros(2, 2), "weight.bias": torch.zeros(2)}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    return folder


def stand_in(root: Path, **arguments: Any) -> FunAudioChat:
    """Return the agent on ``root/clone`` and ``root/checkpoint``."""
    given: dict[str, Any] = {
        "checkpoint": str(root / "checkpoint"),
        "code": str(root / "clone"),
        "device": "cpu",
        "dtype": "float32",
    } | arguments
    return FunAudioChat(**given)
