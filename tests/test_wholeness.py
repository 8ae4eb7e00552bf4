"""Whether files of weights are whole, told without loading them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.checkpoints import CheckpointError, describe, files_in, resolve
from dsbeval.wholeness import find_fault
from tests.weights import write_weights


def fault(folder: Path) -> str | None:
    return find_fault(folder, files_in(folder))


def write_shards(folder: Path) -> Path:
    """Write two shards, their index and the settings."""
    places = {"one": "model-00001-of-00002.safetensors", "two": "model-00002-of-00002.safetensors"}
    for name, shard in places.items():
        write_weights(folder / shard, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text("{}")
    return folder


def test_whole_files_have_no_fault(tmp_path: Path) -> None:
    write_shards(tmp_path)
    (tmp_path / "README.md").write_text("version 1")
    (tmp_path / "notes.json").write_text("{")  # not one of those that a model is built from
    assert fault(tmp_path) is None
    assert find_fault(tmp_path, ()) is None


@settings(deadline=None, max_examples=30)
@given(kept=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_off_anywhere_is_not_whole(tmp_path_factory: pytest.TempPathFactory, kept: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    path = write_weights(folder / "model.safetensors")
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    found = fault(folder)
    assert found is not None
    assert found.startswith(f"{path}: ")
    assert "\n" not in found


def header(entries: object, extra: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + extra


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.safetensors", b"", "no safetensors file"),
        ("a.safetensors", b"<html>not found</html>", "no safetensors file"),
        ("a.safetensors", b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS and not the file itself"),
        ("a.model", b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS and not the file itself"),
        ("a.safetensors", struct.pack("<Q", 500) + b"{", "cut off in its header (9 bytes)"),
        ("a.safetensors", struct.pack("<Q", 1) + b"{", "no safetensors file: its header is not readable"),
        ("a.safetensors", header([]), "no safetensors file: its header is not readable"),
        ("a.safetensors", header({"w": {"data_offsets": None}}), "no safetensors file: its header is not readable"),
        ("a.safetensors", header({"w": {"data_offsets": [0, 2000]}}, b"xy"), "cut off: it has 44 of 2,042 bytes"),
        ("a.safetensors", header({"w": {"data_offsets": [0, 1]}}, b"xy"), "has 41 bytes, and its header speaks of 40"),
        ("config.json", b'{"dim": 40', "not valid JSON"),
        ("sub/tokenizer_config.json", b"", "not valid JSON"),
        ("model.safetensors.index.json", b"[]", "has no weight_map"),
        (
            "model.safetensors.index.json", b'{"weight_map": {"a": "gone", "b": "gone", "c": "away"}}',
            "names away, which is not there (2 of 2 are missing)",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_of_the_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    found = fault(tmp_path)
    assert found is not None
    assert found.startswith(f"{path}: {message}")


def test_a_checkpoint_that_is_not_whole_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    write_shards(tmp_path)
    patterns = ("*.json", "*.safetensors")
    assert len(resolve(str(tmp_path), patterns).files) == 4
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    message = (
        r"--checkpoint: \S+index.json: names model-00002-of-00002.safetensors, which is not there .*; get it again$"
    )
    for read in (resolve, describe):  # by the agent, and for the fingerprint
        with pytest.raises(CheckpointError, match=message):
            read(str(tmp_path), patterns)
    file = write_weights(tmp_path / "one" / "model.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"model.safetensors: cut off"):
        resolve(str(file), patterns)
    assert describe(str(tmp_path), ())["sha256"]  # somebody else's agent may mean anything by its files
