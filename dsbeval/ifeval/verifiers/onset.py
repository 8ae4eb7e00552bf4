"""A new onset inside the window, in time: shared by TAKE_TURN and INTERRUPT."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.base import Verdict, conclude, seconds


def judge_onset(
    name: str, action: Action, m: Measurements, thresholds: Mapping[str, float], limit: int, where: str
) -> Verdict:
    """Pass when the genuine onset exists and is at most ``limit`` samples. Speech under way has no latency, not zero."""
    if m.genuine is None:
        finding = "no new onset" + (" (it was already speaking)" if m.speaking_at_start else "")
        return conclude(
            name, action, m, thresholds, passed=False, exercised=m.spoke,
            finding=f"{finding}; limit {seconds(limit)} {where}",
        )  # fmt: skip
    return conclude(
        name,
        action,
        m,
        thresholds,
        passed=m.genuine <= limit,
        exercised=m.spoke,
        finding=f"spoke {seconds(m.genuine)} {where}; limit {seconds(limit)}",
        margin=(limit - m.genuine) / RATE,
    )
