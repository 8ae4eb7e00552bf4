"""Where the agents of a run are: their processes, their devices, and what the header and the fingerprint say of both."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsbeval.devices import Plan, names_of, visible
from dsbeval.errors import OptionError
from dsbeval.loading import parse_args
from dsbeval.placing import Models, Placed
from reports.replaying import read_model


@dataclass(frozen=True)
class Placement:
    """The model of a run and its partners, each in its place; and how the devices are shared out."""

    model: Placed
    partners: tuple[Placed, ...]
    per_worker: int
    per_device: int

    def partner(self, name: str) -> Placed:
        """Return the partner of a name; in self-play (an empty one) the model."""
        return next((one for one in self.partners if one.name == name), self.model)

    @functools.cached_property
    def plan(self) -> Plan | None:
        """How the visible devices are shared out; None where nobody is to have one."""
        leased = any(one.leases for one in (self.model, *self.partners))
        return Plan(visible(), self.per_worker, self.per_device) if leased else None

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """What the model's environment is. Raises :class:`~dsbeval.errors.ModelsError` where it is not what it needs."""
        return self.model.facts()

    def check(self) -> None:
        """Find what would break every case. Raises :class:`~dsbeval.errors.DsbevalError` in one line."""
        _ = self.facts
        for one in self.partners:
            if one.name != self.model.name:
                one.facts()

    @functools.cached_property
    def device(self) -> str:
        """What the model computes on, in a word for the fingerprint: the same for all workers of a run."""
        if self.model.needs is not None and self.model.needs.runs == "service":
            return "service"
        if not self.model.leases:
            return "cpu" if self.model.device == "auto" else self.model.device
        assert self.plan is not None
        return f"cuda: {names_of(self.plan.devices)}" if self.plan.devices else "cpu"

    def lines(self) -> list[str]:
        """Return a line an agent for the head of the terminal."""
        facts = self.facts
        packages = "".join(f", {name} {version}" for name, version in facts["packages"].items() if version)
        host = self.model.host
        where = f"own process, {host.python}" if host else "in process"
        out = [f"agent: {self.model.name}: {where} (Python {facts['python']}{packages}); device: {self.device}"]
        if self.plan is not None and self.plan.devices:
            shared = f", {self.plan.per_device} workers on each" if self.plan.per_device > 1 else ""
            out.append(f"devices: {len(self.plan.devices)} visible, {self.plan.per_worker} a worker{shared}")
        elif self.plan is not None:
            out.append("devices: no NVIDIA device is visible; everything runs on the CPU")
        return out

    def log(self, run_dir: Path, placed: Placed, worker: str, *, partner: bool = False) -> Path:
        """Return the file that a process of its own writes to."""
        label = "".join(c if c.isalnum() or c in "_-" else "-" for c in placed.name.rpartition("/")[2])
        return run_dir / "logs" / f"{label}{'-partner' if partner else ''}-{worker}.log"


DEFAULT_MODEL = "cascade"
_PLACEMENT = pytest.StashKey[Placement]()


def placement_of(config: pytest.Config) -> Placement:
    """Return where the agents of a run are. Raises :class:`~dsbeval.errors.DsbevalError` in one line."""
    if _PLACEMENT not in config.stash:
        config.stash[_PLACEMENT] = _read(config)
    return config.stash[_PLACEMENT]


def _read(config: pytest.Config) -> Placement:
    get = config.getoption
    for name in ("--devices-per-worker", "--per-device"):
        if get(name) < 1:
            raise OptionError(f"{name}: {get(name)} is not a number of {name[2:].partition('-')[0]}s; give 1 or more")
    args, partner_args = parse_args(get("--model-arg")), parse_args(get("--partner-arg"), "--partner")
    partners = tuple(dict.fromkeys(get("--partner")))
    if get("--text-only"):
        return Placement(
            _written(get("--model"), args, "--model"),
            tuple(_written(name, partner_args, "--partner") for name in partners),
            get("--devices-per-worker"),
            get("--per-device"),
        )
    model, args = read_model(config, args, DEFAULT_MODEL)
    here = config.invocation_params.dir
    models = Models.find(get("--models"), here, config.rootpath)
    return Placement(
        model=models.place(model, args, get("--checkpoint"), cwd=here),
        partners=tuple(models.place(name, partner_args, option="--partner", cwd=here) for name in partners),
        per_worker=get("--devices-per-worker"),
        per_device=get("--per-device"),
    )


def _written(name: str, args: Mapping[str, object], option: str) -> Placed:
    """A text model behind a service: it has no process and no device here."""
    return Placed(name, name, args, None, "service", None, None, option)
