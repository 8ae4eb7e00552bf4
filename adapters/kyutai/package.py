"""The ``moshi`` package: which one is installed, and whether it is one that the alignment was checked with."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from adapters.local import quiet
from dsbeval.errors import AgentError

RELEASED = "0.2.13"
FORK = "0.1.0"
"""The version that NVIDIA's fork names, which is installed under the same import name."""


@dataclass(frozen=True, slots=True)
class Package:
    """The parts of the package that are used."""

    kind: Literal["released", "fork"]
    version: str
    models: Any
    loaders: Any
    compiling: Any

    @property
    def name(self) -> str:
        """What it is called to a reader."""
        return f"moshi {self.version}" + (" (PersonaPlex fork)" if self.kind == "fork" else "")


def find_package(agent: str, *, fork: bool = False) -> Package:
    """Import the package. Raises :class:`AgentError` where it is missing or not of a version that was checked.

    ``fork`` says that NVIDIA's fork will do besides.
    """
    with quiet():
        try:
            models = importlib.import_module("moshi.models")
            loaders = importlib.import_module("moshi.models.loaders")
            compiling = importlib.import_module("moshi.utils.compile")
            version = str(importlib.import_module("moshi").__version__)
        except ModuleNotFoundError as error:
            what = "the package moshi" if error.name == "moshi" else f"the package {error.name}, which moshi imports"
            raise AgentError(
                f"agent {agent}: {what} is not installed; make the model's environment with: dsbeval env {agent}"
            ) from None
    forked = hasattr(models.LMGen, "step_system_prompts")
    if (version == RELEASED and not forked) or (fork and forked and version == FORK):
        return Package("fork" if forked else "released", version, models, loaders, compiling)
    found = f"moshi {version}" + (", the PersonaPlex fork" if forked else "")
    wanted = f"moshi {RELEASED}" + (f" or the PersonaPlex fork {FORK}" if fork else "")
    raise AgentError(
        f"agent {agent}: {found} is installed, but delays and streaming were checked with {wanted} only; "
        f"install it: dsbeval env {agent}"
    )
