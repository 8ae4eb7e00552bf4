"""What is there and what is missing before a run, in plain words and in the exit status."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from adapters import AGENTS
from dsbeval import devices, doctor
from dsbeval.cli import main
from dsbeval.doctor import Finding, can_run, examine
from dsbeval.models import Needs
from dsbeval.placing import Placed
from tests.weights import write_weights


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *args])


def placed(
    tmp_path: Path,
    device: str = "auto",
    checkpoint: str | None = None,
    args: dict[str, object] | None = None,
    **needs: object,
) -> Placed:
    """Return a model in process that needs a GPU, and what else is said."""
    said: dict[str, object] = {
        "path": tmp_path / "needs.toml", "name": "mine", "summary": "-", "runs": "gpu", "licence": "-", "persona": True,
        "verified": "-", "not_verified": "-",
    }  # fmt: skip
    return Placed(
        "mine", "mine", args or {}, checkpoint, device, None, Needs.model_validate({**said, **needs}), "--model"
    )


def found(one: Placed, *subjects: str) -> list[Finding]:
    return [finding for finding in examine(one) if finding.subject in subjects]


# The command


def test_a_model_that_can_run_says_so_and_ends_with_0() -> None:
    result = run("cascade")
    assert result.exit_code == 0, result.output
    assert "  ok      environment: in process (Python 3." in result.output
    assert "hibari-tts 0.2.1" in result.output
    assert result.output.splitlines()[-1] == "cascade can run"
    assert "MISSING" not in result.output


def test_a_model_that_cannot_says_what_is_missing_and_ends_with_1(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    result = run("cascade", "--model-arg", f"host.python={bare}/bin/python")
    assert result.exit_code == 1
    assert "MISSING numpy: is not installed for" in result.output
    assert "MISSING package: needs hibari-tts==0.2.1, which is not installed" in result.output
    last = result.output.splitlines()[-1]
    assert last.startswith("cascade cannot run: numpy: is not installed")


def test_models_toml_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.toml").write_text(f'[far]\nagent = "echo"\npython = "{sys.executable}"\n')
    monkeypatch.chdir(tmp_path)
    result = run("far")
    assert result.exit_code == 0, result.output
    assert f"in its own process, {sys.executable}" in result.output
    assert "\nfar: returns each frame" in run().output


def test_all_models_are_listed_without_importing_one() -> None:
    source = (
        "import sys\nfrom click.testing import CliRunner\nfrom dsbeval.cli import main\n"
        "result = CliRunner().invoke(main, ['doctor'])\nprint(result.output)\nassert result.exit_code == 0\n"
        "print('IMPORTED', [name for name in sys.modules if name.startswith('adapters.') or name == 'torch'])\n"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
    names = [line.partition(":")[0] for line in out.splitlines() if line and not line.startswith(" ") and ": " in line]
    assert set(names) >= AGENTS.keys()
    assert "    needs: runs on CPU; 0.6 GiB\n    can run" in out
    assert "IMPORTED []" in out


def test_an_agent_from_elsewhere_is_looked_at_as_far_as_that_goes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    result = run(f"{tmp_path}/mine.py:Mine")
    assert result.exit_code == 0
    assert "note    needs: nothing is known of what it needs" in result.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["cascad"], "'cascad' is not a known agent; did you mean cascade"),
        (["--checkpoint", "x"], "are for one model; name it"),
        (["echo", "--models", "gone.toml"], "gone.toml: no such file"),
        (["echo", "--model-arg", "host.python=gone/python"], "gone/python: no such interpreter"),
    ],
)
def test_a_wrong_question_is_one_line(args: list[str], message: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1


# Devices and memory; no GPU is here


def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: str, free: str) -> None:
    """Put an ``nvidia-smi`` on the path that lists one GPU."""
    path = tmp_path / "nvidia-smi"
    path.write_text(f"#!/bin/sh\necho '0, GPU-aa11, NVIDIA H100, {total}, {free}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("total", "free", "state", "text"),
    [
        ("81920", "80896", "ok", "device 0 has 80 GiB; 24 are needed"),
        ("81920", "8192", "note", "device 0 has 80 GiB, of which 8 are free now; 24 are needed"),
        ("16384", "16000", "missing", "device 0 has 16 GiB; 24 are needed"),
        ("[N/A]", "[N/A]", "note", "of device 0 is not known; 24 GiB are needed"),
    ],
)
def test_the_memory_of_a_device_is_compared_no_gpu_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: str, free: str, state: str, text: str
) -> None:
    gpu(tmp_path, monkeypatch, total, free)
    device, memory = found(placed(tmp_path, memory_gib=24), "device", "memory")
    assert (device.state, device.text) == ("ok", "cuda 0, NVIDIA H100")
    assert (memory.state, memory.text) == (state, text)


def test_a_run_without_a_gpu_is_told_of_and_one_that_asked_for_it_cannot_run_no_gpu_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(devices, "PROC", tmp_path)
    for device, state in (("auto", "note"), ("cuda", "missing"), ("cuda:1", "missing"), ("cpu", "ok")):
        [one] = found(placed(tmp_path, device), "device")
        assert one.state == state, device
        assert can_run([one]) == (state != "missing")
    monkeypatch.setattr(doctor, "_machine_gib", lambda: 4.0)
    [memory] = found(placed(tmp_path, "cpu", memory_gib=6), "memory")
    assert (memory.state, memory.text) == ("missing", "machine has 4 GiB; 6 are needed")


# Weights


def test_weights_are_looked_for_where_they_would_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    [missing] = found(placed(tmp_path, weights=("some/model@v2",)), "weights")
    assert missing.state == "missing"
    assert "some/model@v2 is not in the hub's cache; get it with: hf download some/model --revision v2" in missing.text
    repo = tmp_path / "hf" / "hub" / "models--some--model"
    snapshot = repo / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs" / "v2").write_text("abc123")
    assert found(placed(tmp_path, weights=("some/model@v2",)), "weights")[0].state == "missing"  # it is empty
    (snapshot / "config.json").write_text("{}")
    for weights in ("some/model@v2", "some/model@abc123"):
        assert found(placed(tmp_path, weights=(weights,)), "weights")[0].state == "ok"
    folder = tmp_path / "mine"
    folder.mkdir()
    for checkpoint, state in (
        (str(folder), "ok"),
        ("some/model@v2", "ok"),
        ("some/model", "missing"),
        ("gone/it/is", "missing"),
    ):
        [one] = found(placed(tmp_path, checkpoint=checkpoint, weights=("a/b@c",)), "weights")
        assert one.state == state, checkpoint


def test_weights_that_are_not_whole_are_missing_and_say_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "hub" / "models--some--model" / "snapshots" / "abc"
    file = write_weights(folder / "model.safetensors")
    assert found(placed(tmp_path, weights=("some/model@abc",)), "weights")[0].state == "ok"
    file.write_bytes(file.read_bytes()[:-1])
    [cached] = found(placed(tmp_path, weights=("some/model@abc",)), "weights")
    assert cached.state == "missing"
    assert cached.text.startswith(f"{file}: cut off: it has ")
    assert cached.text.endswith("get it again with: hf download some/model --revision abc --force-download")
    for checkpoint in (folder, file):
        [local] = found(placed(tmp_path, checkpoint=str(checkpoint)), "weights")
        assert (local.state, local.text.rpartition("; ")[2]) == ("missing", "get it again")


# Services


def test_a_key_and_an_address_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    keyed: dict[str, Any] = {"runs": "service", "key_env": "SOME_KEY", "address_arg": "base_url"}
    key, address = found(placed(tmp_path, **keyed), "key", "address")
    assert (key.state, key.text) == ("missing", "the environment variable SOME_KEY is not set")
    assert address.state == "ok"
    monkeypatch.setenv("SOME_KEY", "k")
    assert found(placed(tmp_path, **keyed), "key")[0].state == "ok"
    [unknown] = found(placed(tmp_path, runs="service", address_arg="url"), "address")
    assert (unknown.state, unknown.text) == ("missing", "where the service listens: --model-arg url=ADDRESS")


def test_whether_anybody_listens_is_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for address in (f"ws://127.0.0.1:{port}/v1", f"127.0.0.1:{port}"):
            [one] = found(placed(tmp_path, args={"url": address}, runs="service", address_arg="url"), "address")
            assert (one.state, one.text) == ("ok", f"{address}: somebody listens there")
    for address, message in (
        (f"ws://127.0.0.1:{port}", "nobody listens there"), ("ws://", "names no host and port"), ("ws://h:x", "names no host"),
    ):  # fmt: skip
        [one] = found(placed(tmp_path, args={"url": address}, runs="service", address_arg="url"), "address")
        assert one.state == "missing"
        assert message in one.text


def test_a_model_with_an_environment_of_its_own_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = placed(tmp_path, packages=("a-package-nobody-has==1",), requirements="requirements.txt")
    environment, mend = found(one, "environment")
    assert (environment.state, mend.state, mend.text) == ("missing", "note", "of its own: dsbeval env mine makes one")
    python = Path("envs", "mine", "bin", "python")
    python.parent.mkdir(parents=True)
    python.touch()
    assert (
        "there is envs/mine/bin/python: --model-arg host.python=envs/mine/bin/python"
        in found(one, "environment")[1].text
    )
