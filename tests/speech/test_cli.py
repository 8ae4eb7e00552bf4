from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsbeval.ifeval.pack import DEFAULT_PACK
from dsbeval.speech.cli import speech

KEY = "IFD-R4-R4_B_logistical_question-i1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of our pack without audio."""
    root = tmp_path / "pack"
    shutil.copytree(DEFAULT_PACK, root, ignore=shutil.ignore_patterns("audio", "*.py", "__pycache__"))
    return root


def run(*arguments: str) -> Result:
    return CliRunner().invoke(speech, arguments)


def test_build_then_nothing_to_do_then_verify(folder: Path) -> None:
    first = run("build", "--pack", str(folder), "--engine", "hibari", "--only", KEY)
    assert first.exit_code == 0, first.output
    assert "2 segments rendered, 0 up to date, 0 files removed" in first.output
    second = run("build", "--pack", str(folder), "--engine", "hibari", "--only", KEY)
    assert second.exit_code == 0
    assert "nothing to do: 2 segments are up to date" in second.output
    checked = run("verify", "--pack", str(folder), "--only", KEY)
    assert checked.exit_code == 0, checked.output
    assert "1 recordings, 2 segments" in checked.output
    assert "everything is right" in checked.output
    for path in (folder / "audio").glob("*.opus"):
        path.unlink()
    broken = run("verify", "--pack", str(folder), "--only", KEY)
    assert broken.exit_code == 1
    assert f"fault: {KEY} t1: " in broken.output
    assert "2 faults" in broken.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify",), "Error: {folder}/audio/manifest.json: no such file; the pack has no audio yet, run: "),
        (("build", "--engine", "hibari", "--only", "X*"), "Error: --only: 'X*' matches none of "),
        (("build", "--engine", "hibari", "--jobs", "0"), "Error: --jobs: 0 is not a number of processes"),
        (("verify", "--asr", "siri"), "Error: --asr: 'siri' is not a recogniser; give pocketsphinx or "),
    ],
)
def test_a_mistake_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run(arguments[0], "--pack", str(folder), *arguments[1:])
    assert result.exit_code == 1
    assert result.output.strip().splitlines()[-1].startswith(message.format(folder=folder))
    assert "Traceback" not in result.output


def test_kokoro_without_its_files_says_what_to_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSBEVAL_KOKORO_DIR", raising=False)
    result = run("build", "--pack", str(folder), "--only", KEY)
    assert result.exit_code == 1
    assert "Error: the engine kokoro needs its files; set DSBEVAL_KOKORO_DIR" in result.output


def test_the_bank_is_up_to_date() -> None:
    result = run("bank")
    assert result.exit_code == 0, result.output
    assert "nothing to do: the bank is up to date" in result.output
