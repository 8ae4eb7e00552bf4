"""Record what the model's own code generates on the tiny checkpoint of the tests: ``python make.py CLONE``.

CLONE is a clone of MaikeZuefle/f-actor. Two copies of the model talk to each other there, each forced with the other's
codes, which is what the adapter does with a live partner.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PROMPTS = ("You are Ann.\n<|SOS|>", "You are Bob, who is late.\n<|SOS|>")
ENTRIES, SEED, END_BIAS, STEPS = 40, 3, -30.0, 40


def main(clone: Path) -> None:
    """Write ``tokens.json``."""
    sys.path[:0] = [str(ROOT), str(clone / "training")]
    parts: Any = importlib.import_module("tests.adapters.f_actor_parts")
    upstream: Any = importlib.import_module("modeling_dsu").DSULlama
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(parts.build_checkpoint(Path(scratch), entries=ENTRIES, seed=SEED, end_bias=END_BIAS))
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer.pad_token = tokenizer.eos_token
        config = transformers.AutoConfig.from_pretrained(folder)
        config.update({"num_dsus": 4, "text_stream": True, "multi_text_stream": False, "audio_vocab_size": ENTRIES})
        config.update({"use_speaker_embedding": True, "calc_loss_on_c1_only": False})
        model = upstream.from_pretrained(folder, config=config)
        model.pad_token_id = tokenizer.pad_token_id
        for load in ("speaker_embed_proj", "audio_heads", "audio_embeds"):
            getattr(model, f"init_or_load_{load}")(model_path=folder)
        voices = json.loads((Path(scratch) / "speaker_embeddings.json").read_text())
        inputs = tokenizer(list(PROMPTS), return_tensors="pt", padding=True)
        audio, text = model.eval().generate(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            max_length=STEPS,
            do_sample=False,
            tokenizer=tokenizer,
            dsu_sample=torch.zeros(1, 8, 1, dtype=torch.int64),
            text_sample=torch.zeros(1, 2, 1, dtype=torch.int64),
            n_delay_audio_stream=2,
            talk_to_itself=True,
            spk_emb=[voices["tom"], voices["brian"]],
        )
    rows = {"prompts": PROMPTS, "voices": ["tom", "brian"], "audio": audio, "text": text}
    (HERE / "tokens.json").write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
