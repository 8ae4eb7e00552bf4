"""What is there and what is missing before a run of a model, in plain words; nothing is loaded and no network is used.

An address on this network is the exception: whether anybody listens there is asked.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from dsbeval.checkpoints import files_in
from dsbeval.devices import list_gpus, visible
from dsbeval.environments import FOLDER, ask
from dsbeval.errors import ModelsError
from dsbeval.models import Needs
from dsbeval.placing import Placed
from dsbeval.results import installed
from dsbeval.wholeness import find_fault

State = Literal["ok", "missing", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a run needs: whether it is there. A ``note`` does not keep a model from running."""

    state: State
    subject: str
    text: str


def examine(placed: Placed) -> list[Finding]:
    """Return what was found about a model, in the order in which a run would meet it."""
    needs = placed.needs
    found = [*_environment(placed)]
    if needs is None:
        return [
            *found,
            Finding("note", "needs", "nothing is known of what it needs: it is not an agent of this project"),
        ]
    return [*found, *_device(placed, needs), *_weights(placed, needs), *_service(placed, needs)]


def can_run(findings: list[Finding]) -> bool:
    """Return whether nothing is missing."""
    return all(finding.state != "missing" for finding in findings)


def _environment(placed: Placed) -> Iterator[Finding]:
    needs = placed.needs
    names = needs.package_names if needs else ()
    if placed.host is None:
        where, facts = "in process", installed(names)
    else:
        where = f"in its own process, {placed.host.python}"
        try:
            facts = ask(placed.host.python, [*names, "numpy"])
        except ModelsError as error:
            yield Finding("missing", "interpreter", str(error))
            return
        if facts["packages"]["numpy"] is None:
            yield Finding("missing", "numpy", f"is not installed for {placed.host.python}, and the host side needs it")
    unmet = needs.unmet(facts["python"], facts["packages"]) if needs else []
    versions = "".join(f", {name} {facts['packages'][name]}" for name in names if facts["packages"][name])
    yield Finding("missing" if unmet else "ok", "environment", f"{where} (Python {facts['python']}{versions})")
    for phrase in unmet:
        yield Finding("missing", "package" if " Python " not in phrase else "Python", phrase)
    if unmet and needs and needs.requirements:
        made = FOLDER / needs.name / "bin" / "python"
        mend = (
            f"there is {made}: --model-arg host.python={made}"
            if made.exists()
            else f"dsbeval env {needs.name} makes one"
        )
        yield Finding("note", "environment", f"of its own: {mend}")


def _device(placed: Placed, needs: Needs) -> Iterator[Finding]:
    if needs.runs == "service":
        yield Finding("ok", "device", "none here: it computes in a service")
        return
    if not placed.leases:
        if placed.device.startswith("cuda") and not visible():
            yield Finding("missing", "device", f"{placed.device} was asked for, and no NVIDIA device is visible")
            return
        yield Finding("ok", "device", "the CPU" if placed.device in ("auto", "cpu") else placed.device)
        if placed.device in ("auto", "cpu"):
            yield from _memory("machine", _machine_gib(), None, needs)
        return
    devices = visible()
    if not devices:
        state: State = "missing" if placed.device == "cuda" else "note"
        yield Finding(state, "device", "no NVIDIA device is visible; it would run on the CPU, for tiny weights at most")
        yield from _memory("machine", _machine_gib(), None, needs)
        return
    gpus = {entry: gpu for entry in devices for gpu in list_gpus() if entry in (gpu.index, gpu.uuid)}
    for entry in devices:
        gpu = gpus.get(entry)
        yield Finding(
            "ok", "device", f"cuda {entry}" + (f", {gpu.name}" if gpu else ", of which the driver says nothing")
        )
        yield from _memory(f"device {entry}", gpu.memory_gib if gpu else None, gpu.free_gib if gpu else None, needs)


