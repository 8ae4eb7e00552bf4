"""What adapters of local models share: where the weights lie, the device, packages that must be there, exact frames."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import Signal, check_signal
from dsbeval.errors import AgentError


def weights_folder(agent: str, checkpoint: str | None, hub_id: str, needed: tuple[str, ...] = ()) -> Path:
    """Return the folder that ``--checkpoint`` names; ``needed`` are the files without which it is none of this agent's.

    Raises :class:`AgentError` with the command that gets the weights.
    """
    get = f"get the weights with: hf download {hub_id} --local-dir DIR, and give --checkpoint DIR"
    if not checkpoint:
        raise AgentError(f"agent {agent}: no --checkpoint is given; {get}")
    folder = Path(checkpoint).expanduser()
    if not folder.is_dir():
        raise AgentError(f"agent {agent}: --checkpoint {folder}: no such folder; {get}")
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise AgentError(f"agent {agent}: --checkpoint {folder} holds no {', no '.join(missing)}; {get}")
    return folder


def pick_device(agent: str, device: str) -> str:
    """Return a device by name: ``auto`` is the first GPU that is visible, or the CPU. Imports torch."""
    torch = load_package(agent, "torch", "torch")
    gpu = bool(torch.cuda.is_available())
    if device == "auto":
        return "cuda" if gpu else "cpu"
    if device.startswith("cuda") and not gpu:
        raise AgentError(f"agent {agent}: device is {device!r} and no GPU is visible; give device=cpu or device=auto")
    return device


def load_package(agent: str, module: str, package: str) -> Any:
    """Import a module of the model's environment. Raises :class:`AgentError` that names the package."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise  # it is there, and lacks something of its own
        raise AgentError(
            f"agent {agent}: the package {package} is not installed; install adapters/{agent}/requirements.txt"
        ) from None


def load_object(agent: str, argument: str, place: str) -> Any:
    """Return what ``package.module:name`` names. Raises :class:`AgentError` that names the argument."""
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise AgentError(f"agent {agent}: {argument} is {place!r}: {error}; give package.module:name") from None


def check_heard(agent: str, heard: Signal, frame: int, rate: int) -> None:
    """Raise unless ``heard`` is one frame of finite float32 samples."""
    check_signal(heard, f"agent {agent}: heard")
    if heard.size != frame:
        raise AgentError(f"agent {agent}: heard {heard.size} samples; a frame is {frame} at {rate} Hz")


def as_signal(tensor: Any) -> Signal:
    """Return a tensor of one channel, of any rank, as a float32 array that nothing else writes to."""
    array: Signal = np.array(tensor.detach().float().cpu().numpy().reshape(-1), np.float32)
    return array
