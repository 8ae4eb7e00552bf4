"""The examples of docs/adapters.md, run as they stand there."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dsbeval.audio import to_pcm16
from dsbeval.conformance import CHECKS
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.pack import load_pack
from dsbeval.ifeval.score import score_recording
from dsbeval.loading import load_agent
from dsbeval.recording import read_recording
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

DOCUMENT = ROOT / "docs" / "adapters.md"
EXAMPLES = {name: code for code, name in re.findall(r"```python\n(# (\S+)\n.*?)```", DOCUMENT.read_text(), re.DOTALL)}
CASE = ("--levels=L0", "--roles=R1", "--limit=1")


def test_an_example_is_short() -> None:
    assert set(EXAMPLES) == {"parrot.py", "server.py"}
    assert all(len(code.splitlines()) < 60 for code in EXAMPLES.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("examples")
    for name, code in EXAMPLES.items():
        (path / name).write_text(code)
    return path


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    """The address at which the server of the document listens, started as the document says."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "server.py", str(port)], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield f"ws://127.0.0.1:{port}"
        server.terminate()


@pytest.mark.parametrize("check", CHECKS)
def test_the_file_conforms(folder: Path, check: str) -> None:
    CHECKS[check](load_agent(f"{folder / 'parrot.py'}:Parrot", {"silence_s": 0.8}))


@pytest.mark.parametrize("check", CHECKS)
def test_the_server_conforms(served: str, check: str) -> None:
    CHECKS[check](load_agent("websocket", {"url": served}))


def test_both_play_a_case_and_are_the_same_agent(pytester: pytest.Pytester, folder: Path, served: str) -> None:
    inner = run(pytester, "--model=websocket", f"--model-arg=url={served}", *CASE)
    [row] = inner.rows()
    assert row["outcome"] in ("passed", "failed"), row["message"]
    assert row["measurements"]["spoke"]
    pack = load_pack()
    own = record_case(load_agent(f"{folder / 'parrot.py'}:Parrot"), pack, pack.cases[row["id"]])
    played = read_recording(inner.run_dir / "recordings", row["id"])
    assert np.array_equal(to_pcm16(played.model), to_pcm16(own.model))
    assert score_recording(own)[1] == row
