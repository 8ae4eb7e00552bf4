"""A checkpoint whose own code is a stand-in, loaded as MiniCPM-o's is: by transformers, from a folder, with its code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from adapters.minicpm_o import VOCODER_FILES, MiniCPMo
from dsbeval.audio import write_audio

CODE = Path(__file__).with_name("minicpm_o_stand_in")
AUTO = {
    "AutoConfig": "configuration_minicpmo.StandInConfig",
    "AutoModel": "modeling_minicpmo.StandIn",
}


def build_checkpoint(folder: Path) -> Path:
    """Write the checkpoint, with empty files where the vocoder's are, and a voice of two seconds at 24 kHz."""
    import torch
    from safetensors.torch import save_file

    vocoder = folder / "assets" / "token2wav"
    vocoder.mkdir(parents=True)
    for name in VOCODER_FILES:
        (vocoder / name).touch()
    for name in ("configuration_minicpmo.py", "modeling_minicpmo.py"):
        shutil.copy(CODE / name, folder / name)
    config = {"model_type": "minicpmo", "architectures": ["StandIn"], "auto_map": AUTO}
    (folder / "config.json").write_text(json.dumps(config))
    weights = {"weight.weight": torch.zeros(2, 2), "weight.bias": torch.zeros(2)}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    write_audio(folder / "voice.wav", np.full(48_000, 0.1, np.float32))
    return folder


def stand_in(folder: Path, **arguments: Any) -> MiniCPMo:
    """Return the agent on such a checkpoint."""
    given: dict[str, Any] = {
        "checkpoint": str(folder),
        "device": "cpu",
        "dtype": "float32",
        "voice": str(folder / "voice.wav"),
    } | arguments
    return MiniCPMo(**given)


def inside(agent: MiniCPMo) -> Any:
    """Return the stand-in that an agent has loaded: the model, or its duplex face."""
    assert agent._loaded is not None
    _, model, duplex = agent._loaded
    return duplex or model
