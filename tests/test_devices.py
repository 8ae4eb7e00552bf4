"""Devices without a GPU: what is read, how it is shared out, what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval import devices
from dsbeval.devices import Gpu, Lease, Plan, Slots, list_gpus, names_of, visible


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", ()),
        ("-1", ()),
        ("0", ("0",)),
        ("3, 1", ("3", "1")),
        ("2,-1,3", ("2",)),
        ("GPU-8f1c,MIG-GPU-2a/1/0,MIG-77ab-1", ("GPU-8f1c", "MIG-GPU-2a/1/0", "MIG-77ab-1")),
        ("NoDevFiles", ()),
    ],
)
def test_the_callers_variable_is_read_as_cuda_reads_it(said: str, expected: tuple[str, ...]) -> None:
    assert visible({"CUDA_VISIBLE_DEVICES": said}) == expected


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put an ``nvidia-smi`` that prints ``text`` on the path; no GPU is here to be listed."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))


def test_the_drivers_tool_is_asked_no_gpu_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(
        tmp_path,
        monkeypatch,
        "0, GPU-aa11, NVIDIA H100 80GB HBM3, 81559, 80000\n1, GPU-bb22, NVIDIA GB10, [N/A], [N/A]\n",
    )
    assert list_gpus() == (
        Gpu("0", "GPU-aa11", "NVIDIA H100 80GB HBM3", 79.6, 78.1),
        Gpu("1", "GPU-bb22", "NVIDIA GB10", None, None),
    )
    assert visible({}) == ("0", "1")
    assert names_of(("1",)) == "NVIDIA GB10"
    assert names_of(("GPU-aa", "1")) == "NVIDIA GB10, NVIDIA H100 80GB HBM3"
    assert names_of(("7",)) == "NVIDIA GPU"


def test_without_the_tool_the_driver_is_read_no_gpu_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(devices, "PROC", tmp_path / "gpus")
    assert visible({}) == ()
    card = tmp_path / "gpus" / "0000:01:00.0"
    card.mkdir(parents=True)
    (card / "information").write_text("Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 99\nGPU UUID: \t GPU-cc33\n")
    assert list_gpus() == (Gpu("0", "GPU-cc33", "NVIDIA A100-SXM4-40GB"),)
    assert visible({}) == ("0",)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 9), st.integers(1, 3), st.integers(1, 3), st.integers(1, 12))
def test_no_device_is_shared_by_more_than_was_said(count: int, per_worker: int, per_device: int, workers: int) -> None:
    plan = Plan(tuple(map(str, range(count))), per_worker, per_device)
    if plan.refusal(workers) is not None:
        assert workers > plan.workers
        return
    if not count:
        assert plan.lease(workers - 1).devices == ()
        return
    leases = [plan.lease(slot).devices or () for slot in range(workers)]
    assert all(len(set(lease)) == per_worker for lease in leases)
    used = [device for lease in leases for device in lease]
    assert max(map(used.count, used)) <= per_device
    if workers <= plan.groups:
        assert len(set(used)) == len(used)


@pytest.mark.parametrize(
    ("plan", "workers", "message"),
    [
        (Plan(("0", "1")), 3, "-n 3: 2 devices are visible, 1 a worker: 2 fit; give -n 2 (or -n auto), or --per-device 2 if"),
        (Plan(("0",)), 4, "-n 4: 1 device is visible, 1 a worker: 1 fit; give -n 1 (or -n auto), or --per-device 4 if"),
        (Plan(("0", "1", "2"), 2), 2, "-n 2: 3 devices are visible, 2 a worker: 1 fit; give -n 1 (or -n auto), or --per-"),
        (Plan(("0", "1"), 1, 2), 5, "1 a worker, 2 workers on each: 4 fit; give -n 4 (or -n auto), or --per-device 3 if"),
        (Plan(("0",), 2), 1, "--devices-per-worker 2: 1 device is visible; make more visible, or give a smaller number"),
        (Plan(("0", "1")), 2, None),
        (Plan(("0",), 1, 3), 3, None),
        (Plan(()), 8, None),
    ],
)  # fmt: skip
def test_more_workers_than_fit_are_refused_with_the_number_that_do(
    plan: Plan, workers: int, message: str | None
) -> None:
    said = plan.refusal(workers)
    assert said == message if message is None else message in str(said)


def test_the_sides_of_a_conversation_are_apart_where_they_can_be() -> None:
    assert [Lease(("4", "5")).of_side(side) for side in (0, 1)] == ["cuda:0", "cuda:1"]
    assert [Lease(("4",)).of_side(side) for side in (0, 1)] == ["cuda:0", "cuda:0"]
    assert [Lease(()).of_side(side) for side in (0, 1)] == ["cpu", "cpu"]
    assert Lease(None).of_side(0) is None


def test_a_worker_that_stands_in_for_another_gets_its_slot() -> None:
    slots = Slots()
    assert [slots.take(name) for name in ("gw0", "gw1", "gw2")] == [0, 1, 2]
    slots.give_back("gw1")
    assert slots.take("gw3") == 1
    assert slots.take("gw4") == 3
    slots.give_back("gw9")
