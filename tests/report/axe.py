"""axe-core, the accessibility checker: the npm package, fetched once and kept in pytest's cache. The report has nothing of it."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

VERSION = "4.14.1"


def source(config: pytest.Config) -> str:
    """Return the checker as a script. Skips the test, by name, where it is not in the cache and cannot be fetched."""
    folder = Path(config.cache.mkdir(f"axe-core-{VERSION}"))
    script = folder / "package" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip(f"axe-core {VERSION} is not here, and there is no npm to fetch it: install the package npm")
        found = subprocess.run(
            [npm, "pack", "--silent", f"axe-core@{VERSION}"], cwd=folder, capture_output=True, text=True, check=False
        )
        if found.returncode:
            pytest.skip(f"axe-core {VERSION} cannot be fetched: {found.stderr.strip()[-200:]}")
        with tarfile.open(folder / found.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(folder, filter="data")
    return script.read_text(encoding="utf-8")
