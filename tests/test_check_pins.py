"""What is made of a resolver's answer. It asks an index, which is not here: a stand-in of ``uv`` answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_pins import main

GOOD = """moshi==0.2.13
Torch==2.9.1
numpy==2.2.6 ; python_version >= "3.11"
safetensors==0.7.0
huggingface_hub==0.36.2
einops==0.8.2
sentencepiece==0.2.1
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    uv = folder / "uv"
    uv.write_text(f"#!/bin/sh\n{script}\n")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("script", "status", "line"),
    [
        (f"cat <<END\n{GOOD}END", 0, "ok   moshi, Python 3.12\n"),
        (f"cat <<END\n{GOOD.replace('0.2.13', '0.2.12')}END", 1, "needs moshi==0.2.13, and 0.2.12 is installed\n"),
        ("echo 'no solution:\n  torch' >&2; exit 1", 1, "FAIL moshi, Python 3.13: no solution: torch\n"),
    ],
)  # fmt: skip
def test_each_python_that_a_model_takes_has_a_line_no_index_is_here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    status: int,
    line: str,
) -> None:
    stand_in(tmp_path, monkeypatch, script)
    assert main(["moshi"]) == status
    printed = capsys.readouterr().out
    assert line in printed
    assert printed.count("\n") == 3  # 3.11 to 3.13


def test_without_uv_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([]) == 2
    assert capsys.readouterr().err == "uv is not here; pip install uv\n"
