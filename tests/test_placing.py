"""models.toml and the command line: where a model runs, and what is said when that cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsbeval.errors import AgentError, DsbevalError, ModelsError, OptionError
from dsbeval.loading import parse_args
from dsbeval.placing import Models

EVERYTHING = """
[echo]
python = "env/python"
cwd = "work"
checkpoint = "weights"
device = "cuda"
options = {level = 0.5, voice = "a"}
env = {SOME_VARIABLE = "1"}
start_s = 30
step_s = 2

[twin]
agent = "echo"
checkpoint = "owner/name@1234"

[mine]
agent = "agents/mine.py:Mine"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "python").symlink_to(sys.executable)
    for name in ("work", "weights", "agents", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "agents" / "mine.py").touch()
    (tmp_path / "models.toml").write_text(EVERYTHING)
    return tmp_path


def test_a_table_says_where_a_model_runs(folder: Path) -> None:
    models = Models.find(None, folder / "elsewhere", folder)
    assert models.names == ("echo", "twin", "mine")
    placed = models.place("echo")
    assert placed.host is not None
    assert placed.host.python == str(folder / "env" / "python")  # the link itself: it belongs to its environment
    assert (placed.host.cwd, placed.host.env) == (folder / "work", {"SOME_VARIABLE": "1"})
    assert (placed.host.start_s, placed.host.step_s) == (30, 2)
    assert (placed.checkpoint, placed.device) == (str(folder / "weights"), "cuda")
    assert placed.args == {"level": 0.5, "voice": "a"}
    twin = models.place("twin")
    assert (twin.name, twin.spec, twin.checkpoint, twin.host) == ("twin", "echo", "owner/name@1234", None)
    assert models.place("mine").spec == f"{folder}/agents/mine.py:Mine"
    assert models.place("silent").host is None  # it has no table


def test_what_decides_a_measurement_is_stated_though_nobody_gave_it() -> None:
    models = Models()
    assert models.place("gpt_realtime").args == {"playback": "raw"}
    assert models.place("gpt_realtime", {"playback": "client"}).args == {"playback": "client"}
    assert models.place("echo").args == {}


def test_the_command_line_wins(folder: Path) -> None:
    models = Models.find("models.toml", folder)
    args = parse_args(["level=1", f"host.python={sys.executable}", "host.step_s=5", "host.cwd=elsewhere", "device=cpu"])
    placed = models.place("echo", args, "other", cwd=folder)
    assert placed.host is not None
    assert (placed.host.python, placed.host.step_s, placed.host.start_s) == (sys.executable, 5, 30)
    assert (placed.host.cwd, placed.checkpoint, placed.device) == (folder / "elsewhere", "other", "cpu")
    assert placed.args == {"level": 1, "voice": "a"}
    assert models.place("echo", parse_args(["host.python="])).host is None


def test_an_interpreter_may_be_a_name_on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder / "env"))
    placed = Models().place("echo", {"host.python": "python"})
    assert placed.host is not None
    assert placed.host.python == str(folder / "env" / "python")


def test_a_gpu_is_leased_to_those_who_need_one(folder: Path) -> None:
    models = Models.find("models.toml", folder)
    assert models.place("echo").leases
    assert not models.place("echo", {"device": "cpu"}).leases
    assert not models.place("echo", {"device": "cuda:1"}).leases
    assert not models.place("cascade").leases
    assert Models().place("cascade", {"device": "cuda"}).leases


def test_a_device_that_an_agent_does_not_take_is_refused_where_it_was_asked_for() -> None:
    for asked, leased in (("cuda", "cuda:0"), ("cuda:1", None), ("cpu", None)):
        with pytest.raises(AgentError, match="--model-arg device: agent silent does not take it"):
            Models().place("silent", {"device": asked}).load(leased)
    assert Models().place("silent").load("cuda:0").name == "silent"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[echo]\npyton = 'x'", r"models.toml: \[echo\]: pyton: is not a known field"),
        ("[echo]\nstep_s = 0", r"models.toml: \[echo\]: step_s: input should be greater than 0"),
        ("[echo]\nenv = {A = 1}", r"\[echo\]: env.A: input should be a valid string"),
        (
            "[echo]\ncwd = '.'",
            r"\[echo\]: cwd: is for a model in its own process; add python = \"envs/echo/bin/python\"",
        ),
        ("[ecko]\ndevice = 'cpu'", r"\[ecko\]: 'ecko' is not a known agent; did you mean echo.*or say agent = "),
        ("[one]\nagent = 'gone.py:Mine'", r"\[one\]: .*gone.py: no such file"),
        ("echo = 3", r"\[echo\]: must be a mapping with the fields agent, python"),
        ("[echo", "models.toml: not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(ModelsError, match=message) as caught:
        Models.find(None, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (["host.pyhton=x"], OptionError, "--model-arg host.pyhton: is not known; did you mean python"),
        (["host.step_s=fast"], OptionError, "--model-arg host: step_s: input should be a valid number"),
        (["host.step_s=3"], OptionError, "host.step_s: silent runs in process; add --model-arg host.python=PYTHON"),
        (["host.python=gone/python"], ModelsError, "host.python: gone/python: no such interpreter; dsbeval env silent"),
        (["host.python=no-such-python"], ModelsError, "no such interpreter"),
        ([f"host.python={sys.executable}", "host.cwd=gone"], ModelsError, "host.cwd: .*gone: no such folder"),
        (["device=3"], OptionError, "--model-arg device: 3 is not a device"),
    ],
)
def test_a_wrong_option_is_one_line(args: list[str], error: type[DsbevalError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Models().place("silent", parse_args(args))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        ("moshi", "kyutai/moshiko-pytorch-bf16"),
        ("personaplex", "nvidia/personaplex-7b-v1"),
        ("f_actor", "maikezu/f-actor"),
    ],
)
def test_a_model_of_released_weights_without_a_checkpoint_is_one_line_before_the_run(model: str, weights: str) -> None:
    for option, how in (("--model", "--checkpoint:"), ("--partner", "--partner-arg checkpoint=:")):
        with pytest.raises(OptionError) as caught:
            Models().place(model, option=option).facts()
        assert str(caught.value).startswith(f"{how} {model} needs one; give {weights}, or a folder with such files")
    for args, checkpoint in (({"checkpoint": "here"}, None), ({}, "here")):
        assert Models().place(model, args, checkpoint).facts()["agent"] == model


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ModelsError, match=r"gone\.toml: no such file; --models names a file"):
        Models.find("gone.toml", tmp_path)
    assert Models.find(None, tmp_path).names == ()


def test_an_unknown_model_names_those_of_the_file(folder: Path) -> None:
    with pytest.raises(AgentError, match=r"--model: 'twinn' is not a known agent.*; models.toml has echo, twin, mine"):
        Models.find(None, folder).place("twinn")
