"""PersonaPlex weights for the released package.

The depth transformer of PersonaPlex also guesses the user's codes, and what it guesses there is always thrown away, because the
user's real codes are put in its place. Left out, nothing else changes: what comes first does not depend on it. The released
package has no such steps, so their weights are cut off.

Which form a file has is told by its shapes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from adapters.kyutai.package import Package
from adapters.kyutai.weights import Folder
from dsbeval.errors import AgentError

_STEP = re.compile(r"^(?:depformer_in|linears|depformer\.layers\.\d+\.gating)\.(\d+)\.")
_EMBEDDING = re.compile(r"^depformer_emb\.(\d+)\.")
_PROJECTION = re.compile(r"^depformer\.layers\.\d+\.self_attn\.(?:in|out)_proj")
_NOT_OF_THE_MODEL = {
    "moshi_name", "mimi_name", "mimi_config_name", "tokenizer_name", "lora_name", "model_type", "lm_gen_config",
    "tts_config", "stt_config", "model_id", "version", "depformer_causal",
}  # fmt: skip


def depth_steps(state: dict[str, Any]) -> int:
    """Return how many codebooks the depth transformer of a state dict predicts."""
    return 1 + max((int(found[1]) for name in state if (found := re.match(r"linears\.(\d+)\.", name))), default=-1)


def without_user_steps(state: dict[str, Any], keep: int, where: Path) -> dict[str, Any]:
    """Return the weights with ``keep`` depth steps; those that have no more are returned as they are.

    Raises :class:`AgentError` for any other number than ``keep`` or twice that.
    """
    steps = depth_steps(state)
    if steps == keep:
        return state
    if steps != 2 * keep:
        raise AgentError(f"{where}: predicts {steps} codebooks; agent personaplex needs {keep}, or those of both sides")
    return {
        name: tensor[: len(tensor) // 2].clone() if _PROJECTION.match(name) else tensor
        for name, tensor in state.items()
        if not _of_the_user(name, keep)
    }


def _of_the_user(name: str, keep: int) -> bool:
    """Return whether a weight belongs to the depth steps from ``keep`` on alone."""
    step, embedding = _STEP.match(name), _EMBEDDING.match(name)
    return (step is not None and int(step[1]) >= keep) or (embedding is not None and int(embedding[1]) >= keep - 1)


def check_whole(lm: Any, file: Path) -> None:
    """Raise :class:`AgentError` where a file lacks weights of a model that NVIDIA's package made of it.

    That package leaves them as they were drawn, prints a line and goes on.
    """
    from safetensors import safe_open

    reader: Any = safe_open
    with reader(file, "pt") as opened:
        there = set(opened.keys())
    keep = int(lm.n_q) // 2
    missing = sorted(name for name in lm.state_dict() if name not in there and not _of_the_user(name, keep))
    if missing:
        raise AgentError(f"{file}: lacks {len(missing)} weights of the model, {missing[0]} the first")


def language_model(folder: Folder, package: Package, device: str, dtype: Any) -> Any:
    """Return the language model on the released package."""
    from safetensors.torch import load_file

    settings = model_settings(folder, package)
    keep = int(settings["n_q"]) // 2
    state = without_user_steps(load_file(folder.lm, device=device), keep, folder.lm)
    lm = package.models.LMModel(device="meta", dtype=dtype, **{**settings, "dep_q": keep})
    state = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in state.items()}
    lm.load_state_dict(state, strict=True, assign=True)
    return lm.eval()


def model_settings(folder: Folder, package: Package) -> dict[str, Any]:
    """Return the settings of the language model: of config.json where it has them, else those of the released size.

    The config.json of the release need not hold any: NVIDIA's package does not read it.
    """
    own = folder.config or {}
    settings = own if "dim" in own else package.loaders._lm_kwargs
    return {key: value for key, value in settings.items() if key not in _NOT_OF_THE_MODEL}
