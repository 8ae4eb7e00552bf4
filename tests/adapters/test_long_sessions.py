"""A thousand frames of one session: memory is flat, and what a frame costs is told. On a GPU with bfloat16 and CUDA graphs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsbeval.agent import Agent
from dsbeval.loading import load_agent
from tests.adapters import f_actor_parts
from tests.adapters.frames import noise, play

ARGS: dict[str, dict[str, object]] = {"moshi": {}, "f_actor": {"codec": f_actor_parts.STAND_IN, "window": 4}}
KEPT = {"moshi": 0, "f_actor": 256}
"""Bytes a frame that an agent keeps by design: F-Actor's keys and values of 2 layers with 2 heads of 8 numbers, in float32."""
BLOCK = 20


@pytest.fixture(scope="module", params=ARGS)
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, place: str) -> Iterator[Agent]:
    name = str(request.param)
    folder = (
        request.getfixturevalue("tiny_moshi")
        if name == "moshi"
        else f_actor_parts.build_checkpoint(tmp_path_factory.mktemp("f_actor"))
    )
    loaded = load_agent(name, {"device": place, **ARGS[name]}, str(folder))
    yield loaded
    loaded.close()


def test_a_thousand_frames_keep_memory_flat(agent: Agent, place: str, report: Callable[[str], None]) -> None:
    """Moshi: twenty times the context of 50 frames. F-Actor: a whole horizon of 1,024 frames, but 24."""
    frames = noise(BLOCK, size=agent.capabilities.frame)
    with agent.open("", 0) as session:
        play(session, frames)
        before, begun = held(place), time.perf_counter()
        for _ in range(1000 // BLOCK - 1):
            play(session, frames)
        count = 1000 - BLOCK
        cost_ms = (time.perf_counter() - begun) / count * 1000
        tensors, size = (after - then for after, then in zip(held(place), before, strict=True))
    report(f"tiny {agent.name} on {place}: {cost_ms:.1f} ms a frame")
    assert tensors == 0
    assert size < KEPT[agent.name] * count + (4 << 20)


def held(place: str) -> tuple[int, int]:
    """Return how many tensors there are and how many bytes are held: of the device, or of this process on Linux."""
    import torch

    gc.collect()
    tensors = sum(issubclass(type(found), torch.Tensor) for found in gc.get_objects())
    if place == "cuda":
        return tensors, int(torch.cuda.memory_allocated())
    status = Path("/proc/self/statm")
    return tensors, int(status.read_text().split()[1]) * 4096 if status.exists() else 0


def test_what_is_kept_is_seen(agent: Agent, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself: a session that keeps its frames' tensors is told by their number."""
    import torch

    session: Any = agent.open("", 0)
    frames, kept = noise(3, size=agent.capabilities.frame), []
    step = session.step

    def keeps(frame: Any) -> Any:
        kept.append(torch.from_numpy(frame).to(place))
        return step(frame)

    monkeypatch.setattr(session, "step", keeps)
    play(session, frames)
    before = held(place)[0]
    play(session, frames)
    assert held(place)[0] - before == 3
    session.close()


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return what prints a measured figure where it is seen."""

    def printed(line: str) -> None:
        record_property("measured", line)
        with capsys.disabled():
            print(f"\n{line}")  # noqa: T201

    return printed
