"""A small pack with real scripts, and the fast synthesiser."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from dsbeval.audio import RATE, Signal
from dsbeval.ifeval.pack import DEFAULT_PACK, Pack, load_pack
from dsbeval.speech.assemble import audio_root
from dsbeval.speech.build import build
from dsbeval.speech.engine import Engine
from dsbeval.speech.engines import load_engine

# one with a pause and a joint (C4), one with three chunks (C2)
KEYS = ("IFD-R4-C4-i1", "IFD-R1-C2-i1")


@pytest.fixture(scope="session")
def hibari() -> Engine:
    return load_engine("hibari")


@pytest.fixture
def small_pack(tmp_path: Path) -> Pack:
    return pack_of(tmp_path, KEYS)


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Return the small pack with its speech; not to be changed."""
    pack = pack_of(tmp_path_factory.mktemp("rendered"), KEYS)
    build(pack, "hibari")
    return pack


@pytest.fixture
def built_pack(rendered: Pack, small_pack: Pack) -> Pack:
    """Return the small pack with its speech, to do with as a test likes."""
    shutil.copytree(audio_root(rendered), audio_root(small_pack))
    return small_pack


def pack_of(root: Path, keys: Iterable[str]) -> Pack:
    """Return our pack with only some recordings, rooted in a folder without audio."""
    shutil.copy(DEFAULT_PACK / "voices.yaml", root / "voices.yaml")
    pack = load_pack()
    return dataclasses.replace(pack, root=root, recordings={key: pack.recordings[key] for key in keys})


def voice_like(samples: int, seed: int = 0) -> Signal:
    """Return noise at the level of speech: audible from its first sample to its last."""
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).clip(-0.5, 0.5).astype(np.float32)


def silence(seconds: float) -> Signal:
    return np.zeros(round(seconds * RATE), np.float32)
