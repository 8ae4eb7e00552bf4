"""The conformance suite on the wall clock, over every wire of our own servers at once: wire and pace only, no model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from dsbeval.agent import Agent
from dsbeval.conformance import CHECKS
from dsbeval.errors import DsbevalError
from dsbeval.loading import load_agent
from tests.adapters.lychee_service import Lychee, Plan, noise, pcm, text
from tests.adapters.raon_gateway import Gateway
from tests.adapters.realtime_talk import at_once
from tests.adapters.ws_peer import Peer

AGENTS = ("websocket", "raon", "lychee_fd")
SPEAKS: Plan = {k: [text(f" {k}", seq=k), pcm(noise(0.4, seed=k))] for k in range(1, 9)}


def fault_of(agent: Agent, name: str) -> str | None:
    try:
        CHECKS[name](agent)
    except DsbevalError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, str | None]]:
    """What each check says of each agent, and what the strict ones of the servers say of their client."""
    with ExitStack() as stack:
        peer = stack.enter_context(Peer(clock="wall", seed=False))
        gateway = stack.enter_context(Gateway())
        service = stack.enter_context(Lychee([SPEAKS] * 20))
        addresses = (peer.url, gateway.url, service.url)
        agents = {name: load_agent(name, {"url": url}) for name, url in zip(AGENTS, addresses, strict=True)}
        assert {agent.capabilities.clock for agent in agents.values()} == {"wall"}
        work: dict[str, Callable[[], str | None]] = {
            f"{name} {check}": functools.partial(fault_of, agents[name], check) for name in AGENTS for check in CHECKS
        }
        said = at_once(work, at_most=len(work))
        assert gateway.faults == []
        assert service.faults == []
        yield said


@pytest.mark.parametrize("name", AGENTS)
def test_it_conforms_in_real_time(found: dict[str, str | None], name: str) -> None:
    assert {check: found[f"{name} {check}"] for check in CHECKS} == dict.fromkeys(CHECKS)
