"""Record a case with agents that may be services: in their limits, again from the beginning where one broke off, and counted.

Conventions
-----------
* A conversation is never patched. Where a session is lost (:class:`~dsbeval.errors.SessionLostError`) the case is recorded
  again from its first sample, with new sessions, :data:`RESTARTS` times at most. The recording names every loss.
* It waits as long as the service asks, else :data:`WAITS_S`. A service that asks for more than :data:`LONGEST_WAIT_S` is
  not waited for.
* No slot is held while it waits.
* How often a case was begun again is in its row (``"restarts": n``, only where it was) and counted in the summary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dsbeval import slots, usage
from dsbeval.agent import Agent
from dsbeval.errors import AgentError, SessionLostError

RESTARTS = 2
WAITS_S = (1.0, 10.0)
LONGEST_WAIT_S = 120.0


class Recorded(Protocol):
    """A recording, of whatever kind: what is known about it is plain data."""

    @property
    def meta(self) -> dict[str, Any]:
        """What is known about it."""


R = TypeVar("R", bound=Recorded)
Row = Mapping[str, Any]


def attempt(
    run: Path, agents: Sequence[Agent], record: Callable[[], R], sleep: Callable[[float], None] = time.sleep
) -> R:
    """Return what ``record`` returns, called again where a session was lost; ``meta["restarts"]`` then says why.

    Parameters
    ----------
    run : Path
        The run folder.
    agents : sequence of Agent
        Whose sessions ``record`` opens; the same one twice where it opens two.
    record : callable
        Opens sessions, and makes its own clock.

    Raises
    ------
    AgentError
        When a session was lost for the last time.
    """
    restarts: list[dict[str, Any]] = []
    while True:
        try:
            with slots.held(run, agents):
                try:
                    recording = record()
                finally:
                    usage.note(run, agents)
        except Exception as error:
            lost = _lost(error)
            if lost is None:
                raise
            number = len(restarts)
            if number == RESTARTS:
                raise AgentError(f"{error} (the case was begun {number + 1} times)") from error
            wait_s = WAITS_S[number] if lost.wait_s is None else lost.wait_s
            if wait_s > LONGEST_WAIT_S:
                raise AgentError(f"{error} (the service asks to wait {wait_s:.0f} s; resume the run later)") from error
            restarts.append({"reason": " ".join(str(error).split()), "waited_s": round(wait_s, 3)})
            sleep(wait_s)
        else:
            if restarts:
                recording.meta["restarts"] = restarts
            return recording


def _lost(error: BaseException | None) -> SessionLostError | None:
    """Return the loss that an exception comes from; a side of a bridge wraps it."""
    while error is not None and not isinstance(error, SessionLostError):
        error = error.__cause__
    return error


def restarts_of(meta: Mapping[str, Any]) -> dict[str, int]:
    """Return what the row of a recording says of its restarts; nothing where there were none."""
    again = meta.get("restarts") or ()
    return {"restarts": len(again)} if again else {}


def restarted(rows: Iterable[Row]) -> dict[str, int] | None:
    """Return ``{"cases", "restarts"}`` of cases and conversations that were begun again; None where none was."""
    counts = [int(row["restarts"]) for row in rows if row.get("restarts")]
    return {"cases": len(counts), "restarts": sum(counts)} if counts else None
