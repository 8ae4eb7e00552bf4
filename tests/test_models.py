"""needs.toml: what each model needs, and what is said when the file is wrong; the table of docs/models.md."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from adapters import AGENTS
from dsbeval.errors import ModelsError
from dsbeval.models import Needs, all_needs, load_needs, needs_of, read_needs
from dsbeval.models_table import table
from tests.inner import ROOT

WHOLE = """
[model]
summary = "s"
runs = "gpu"
licence = "l"
weights = ["a/b@c"]
memory_gib = 4
python = ">=3.11,<3.13"
packages = ["one==1.2", "two[extra]>=3,<4", "old==1; python_version < '3.12'"]
persona = true
verified = "v"
not_verified = "n"

[agents.twin]
summary = "the other"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "needs.toml"
    path.write_text(text)
    return path


def test_every_agent_of_this_project_says_what_it_needs() -> None:
    assert all_needs().keys() == AGENTS.keys()
    for needs in all_needs().values():
        file = needs.requirements_file
        assert file is None or file.is_file(), needs.path
        assert needs.runs != "gpu" or needs.memory_gib, needs.path


def test_what_a_run_states_unasked_is_the_agents_own_default() -> None:
    stated = {name: needs.stated for name, needs in all_needs().items() if needs.stated}
    assert stated == {"gpt_realtime": {"playback": "raw"}}
    for name, arguments in stated.items():
        module, _, kind = AGENTS[name].partition(":")
        parameters = inspect.signature(getattr(importlib.import_module(module), kind)).parameters
        assert {key: parameters[key].default for key in arguments} == arguments


def test_requirements_are_pinned() -> None:
    for needs in all_needs().values():
        if needs.requirements_file is None:
            continue
        lines = [line.partition("#")[0].strip() for line in needs.requirements_file.read_text().splitlines()]
        loose = [line for line in lines if line and "==" not in line and " @ " not in line and not line.startswith("-")]
        assert not loose, f"{needs.requirements_file}: {loose}"


def test_one_file_may_speak_of_several_agents(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    assert read_needs(path, "one").summary == "s"
    twin = read_needs(path, "twin")
    assert (twin.summary, twin.runs, twin.name) == ("the other", "gpu", "twin")
    assert needs_of("oracle").summary != needs_of("contrarian").summary


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('runs = "gpu"', 'runs = "tpu"', r"needs.toml: runs: .*'cpu', 'gpu', 'service' or 'calibration'"),
        ('licence = "l"', "", "needs.toml: licence: is missing"),
        ("memory_gib", "memory_gb", "needs.toml: memory_gb: is not a known field"),
        ("memory_gib = 4", "memory_gib = -4", "memory_gib: input should be greater than or equal to 0"),
        ("a/b@c", "a/b", r"weights: 'a/b' names no revision; write it like 'owner/name@revision'"),
        (">=3.11,<3.13", "3.11 or newer", "python: '3.11 or newer' is not a range of versions"),
        ("one==1.2", "one 1.2", "packages: 'one 1.2' is not a requirement; write it like"),
        ("[agents.twin]", "[twin]", r"needs.toml: \[twin\] is not a known table; it has a table \[model\]"),
        ("[model]", "[modle]", r"\[modle\] is not a known table"),
        ("[model]", "[model", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WHOLE
    path = written(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(ModelsError, match=message) as caught:
        read_needs(path, "one")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_an_agent_from_elsewhere_says_nothing() -> None:
    assert load_needs("somewhere.mine:Mine") is None
    with pytest.raises(ModelsError, match="'cascad' is not an agent of this project; did you mean cascade"):
        needs_of("cascad")


@pytest.fixture
def needs(tmp_path: Path) -> Needs:
    return read_needs(written(tmp_path, WHOLE), "one")


def test_an_environment_that_holds_what_is_needed_lacks_nothing(needs: Needs) -> None:
    assert needs.unmet("3.12.1", {"one": "1.2", "two": "3.9"}) == []  # the third is for older interpreters
    assert needs.unmet("3.11.7", {"one": "1.2+cu128", "two": "3.9", "old": "1.0"}) == []


def test_what_an_environment_lacks_is_named(needs: Needs) -> None:
    assert needs.unmet("3.13.0", {"one": "1.3", "two": None}) == [
        "needs Python >=3.11,<3.13, and this is 3.13.0",
        "needs one==1.2, and 1.3 is installed",
        "needs two[extra]<4,>=3, which is not installed",
    ]


def test_the_table_of_the_documentation_is_what_the_files_say() -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    begin, end = "<!-- dsbeval doctor --markdown -->\n", "\n<!-- end of the table -->"
    shown = text.partition(begin)[2].partition(end)[0]
    assert shown == table(), "put what `dsbeval doctor --markdown` prints into docs/models.md"
