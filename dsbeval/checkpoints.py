"""Where a checkpoint lies on this machine and what it holds: a file, a folder, or an id on the Hugging Face hub.

Conventions
-----------
* ``--checkpoint`` is a path, or ``org/name`` or ``org/name@revision``; a path that exists comes first.
* A hub id is looked up in the hub's own cache, and fetched where it is not there. Offline (``HF_HUB_OFFLINE`` or
  ``DSBEVAL_OFFLINE``) the network is never touched: what is not in the cache is an error that says how to get it.
* Weights and settings that an agent of this project is to read are looked at as far as they tell without being loaded
  (:mod:`dsbeval.wholeness`): a download that broke off is found before anything is loaded.
* Only the files that the agent reads (``Agent.checkpoint_files``) are fetched and make up the content hash, so a README
  that is there on one machine and not on another changes nothing, nor does the name of the folder.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsbeval.errors import DsbevalError
from dsbeval.wholeness import find_fault

BLOCK = 1 << 20
CACHED_FROM = 16 << 20
"""Bytes from which on the hash of a file is kept: smaller ones are read again in less than a look at the cache takes."""

_HUB_ID = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")
_ON = {"1", "true", "yes", "on"}


class CheckpointError(DsbevalError):
    """A checkpoint is not there, not whole, or may not be had; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on this machine.

    Parameters
    ----------
    name : str
        What was asked for.
    path : Path
        The folder, or the file.
    files : tuple of str
        The files of the folder that the agent reads, sorted; of a file, its own name.
    repo, revision : str or None
        Id on the hub and commit, where it comes from there.
    """

    name: str
    path: Path
    files: tuple[str, ...]
    repo: str | None = None
    revision: str | None = None

    def find(self, *patterns: str) -> Path | None:
        """Return the first file that matches, in the order of the patterns, or None."""
        for pattern in patterns:
            for file in self.files:
                if fnmatch.fnmatchcase(file, pattern):
                    return self._place(file)
        return None

    def file(self, *patterns: str) -> Path:
        """Return the first file that matches. Raises :class:`CheckpointError` where none does."""
        found = self.find(*patterns)
        if found is None:
            wanted = " or ".join(patterns)
            how = f"; get it with: {_download(self.repo, self.revision)}" if self.repo else ""
            raise CheckpointError(f"--checkpoint: {self.path} holds no {wanted}{how}")
        return found

    def sha256(self) -> str:
        """Return the hash of what it holds: of a file, its own; of a folder, that of its files' names and hashes."""
        if self.path.is_file():
            return file_digest(self.path)
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(f"{file}\0{file_digest(self.path / file)}\n".encode())
        return digest.hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return what a fingerprint keeps."""
        return {"name": self.name, "sha256": self.sha256(), **({"revision": self.revision} if self.revision else {})}

    def _place(self, file: str) -> Path:
        return self.path if self.path.is_file() else self.path / file


def offline() -> bool:
    """Return whether the network is not to be touched."""
    return any(os.environ.get(name, "").strip().lower() in _ON for name in ("DSBEVAL_OFFLINE", "HF_HUB_OFFLINE"))


def resolve(spec: str, patterns: Iterable[str]) -> Checkpoint:
    """Return the checkpoint that ``spec`` names, with its files that match ``patterns`` on this machine.

    Raises :class:`CheckpointError` in one line where it is not there and cannot be fetched, or is not whole.
    """
    found = _located(spec, tuple(patterns))
    folder = found.path.parent if found.path.is_file() else found.path
    if fault := find_fault(folder, found.files):
        raise CheckpointError(f"--checkpoint: {fault}; {_again(found.repo, found.revision)}")
    return found


def _located(spec: str, wanted: tuple[str, ...]) -> Checkpoint:
    path = Path(spec).expanduser()
    if path.is_file():
        return Checkpoint(spec, path.resolve(), (path.name,))
    if path.is_dir():
        return Checkpoint(spec, path.resolve(), files_in(path, wanted))
    hub = _HUB_ID.fullmatch(spec)
    if hub is None:
        raise CheckpointError(
            f"--checkpoint: {spec}: no such file or folder, and no id on the hub (org/name or org/name@revision)"
        )
    return _from_hub(spec, hub["repo"], hub["revision"], wanted)


def describe(spec: str, patterns: Iterable[str]) -> dict[str, Any]:
    """Return what a fingerprint keeps about ``--checkpoint``.

    Where the agent reads no files by our means (no patterns) it may be anything: a path is hashed whole, and of anything
    else only the name is known.
    """
    wanted = tuple(patterns)
    if not wanted and not Path(spec).expanduser().exists():
        return {"name": spec, "sha256": None}
    return (resolve(spec, wanted) if wanted else _located(spec, ("*",))).as_dict()


# The hub


def _from_hub(spec: str, repo: str, revision: str | None, patterns: tuple[str, ...]) -> Checkpoint:
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError:
        raise CheckpointError(
            f"--checkpoint: {spec} is an id on the hub, and the package huggingface-hub is not installed; install it, or "
            "give a folder"
        ) from None
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    get = _download(repo, revision)
    alone = offline()
    try:
        folder = snapshot_download(repo, revision=revision, allow_patterns=list(patterns), local_files_only=alone)
    except GatedRepoError:
        raise CheckpointError(
            f"--checkpoint: {repo} is gated: accept its licence at https://huggingface.co/{repo}, then: "
            f"hf auth login && {get}"
        ) from None
    except RevisionNotFoundError:
        raise CheckpointError(f"--checkpoint: {repo} has no revision {revision!r} on the hub") from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"--checkpoint: {spec}: neither a path here nor a repository that the hub shows; where it is private: "
            f"hf auth login && {get}"
        ) from None
    except (LocalEntryNotFoundError, OfflineModeIsEnabled):
        why = "this run is offline" if alone else "the hub cannot be reached"
        raise CheckpointError(
            f"--checkpoint: {spec} is not in the hub's cache here and {why}; {_how(get, alone)}"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        said = " ".join(str(error).split())
        raise CheckpointError(f"--checkpoint: {spec} cannot be fetched from the hub ({said}); try: {get}") from None
    path = Path(folder)
    files = files_in(path, patterns)
    if not files:
        raise CheckpointError(f"--checkpoint: {spec}: none of its files is in the hub's cache here; {_how(get, alone)}")
    return Checkpoint(spec, path, files, repo, path.name)


def _how(get: str, alone: bool) -> str:
    return f"get it with: {get}" + (
        " (with the network, and without HF_HUB_OFFLINE and DSBEVAL_OFFLINE)" if alone else ""
    )


def _download(repo: str | None, revision: str | None) -> str:
    return f"hf download {repo}" + (f" --revision {revision}" if revision else "")


def _again(repo: str | None, revision: str | None) -> str:
    return f"get it again with: {_download(repo, revision)} --force-download" if repo else "get it again"


def files_in(folder: Path, patterns: tuple[str, ...] = ("*",)) -> tuple[str, ...]:
    """Return the files of a folder that match, as paths relative to it, sorted; hidden ones are left out."""
    names = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    visible = (name for name in names if not any(part.startswith(".") for part in name.split("/")))
    return tuple(sorted(name for name in visible if any(fnmatch.fnmatchcase(name, p) for p in patterns)))


# Hashes


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    A blob of the hub's cache is named by it. That of another big file is kept in the user's cache beside its size and
    time of change, and computed again when either has moved.
    """
    real = path.resolve()
    if real.parent.name == "blobs" and re.fullmatch(r"[0-9a-f]{64}", real.name):
        return real.name
    facts = real.stat()
    if facts.st_size < CACHED_FROM:
        return _computed(real)
    known = digest_cache() / f"{hashlib.sha256(str(real).encode()).hexdigest()}.json"
    state = [str(real), facts.st_size, facts.st_mtime_ns]
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(known.read_text(encoding="utf-8"))
        if kept["file"] == state:
            return str(kept["sha256"])
    digest = _computed(real)
    if time.time() - facts.st_mtime > 2:  # a file just written may be written again within the clock's tick
        with suppress(OSError):  # only a cache: without it the next run reads the file again
            known.parent.mkdir(parents=True, exist_ok=True)
            beside = known.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps({"file": state, "sha256": digest}), encoding="utf-8")
            beside.replace(known)
    return digest


def digest_cache() -> Path:
    """Return the folder of the hashes that are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "dsbeval", "digests")


def _computed(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
