"""Tiers of the pack: how much of it a run takes.

Conventions
-----------
* **smoke**: 96 cases, two of every action at every level where there are so many, from 96 conversations where the pack allows
  it: the more conversations, the more a comparison can tell. For every change.
* **core**: instances 1 and 2 of every cell at every level: 444 cases of 96 conversations, so that effects have their pairs. For a
  checkpoint.
* **full**: all 1,038 cases. For the night, and for figures that are published.
* A tier is the same cases every time: it is chosen by hash, not by chance.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from dsbeval.ifeval.pack import LEVELS, Case
from dsbeval.ifeval.schema import Action

TIERS = ("smoke", "core", "full")
SMOKE = 96
CORE_INSTANCES = (1, 2)


def tier_of(cases: Iterable[Case], tier: str) -> list[Case]:
    """Return the cases of a tier, in their order. Raises ValueError for a name that is none."""
    if tier not in TIERS:
        raise ValueError(f"{tier!r} is not one of {', '.join(TIERS)}")
    cases = list(cases)
    if tier == "full":
        return cases
    if tier == "core":
        return [case for case in cases if case.instance in CORE_INSTANCES]
    chosen = {case.id for case in _smoke(cases)}
    return [case for case in cases if case.id in chosen]


def _smoke(cases: list[Case]) -> list[Case]:
    """Go round the strata, the scarcest first; take the case whose conversation, then cell, then role was taken least."""
    strata = [
        found
        for level in LEVELS
        for action in sorted(Action)
        if (found := [case for case in cases if case.level == level and case.action == action])
    ]
    strata.sort(key=len)
    taken: list[Case] = []
    used: Counter[str] = Counter()
    while len(taken) < min(SMOKE, len(cases)):
        for stratum in strata:
            left = [case for case in stratum if case not in taken]
            if left and len(taken) < SMOKE:
                case = min(left, key=lambda one: (*_counts(one, used), _hash(one)))
                taken.append(case)
                used.update(_names(case))
    return taken


def _names(case: Case) -> tuple[str, str, str]:
    return case.conversation_id, f"{case.role}/{case.probe}", case.role


def _counts(case: Case, used: Counter[str]) -> tuple[int, ...]:
    return tuple(used[name] for name in _names(case))


def _hash(case: Case) -> str:
    return hashlib.sha256(case.id.encode()).hexdigest()
