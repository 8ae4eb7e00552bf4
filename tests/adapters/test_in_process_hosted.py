"""The models of this project that load here, each in a process of its own: the same bytes as in this one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from adapters.f_actor.codec import FRAME
from dsbeval.agent import Agent, Emission
from dsbeval.host.process import Host
from dsbeval.loading import load_agent
from tests.adapters.f_actor_parts import STAND_IN, build_checkpoint

ROOT = Path(__file__).parents[2]


def said(agent: Agent, frames: int) -> tuple[bytes, str]:
    audio = (np.random.default_rng(0).standard_normal(frames * FRAME) * 0.1).astype(np.float32)
    with agent.open("You are Kenji, a cook.", 7) as session:
        out = [session.step(audio[k * FRAME : (k + 1) * FRAME]) for k in range(frames)]
    assert all(isinstance(one, Emission) for one in out)
    whole = [one for one in out if isinstance(one, Emission)]
    return b"".join(one.audio.tobytes() for one in whole), "".join(t.text for one in whole for t in one.text)


def test_f_actor_says_the_same_in_a_process_of_its_own(tmp_path: Path) -> None:
    folder = build_checkpoint(tmp_path / "tiny")
    args = {"codec": STAND_IN, "device": "cpu", "window": 4, "recogniser": "stream"}
    here = load_agent("f_actor", args, str(folder))
    host = Host(sys.executable, cwd=ROOT, start_s=300, step_s=120)
    there = load_agent("f_actor", args, str(folder), host=host, log=tmp_path / "host.log")
    try:
        assert there.capabilities == here.capabilities
        assert said(there, 20) == said(here, 20) == said(there, 20)
    finally:
        there.close()
        here.close()
