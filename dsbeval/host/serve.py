"""The host side: runs in the model's own interpreter, loads one agent there, and answers the harness over a socket.

Started by :mod:`dsbeval.host.process` as ``PYTHON serve.py SETUP``, where SETUP is JSON: the socket's file descriptor, the id of
the parent process, the folders of the packages that come from the harness, the folder that imports begin in, and
the packages whose versions are wanted.

Conventions
-----------
* It needs numpy and the standard library; what the agent needs besides is the agent's affair. ``dsbeval`` and
  ``adapters`` are taken from the harness, by an import hook and not by ``sys.path``, so nothing else of the harness's
  environment is seen here.
* What an agent prints goes to the log. Nothing but messages goes over the socket.
* An exception of the agent is an answer; the process goes on. It ends when it is told to, or when the harness is gone.
* This file is also read by interpreters that are too old, which then say so in one line.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import signal
import socket
import sys
import threading
import time
import traceback
from importlib.machinery import ModuleSpec
from typing import Any

OLDEST = (3, 11)


def main(setup: dict[str, Any]) -> int:
    """Serve one agent until the harness stops it; return the exit status."""
    if sys.version_info < OLDEST:
        found, oldest = platform.python_version(), ".".join(map(str, OLDEST))
        sys.stderr.write(f"this is Python {found}; the host side needs {oldest} or newer\n")
        return 3
    sys.meta_path.insert(0, _FromHarness(setup["roots"]))
    sys.path.insert(0, setup["path"])
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"the host side needs numpy (pip install numpy), and: {error}\n")
        return 3
    channel = socket.socket(fileno=setup["socket"])
    os.set_inheritable(channel.fileno(), False)
    threading.Thread(target=_end_with, args=(setup["parent"],), daemon=True).start()
    from dsbeval.host.server import Server

    try:
        Server(channel).run(_facts(setup["packages"]))
    except (EOFError, ConnectionError):
        _end_group()  # the harness is gone: nobody else would end what the agent has started
    return 0


class _FromHarness:
    """Finds the packages of the harness where they lie, and nothing beside them."""

    def __init__(self, roots: dict[str, str]) -> None:
        self._roots = roots

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        root = self._roots.get(name) if path is None else None
        if root is None:
            return None
        init = os.path.join(root, "__init__.py")  # noqa: PTH118
        return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[root])


def _facts(packages: list[str]) -> dict[str, Any]:
    """Return what this environment is."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return {"python": platform.python_version(), "packages": found, "monotonic": time.monotonic()}


def _end_with(parent: int) -> None:
    """End when the harness has ended, even in the middle of a step."""
    while os.getppid() == parent:
        time.sleep(1.0)
    _end_group()


def _end_group() -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script
    try:
        status = main(json.loads(sys.argv[1]))
    except Exception:
        traceback.print_exc()
        status = 1
    sys.exit(status)
