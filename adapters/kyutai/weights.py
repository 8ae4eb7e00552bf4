"""The files of a checkpoint in the released format, and the models that they make.

A folder holds ``config.json`` (settings of the language model, and the names of the other files where they are not the usual
ones), the weights of the language model and of the codec as safetensors, and a sentencepiece model. Without ``config.json`` it
is a model of the published size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.kyutai.engine import FRAME, RATE
from adapters.kyutai.package import Package
from adapters.local import loaded, quiet
from dsbeval.checkpoints import Checkpoint
from dsbeval.errors import AgentError

FILES = ("*.json", "*.safetensors", "*.model")
FIRST_DELAYS = (0, 0, 1)
"""Of the text, the first codebook and every other one: what the alignment was derived from."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a checkpoint, and what its config.json says."""

    agent: str
    config: dict[str, Any] | None
    config_file: Path | None
    lm: Path
    mimi: Path
    tokenizer: Path
    mimi_config: Path | None
    lora: Path | None


def find_files(agent: str, checkpoint: Checkpoint, package: Package) -> Folder:
    """Return the files of a checkpoint. Raises an error in one line that names the file which is missing or wrong."""
    if checkpoint.path.is_file():
        raise AgentError(
            f"--checkpoint: {checkpoint.path} is one file; agent {agent} needs the folder with the language model, the codec and "
            "the tokenizer"
        )
    path = checkpoint.find("config.json")
    config = None if path is None else _read_config(path)
    names = config or {}
    loaders = package.loaders

    def named(key: str, usual: str) -> Path:
        return checkpoint.file(str(names.get(key, usual)))

    def extra(key: str) -> Path | None:
        return checkpoint.file(str(names[key])) if names.get(key) else None

    return Folder(
        agent,
        config,
        path,
        named("moshi_name", loaders.MOSHI_NAME),
        named("mimi_name", loaders.MIMI_NAME),
        named("tokenizer_name", loaders.TEXT_TOKENIZER_NAME),
        extra("mimi_config_name"),
        extra("lora_name"),
    )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise AgentError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(data, dict):
        raise AgentError(f"{path}: holds a {type(data).__name__}; the settings of a model are needed")
    return data


def codec_settings(folder: Folder) -> dict[str, Any] | None:
    """Return the settings of the codec; None is the released one."""
    return None if folder.mimi_config is None else _read_config(folder.mimi_config)


def load_tokenizer(folder: Folder) -> Any:
    """Return the sentencepiece model."""
    with quiet():
        from sentencepiece import SentencePieceProcessor

    return loaded(folder.agent, folder.tokenizer, lambda: SentencePieceProcessor(str(folder.tokenizer)))


def check_models(folder: Folder, lm: Any, mimi: Any, tokenizer: Any) -> None:
    """Raise :class:`AgentError` where the parts of a checkpoint do not belong together, or not to this alignment."""
    codebooks = int(lm.n_q) // 2
    delays = [FIRST_DELAYS[0], *([FIRST_DELAYS[1], *[FIRST_DELAYS[2]] * (codebooks - 1)] * 2)]
    found = {
        "delays": (list(lm.delays), delays),
        "codebooks of the codec": (int(mimi.num_codebooks), codebooks),
        "entries of a codebook": (int(mimi.cardinality), int(lm.card)),
        "samples a second of the codec": (int(mimi.sample_rate), RATE),
        "samples a frame of the codec": (round(mimi.sample_rate / mimi.frame_rate), FRAME),
    }
    where = folder.config_file or folder.lm
    for what, (has, wanted) in found.items():
        if has != wanted:
            raise AgentError(f"{where}: {what}: {has}; agent {folder.agent} needs {wanted}")
    if tokenizer.vocab_size() > int(lm.text_card):
        raise AgentError(
            f"{folder.tokenizer}: has {tokenizer.vocab_size()} pieces; the language model knows {int(lm.text_card)}"
        )
