"""Where a model runs: in this process or in its own, with which checkpoint, device and options.

Conventions
-----------
* ``models.toml`` has a table a model, named like the agent or, with ``agent``, as one likes::

      [moshi]
      python = "envs/moshi/bin/python"      # an interpreter: the model runs in its own process
      cwd = "."
      checkpoint = "owner/name@revision"
      device = "cuda"                       # auto (default), cpu, cuda (a leased one), or as torch names it
      options = {temperature = 0.8}         # as --model-arg
      env = {NO_CUDA_GRAPH = "1"}
      start_s = 600
      step_s = 120

  Paths are relative to the file. A model without an interpreter runs in the process of its worker.
* The command line wins: ``--checkpoint``, ``--model-arg K=V``, ``--model-arg device=...``, and for the process
  ``--model-arg host.python=...``, ``host.cwd``, ``host.start_s``, ``host.step_s`` (paths relative to where pytest was started).
  ``host.python=`` with nothing keeps the model in process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from dsbeval.agent import Agent
from dsbeval.errors import AgentError, ModelsError, OptionError, near
from dsbeval.host.process import Host, HostFault, probe
from dsbeval.loading import find_spec, load_agent
from dsbeval.models import Needs, load_needs, read_toml
from dsbeval.yamlfile import Entry, validated

FILE = "models.toml"
HOST = "host."
_ONLY_HOSTED = ("cwd", "env", "start_s", "step_s")


class ModelEntry(Entry):
    """A table of models.toml."""

    agent: str = ""
    python: str = ""
    cwd: str = ""
    checkpoint: str | None = None
    device: str = Field(default="auto", min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    start_s: float = Field(default=600.0, gt=0)
    step_s: float = Field(default=120.0, gt=0)


class _HostArgs(Entry):
    """What ``--model-arg host.K=V`` may say."""

    python: str | None = None
    cwd: str | None = None
    start_s: float | None = Field(default=None, gt=0)
    step_s: float | None = Field(default=None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, data: Any) -> Any:
        return {key: "" if value is None else value for key, value in data.items()} if isinstance(data, dict) else data


@dataclass(frozen=True, slots=True)
class Placed:
    """A model as a run uses it."""

    name: str
    """What it was asked for by."""
    spec: str
    """The agent, as of :func:`dsbeval.loading.find_spec`."""
    args: Mapping[str, object]
    checkpoint: str | None
    device: str
    """``auto``, ``cpu``, ``cuda`` (a leased one), or what torch is to be told."""
    host: Host | None
    needs: Needs | None
    option: str

    @property
    def leases(self) -> bool:
        """Whether it is to have a leased GPU: it says ``cuda``, or its needs do and it was not told otherwise."""
        return self.device == "cuda" or (self.device == "auto" and self.needs is not None and self.needs.runs == "gpu")

    def load(self, leased: str | None = None, log: Path | None = None) -> Agent:
        """Build the agent, on the ``leased`` device where it is to have one."""
        args = dict(self.args)
        device = leased if self.leases else None
        if self.device == "cuda" and leased is not None:
            args["device"], device = leased, None  # it was asked for: an agent that takes no device refuses
        elif not self.leases and self.device != "auto":
            args["device"] = self.device
        name = self.name if self.name != self.spec else None
        return load_agent(
            self.spec, args, self.checkpoint, self.option, name=name, device=device, host=self.host, log=log
        )

    def facts(self) -> dict[str, Any]:
        """Return what it is: the agent, hosted or not, Python, and the versions of the packages that it needs.

        A hosted model's interpreter is started for it and ended. Raises :class:`ModelsError` when it cannot be, or does not hold
        what the model needs, and :class:`OptionError` for a model of released weights without a checkpoint.
        """
        if (
            self.needs is not None
            and self.needs.checkpoint
            and (self.checkpoint or self.args.get("checkpoint")) is None
        ):
            given = "--checkpoint" if self.option == "--model" else f"{self.option}-arg checkpoint="
            raise OptionError(
                f"{given}: {self.name} needs one; give {self.needs.checkpoint}, or a folder with such files "
                f"(dsbeval doctor {self.needs.name} says what is here)"
            )
        names = self.needs.package_names if self.needs else ()
        if self.host is None:
            from dsbeval.results import installed

            facts = installed(names)
            where = "here"
        else:
            try:
                facts = dict(probe(self.host, names))
            except HostFault as fault:
                tail = f"; it printed: {fault.tail}" if fault.tail else ""
                raise ModelsError(f"{self.option}: {self.name}: {self.host.python} {fault}{tail}") from None
            where = f"in {self.host.python}"
        if self.needs is not None and (unmet := self.needs.unmet(facts["python"], facts["packages"])):
            raise ModelsError(
                f"{self.option}: {self.name} {'; '.join(unmet)} {where}; dsbeval doctor {self.needs.name} says what is missing, "
                f"dsbeval env {self.needs.name} makes an environment"
            )
        return {
            "agent": self.spec,
            "hosted": self.host is not None,
            "python": facts["python"],
            "packages": facts["packages"],
        }


class Models:
    """What ``models.toml`` says; nothing where there is none."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        tables = {} if path is None else read_toml(path, "--models names a file with a table a model")
        self._entries: dict[str, ModelEntry] = {}
        for name, table in tables.items():
            where = Path(f"{path}: [{name}]")
            entry = validated(where, table, ModelEntry, ModelsError)
            extra = [key for key in _ONLY_HOSTED if key in entry.model_fields_set]
            if extra and not entry.python:
                raise ModelsError(
                    f'{where}: {extra[0]}: is for a model in its own process; add python = "envs/{name}/bin/python"'
                )
            self._entries[name] = entry
            try:
                find_spec(self._spec(name), str(where))
            except AgentError as error:
                raise ModelsError(f'{error}; or say agent = "NAME" there') from None

    @classmethod
    def find(cls, asked: str | None, *folders: Path) -> Models:
        """Read the file that was asked for, else ``models.toml`` in the first of ``folders`` that has one."""
        if asked is not None:
            return cls((folders[0] / asked) if folders else Path(asked))
        return cls(next((folder / FILE for folder in folders if (folder / FILE).is_file()), None))

    @property
    def names(self) -> tuple[str, ...]:
        """The models that it names."""
        return tuple(self._entries)

    def _spec(self, name: str) -> str:
        entry = self._entries.get(name)
        if entry is None or not entry.agent:
            return name
        file = entry.agent.partition(":")[0]
        inside = self.path is not None and file.endswith(".py") and not Path(file).is_absolute()
        return str(self._folder / entry.agent) if inside else entry.agent

    @property
    def _folder(self) -> Path:
        assert self.path is not None
        return self.path.parent

    def place(
        self,
        name: str,
        args: Mapping[str, object] | None = None,
        checkpoint: str | None = None,
        option: str = "--model",
        cwd: Path | None = None,
    ) -> Placed:
        """Return where and how the model of a name runs; ``args`` and ``checkpoint`` are the command line's, and win.

        Nothing is imported. Raises :class:`~dsbeval.errors.DsbevalError` in one line.
        """
        entry = self._entries.get(name, ModelEntry())
        spec = self._spec(name)
        try:
            find_spec(spec, option)
        except AgentError as error:
            known = [one for one in self._entries if one != spec]
            raise AgentError(f"{error}" + (f"; {FILE} has {', '.join(known)}" if known else "")) from None
        needs = load_needs(spec)
        given = {**(needs.stated if needs is not None else {}), **entry.options, **(args or {})}
        said = {key.removeprefix(HOST): given.pop(key) for key in list(given) if key.startswith(HOST)}
        host = self._host(name, entry, said, option, cwd or Path.cwd())
        device = given.pop("device", entry.device)
        if not isinstance(device, str) or not device:
            raise OptionError(f"{option}-arg device: {device!r} is not a device; give auto, cpu, cuda or cuda:N")
        if checkpoint is None and entry.checkpoint is not None:
            local = self._folder / entry.checkpoint
            checkpoint = str(local) if local.exists() else entry.checkpoint
        return Placed(name, spec, given, checkpoint, device, host, needs, option)

    def _host(self, name: str, entry: ModelEntry, said: dict[str, object], option: str, cwd: Path) -> Host | None:
        unknown = [key for key in said if key not in _HostArgs.model_fields]
        if unknown:
            raise OptionError(
                f"{option}-arg {HOST}{unknown[0]}: is not known; {near(unknown[0], _HostArgs.model_fields)}"
            )
        args = validated(Path(f"{option}-arg host"), said, _HostArgs, OptionError)
        here = self._folder if self.path is not None else cwd
        if args.python is not None:
            python, source = args.python, f"{option}-arg host.python"
            found = _interpreter(python, cwd)
        else:
            python, source = entry.python, f"{self.path}: [{name}]: python"
            found = _interpreter(python, here)
        if not python:
            extra = next((key for key in said if key != "python"), None)
            if extra is not None:
                raise OptionError(
                    f"{option}-arg host.{extra}: {name} runs in process; add {option}-arg host.python=PYTHON"
                )
            return None
        if found is None:
            raise ModelsError(f"{source}: {python}: no such interpreter; dsbeval env {name} makes one, or give another")
        folder = (cwd / args.cwd) if args.cwd else (here / entry.cwd if entry.cwd else None)
        if folder is not None and not folder.is_dir():
            raise ModelsError(f"{source.removesuffix('python')}cwd: {folder}: no such folder; make it, or give another")
        return Host(found, folder, dict(entry.env), args.start_s or entry.start_s, args.step_s or entry.step_s)


def _interpreter(python: str, folder: Path) -> str | None:
    """Return the path of an interpreter, links kept (they lead out of a virtual environment); None where there is none."""
    if not python:
        return None
    if os.sep not in python:
        return shutil.which(python)
    path = Path(os.path.normpath(folder / Path(python).expanduser()))
    return str(path) if os.access(path, os.X_OK) and path.is_file() else None
