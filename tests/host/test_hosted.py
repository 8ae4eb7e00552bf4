"""An agent in its own process behaves as it does in this one."""

from __future__ import annotations

import datetime
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dsbeval.agent import Agent, Emission, Usage, check_emissions
from dsbeval.audio import RATE
from dsbeval.conformance import CHECKS, Heard, converse, open_session, user_audio
from dsbeval.errors import AgentError, OptionError, SessionLostError
from dsbeval.host.agent import HostDown
from dsbeval.host.process import Host
from dsbeval.loading import load_agent
from dsbeval.turns import Endpointed
from tests.host.agents import FRAME, Noise
from tests.host.conftest import AGENTS, HostedFactory

STEADY = np.full(FRAME, 0.25, np.float32)


def talk(agent: Agent, prompt: str = "You are brief.", seed: int = 11, seconds: float = 2.0) -> Heard:
    with open_session(agent, prompt, seed) as session:
        return converse(agent, session, user_audio()[: int(seconds * RATE)])


def contents(heard: Heard) -> tuple[object, ...]:
    return (
        heard.audio.tobytes(),
        [(e.audio.size, e.text, e.done, e.flush, e.rate) for e in heard.emissions],
    )


# The same contract


@pytest.mark.parametrize("name", ["Noise", "turn_based"])
def test_equal_seeds_give_equal_bytes_in_process_and_hosted(hosted: HostedFactory, name: str) -> None:
    here = load_agent(f"{AGENTS}:{name}" if name == "Noise" else name)
    there = hosted(name)
    assert there.capabilities == here.capabilities
    expected = talk(here)
    found = talk(there)
    assert contents(found) == contents(expected)
    assert there.name == here.name
    if name == "Noise":
        assert expected.audio.size > RATE
        assert contents(talk(there, seed=12)) != contents(found)
        assert contents(talk(there)) == contents(found)
    here.close()


def test_a_hosted_agent_keeps_the_contract(hosted: HostedFactory) -> None:
    agent = hosted("Noise")
    for check in CHECKS.values():
        check(agent)


def test_several_emissions_arrive_with_all_they_say(hosted: HostedFactory) -> None:
    before = time.monotonic()
    with hosted("Many").open("", 0) as session:
        returned = session.step(STEADY)
    assert isinstance(returned, tuple)
    first, second, third = returned
    assert (first.audio.size, first.flush, first.done, first.rate, first.arrived) == (100, True, False, 24_000, None)
    assert [(t.text, t.offset_s) for t in first.text] == [("Zoë ", 0.1), ('"\n\x00🙂', 1e-17)]
    assert second.audio.size == 0
    assert second.arrived is not None
    assert before < second.arrived < time.monotonic()
    assert (third.audio.size, third.done, third.flush) == (3, True, False)


def test_arguments_checkpoint_and_device_reach_the_agent(tmp_path: Path) -> None:
    agent = load_agent(
        f"{AGENTS}:Noise", {"level": 0.0}, "weights/", device="cuda:1", host=Host(sys.executable), name="renamed",
        log=tmp_path / "log",
    )  # fmt: skip
    try:
        assert agent.capabilities.frame == FRAME
        assert agent.name == "renamed"
        with agent.open("", 0) as session:
            answer = session.finish()
        assert isinstance(answer, Emission)
        assert not answer.audio.any()  # level 0
    finally:
        agent.close()


def test_two_sessions_may_be_open_at_once(hosted: HostedFactory) -> None:
    agent = hosted("Noise")
    alone = contents(talk(Noise(), seed=1))
    frames = user_audio()[: 2 * RATE].reshape(-1, FRAME)
    with agent.open("You are brief.", 1) as one, agent.open("", 2) as other:
        said: list[Emission] = []
        for frame in frames:
            other.step(frame)
            emission = one.step(frame)
            assert isinstance(emission, Emission)
            said.append(emission)
        last = one.finish()
        assert isinstance(last, Emission)
    assert contents(Heard((*said, last))) == alone


