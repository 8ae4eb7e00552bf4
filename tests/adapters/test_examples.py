"""The examples of docs/adapters.md, run as they stand there."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsbeval.conformance import CHECKS
from dsbeval.loading import load_agent
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
    models = [(f"--model={folder / 'parrot.py'}:Parrot",), ("--model=websocket", f"--model-arg=url={served}")]
    files = []
    for index, model in enumerate(models):
        inner = run(pytester, *model, *CASE, run_dir=pytester.path / str(index))
        [row] = inner.rows()
        assert row["outcome"] in ("passed", "failed"), row["message"]
        assert row["measurements"]["spoke"]
        files.append((inner.run_dir / "recordings" / f"{row['id']}.stereo.wav").read_bytes())
    assert files[0] == files[1]
