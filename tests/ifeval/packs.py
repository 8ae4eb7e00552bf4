"""Packs for tests: a copy of the suite's own pack, without its audio, in which one thing is changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from dsbeval.ifeval.pack import DEFAULT_PACK


def copy_pack(to: Path) -> Path:
    """Copy the pack's data into a new folder and return it."""
    return Path(
        shutil.copytree(DEFAULT_PACK, to / "pack", ignore=shutil.ignore_patterns("audio", "__pycache__", "*.py"))
    )


def edit(root: Path, file: str, old: str, new: str) -> None:
    """Replace the first occurrence of ``old``, which must be there: a test that changes nothing tests nothing."""
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{file} has no {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