def test_cut_off_it_tells_the_same_as_in_process(hosted: HostedFactory) -> None:
    told = []
    for agent in (hosted("Noise"), Noise()):
        with agent.open("", 1) as session:
            session.step(user_audio()[RATE : RATE + FRAME])
            told.append(contents(Heard(check_emissions(session.cut_off(), agent.capabilities, agent.name))))
    assert told[0] == told[1]


def test_a_turn_based_agent_is_wrapped_on_this_side(hosted: HostedFactory, tmp_path: Path) -> None:
    agent = load_agent(
        "turn_based", {"turns": "endpointed", "endpoint_ms": 300}, host=Host(sys.executable), log=tmp_path / "log"
    )
    try:
        assert isinstance(agent, Endpointed)
        with agent.open("", 0) as session:
            heard = converse(agent, session, user_audio(), finish=False)
        assert heard.audio.size
    finally:
        agent.close()
    wrong = load_agent("echo", {"turns": "endpointed"}, host=Host(sys.executable), log=tmp_path / "log")
    with pytest.raises(OptionError, match="echo is frame_synchronous"):
        _ = wrong.capabilities
    wrong.close()


def test_a_thousand_frames_keep_the_memory_flat(hosted: HostedFactory) -> None:
    agent = hosted("Noise")
    with agent.open("", 0) as session:
        assert agent.pid is not None
        for _ in range(100):
            session.step(STEADY)
        before = memory(agent.pid), memory(os.getpid())
        for _ in range(1000):
            session.step(STEADY)
        after = memory(agent.pid), memory(os.getpid())
    # 1,000 frames kept would be 7.7 MB each way.
    assert after[0] - before[0] < 1 << 20
    assert after[1] - before[1] < 2 << 20


def memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_what_an_agent_tells_of_sessions_and_usage_arrives(hosted: HostedFactory) -> None:
    agent = hosted("Service", concurrency=2)
    assert agent.usage() is None  # nothing has been asked for yet
    assert agent.concurrency == 2
    session = agent.open("asked", 0)
    for _ in range(3):
        session.step(STEADY)
    assert session.facts() == {"steps": 3, "asked": "asked"}
    session.close()
    assert session.facts() == {"steps": 3, "asked": "asked"}
    assert agent.usage() == Usage({"model": "noise"}, {"steps": 3, "cost_usd": 0.375})
    with pytest.raises(SessionLostError, match="the service is busy") as caught, agent.open("lose", 0) as session:
        session.step(STEADY)
    assert caught.value.wait_s == 2.5
    with pytest.raises(HostDown), agent.open("die", 0) as session:
        session.step(STEADY)
    assert session.facts() == {}
    with agent.open("", 0) as session:
        session.step(STEADY)
    used = Usage({"model": "noise"}, {"steps": 4, "cost_usd": 0.5})  # by both processes
    assert agent.usage() == used
    agent.close()
    assert agent.usage() == used


# What an agent raises


def test_an_exception_has_the_words_of_one_in_process_and_the_process_lives_on(hosted: HostedFactory) -> None:
    agent = hosted("Faulty", fault="refuse", at=2)
    pid = None
    for _ in range(4):  # more often than a process may fail
        with agent.open("", 0) as session:
            pid = pid or agent.pid
            session.step(STEADY)
            with pytest.raises(AgentError) as caught:
                session.step(STEADY)
        assert str(caught.value).startswith(f"agent {agent.name}: RuntimeError: device lost at agents.py:")
        assert any("in refuse" in note for note in caught.value.__notes__)
        assert agent.pid == pid


@pytest.mark.parametrize(
    ("spec", "args", "message"),
    [
        ("Noise", {"depth": 1}, "--model-arg depth: agent .* does not take it; it takes level, checkpoint, device"),
        ("Nois", {}, "agents.py has no 'Nois'; did you mean Noise"),
        ("oracle", {}, "oracle is a calibration agent, which is told the case; it runs in process only"),
        ("achiever", {}, "achiever is a calibration agent"),
    ],
)
def test_what_no_restart_can_mend_is_said_at_once(
    hosted: HostedFactory, spec: str, args: dict[str, object], message: str
) -> None:
    agent = hosted(spec, **args)
    for _ in range(2):
        with pytest.raises(AgentError, match=message + ".*; a new start cannot mend that") as caught:
            _ = agent.capabilities
        assert "\n" not in str(caught.value)
        assert agent.pid is None


