"""Whether the files of a checkpoint are whole, as far as they tell without being loaded.

Conventions
-----------
* A safetensors file begins with the length of its header (8 bytes, little-endian), and the header (JSON) says where each
  tensor's bytes are: it must be as long as that. Only the header is read, so weights of any size take milliseconds.
* An index (``*.safetensors.index.json``) names the shards that hold the weights: each must be there.
* Settings (``*config.json``) must be JSON.
* A fault is one phrase that begins with the file and says what is wrong with it.

Source of the format: the documentation of safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

INDEX = ".safetensors.index.json"
_HEADER_MOST = 100_000_000
"""Bytes that a header may have; the reader of the format refuses more."""
_POINTER = b"version https://git-lfs"


def find_fault(folder: Path, files: Iterable[str]) -> str | None:
    """Return the first fault among the files of a folder (paths relative to it), or None where they are whole."""
    for name in sorted(files):
        fault = _pointer_fault(folder / name)
        if not fault and name.endswith(".safetensors"):
            fault = _safetensors_fault(folder / name)
        elif not fault and name.endswith((INDEX, "config.json")):
            fault = _json_fault(folder / name)
        if fault:
            return f"{folder / name}: {fault}"
    return None


def _pointer_fault(path: Path) -> str | None:
    with path.open("rb") as file:
        found = file.read(len(_POINTER)) == _POINTER
    return "a pointer of Git LFS and not the file itself (git lfs pull)" if found else None


def _safetensors_fault(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > _HEADER_MOST:
            return "no safetensors file"
        if size < 8 + length:
            return f"cut off in its header ({size:,} bytes)"
        try:
            needed = 8 + length + _end(json.loads(file.read(length)))
        except (ValueError, TypeError, KeyError, AttributeError):
            return "no safetensors file: its header is not readable"
    if size < needed:
        return f"cut off: it has {size:,} of {needed:,} bytes"
    return f"has {size:,} bytes, and its header speaks of {needed:,}" if size > needed else None


def _end(header: dict[str, Any]) -> int:
    """Return how many bytes of tensors a header speaks of."""
    return max((int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"), default=0)


def _json_fault(path: Path) -> str | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return f"not valid JSON ({error})"
    if not path.name.endswith(INDEX):
        return None
    places = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(places, dict):
        return "has no weight_map, which says where each weight lies"
    shards = sorted({str(shard) for shard in places.values()})
    missing = [shard for shard in shards if not (path.parent / shard).is_file()]
    return f"names {missing[0]}, which is not there ({len(missing)} of {len(shards)} are missing)" if missing else None
