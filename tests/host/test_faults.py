"""What can go wrong with a process, and what becomes of it: an error of the session, and the next one works."""

from __future__ import annotations

import re
import stat
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

from dsbeval.agent import Agent, Session
from dsbeval.errors import AgentError
from dsbeval.host.agent import FAILURES, HostDown, HostedAgent, HostGivenUp
from dsbeval.host.process import Host
from dsbeval.models import Needs
from tests.host.agents import FRAME, Noise
from tests.host.conftest import AGENTS, HostedFactory
from tests.host.test_hosted import alive, contents, talk, wait_for

STEADY = np.full(FRAME, 0.25, np.float32)
QUICK = Host(sys.executable, start_s=60, step_s=2)


def steps(session: Session, count: int = 10) -> None:
    for _ in range(count):
        session.step(STEADY)


def broken(agent: Agent, count: int = 10) -> HostDown:
    """Return the error of a session that breaks."""
    with pytest.raises(HostDown) as caught, agent.open("", 0) as session:
        steps(session, count)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("die", "was killed by SIGKILL, in step 3 of its session; the last it printed: about to die | of a [31m signal"),
        ("leave", "its process ended with exit status 5, in step 3 of its session"),
        ("hang", "its process did not answer within 2 s and was killed, in step 3 of its session"),
        ("trickle", "its process did not answer within 2 s and was killed, in step 3 of its session"),
        ("garbage", "its process sent bytes that are no message (b'Loading weig' ...), in step 3 of its session"),
        ("twice", "its process sent ANSWER 1 where the answer to call"),
    ],
)  # fmt: skip
def test_a_fault_is_one_clear_error_and_the_next_session_works(
    hosted: HostedFactory, tmp_path: Path, fault: str, message: str
) -> None:
    expected = contents(talk(Noise()))
    once, pids = tmp_path / "once", tmp_path / "pids"
    timed = fault in ("hang", "trickle")
    agent = hosted("Faulty", QUICK if timed else None, fault=fault, once=str(once), pids=str(pids))
    for _ in range(FAILURES + 1 if fault == "die" else 1):  # never in a row
        once.touch()
        error = broken(agent)
        assert message in str(error), str(error)
        assert not isinstance(error, HostGivenUp)
        assert agent.pid is None
        children = [int(pid) for pid in pids.read_text().split()]
        assert len(children) == 2  # one of them in a session of its own
        wait_for(lambda children=children: not any(map(alive, children)), "the children have ended", 5)  # type: ignore[misc]
        assert contents(talk(agent)) == expected


def test_three_failures_in_a_row_are_enough(hosted: HostedFactory, tmp_path: Path) -> None:
    agent = hosted("Faulty", fault="leave")
    errors = [broken(agent) for _ in range(FAILURES)]
    assert [isinstance(error, HostGivenUp) for error in errors] == [False, False, True]
    assert "exit status 5" in str(errors[-1])
    assert str(errors[-1]).endswith("that is failure 3 in a row, and it is not started again")
    assert str(broken(agent)) == str(errors[-1])
    assert (tmp_path / "host.log").read_text().count("started") == FAILURES
    assert agent.pid is None


def test_ten_megabytes_on_stderr_do_no_harm_and_are_kept(hosted: HostedFactory, tmp_path: Path) -> None:
    agent = hosted("Faulty", fault="chatter", at=2)
    with agent.open("", 0) as session:
        steps(session)
    log = tmp_path / "host.log"
    assert log.stat().st_size > 10_000_000
    killed = hosted("Faulty", fault="die")
    tail = str(broken(killed)).partition("the last it printed: ")[2]
    assert "about to die | of a [31m signal" in tail
    assert "blah" not in tail  # what another process printed


def test_a_lost_session_stays_lost(hosted: HostedFactory) -> None:
    agent = hosted("Faulty", fault="leave")
    lost = agent.open("", 0)
    with pytest.raises(HostDown):
        steps(lost)
    with agent.open("", 0) as session:
        session.step(STEADY)
        with pytest.raises(HostDown, match="the process of this session is gone; open another session"):
            lost.step(STEADY)
        lost.close()
        session.step(STEADY)
        assert agent.pid is not None


