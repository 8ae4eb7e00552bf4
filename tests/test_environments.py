"""A model's environment: made by the real tools, from wheels that lie here instead of on an index."""

from __future__ import annotations

import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsbeval.cli import main
from dsbeval.environments import Environment, ask, environment_of
from dsbeval.errors import ModelsError
from dsbeval.models import Needs, all_needs


def wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel of a package that holds nothing but its version."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def tiny(tmp_path: Path, package: str = "tinymodel==1.0", python: str = ">=3.11") -> Needs:
    return Needs(
        path=tmp_path / "needs.toml", name="tiny", summary="-", runs="cpu", licence="-", persona=False, verified="-",
        not_verified="-", requirements="requirements.txt", packages=(package,), python=python,
    )  # fmt: skip


@pytest.fixture
def needs(tmp_path: Path) -> Needs:
    (tmp_path / "requirements.txt").write_text("tinymodel==1.0\n")
    return tiny(tmp_path)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_an_environment_is_made_and_is_whole_until_its_requirements_change_with_a_numpy_of_no_content(
    needs: Needs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, version in (("tinymodel", "1.0"), ("numpy", "2.0")):
        wheel(tmp_path, name, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    made = environment_of(needs, folder=tmp_path / "envs" / "tiny")
    assert not made.whole
    told: list[str] = []
    made.make(told.append)
    assert [" venv --clear " in told[0], " install " in told[1], len(told)] == [True, True, 2]
    assert made.whole
    assert made.lacking() == []
    out = subprocess.run(
        [made.python, "-c", "import tinymodel, numpy; print(tinymodel.__version__)"], capture_output=True, check=True
    )
    assert out.stdout.strip() == b"1.0"
    capfd.readouterr()

    (tmp_path / "requirements.txt").write_text("tinymodel==1.0\n# and another line\n")
    assert not made.whole

    other = tiny(tmp_path, package="tinymodel==2.0")
    monkeypatch.setattr(Environment, "commands", ())  # it is there
    with pytest.raises(
        ModelsError, match=r"requirements.txt: .* was made from it, and tiny needs tinymodel==2.0, and 1.0 is"
    ):
        Environment(other, made.folder, made.base).make(told.append)


def test_a_command_that_fails_ends_it_in_one_line(needs: Needs, tmp_path: Path) -> None:
    broken = Environment(needs, tmp_path / "env", script(tmp_path / "python", "exit 7"))
    with pytest.raises(ModelsError, match=r"dsbeval env tiny: exit status 7 of: .*python -m venv --clear"):
        broken.make(lambda line: None)
    assert not broken.whole


def test_an_interpreter_that_does_not_suit_is_refused(needs: Needs, tmp_path: Path) -> None:
    old = script(tmp_path / "old", """echo '{"python": "3.9.1", "packages": {}}'""")
    with pytest.raises(ModelsError, match=r"--python: tiny needs Python >=3.11, and .*old is 3.9.1; give another"):
        environment_of(needs, old)
    with pytest.raises(ModelsError, match=r"cannot be asked for its version .* give another interpreter"):
        environment_of(needs, script(tmp_path / "none", "echo no >&2; exit 1"))
    with pytest.raises(ModelsError, match="gone: cannot be asked"):
        environment_of(needs, str(tmp_path / "gone"))
    never = tiny(tmp_path, python=">=4")
    with pytest.raises(
        ModelsError, match=r"tiny needs Python .*>=4.*, and none of it is here; install one, or give --python"
    ):
        environment_of(never)


def test_an_interpreter_says_what_is_installed_for_it() -> None:
    found = ask(sys.executable, ["numpy", "a-package-nobody-has"])
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["packages"]["numpy"]
    assert found["packages"]["a-package-nobody-has"] is None


@pytest.mark.parametrize("name", [name for name, needs in all_needs().items() if needs.requirements])
def test_the_commands_are_printed_and_nothing_is_done(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suiting = script(tmp_path / "python3", """echo '{"python": "3.11.9", "packages": {}}'""")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["env", name, "--print", "--python", suiting])
    assert result.exit_code == 0, result.output
    create, install = result.output.splitlines()
    assert create == f"{suiting} -m venv --clear envs/{name}"
    assert install.startswith(f"envs/{name}/bin/python -m pip install ")
    assert f"adapters/{name}/requirements.txt 'numpy>=1.26'" in install
    assert not (tmp_path / "envs").exists()


def test_a_model_that_needs_no_environment_says_so() -> None:
    result = CliRunner().invoke(main, ["env", "silent"])
    assert result.exit_code == 2
    assert "silent: needs nothing besides dsbeval: it runs in process" in result.output
    unknown = CliRunner().invoke(main, ["env", "cascad"])
    assert "did you mean cascade" in unknown.output
