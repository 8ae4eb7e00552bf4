"""Limits that hold over all workers of a run: a service takes so many sessions at once, however many workers there are.

Conventions
-----------
* A limit of n is n lock files in the run folder, so it needs no server, and the locks of a worker that dies are free again.
* The sessions of a conversation are taken together or not at all: two workers that each hold one and wait for a second
  would wait for ever.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dsbeval.agent import Agent
from dsbeval.errors import OptionError

if TYPE_CHECKING:
    from filelock import BaseFileLock

FOLDER = "slots"
POLL_S = 0.1


@contextmanager
def held(run: Path, agents: Sequence[Agent]) -> Iterator[None]:
    """Wait until one session of each of ``agents`` may be open, and hold that right.

    Agents of one name share a limit; the smaller one counts where they declare two. An agent that is named twice needs two.
    Raises :class:`OptionError` where the limit itself is too small.
    """
    limits: dict[str, int] = {}
    for agent in agents:
        if agent.concurrency is not None:
            limits[agent.name] = min(agent.concurrency, limits.get(agent.name, agent.concurrency))
    needs = Counter(agent.name for agent in agents if agent.name in limits)
    for name, count in needs.items():
        if count > limits[name]:
            raise OptionError(
                f"concurrency of {name} is {limits[name]}, but this conversation needs {count} sessions at once; "
                f"give --model-arg concurrency={count} or more"
            )
    locks: list[BaseFileLock] = []
    while needs and not (locks := _take(run / FOLDER, needs, limits)):
        time.sleep(POLL_S * random.uniform(0.5, 1.5))
    try:
        yield
    finally:
        for lock in locks:
            lock.release()


def _take(folder: Path, needs: Counter[str], limits: dict[str, int]) -> list[BaseFileLock]:
    """Return the locks of everything that is needed, or none."""
    from filelock import FileLock, Timeout

    folder.mkdir(exist_ok=True)
    taken: list[BaseFileLock] = []
    for name, count in needs.items():
        wanted = len(taken) + count
        for index in range(limits[name]):
            lock: BaseFileLock = FileLock(folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}-{index}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            taken.append(lock)
            if len(taken) == wanted:
                break
        if len(taken) < wanted:
            for lock in taken:
                lock.release()
            return []
    return taken
