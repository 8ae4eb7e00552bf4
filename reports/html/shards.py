"""Data as scripts: a page opened from disk may load a script beside it, and nothing else.

A shard is one call, ``dsb.take(name, value)``, in a file of its own; the browser adds it when it needs it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dsbeval.audio import atomic_write


def write_shard(path: Path, name: str, value: Any) -> None:
    """Write a value as a script."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    with atomic_write(path) as file:
        file.write(f"dsb.take({json.dumps(name)},{body});\n".encode())


def pieces(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Cut a sequence into pieces of at most ``size``."""
    return [items[start : start + size] for start in range(0, len(items), size)]
