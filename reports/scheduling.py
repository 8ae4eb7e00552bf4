"""How xdist hands out the items: those of one case stay together, so that one worker records once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdist.scheduler import LoadScopeScheduling


class CaseScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Load scheduling by case; ids stay as they are (xdist's own groups would write themselves into them)."""

    case_of: Callable[[str], str | None] = staticmethod(lambda nodeid: None)  # noqa: ARG005
    """Which case the item of a node id is of; None for an item that is of none."""

    def _split_scope(self, nodeid: str) -> str:
        return self.case_of(nodeid) or nodeid

    def remove_node(self, node: Any) -> str | None:
        """Return the item that a dead worker was running, and hand out the rest of its work.

        Scope scheduling would hand out the item itself again; a case that kills its worker would then kill every one.
        """
        workload = self.assigned_work.pop(node)
        crashed: str | None = next(
            (nodeid for unit in workload.values() for nodeid, done in unit.items() if not done), None
        )
        if crashed is None:
            return None
        for scope, unit in workload.items():
            if crashed in unit:
                unit[crashed] = True
            if not all(unit.values()):
                self.workqueue[scope] = unit
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed


def case_in(nodeid: str) -> str:
    """Return what stands in the brackets of an id, or nothing."""
    return nodeid.partition("[")[2].removesuffix("]")
