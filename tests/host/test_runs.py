"""Whole runs with an agent in its own process, and with devices that are leased; no GPU is here, its numbers are made up."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.pack import load_pack
from dsbeval.loading import load_agent
from dsbeval.recording import write_recording
from fixtures.devices import pytest_configure as refuse
from tests.host.conftest import AGENTS
from tests.inner import IFEVAL, ROOT, Inner, run

pytest_plugins = ["pytester"]

DYADS = IFEVAL.parent / "dyadic"


def models(pytester: pytest.Pytester, **tables: dict[str, Any]) -> str:
    """Write a models.toml with a table a model; return the option that names it."""
    lines = []
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    path = pytester.path / "some-models.toml"
    path.write_text("\n".join(lines) + "\n")
    return f"--models={path}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def one_line(inner: Inner) -> str:
    """Return the only line of a run that was refused."""
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    assert not inner.run_dir.exists()
    [line] = [line for line in inner.err.splitlines() if line.strip()]
    return line


# An agent in its own process


def test_a_process_that_dies_spoils_one_case_and_the_rest_is_as_in_process(pytester: pytest.Pytester) -> None:
    bomb = pytester.path / "bomb"
    bomb.touch()
    options = {"fault": "die", "at": 20, "once": str(bomb)}
    here = models(pytester, far={"agent": f"{AGENTS}:Faulty", "python": sys.executable, "options": options})
    far = run(pytester, here, "--model=far", "--levels=L0", "--limit=2", run_dir=pytester.path / "far")
    assert "agent: far: own process," in far.out
    assert far.counts == {**far.counts, "cases": 2, "error": 1, "missing": 0}
    broken, *whole = far.rows()
    assert (
        "its process was killed by SIGKILL, in step 20 of its session; the last it printed: about to die"
        in broken["message"]
    )
    assert "agent far: its process was killed" in far.out
    log = far.run_dir / "logs" / "far-main.log"
    assert log.read_text().count("started") == 2
    assert str(log) in (far.run_dir / "errors" / f"{broken['id']}.txt").read_text()

    pack = load_pack(IFEVAL)
    for row in whole:
        here_too = load_agent(f"{AGENTS}:Faulty", options, name="far")
        write_recording(pytester.path, row["id"], record_case(here_too, pack, pack.cases[row["id"]]), "wav")
        for suffix in ("stereo.wav", "rec.json"):
            name = f"{row['id']}.{suffix}"
            assert (pytester.path / name).read_bytes() == (far.run_dir / "recordings" / name).read_bytes()
    process = far.summary["fingerprint"]["process"]
    assert (process["agent"], process["hosted"]) == (f"{AGENTS}:Faulty", True)
    assert far.summary["fingerprint"]["device"] == "cpu"


def test_a_process_that_always_dies_stops_the_run_and_so_it_does_under_xdist(pytester: pytest.Pytester) -> None:
    here = models(pytester, far={"agent": f"{AGENTS}:Faulty", "python": sys.executable, "options": {"fault": "leave"}})
    inner = run(pytester, here, "--model=far", "--levels=L0", "--limit=30", "-n1")
    assert inner.status == pytest.ExitCode.INTERRUPTED
    why = "agent far: its process ended with exit status 5, in step 3 of its session; that is failure 3 in a row"
    assert f"Interrupted: {why}, and it is not started again" in inner.out
    counts = inner.counts
    assert (counts["error"], counts["missing"]) == (3, 27)
    assert counts["failed"] == counts["passed"] == 0


def test_an_environment_that_is_not_what_a_model_needs_is_one_line_before_the_run(
    pytester: pytest.Pytester, numpy_only: Path
) -> None:
    lacking = run(pytester, "--model=cascade", f"--model-arg=host.python={numpy_only}")
    assert "cascade needs hibari-tts==0.2.1, which is not installed; needs pocketsphinx" in one_line(lacking)
    assert f"in {numpy_only}; dsbeval doctor cascade says what is missing" in one_line(lacking)
    unweighted = run(pytester, "--model=personaplex")
    assert "--checkpoint: personaplex needs one; give nvidia/personaplex-7b-v1" in one_line(unweighted)


# Devices

TELLS = """
import json, os, sys
from tests.host.agents import Noise

TOLD = os.environ["TOLD"]

def tell(what, **more):
    said = {"what": what, "visible": os.environ.get("CUDA_VISIBLE_DEVICES"), "torch": "torch" in sys.modules, **more}
    with open(TOLD, "a") as file:
        file.write(json.dumps(said) + "\\n")

