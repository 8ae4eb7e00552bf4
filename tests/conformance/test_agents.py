"""The conformance suite over the agent named by --model, or over every agent that runs here without weights or keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dsbeval.agent import Agent
from dsbeval.conformance import CHECKS
from dsbeval.devices import Lease
from dsbeval.loading import load_agent
from reports.placing import placement_of

LOCAL = ("cascade", "oracle", "contrarian", "silent", "turn_based", "babbler", "echo", "achiever", "forfeiter")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    asked = [arg for arg in metafunc.config.invocation_params.args if str(arg).startswith("--model")]
    names = [metafunc.config.getoption("--model")] if asked else LOCAL
    metafunc.parametrize("conforming", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def conforming(request: pytest.FixtureRequest, pytestconfig: pytest.Config, devices: Lease) -> Iterator[Agent]:
    model = placement_of(pytestconfig).model
    agent = model.load(devices.of_side(0)) if model.name == request.param else load_agent(request.param)
    yield agent
    agent.close()
    agent.close()


@pytest.mark.parametrize("name", CHECKS)
def test_agent(conforming: Agent, name: str) -> None:
    CHECKS[name](conforming)