def test_an_interrupt_between_a_frame_and_its_answer_leaves_no_wrong_answer(hosted: HostedFactory) -> None:
    agent = hosted("Noise")
    expected = contents(talk(Noise()))
    with agent.open("", 0) as session:
        process = agent._process
        assert process is not None
        read, process._read = process._read, lambda size: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            session.step(STEADY)
        process._read = read  # type: ignore[method-assign]
    assert contents(talk(agent)) == expected


# The start


@pytest.mark.parametrize(
    ("when", "fault", "message"),
    [
        ("start", "die", "killed by SIGKILL, while it was started; the last it printed: about to die"),
        ("start", "hang", "did not answer within 3 s and was killed, while it was started"),
        ("start", "refuse", "RuntimeError: device lost at agents.py"),
        ("open", "die", "killed by SIGKILL, while a session was opened; the last it printed: about to die"),
    ],
)
def test_a_start_that_fails_is_tried_again(
    hosted: HostedFactory, tmp_path: Path, when: str, fault: str, message: str
) -> None:
    once = tmp_path / "once"
    once.touch()
    host = Host(sys.executable, start_s=3 if fault == "hang" else 60)
    agent = hosted("Faulty", host, fault=fault, when=when, once=str(once))
    assert message in str(broken(agent))
    agent.host = Host(sys.executable, start_s=60)
    assert contents(talk(agent))


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_an_interpreter_that_is_none_is_named(hosted: HostedFactory, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    (tmp_path / "text").write_text("not a program")
    interpreters = {
        str(tmp_path / "gone" / "python"): r"cannot be started: .*gone/python: No such file or directory",
        str(tmp_path / "text"): r"cannot be started: .*text: Permission denied",
        str(bare / "bin" / "python"): r"exit status 3, .*printed: the host side needs numpy \(pip install numpy\), and: No mod",
        script(tmp_path / "old", "#!/bin/sh\necho 'no such option: -X' >&2\nexit 2\n"): r"exit status 2, .* no such option",
        script(tmp_path / "other", "#!/bin/sh\nread x\n"): r"exit status 1, while it was started",
    }  # fmt: skip
    for python, message in interpreters.items():
        assert re.search(message, str(broken(hosted("Noise", Host(python, start_s=20))))), message


def test_a_wrong_package_version_is_named_before_the_agent_is_loaded(numpy_only: Path, tmp_path: Path) -> None:
    place = next((numpy_only.parents[1] / "lib").glob("python*")) / "site-packages"
    info = place / "moshi-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moshi\nVersion: 0.1.0\n")
    needs = Needs(
        path=tmp_path / "needs.toml", name="mine", summary="-", runs="gpu", licence="-", persona=False, verified="-",
        not_verified="-", packages=("moshi==0.2.13", "einops>=0.7"),
    )  # fmt: skip
    agent = HostedAgent(f"{AGENTS}:Noise", Host(str(numpy_only)), spec="mine", needs=needs, log=tmp_path / "log")
    with pytest.raises(HostGivenUp) as caught:
        agent.start()
    assert str(caught.value) == (
        f"agent mine: {numpy_only}: needs moshi==0.2.13, and 0.1.0 is installed; needs einops>=0.7, which is not installed "
        "(dsbeval doctor mine); a new start cannot mend that"
    )
    assert agent.pid is None


def test_an_agent_that_was_given_a_gpu_and_found_none_is_refused_no_gpu_is_there(tmp_path: Path) -> None:
    path = tmp_path / "falls_back.py"
    path.write_text(
        AGENTS.read_text() + "\n\nclass FallsBack(Noise):\n    def __init__(self, device='auto'):\n"
        "        super().__init__(device='cpu')\n"
    )
    agent = HostedAgent(f"{path}:FallsBack", Host(sys.executable), spec="mine", device="cuda:0", log=tmp_path / "log")
    with pytest.raises(HostGivenUp, match="it was given cuda:0 and says that it is on cpu"):
        agent.start()


def test_an_agent_error_at_the_start_of_a_session_costs_no_process(hosted: HostedFactory) -> None:
    agent = hosted("Faulty", fault="refuse", when="open")
    agent.start()
    pid = agent.pid
    for _ in range(FAILURES + 1):
        with pytest.raises(AgentError, match="RuntimeError: device lost"):
            agent.open("", 0)
    assert agent.pid == pid
