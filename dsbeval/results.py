"""The run folder: fingerprint, recordings, result rows; written as things happen, read back alone.

Layout::

    run.json                 fingerprint of the run: what must be equal for two runs to be compared
    cases.json               ids of the cases that were to be run, so that a missing one is seen
    recordings/ID.stereo.wav, ID.rec.json
    results/*.jsonl          append-only, one file a worker, a row when it happens; merged on read
    report/                  summary.json and tables

A row has no worker, time or order in it: equal runs have equal rows. The last row of a case and item wins, so a
resumed run replaces errors.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dsbeval import __version__
from dsbeval.audio import RESAMPLER, atomic_write
from dsbeval.errors import RunError
from dsbeval.resuming import joined, unlike

SCHEMA = 1
OUTCOMES = ("passed", "failed", "error", "skipped")

Row = dict[str, Any]


class RunFolder:
    """A run folder on disk. Every reader sees whole files and whole rows."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def recordings(self) -> Path:
        """Folder of the recordings."""
        return self.root / "recordings"

    @property
    def report(self) -> Path:
        """Folder of the report."""
        return self.root / "report"

    @classmethod
    def open(cls, root: Path) -> RunFolder:
        """Return an existing run folder. Raises :class:`RunError` when it is not one."""
        if not (root / "run.json").is_file():
            raise RunError(f"{root}: not a run folder (no run.json); give the folder that a run printed")
        return cls(root)

    @classmethod
    def create(
        cls, root: Path, fingerprint: Mapping[str, Any], cases: Iterable[str], *, resume: bool = False
    ) -> RunFolder:
        """Make a run folder, or go on in one.

        Raises :class:`RunError` when it already holds a run and ``resume`` is not asked for, holds an unlike one,
        or cannot be written.
        """
        try:
            return cls._made(root, fingerprint, cases, resume=resume)
        except OSError as error:
            raise RunError(
                f"--run-dir: {error.filename or root}: {error.strerror}; name a folder that can be written"
            ) from None

    @classmethod
    def _made(cls, root: Path, fingerprint: Mapping[str, Any], cases: Iterable[str], *, resume: bool) -> RunFolder:
        folder = cls(root)
        wanted = list(cases)
        if (root / "run.json").exists():
            if not resume:
                raise RunError(f"--run-dir: {root} already holds a run; add --resume to go on, or name another folder")
            known = folder.fingerprint()
            if differing := unlike(known, fingerprint):
                raise RunError(f"--resume: {root} was made with another {', '.join(differing)}; name another folder")
            wanted = list(dict.fromkeys([*folder.cases(), *wanted]))
            fingerprint = joined(known, fingerprint)
        elif root.exists() and any(root.iterdir()):
            raise RunError(f"--run-dir: {root} is not empty and not a run folder; name an empty or a new one")
        _write_json(root / "run.json", {"schema": SCHEMA, "fingerprint": dict(fingerprint)})
        _write_json(root / "cases.json", wanted)
        (root / "results").mkdir(exist_ok=True)
        folder.recordings.mkdir(exist_ok=True)
        return folder

    def fingerprint(self) -> dict[str, Any]:
        """Return what the run was made with."""
        data = _read_json(self.root / "run.json")
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise RunError(f"{self.root / 'run.json'}: schema is not {SCHEMA}; the run was made by another version")
        return dict(data["fingerprint"])

    def cases(self) -> list[str]:
        """Return the ids of the cases that were to be run."""
        return [str(case) for case in _read_json(self.root / "cases.json")]

    def append(self, row: Row, writer: str = "main") -> None:
        """Append a result row to the file of one writer."""
        line = json.dumps(row, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
        path = self.root / "results" / f"{writer}.jsonl"
        torn = path.exists() and not _ends_line(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if torn else "") + line)

    def rows(self) -> list[Row]:
        """Return the newest row of each case and item, in the order of the cases. A torn line is left out."""
        newest: dict[tuple[str, str], Row] = {}
        for path in sorted((self.root / "results").glob("*.jsonl")):
            lines = path.read_text(encoding="utf-8").splitlines()
            for line in lines:
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # a process died while it wrote, and a resumed run wrote on: that case has no result
                key = (str(row["id"]), str(row["item"]))
                if key not in newest or _weight(row) >= _weight(newest[key]):
                    newest[key] = row
        order = {case: index for index, case in enumerate(self.cases())}
        return sorted(newest.values(), key=lambda row: (order.get(str(row["id"]), len(order)), row["id"], row["item"]))

    def write_summary(self, summary: Mapping[str, Any], name: str = "summary.json") -> Path:
        """Write ``report/summary.json`` and return its path."""
        _write_json(self.report / name, summary)
        return self.report / name


def installed(packages: Iterable[str]) -> dict[str, Any]:
    """Return the version of Python and of some packages here; None for one that is not installed."""
    found: dict[str, str | None] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return {"python": platform.python_version(), "packages": found}


def versions() -> dict[str, str]:
    """Return the versions of everything that can move a result."""
    out = {"dsbeval": __version__, "python": platform.python_version()}
    for package in ("numpy", "onnxruntime", "silero-vad", "soundfile", "soxr"):
        try:
            out[package] = version(package)
        except PackageNotFoundError:
            out[package] = "missing"
    return out | {"resampler": RESAMPLER}


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, or of a folder's files with their names."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        digest.update(file.relative_to(path.parent).as_posix().encode() + b"\0")
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _weight(row: Row) -> int:
    """Return what counts more when a resumed run has left two rows of one item: a verdict is not undone by an error."""
    return {"error": 0, "skipped": 1}.get(str(row["outcome"]), 2)


def _write_json(path: Path, data: Any) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; the run folder is not whole") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error}); the run folder is damaged") from None


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, 2) == 0:
            return True
        file.seek(-1, 2)
        return file.read(1) == b"\n"
