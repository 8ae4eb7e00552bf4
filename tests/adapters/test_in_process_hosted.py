"""The models of this project that load here, each in a process of its own: the same bytes as in this one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dsbeval.errors import AgentError
from dsbeval.host.agent import HostDown, HostedAgent
from dsbeval.host.process import Host
from dsbeval.loading import load_agent
from tests.adapters import f_actor_parts, tiny_kyutai
from tests.adapters.frames import converse, noise, play

ROOT = Path(__file__).parents[2]
BUILD: dict[str, Callable[[Path], Path]] = {
    "moshi": tiny_kyutai.build,
    "personaplex": tiny_kyutai.build_personaplex,
    "f_actor": f_actor_parts.build_checkpoint,
}
ARGS: dict[str, dict[str, object]] = {"f_actor": {"codec": f_actor_parts.STAND_IN, "window": 4, "recogniser": "stream"}}


@pytest.mark.parametrize("name", BUILD)
def test_it_says_the_same_in_a_process_of_its_own_and_after_that_was_killed(
    name: str, place: str, tmp_path: Path
) -> None:
    folder = str(BUILD[name](tmp_path / "tiny"))
    args = {"device": place, **ARGS.get(name, {})}
    here = load_agent(name, args, folder)
    host = Host(sys.executable, cwd=ROOT, start_s=300, step_s=120)
    there = load_agent(name, args, folder, host=host, log=tmp_path / "host.log")
    assert isinstance(there, HostedAgent)
    frames = noise(12, size=here.capabilities.frame)
    try:
        assert there.capabilities == here.capabilities
        expected = converse(here, frames, "You are brief.", 5)
        assert converse(there, frames, "You are brief.", 5) == expected
        with pytest.raises(AgentError, match="heard 480 samples"), there.open("", 0) as session:
            session.step(np.zeros(480, np.float32))
        with there.open("", 0) as session:
            play(session, frames[:3])
            assert there.pid is not None
            os.kill(there.pid, signal.SIGKILL)
            with pytest.raises(HostDown, match="was killed by SIGKILL, in step 4 of its session"):
                session.step(frames[3])
        assert converse(there, frames, "You are brief.", 5) == expected
        assert expected.text
    finally:
        there.close()
        here.close()