def pytest_sessionstart(session):
    tell(os.environ.get("PYTEST_XDIST_WORKER", "main"))

class Tells(Noise):
    def __init__(self, device="auto"):
        super().__init__(device=device)
        tell("agent" if "pytest" in sys.modules else "hosted agent", device=device)

    def open(self, prompt, seed):
        if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
            os._exit(9)
        return super().open(prompt, seed)
"""


@pytest.fixture
def tells(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], Path]:
    """Return the table of an agent that says where it is, and the file that it and the workers say it in."""
    told = pytester.path / "told"
    pytester.makepyfile(tells=TELLS)
    monkeypatch.setenv("TOLD", str(told))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(pytester.path)]))
    return {"agent": "tells:Tells", "device": "cuda"}, told


def said(told: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.read_text().splitlines()]


def test_each_worker_has_its_device_and_so_has_the_one_that_stands_in_no_gpu_is_there(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tells: tuple[dict[str, Any], Path]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8f1c,7")
    table, told = tells
    inner = run(
        pytester, models(pytester, mine=table), "--model=mine", "--levels=L0", "--limit=4", "-n2", "-p", "tells"
    )
    assert inner.counts == {**inner.counts, "cases": 4, "error": 1, "missing": 0}
    workers = {one["what"]: one["visible"] for one in said(told) if "device" not in one}
    assert workers == {"main": "5,GPU-8f1c,7", "gw0": "5", "gw1": "GPU-8f1c", "gw2": "GPU-8f1c"}
    agents = [one for one in said(told) if "device" in one]
    assert {one["device"] for one in agents} == {"cuda:0"}
    assert {"5", "GPU-8f1c"} == {one["visible"] for one in agents}
    assert not any(one["torch"] for one in said(told))
    assert inner.summary["fingerprint"]["device"] == "cuda: NVIDIA GPU"
    assert "devices: 3 visible, 1 a worker" in inner.out


def test_the_sides_of_a_conversation_have_a_device_each_where_two_are_leased_no_gpu_is_there(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tells: tuple[dict[str, Any], Path]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,8")
    table, told = tells
    far = {**table, "python": sys.executable, "env": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
    inner = run(
        pytester, models(pytester, mine=table, far=far), "--model=mine", "--partner=far", "--tasks=T4-2", "--limit=1",
        "--window=30", "--devices-per-worker=2", target=DYADS,
    )  # fmt: skip
    assert inner.summary["fingerprint"]["dyadic"]["partners"] == {"far": {"agent": "tells:Tells", "args": {}}}
    assert inner.summary["dyadic"]["outcomes"]["cases"] == 1
    assert inner.summary["dyadic"]["outcomes"]["error"] == 0, inner.out
    found = {one["what"]: (one["visible"], one["device"]) for one in said(told)}
    assert found == {"agent": ("4,6", "cuda:0"), "hosted agent": ("4,6", "cuda:1")}
    assert (inner.run_dir / "logs" / "far-partner-main.log").exists()


def test_more_workers_than_fit_are_refused_no_gpu_is_there(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tells: tuple[dict[str, Any], Path]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.syspath_prepend(pytester.path)
    config = parsed(pytester, models(pytester, mine=tells[0]), "--model=mine", "-n3")
    config.option.dist, config.option.tx = "load", ["popen"] * 3  # as xdist does with -n3
    with pytest.raises(pytest.UsageError, match="-n 3: 2 devices are visible, 1 a worker: 2 fit; give -n 2 "):
        refuse(config)


def parsed(pytester: pytest.Pytester, *args: str) -> pytest.Config:
    """Return the configuration of a run that is not started."""
    return pytester.parseconfig("--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), str(IFEVAL), *args)


@pytest.mark.parametrize(
    ("options", "expected"),
    [(["--model=mine"], 5), (["--model=mine", "--devices-per-worker=2"], 2), (["--model=mine", "--per-device=2"], 10)],
)
def test_as_many_workers_as_fit_are_started_no_gpu_is_there(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tells: tuple[dict[str, Any], Path],
    options: list[str], expected: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    monkeypatch.syspath_prepend(pytester.path)

    def automatic(*args: str) -> int:
        here = models(pytester, mine=tells[0])
        config = parsed(pytester, here, *args)
        return int(config.hook.pytest_xdist_auto_num_workers(config=config))

    assert automatic(*options, "-nauto") == expected
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    without = automatic(*options, "-nauto")
    assert without == automatic("--model=echo", "-nauto")  # agents of the CPU: what xdist itself says
