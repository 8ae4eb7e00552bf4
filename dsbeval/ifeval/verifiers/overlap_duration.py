"""ACCEPT_OVERLAP: the agent stays in the scene while the user comes in over it."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.base import Verdict, conclude, seconds, verifier
from dsbeval.spans import to_samples

NAME = "overlap_duration"


@verifier(NAME, {Action.ACCEPT_OVERLAP: {"min_overlap_s": 0.0}})
def judge(action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """Pass when model and user speech overlap in the window by more than ``min_overlap_s``."""
    least = to_samples(thresholds["min_overlap_s"], RATE)
    return conclude(
        NAME,
        action,
        m,
        thresholds,
        passed=m.overlap > least,
        exercised=(m.speaking_at_start and not m.forced) or m.overlap > 0,
        finding=f"spoke over the user for {seconds(m.overlap)}; more than {seconds(least)} expected",
        margin=(m.overlap - least) / RATE if m.overlap else None,
        edge="offset",
    )
