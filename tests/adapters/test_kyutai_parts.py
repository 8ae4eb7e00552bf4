"""The parts that the agents on Kyutai's models share: package, files, options, text."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.kyutai.options import Sampling, choose_device, choose_dtype
from adapters.kyutai.package import find_package
from adapters.kyutai.text import Transcriber
from adapters.moshi import PUBLISHED, Moshi
from dsbeval.errors import AgentError, DsbevalError
from tests.adapters import tiny_kyutai as tiny

# Package


def test_the_package_is_the_one_that_was_checked() -> None:
    found = find_package("moshi")
    assert (found.kind, found.name) == ("released", "moshi 0.2.13")


@pytest.mark.parametrize("version", ["0.2.12", "0.1.0"])
def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    import moshi

    monkeypatch.setattr(moshi, "__version__", version)
    with pytest.raises(
        AgentError,
        match=f"agent moshi: moshi {version} is installed, but .* moshi 0.2.13 only; install it: dsbeval env moshi",
    ):
        find_package("moshi")


def test_the_fork_is_told_by_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    import moshi
    from moshi.models.lm import LMGen

    monkeypatch.setattr(LMGen, "step_system_prompts", None, raising=False)
    monkeypatch.setattr(moshi, "__version__", "0.1.0")
    assert find_package("personaplex", fork=True).name == "moshi 0.1.0 (PersonaPlex fork)"
    with pytest.raises(AgentError, match=r"moshi 0\.1\.0, the PersonaPlex fork is installed"):
        find_package("moshi")
    monkeypatch.setattr(moshi, "__version__", "0.2.13")
    with pytest.raises(AgentError, match=r"or the PersonaPlex fork 0\.1\.0 only"):
        find_package("personaplex", fork=True)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("moshi", "the package moshi is not installed; make the model's environment with: dsbeval env moshi"),
        ("einops", "the package einops, which moshi imports is not installed"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, missing: str, message: str) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "moshi"]:
        monkeypatch.delitem(sys.modules, name)

    class Absent:
        def find_spec(self, name: str, *rest: object) -> None:
            if name.split(".")[0] == missing:
                raise ModuleNotFoundError(f"No module named {name!r}", name=missing)

    monkeypatch.delitem(sys.modules, missing, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(AgentError, match=message):
        find_package("moshi")


# Files


@pytest.fixture
def checkpoint(tiny_moshi: Path, tmp_path: Path) -> Path:
    """Return a copy that may be spoilt."""
    return Path(shutil.copytree(tiny_moshi, tmp_path / "weights"))


def config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def written(name: str, content: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(content)

    return change


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - 7)


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without(tiny.LM_FILE), r"weights holds no model\.safetensors"),
        (without(tiny.MIMI_FILE), r"weights holds no tokenizer-e351c8d8-checkpoint125\.safetensors"),
        (without(tiny.TEXT_FILE), r"weights holds no tokenizer_spm_32k_3\.model"),
        (without("mimi.json"), r"weights holds no mimi\.json"),
        (written("config.json", "{"), r"config\.json: not valid JSON"),
        (written("config.json", "[]"), r"config\.json: holds a list; the settings of a model are needed"),
        (written(tiny.LM_FILE, "version https://git-lfs"), r"model\.safetensors: a pointer of Git LFS and not the file itself"),
        (cut(tiny.LM_FILE), r"model\.safetensors: cut off: it has [\d,]+ of [\d,]+ bytes; get it again"),
        (cut(tiny.MIMI_FILE), r"tokenizer-\S+\.safetensors: cut off: it has [\d,]+ of [\d,]+ bytes; get it again"),
        (written(tiny.TEXT_FILE, "no model"), r"tokenizer_spm_32k_3\.model: cannot be loaded"),
        (config(dim=32), r"model\.safetensors: cannot be loaded \(RuntimeError: Error\(s\) in loading state_dict"),
        (config(wings=2), r"model\.safetensors: cannot be loaded \(TypeError: .*wings"),
        (config(model_type="hibiki"), r"config\.json: model_type is 'hibiki'; agent moshi plays 'moshi' alone"),
        (config(fuser={"sum": []}), r"config\.json: the model wants conditions"),
        (config(delays=[0, 0, 2, 0, 2]), r"config\.json: delays: \[0, 0, 2, 0, 2\]; agent moshi needs \[0, 0, 1, 0, 1\]"),
        (config(lm_gen_config={"cfg_coef": 3.0}), r"config\.json: lm_gen_config: agent moshi does not know cfg_coef"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_does_not_fit_is_one_line(
    checkpoint: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(checkpoint)
    with pytest.raises(DsbevalError, match=message) as caught:
        Moshi(str(checkpoint), device="cpu")
    assert "\n" not in str(caught.value)


def test_a_codec_of_another_size_is_refused(checkpoint: Path) -> None:
    from safetensors.torch import save_file

    save_file(tiny.mimi_weights(2, card=32), checkpoint / tiny.MIMI_FILE)
    (checkpoint / "mimi.json").write_text(json.dumps(tiny.mimi_settings(2, card=32)))
    with pytest.raises(AgentError, match=r"config.json: entries of a codebook: 32; agent moshi needs 64"):
        Moshi(str(checkpoint), device="cpu")


def test_a_file_alone_is_no_checkpoint(checkpoint: Path) -> None:
    with pytest.raises(AgentError, match=r"model.safetensors is one file; agent moshi needs the folder"):
        Moshi(str(checkpoint / tiny.LM_FILE), device="cpu")


def test_without_a_checkpoint_it_says_which_there_are() -> None:
    with pytest.raises(AgentError, match="no checkpoint; give --checkpoint kyutai/moshiko-pytorch-bf16"):
        Moshi()


def test_sampling_is_as_published_unless_the_checkpoint_or_an_option_says_otherwise(checkpoint: Path) -> None:
    assert Sampling(0.8, 0.7, 250, 25) == PUBLISHED
    config(lm_gen_config={"temp": 0.5, "top_k_text": 7})(checkpoint)
    agent = Moshi(str(checkpoint), device="cpu", temperature=0.0)
    assert agent.sampling == Sampling(0.0, 0.7, 250, 7)
    assert (agent.engine.lm_gen.temp, agent.engine.lm_gen.top_k_text) == (0.0, 7)


def test_the_eight_codebooks_of_the_released_models(tmp_path: Path) -> None:
    agent = Moshi(str(tiny.build(tmp_path / "eight", 8)), device="cpu")
    from tests.adapters.frames import converse, noise

    assert len(converse(agent, noise(2)).audio) == 2 * 1920 * 4
    assert agent.engine.lm_gen.lm_model.dep_q == 8


# Options


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("text_temperature", "hot"),
        ("temperature", float("nan")),
        ("top_k", 0),
        ("top_k", 2.5),
        ("text_top_k", True),
    ],
)
def test_sampling_that_cannot_be_is_named(name: str, value: Any) -> None:
    with pytest.raises(AgentError, match=f"agent moshi: --model-arg {name}={value!r}: a "):
        PUBLISHED.given("moshi", **{name: value})


def test_devices_and_number_formats() -> None:
    import torch

    assert choose_device("moshi", "auto") in ("cpu", "cuda")
    for wrong in ("gpu", "meta", "cuda:99"):
        with pytest.raises(AgentError, match=f"--model-arg device={wrong}"):
            choose_device("moshi", wrong)
    assert choose_dtype("moshi", "auto", "cpu") is torch.float32
    assert choose_dtype("moshi", "auto", "cuda:1") is torch.bfloat16
    with pytest.raises(AgentError, match="--model-arg dtype=int8: give auto or one of bfloat16"):
        choose_dtype("moshi", "int8", "cpu")


# Text


def test_tokens_become_text() -> None:
    from sentencepiece import SentencePieceProcessor

    tokenizer = SentencePieceProcessor(model_proto=tiny.text_model())
    for sentence in ("You are brief.", "東京 is far, naïve 🙂!"):
        reader = Transcriber(tokenizer)
        ids = [3, *tokenizer.encode(sentence), 0, 3]
        assert "".join(token.text for one in ids for token in reader.read(one)).strip() == sentence


def test_a_character_in_bytes_comes_with_the_last_of_them() -> None:
    from sentencepiece import SentencePieceProcessor

    tokenizer = SentencePieceProcessor(model_proto=tiny.text_model())
    first, second, third = (tokenizer.piece_to_id(f"<0x{byte:02X}>") for byte in "東".encode())
    reader = Transcriber(tokenizer)
    assert [reader.read(one) for one in (first, second)] == [(), ()]
    assert [token.text for token in reader.read(third)] == ["東"]
    reader.read(first)
    assert [token.text for token in reader.read(3)] == ["\ufffd"]  # a character that was never finished
    assert reader.read(10_000) == ()  # an id that no piece has
