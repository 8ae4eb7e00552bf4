"""Tiers of DyaFDB: how many scenarios of each task a run takes, by the names that DSB-IFEval's tiers have.

Conventions
-----------
* **smoke**: two scenarios of every task, **core**: seven, **full**: all. Seats, openers and repetitions are those of any run.
* A tier is the same scenarios every time, and each holds the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dsbeval.dyadic.schema import AnyScenario

OF_A_TASK: dict[str, int | None] = {"smoke": 2, "core": 7, "full": None}
"""How many scenarios of a task a tier has; None: all."""


def tier_of(scenarios: Iterable[AnyScenario], tier: str) -> list[AnyScenario]:
    """Return the scenarios of a tier, in their order. Raises ValueError for a name that is none."""
    if tier not in OF_A_TASK:
        raise ValueError(f"{tier!r} is not one of {', '.join(OF_A_TASK)}")
    most, seen, out = OF_A_TASK[tier], Counter[str](), []
    for scenario in scenarios:
        seen[scenario.archetype] += 1
        if most is None or seen[scenario.archetype] <= most:
            out.append(scenario)
    return out
