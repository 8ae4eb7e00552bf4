"""Hosted agents and interpreters of their own."""

from __future__ import annotations

import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dsbeval.agent import Agent
from dsbeval.host.agent import HostedAgent
from dsbeval.host.process import Host
from dsbeval.loading import load_agent

AGENTS = Path(__file__).with_name("agents.py")

HostedFactory = Callable[..., HostedAgent]


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[HostedFactory]:
    """Return what hosts an agent of these tests (or another spec), and ends it afterwards."""
    made: list[Agent] = []

    def make(name: str, host: Host | None = None, **args: object) -> HostedAgent:
        spec = f"{AGENTS}:{name}" if name[0].isupper() else name
        host = host or Host(sys.executable, start_s=60, step_s=60)
        agent = load_agent(spec, args, host=host, log=tmp_path / "host.log")
        made.append(agent)
        assert isinstance(agent, HostedAgent)
        return agent

    yield make
    for agent in made:
        agent.close()


@pytest.fixture(scope="session")
def numpy_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that holds numpy and nothing else."""
    root = tmp_path_factory.mktemp("numpy-only")
    venv.create(root, with_pip=False, symlinks=True)
    place = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site = Path(np.__file__).parents[1]
    for found in site.glob("numpy*"):
        (place / found.name).symlink_to(found)
    return root / "bin" / "python"
