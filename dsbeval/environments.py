"""A model's own environment: made from the pinned requirements file beside its adapter, and asked what it holds.

Conventions
-----------
* An environment is whole when its last step was taken: the hash of what it was made from is written then. One that was
  broken off, or made from other requirements, is made anew.
* numpy is always installed: the host side needs it, whether or not the model does.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from dsbeval.errors import ModelsError
from dsbeval.host.serve import OLDEST
from dsbeval.models import Needs

FOLDER = Path("envs")
NUMPY = "numpy>=1.26"
HOST_PYTHON = f">={OLDEST[0]}.{OLDEST[1]}"
_STAMP = ".dsbeval-made-from"
_ASK = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        found[name] = None
print(json.dumps({"python": platform.python_version(), "packages": found}))
"""


def ask(python: str, packages: Iterable[str]) -> dict[str, Any]:
    """Return the version of an interpreter and of what is installed for it. Raises :class:`ModelsError`."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    command = [python, "-c", _ASK, *packages]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment).stdout
        found: dict[str, Any] = json.loads(out)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        printed = getattr(error, "stderr", None) or ""
        tail = printed.strip().splitlines()[-1:] or [type(error).__name__]
        raise ModelsError(f"{python}: cannot be asked for its version ({tail[0]}); give another interpreter") from None
    return found


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a model, there or to be made."""

    needs: Needs
    folder: Path
    base: str
    """The interpreter that it is made with."""

    @property
    def python(self) -> Path:
        """Its own interpreter."""
        return self.folder / "bin" / "python"

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What makes it, one command after another."""
        requirements = self.needs.requirements_file
        assert requirements is not None
        install = ("-m", "pip", "install", "--disable-pip-version-check", "-r", str(requirements), NUMPY)
        return ((self.base, "-m", "venv", "--clear", str(self.folder)), (str(self.python), *install))

    @property
    def whole(self) -> bool:
        """Whether it is there, made to its end from what the requirements file says now."""
        stamp = self.folder / _STAMP
        return self.python.exists() and stamp.is_file() and stamp.read_text() == self._source()

    def make(self, tell: Callable[[str], None]) -> None:
        """Make it, telling each command. Raises :class:`ModelsError` when one fails, or when it then lacks something."""
        for command in self.commands:
            tell(shlex.join(command))
            status = subprocess.run(command, check=False).returncode
            if status:
                raise ModelsError(f"dsbeval env {self.needs.name}: exit status {status} of: {shlex.join(command)}")
        lacking = self.lacking()
        if lacking:
            raise ModelsError(
                f"{self.needs.requirements_file}: {self.folder} was made from it, and {self.needs.name} {'; '.join(lacking)}; "
                "mend the file"
            )
        (self.folder / _STAMP).write_text(self._source())

    def lacking(self) -> list[str]:
        """Return what it lacks of what the model needs, one phrase each."""
        found = ask(str(self.python), [*self.needs.package_names, "numpy"])
        return self.needs.unmet(found["python"], found["packages"])

    def _source(self) -> str:
        requirements = self.needs.requirements_file
        assert requirements is not None
        return hashlib.sha256(requirements.read_bytes() + NUMPY.encode()).hexdigest() + "\n"


def environment_of(needs: Needs, python: str | None = None, folder: Path | None = None) -> Environment:
    """Return the environment of a model: ``envs/NAME``, made with ``python`` or the first interpreter that suits.

    Raises :class:`ModelsError` for a model that needs none, and where no interpreter suits.
    """
    if needs.requirements_file is None:
        raise ModelsError(f"{needs.name}: needs nothing besides dsbeval: it runs in process, and has no environment")
    if not needs.requirements_file.is_file():
        raise ModelsError(
            f"{needs.path}: requirements: {needs.requirements_file}: no such file; write it, or leave it empty"
        )
    return Environment(needs, Path(os.path.normpath(folder or FOLDER / needs.name)), _base(needs, python))


def _base(needs: Needs, python: str | None) -> str:
    wanted = SpecifierSet(",".join(filter(None, (needs.python, HOST_PYTHON))))
    if python is not None:
        found = ask(python, ())["python"]
        if not wanted.contains(found, prereleases=True):
            raise ModelsError(f"--python: {needs.name} needs Python {wanted}, and {python} is {found}; give another")
        return python
    candidates = [sys.executable, *(f"python3.{minor}" for minor in range(14, OLDEST[1] - 1, -1))]
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is None:
            continue
        with suppress(ModelsError):  # a version manager's shim, for a version that is not installed
            if wanted.contains(ask(path, ())["python"], prereleases=True):
                return path
    raise ModelsError(f"{needs.name} needs Python {wanted}, and none of it is here; install one, or give --python")
