"""Tiny checkpoints, and the device that a test runs on: every test of a model runs on the CPU, and on a GPU where one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters import tiny_kyutai

PLACES = ("cpu", pytest.param("cuda", marks=pytest.mark.gpu))


@pytest.fixture(scope="session")
def tiny_moshi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint with 2 codebooks."""
    return tiny_kyutai.build(tmp_path_factory.mktemp("moshi") / "tiny")


@pytest.fixture(scope="session", params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    """Return the device; a GPU that is not there is a skip that says so."""
    import torch

    torch.set_num_threads(1)
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device here")
    return str(request.param)
