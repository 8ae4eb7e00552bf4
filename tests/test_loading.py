"""Finding an agent: by name, by file, by module, by entry point; and what is said when there is none."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from dsbeval.errors import AgentError, OptionError
from dsbeval.known import known_agents
from dsbeval.loading import find_agent, load_agent, parse_args

SOURCE = textwrap.dedent(
    """
    from dsbeval.agent import Agent, Capabilities, Interaction

    class Mine(Agent):
        def __init__(self, depth=1, checkpoint=None):
            self.depth, self.checkpoint = depth, checkpoint
        @property
        def capabilities(self):
            return Capabilities(Interaction.FRAME_SYNCHRONOUS)
        def open(self, prompt, seed):
            raise NotImplementedError

    class NotOne:
        pass
    """
)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine_agents.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_agents", raising=False)
    return path


@pytest.mark.parametrize("by", ["file", "module"])
def test_an_agent_is_found_by_file_and_by_module(module: Path, by: str) -> None:
    spec = f"{module}:Mine" if by == "file" else "mine_agents:Mine"
    agent = load_agent(spec, {"depth": 3}, checkpoint="weights/")
    assert (agent.name, vars(agent)["depth"], vars(agent)["checkpoint"]) == (spec, 3, "weights/")


def test_an_agent_is_found_by_an_entry_point_of_an_installed_package(module: Path) -> None:
    info = module.parent / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dsbeval.agents]\nmy_agent = mine_agents:Mine\n")
    assert "my_agent" in known_agents()
    assert load_agent("my_agent").name == "my_agent"


def test_an_entry_point_does_not_take_the_name_of_a_built_in_agent(module: Path) -> None:
    info = module.parent / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dsbeval.agents]\noracle = mine_agents:Mine\n")
    assert known_agents()["oracle"] == "adapters.controls:Oracle"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("turnbased", "did you mean turn_based"),
        ("mine_agents:Mien", "mine_agents has no 'Mien'; did you mean Mine"),
        ("mine_agents:NotOne", "must be a subclass of dsbeval.agent.Agent"),
        ("no_such_module:Mine", r"cannot import no_such_module .*: no such module"),
        ("nowhere/mine.py:Mine", "nowhere/mine.py: no such file"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(module: Path, spec: str, message: str) -> None:
    with pytest.raises(AgentError, match=message) as caught:
        find_agent(spec)
    assert "\n" not in str(caught.value)


def test_a_package_that_an_agent_needs_is_named(module: Path) -> None:
    module.write_text("import a_package_nobody_has\n" + SOURCE)
    with pytest.raises(AgentError, match="needs the package a_package_nobody_has, which is not installed"):
        find_agent("mine_agents:Mine")
    with pytest.raises(AgentError, match="cannot be imported: ModuleNotFoundError"):
        find_agent(f"{module}:Mine")


def test_an_argument_that_is_not_taken_is_named_with_those_that_are(module: Path) -> None:
    with pytest.raises(AgentError, match=r"--model-arg width: agent .* does not take it; it takes depth, checkpoint"):
        load_agent("mine_agents:Mine", {"width": 2})
    with pytest.raises(AgentError, match="--checkpoint: agent silent does not take it"):
        load_agent("silent", checkpoint="weights/")


def test_arguments_have_the_type_that_they_look_like() -> None:
    given = ["a=3", "b=0.5", "c=true", "d=alloy", "e=", "f=http://127.0.0.1:1/v1", "g=x=y"]
    assert parse_args(given) == {
        "a": 3, "b": 0.5, "c": True, "d": "alloy", "e": "", "f": "http://127.0.0.1:1/v1", "g": "x=y",
    }  # fmt: skip
    for wrong in ("frame", "=3", "my key=3"):
        with pytest.raises(OptionError, match="is not key=value"):
            parse_args([wrong])
