"""A NanoCodec of random weights, tiny or of the released size, in the file layout that the package nanocodec-torch reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ENCODER: dict[str, Any] = {"encoded_dim": 16, "down_sample_rates": [2, 3, 6, 7, 7], "base_channels": 1}
DECODER: dict[str, Any] = {"input_dim": 16, "up_sample_rates": [7, 7, 6, 3, 2], "base_channels": 32}


RELEASED = {"encoder_config": ENCODER | {"base_channels": 24}, "decoder_config": DECODER | {"base_channels": 864}}


def build_nanocodec(folder: Path, *, leave_out: str = "", released: bool = False) -> Path:
    """Write ``model.safetensors`` and return the folder; ``leave_out`` is a part of the names that are not written."""
    import torch
    from nanocodec_torch.models.audio_codec import AudioCodecModel
    from safetensors.torch import save_file

    rng = np.random.default_rng(0)
    weights: dict[str, Any] = {}
    sizes = RELEASED if released else {"encoder_config": ENCODER, "decoder_config": DECODER}
    for name, parameter in AudioCodecModel(**sizes).named_parameters():
        shape = tuple(parameter.shape)
        values = rng.standard_normal(shape, np.float32)
        if name.endswith("alpha"):
            values = np.ones(shape, np.float32)
        elif len(shape) > 1:
            # Keeps the level from layer to layer, so that codes vary and the sound is audible.
            values *= np.float32((1.8 if name.startswith("audio_encoder") else 1.1) / np.sqrt(np.prod(shape[1:])))
        else:
            values *= np.float32(0.01)
        tensor = torch.from_numpy(values)
        key = name.replace(".alpha", ".activation.snake_act.alpha")
        if name.startswith("audio_decoder.up_sample_conv_layers."):
            key = key.replace(".weight", ".conv.weight").replace(".bias", ".conv.bias")
            tensor = tensor.transpose(1, 2) if tensor.dim() == 3 else tensor
        if not leave_out or leave_out not in key:
            weights[key] = tensor.contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, str(folder / "model.safetensors"))
    return folder
