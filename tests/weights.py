"""Files of weights, as small as they can be, by the package that writes the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_weights(path: Path, *names: str) -> Path:
    """Write a safetensors file with a few numbers under each name."""
    from safetensors.numpy import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ones((2, 3), np.float32) for name in names or ("one", "two")}, path, metadata={"format": "pt"})
    return path


def weights(content: bytes) -> bytes:
    """Return a safetensors file that holds some bytes."""
    from safetensors.numpy import save

    out: bytes = save({"bytes": np.frombuffer(content, np.uint8)})
    return out
