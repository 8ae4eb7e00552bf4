"""The GPUs that a run may use: found without importing torch, and leased to its workers.

Conventions
-----------
* What is visible is the caller's ``CUDA_VISIBLE_DEVICES``, word for word (numbers, UUIDs, MIG instances), up to the first
  entry that is none, as CUDA reads it. Without the variable it is what the driver lists. Where neither says anything there is no
  GPU.
* A lease is a group of devices. Up to ``per_device`` workers share a group. A worker sees its group
  only, so within it the devices are ``cuda:0``, ``cuda:1``.
* Two sides of a conversation are on two devices where a worker leases two, else on the same one.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "CUDA_VISIBLE_DEVICES"
PROC = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device as the driver lists it. Memory is in GiB, and None where the driver's tool is not there to ask."""

    index: str
    uuid: str
    name: str
    memory_gib: float | None = None
    free_gib: float | None = None


def list_gpus() -> tuple[Gpu, ...]:
    """Return what the driver lists: by ``nvidia-smi``, or from ``/proc`` where that is missing; empty without a driver."""
    fields = "index,uuid,name,memory.total,memory.free"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return _from_proc()
    rows = [[part.strip() for part in line.split(",")] for line in out.splitlines()]
    return tuple(Gpu(row[0], row[1], row[2], _gib(row[3]), _gib(row[4])) for row in rows if len(row) == 5)


def _gib(mebibytes: str) -> float | None:
    try:
        return round(float(mebibytes) / 1024, 1)
    except ValueError:  # "[N/A]" on devices that share the machine's memory
        return None


def _from_proc() -> tuple[Gpu, ...]:
    found = []
    for number, path in enumerate(sorted(PROC.glob("*/information"))):
        text = path.read_text(encoding="utf-8", errors="replace")
        said = dict(re.findall(r"^([^:]+):\s*(.+?)\s*$", text, re.MULTILINE))
        found.append(Gpu(str(number), said.get("GPU UUID", ""), said.get("Model", "NVIDIA GPU")))
    return tuple(found)


def visible(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the devices that this process may use, in the words of ``CUDA_VISIBLE_DEVICES``."""
    said = (os.environ if environment is None else environment).get(VARIABLE)
    if said is None:
        return tuple(gpu.index for gpu in list_gpus())
    out: list[str] = []
    for entry in (part.strip() for part in said.split(",")):
        if not re.fullmatch(r"\d+|(GPU|MIG)-[\w/-]+", entry):
            break
        out.append(entry)
    return tuple(out)


def names_of(devices: tuple[str, ...]) -> str:
    """Return what the devices are called, each name once; ``NVIDIA GPU`` where the driver cannot be asked."""
    gpus = list_gpus()
    found = [
        gpu.name for entry in devices for gpu in gpus if entry == gpu.index or (gpu.uuid and gpu.uuid.startswith(entry))
    ]
    return ", ".join(sorted(set(found))) or "NVIDIA GPU"


# Leases


@dataclass(frozen=True, slots=True)
class Lease:
    """What one process was given: entries of ``CUDA_VISIBLE_DEVICES``; None where nothing is leased."""

    devices: tuple[str, ...] | None = None

    def of_side(self, side: int) -> str | None:
        """Return the device of side 0 (the agent) or 1 (its partner), as torch names it within this process.

        ``cpu`` where a device was asked for and none is visible; None where nothing is leased and the agent's own default holds.
        """
        if self.devices is None:
            return None
        return f"cuda:{min(side, len(self.devices) - 1)}" if self.devices else "cpu"


@dataclass(frozen=True, slots=True)
class Plan:
    """How the visible devices are shared out."""

    devices: tuple[str, ...]
    per_worker: int = 1
    per_device: int = 1

    @property
    def groups(self) -> int:
        """How many groups of ``per_worker`` devices there are."""
        return len(self.devices) // self.per_worker

    @property
    def workers(self) -> int:
        """How many workers fit."""
        return self.groups * self.per_device

    def lease(self, slot: int) -> Lease:
        """Return the devices of a slot. Slots fill every group before any is shared."""
        if not self.devices:
            return Lease(())
        first = slot % self.groups * self.per_worker
        return Lease(self.devices[first : first + self.per_worker])

    def refusal(self, workers: int) -> str | None:
        """Return why so many workers cannot have a lease, with the number that can; None where they can."""
        if not self.devices or workers <= self.workers:
            return None
        have = f"{len(self.devices)} device{'s are' if len(self.devices) > 1 else ' is'} visible"
        if not self.groups:
            return f"--devices-per-worker {self.per_worker}: {have}; make more visible, or give a smaller number"
        each = f"{self.per_worker} a worker" + (f", {self.per_device} workers on each" if self.per_device > 1 else "")
        return (
            f"-n {workers}: {have}, {each}: {self.workers} fit; give -n {self.workers} (or -n auto), or "
            f"--per-device {-(-workers // self.groups)} if so many instances fit on one"
        )


class Slots:
    """Which slots are taken. A worker that stands in for a dead one gets the slot that became free."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def take(self, worker: str) -> int:
        """Return the lowest free slot."""
        free = next(slot for slot in range(len(self._taken) + 1) if slot not in self._taken.values())
        self._taken[worker] = free
        return free

    def give_back(self, worker: str) -> None:
        """Free the slot of a worker."""
        self._taken.pop(worker, None)
