"""Make ``tokens.json``: what NVIDIA's own package returns for a tiny model, greedily, after each kind of prompt.

Run it in an environment with NVIDIA/personaplex (checked with commit 3428dfd) and this repository on the path::

    python tests/golden/personaplex/make.py

The weights depend on their names alone (``tests/adapters/tiny_kyutai.py``), so the released package can be given the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from moshi.models import lm as package

from tests.adapters import tiny_kyutai as tiny
from tests.adapters.personaplex_prompts import FRAMES, PROMPTS, TEXT, USER, VOICE

CODEBOOKS = 8


def tokens(lm: Any, kind: str) -> list[list[int]]:
    """Return the tokens of a conversation after a prompt: text, then the agent's codebooks, a row a frame."""
    options: dict[str, Any] = {"device": "cpu", "sample_rate": 24_000, "frame_rate": 12.5, "audio_silence_frame_cnt": 6}
    lm_gen: Any = package.LMGen(lm, use_sampling=False, **options)
    parts = PROMPTS[kind]
    with torch.no_grad(), lm_gen.streaming(1):
        lm_gen.text_prompt_tokens = TEXT if "text" in parts else []
        if "audio" in parts:
            lm_gen.voice_prompt_audio = np.zeros((1, 1), np.float32)
            lm_gen._encode_voice_prompt_frames = lambda mimi: (torch.tensor(codes)[None, :, None] for codes in VOICE)
        if "stored" in parts:
            voice = tiny.stored_voice(CODEBOOKS)
            lm_gen.voice_prompt_embeddings, lm_gen.voice_prompt_cache = voice["embeddings"], voice["cache"]
        lm_gen.step_system_prompts(None)
        out = [lm_gen.step(torch.tensor(codes)[None, :, None]) for codes in USER]
    return [row[0, : 1 + CODEBOOKS, 0].tolist() for row in out]


def main() -> None:
    """Write the file beside this one."""
    torch.set_num_threads(1)
    lm = package.LMModel(device="cpu", dtype=torch.float32, **tiny.personaplex_settings(CODEBOOKS)).eval()
    state = {name: torch.from_numpy(tiny.drawn(name, tuple(old.shape))) for name, old in lm.state_dict().items()}
    lm.load_state_dict(state)
    made = {kind: tokens(lm, kind) for kind in PROMPTS}
    assert all(len(rows) == FRAMES for rows in made.values())
    lines = ",\n".join(f" {json.dumps(kind)}: {json.dumps(rows)}" for kind, rows in made.items())
    Path(__file__).with_name("tokens.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