def _memory(of: str, total: float | None, free: float | None, needs: Needs) -> Iterator[Finding]:
    if not needs.memory_gib:
        return
    if total is None:
        yield Finding("note", "memory", f"of {of} is not known; {needs.memory_gib:g} GiB are needed")
    elif total < needs.memory_gib:
        yield Finding("missing", "memory", f"{of} has {total:g} GiB; {needs.memory_gib:g} are needed")
    elif free is not None and free < needs.memory_gib:
        yield Finding(
            "note", "memory", f"{of} has {total:g} GiB, of which {free:g} are free now; {needs.memory_gib:g} are needed"
        )
    else:
        yield Finding("ok", "memory", f"{of} has {total:g} GiB; {needs.memory_gib:g} are needed")


def _machine_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1)
    except (ValueError, OSError):
        return None


def _weights(placed: Placed, needs: Needs) -> Iterator[Finding]:
    given = placed.checkpoint or placed.args.get("checkpoint")
    if given is not None:
        yield _checkpoint(str(given), "--checkpoint")
    elif needs.runs == "service" and needs.weights:
        yield Finding("note", "weights", f"are the service's: {', '.join(needs.weights)}")
    elif needs.weights:
        for weights in needs.weights:
            yield _checkpoint(weights, "released")
    else:
        yield Finding("ok", "weights", "none to get")


def _checkpoint(name: str, of: str) -> Finding:
    path = Path(name).expanduser()
    if path.exists():
        return _whole(path, f"{of}: {name}", "get it again")
    repo, _, revision = name.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        return Finding(
            "missing", "weights", f"{of}: {name}: no such file or folder, and no id on the hub (org/name@revision)"
        )
    how = f"hf download {repo}" + (f" --revision {revision}" if revision not in ("", "main") else "")
    cached = _cached(repo, revision or "main")
    if cached is not None:
        return _whole(cached, f"{of}: {name}, in the hub's cache", f"get it again with: {how} --force-download")
    return Finding(
        "missing", "weights", f"{of}: {name} is not in the hub's cache; get it with: {how}, or give --checkpoint DIR"
    )


def _whole(path: Path, what: str, mend: str) -> Finding:
    """Return what is to be said of weights that are here: whether they are whole, without loading them."""
    folder, files = (path.parent, (path.name,)) if path.is_file() else (path, files_in(path))
    fault = find_fault(folder, files)
    return Finding("missing", "weights", f"{fault}; {mend}") if fault else Finding("ok", "weights", what)


def _cached(repo: str, revision: str) -> Path | None:
    """Return where the hub's cache holds files of a revision: by its own layout, so that the hub's package is not needed."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub")).expanduser()
    folder = hub / f"models--{repo.replace('/', '--')}"
    reference = folder / "refs" / revision
    commit = reference.read_text().strip() if reference.is_file() else revision
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() and any(snapshot.iterdir()) else None


def _service(placed: Placed, needs: Needs) -> Iterator[Finding]:
    address = placed.args.get(needs.address_arg) if needs.address_arg else None
    if needs.key_env:
        name = str(placed.args.get("key_env", needs.key_env))
        state: State = "ok" if os.environ.get(name) else "note" if address is not None else "missing"
        said = "is set" if state == "ok" else "is not set"
        yield Finding(
            state,
            "key",
            f"the environment variable {name} {said}" + (", if the server wants one" if state == "note" else ""),
        )
    if not needs.address_arg:
        return
    if address is None:
        named = f"--model-arg {needs.address_arg}=ADDRESS"
        if needs.key_env:
            yield Finding("ok", "address", f"the service's own; another with {named}")
        else:
            yield Finding("missing", "address", f"where the service listens: {named}")
        return
    yield _listens(str(address))


def _listens(address: str) -> Finding:
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        port = parts.port or {"https": 443, "wss": 443}.get(parts.scheme, 80)
    except ValueError:
        port = None
    if not parts.hostname or port is None:
        return Finding("missing", "address", f"{address!r} names no host and port; write it like ws://127.0.0.1:8998")
    try:
        socket.create_connection((parts.hostname, port), timeout=3).close()
    except OSError as error:
        why = error.strerror or str(error)
        return Finding(
            "missing", "address", f"{address}: nobody listens there ({why}); start the service, or give another"
        )
    return Finding("ok", "address", f"{address}: somebody listens there")
