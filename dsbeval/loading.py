"""Find an agent by name, by ``path/to/file.py:Class``, by ``package.module:Class`` or by entry point, and build it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsbeval.agent import Agent
from dsbeval.errors import AgentError, OptionError, near
from dsbeval.known import known_agents
from dsbeval.turns import TURNS, Endpointed

if TYPE_CHECKING:
    from dsbeval.host.process import Host


def parse_args(pairs: list[str], option: str = "--model") -> dict[str, object]:
    """Parse ``key=value`` options; a value is read as a YAML scalar, so ``3``, ``0.5``, ``true`` have their type.

    ``option`` is the one that names the agent, here and below; errors name it.
    """
    import yaml  # late: the host side of an agent in its own process imports this module and may not have it

    out: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.removeprefix("host.").isidentifier():
            raise OptionError(
                f"{option}-arg: {pair!r} is not key=value, with a name such as frame or voice before the ="
            )
        try:
            out[key] = yaml.safe_load(value) if value else ""
        except yaml.YAMLError:
            out[key] = value
    return out


def find_spec(spec: str, option: str = "--model") -> tuple[str, str]:
    """Return the module (or file) and the class that ``spec`` names, without importing either.

    Raises :class:`AgentError` with near names when it names neither a known agent nor a place.
    """
    target = known_agents().get(spec, spec)
    module_name, colon, attribute = target.rpartition(":")
    if not colon:
        raise AgentError(
            f"{option}: {spec!r} is not a known agent; {near(spec, known_agents())} "
            "(or give path/to/file.py:Class or package.module:Class)"
        )
    if module_name.endswith(".py") and not Path(module_name).is_file():
        raise AgentError(f"{option}: {module_name}: no such file")
    return module_name, attribute


def find_agent(spec: str, option: str = "--model") -> type[Agent]:
    """Return the class that ``spec`` names. Raises :class:`AgentError` when it is not there or not an agent."""
    module_name, attribute = find_spec(spec, option)
    by_file = module_name.endswith(".py")
    module = _load_file(Path(module_name), option) if by_file else _load_module(module_name, spec, option)
    found = getattr(module, attribute, None)
    if found is None:
        classes = [n for n, value in vars(module).items() if isinstance(value, type) and issubclass(value, Agent)]
        raise AgentError(f"{option}: {module_name} has no {attribute!r}; {near(attribute, classes)}")
    if not (isinstance(found, type) and issubclass(found, Agent)):
        raise AgentError(f"{option}: {spec} is not an agent; it must be a subclass of dsbeval.agent.Agent")
    return found


def checkpoint_files(spec: str) -> tuple[str, ...]:
    """Return the patterns of the files that an agent of this project reads of a checkpoint; of any other, none.

    Ours import nothing heavy; one from elsewhere may need an environment that is not here.
    """
    from adapters import AGENTS

    return find_agent(spec).checkpoint_files if spec in AGENTS else ()


def load_agent(
    spec: str,
    args: Mapping[str, object] | None = None,
    checkpoint: str | None = None,
    option: str = "--model",
    *,
    name: str | None = None,
    device: str | None = None,
    host: Host | None = None,
    log: Path | None = None,
) -> Agent:
    """Build the agent that ``spec`` names, with its ``--model-arg`` values and ``--checkpoint`` where it takes them.

    Parameters
    ----------
    name : str or None
        What the agent is to be called, where that is not what it calls itself.
    device : str or None
        The device that was leased for it; passed on where the agent takes one.
    host : Host or None
        The process that it is to run in; None is this one. A hosted agent is started when it is first used.
    log : Path or None
        File for what a hosted agent prints.

    Raises :class:`AgentError` when the agent does not take an argument, and lets an exception of its constructor
    through.
    """
    given = dict(args or {})
    if host is not None:
        turns, wrapping = _turn_options((), given, option)
        agent = _hosted(spec, given, checkpoint, option, name, device, host, log)
        return Endpointed(agent, **wrapping) if turns == "endpointed" else agent
    found = find_agent(spec, option)
    turns, wrapping = _turn_options(inspect.signature(found).parameters, given, option)
    agent = build_agent(found, spec, given, checkpoint, option=option, device=device)
    agent.name = name or agent.name
    if turns != "endpointed":
        return agent
    wrapped = Endpointed(agent, **wrapping)
    _ = wrapped.capabilities  # which refuses what cannot be wrapped
    return wrapped


def _hosted(
    spec: str,
    args: Mapping[str, object],
    checkpoint: str | None,
    option: str,
    name: str | None,
    device: str | None,
    host: Host,
    log: Path | None,
) -> Agent:
    from dsbeval.host.agent import HostedAgent
    from dsbeval.models import load_needs

    module_name, attribute = find_spec(spec, option)
    if module_name.endswith(".py"):
        module_name = str(Path(module_name).resolve())  # the process may have another working directory
    return HostedAgent(
        f"{module_name}:{attribute}", host, spec=spec, name=name, args=args, checkpoint=checkpoint, device=device,
        needs=load_needs(spec), log=log, option=option,
    )  # fmt: skip


def build_agent(
    found: type[Agent],
    spec: str,
    args: Mapping[str, object],
    checkpoint: str | None = None,
    *,
    option: str = "--model",
    device: str | None = None,
) -> Agent:
    """Build an agent of the class ``found``; what may be given, and what is raised, is that of :func:`load_agent`."""
    given = dict(args)
    if checkpoint is not None:
        given["checkpoint"] = checkpoint
    accepted = inspect.signature(found).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
    for key in given:
        if key not in accepted and not takes_any:
            given_by = "--checkpoint" if key == "checkpoint" else f"{option}-arg {key}"
            raise AgentError(
                f"{given_by}: agent {spec} does not take it; it takes {', '.join(accepted) or 'no arguments'}"
            )
    if device is not None and "device" in accepted:
        given.setdefault("device", device)
    agent = found(**given)
    agent.name = agent.name or spec
    return agent


def _turn_options(own: Container[str], given: dict[str, object], option: str) -> tuple[str, dict[str, Any]]:
    """Take the options of the turn-taking wrapper out of ``given``, unless the agent has options of these names itself."""
    if "turns" in own or "turns" not in given:
        return "full", {}
    turns = given.pop("turns")
    if turns not in TURNS:
        raise OptionError(f"{option}-arg turns: {turns!r} is not one of {', '.join(TURNS)}")
    names = ("endpoint_ms", "barge_in") if turns == "endpointed" else ()
    return str(turns), {name: given.pop(name) for name in names if name in given}


def _load_module(name: str, spec: str, option: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        why = (
            "no such module" if name.startswith(missing) else f"it needs the package {missing}, which is not installed"
        )
        raise AgentError(f"{option}: cannot import {name} for agent {spec}: {why}") from None


def _load_file(path: Path, option: str) -> object:
    name = f"dsbeval_agent_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AgentError(f"{option}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look the module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise AgentError(f"{option}: {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module
