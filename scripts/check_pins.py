"""Whether the pinned requirements of each model can be installed together, told from the index's metadata alone.

    pip install uv && python -m scripts.check_pins [NAME ...]

``uv`` resolves each adapter's requirements file for Linux on x86-64 and for every version of Python that its needs.toml allows;
what comes out must hold what needs.toml wants to find installed. Nothing is installed, and torch is not downloaded.
Exit status 1 where one of them does not resolve.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from dsbeval.environments import HOST_PYTHON, NUMPY
from dsbeval.models import Needs, all_needs

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORM = "x86_64-unknown-linux-gnu"
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def problem(needs: Needs, python: str) -> str:
    """Return why the requirements of a model cannot be installed for a Python, in one line; empty where they can."""
    assert needs.requirements_file is not None
    command = ["uv", "pip", "compile", "--no-annotate", "--no-header", "--python-version", python,
               "--python-platform", PLATFORM, str(needs.requirements_file), "-"]  # fmt: skip
    done = subprocess.run(command, input=f"{NUMPY}\n", capture_output=True, text=True, check=False)
    if done.returncode:
        return " ".join(done.stderr.split())[:500]
    found = {canonicalize_name(name): version for name, version in _PINNED.findall(done.stdout)}
    packages = {name: found.get(canonicalize_name(name)) for name in needs.package_names}
    return "; ".join(needs.unmet(f"{python}.0", packages))


def main(names: Sequence[str]) -> int:
    """Check the models of these names, or all; return the exit status."""
    if shutil.which("uv") is None:
        sys.stderr.write("uv is not here; pip install uv\n")
        return 2
    failed = False
    for needs in all_needs().values():
        if not needs.requirements or (names and needs.name not in names):
            continue
        allowed = SpecifierSet(",".join(filter(None, (needs.python, HOST_PYTHON))))
        for python in (one for one in PYTHONS if allowed.contains(f"{one}.0")):
            why = problem(needs, python)
            failed = failed or bool(why)
            print(
                f"{'FAIL' if why else 'ok  '} {needs.name}, Python {python}" + (f": {why}" if why else ""), flush=True
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
