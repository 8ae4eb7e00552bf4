"""The prompts and the user's codes behind ``tests/golden/personaplex/tokens.json``."""

from __future__ import annotations

import numpy as np

FRAMES = 30
PROMPTS = {"none": (), "text": ("text",), "audio": ("audio", "text"), "stored": ("stored", "text")}
TEXT = [17, 230, 41, 399, 8]

_RNG = np.random.default_rng(11)
USER: list[list[int]] = _RNG.integers(0, 2048, (FRAMES, 8)).tolist()
VOICE: list[list[int]] = _RNG.integers(0, 2048, (4, 8)).tolist()
