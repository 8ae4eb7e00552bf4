"""What a model needs: read from the ``needs.toml`` beside its adapter, without importing the adapter.

Conventions
-----------
* An adapter that is a package has ``adapters/NAME/needs.toml``; one that is a module of several agents has
  ``adapters/MODULE.needs.toml``. A table ``[agents.NAME]`` there says what differs for one of them.
* An agent from elsewhere (a file, an entry point) has none, and then nothing is checked beforehand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field, field_validator

from dsbeval.errors import ModelsError, near
from dsbeval.known import known_agents
from dsbeval.yamlfile import Entry, validated

Runs = Literal["cpu", "gpu", "service", "calibration"]


class Needs(Entry):
    """What one model needs."""

    path: Path
    """The file that says so."""
    name: str
    summary: str = Field(min_length=1)
    runs: Runs
    """Where it computes: on the CPU, on a GPU, in somebody's service; or it is an instrument and computes next to nothing."""
    licence: str
    weights: tuple[str, ...] = ()
    """``hub/id@revision``, each; empty where there are none to get."""
    memory_gib: float = Field(default=0.0, ge=0)
    """Memory of the device that one instance takes; of the machine, for one that runs on the CPU."""
    python: str = ""
    """Versions of Python, as in ``requires-python``."""
    requirements: str = ""
    """Name of the pinned requirements file beside it; empty where nothing is needed besides dsbeval."""
    packages: tuple[str, ...] = ()
    """What must be installed, in the form of PEP 508."""
    key_env: str = ""
    """Environment variable that holds a key."""
    address_arg: str = ""
    """The ``--model-arg`` that says where a service listens."""
    persona: bool
    """Whether it takes a system prompt."""
    stated: dict[str, Any] = Field(default_factory=dict)
    """Arguments, and their defaults, that a run states as if they had been given: they decide what is measured."""
    garble_watch: bool = False
    """Whether conversations with it are watched for speech that is not its text, unless a run says otherwise."""
    verified: str
    not_verified: str

    @field_validator("python")
    @classmethod
    def _versions(cls, value: str) -> str:
        try:
            SpecifierSet(value)
        except InvalidSpecifier:
            raise ValueError(f"{value!r} is not a range of versions; write it like '>=3.11,<3.13'") from None
        return value

    @field_validator("packages")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for package in value:
            try:
                Requirement(package)
            except InvalidRequirement:
                raise ValueError(f"{package!r} is not a requirement; write it like 'moshi==0.2.13'") from None
        return value

    @field_validator("weights")
    @classmethod
    def _pinned(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for weights in value:
            if not weights.rpartition("@")[0]:
                raise ValueError(f"{weights!r} names no revision; write it like 'owner/name@revision'")
        return value

    @cached_property
    def wanted(self) -> tuple[Requirement, ...]:
        """The packages as requirements."""
        return tuple(Requirement(package) for package in self.packages)

    @property
    def checkpoint(self) -> str:
        """What ``--checkpoint`` may name, for a model that loads its weights here; empty for any other."""
        return self.weights[0].removesuffix("@main") if self.runs == "gpu" and self.weights else ""

    @property
    def package_names(self) -> tuple[str, ...]:
        """The names of the packages."""
        return tuple(requirement.name for requirement in self.wanted)

    @property
    def requirements_file(self) -> Path | None:
        """The pinned requirements file."""
        return self.path.parent / self.requirements if self.requirements else None

    def unmet(self, python: str, packages: Mapping[str, str | None]) -> list[str]:
        """Return what an environment lacks: one phrase each. ``packages`` is what is installed there."""
        out = []
        if self.python and not SpecifierSet(self.python).contains(python, prereleases=True):
            out.append(f"needs Python {self.python}, and this is {python}")
        for requirement in self.wanted:
            if requirement.marker and not requirement.marker.evaluate(
                {"python_version": ".".join(python.split(".")[:2])}
            ):
                continue
            found = packages.get(requirement.name)
            if found is None:
                out.append(f"needs {_bare(requirement)}, which is not installed")
            elif not requirement.specifier.contains(found, prereleases=True):
                out.append(f"needs {_bare(requirement)}, and {found} is installed")
        return out


def _bare(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def needs_file(target: str) -> Path | None:
    """Return the file of the agent ``module:Class``, or None for one that is not among this project's adapters."""
    import adapters

    parts = target.partition(":")[0].split(".")
    if parts[0] != adapters.__name__ or len(parts) < 2:
        return None
    folder = Path(str(adapters.__file__)).parent
    package = folder / parts[1]
    return package / "needs.toml" if package.is_dir() else folder / f"{parts[1]}.needs.toml"


def load_needs(name: str) -> Needs | None:
    """Return what the agent of a name needs; None for one of somebody else's. Raises :class:`ModelsError` in one line."""
    path = needs_file(known_agents().get(name, name))
    return None if path is None else read_needs(path, name)


def read_needs(path: Path, name: str) -> Needs:
    """Read what the agent ``name`` needs from a file. Raises :class:`ModelsError` naming file, field and mend."""
    data = read_toml(path, "each adapter has one")
    unknown = [key for key in data if key not in ("model", "agents")]
    if unknown or not isinstance(data.get("model"), dict):
        wrong = f"[{unknown[0]}] is not a known table" if unknown else "[model] is missing"
        raise ModelsError(f"{path}: {wrong}; it has a table [model], and [agents.NAME] for what differs for one agent")
    own = data.get("agents", {}).get(name, {})
    return validated(path, {**data["model"], **own, "path": path, "name": name}, Needs, ModelsError)


def all_needs() -> dict[str, Needs]:
    """Return what each agent of this project needs, by name."""
    from adapters import AGENTS

    return {name: found for name in AGENTS if (found := load_needs(name)) is not None}


def needs_of(name: str) -> Needs:
    """Return what the agent of a name needs. Raises :class:`ModelsError` when nothing is known of it."""
    found = load_needs(name)
    if found is None:
        raise ModelsError(f"{name!r} is not an agent of this project; {near(name, all_needs())}")
    return found


def read_toml(path: Path, why: str) -> dict[str, Any]:
    """Read a TOML file. Raises :class:`ModelsError`; ``why`` says what the file is for where it is not there."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelsError(f"{path}: no such file; {why}") from None
    except OSError as error:
        raise ModelsError(f"{path}: cannot be read ({error.strerror}); a TOML file is needed") from None
    except UnicodeDecodeError as error:
        raise ModelsError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ModelsError(f"{path}: not valid TOML: {error}; mend it there") from None