def test_an_argument_that_only_this_process_can_hold_is_named(hosted: HostedFactory) -> None:
    with pytest.raises(AgentError, match=r"--model-arg level: a date cannot be handed .* put it in quotes"):
        hosted("Noise", level=datetime.date(2026, 1, 1))


def test_a_frame_of_another_kind_is_not_sent(hosted: HostedFactory) -> None:
    with hosted("Noise").open("", 0) as session, pytest.raises(AgentError, match="float64 of shape"):
        session.step(STEADY.astype(np.float64))


# The environment


def test_the_host_side_needs_numpy_only(hosted: HostedFactory, numpy_only: Path, tmp_path: Path) -> None:
    host = Host(str(numpy_only), tmp_path, {"HOSTED_VARIABLE": "set"}, start_s=60)
    agent = hosted("Environment", host)
    assert agent.capabilities.frame == FRAME
    with agent.open("HOSTED_VARIABLE", 0) as session:
        emission = session.step(STEADY)
    assert isinstance(emission, Emission)
    said = dict(token.text.rstrip().split("=", 1) for token in emission.text)
    modules = set(said["modules"].split())
    ours = {"yaml", "pydantic", "soxr", "onnxruntime", "soundfile", "packaging", "scipy", "torch", "pytest"}
    assert not modules & ours, modules & ours
    assert {"numpy", "dsbeval.agent"} <= modules
    assert (said["python"], said["cwd"], said["variable"]) == (str(numpy_only), str(tmp_path), "set")


def test_nothing_of_the_harness_is_importable_but_its_own_packages(
    hosted: HostedFactory, numpy_only: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import yaml

    monkeypatch.setenv("PYTHONPATH", str(Path(yaml.__file__).parents[1]))
    (tmp_path / "needy.py").write_text("import yaml\nfrom tests.host.agents import Noise\n")
    agent = hosted("needy:Noise", Host(str(numpy_only), tmp_path, start_s=60))
    with pytest.raises(AgentError, match="cannot import needy for agent needy:Noise: it needs the package yaml"):
        agent.start()


# The harness ends


def test_the_process_ends_when_the_harness_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = f"""
import sys, time, numpy as np
from pathlib import Path
from dsbeval.host.agent import HostDown
from dsbeval.host.process import Host
from dsbeval.loading import load_agent
agent = load_agent("{AGENTS}:Faulty", {{"fault": "hang", "at": 1, "pids": "{pids}"}}, host=Host(sys.executable))
session = agent.open("", 0)
print(agent.pid, flush=True)
session.step(np.zeros({FRAME}, np.float32))
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        wait_for(pids.exists, "the agent is in its step")
        child = int(pids.read_text().split()[0])
        harness.kill()
    wait_for(lambda: not alive(pid) and not alive(child), "the process and its child have ended")


def test_closing_ends_the_process_and_it_may_be_opened_again(hosted: HostedFactory) -> None:
    agent = hosted("Noise")
    first = contents(talk(agent))
    pid = agent.pid
    assert pid is not None
    agent.close()
    agent.close()
    assert not alive(pid)
    assert contents(talk(agent)) == first


def test_a_session_after_a_kill_at_any_frame_is_as_if_nothing_had_been(hosted: HostedFactory) -> None:
    agent = hosted("Noise")
    expected = contents(talk(Noise()))
    frames = user_audio()[: 2 * RATE].reshape(-1, FRAME)
    for seed in range(3):
        at = random.Random(seed).randrange(frames.shape[0])
        with agent.open("", seed) as session:
            for frame in frames[:at]:
                session.step(frame)
            assert agent.pid is not None
            os.kill(agent.pid, 9)
            with pytest.raises(HostDown) as caught:
                session.step(frames[at])
        assert f"its process was killed by SIGKILL, in step {at + 1} of its session" in str(caught.value)
        assert contents(talk(agent)) == expected


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
