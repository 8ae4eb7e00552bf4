"""READBACK: what was dictated comes back, exactly."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.base import Verdict, conclude, verifier

NAME = "readback"


@verifier(NAME, {Action.READBACK: {"coverage": 0.90}})
def judge(action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """Pass when the agent's own text from the window's start on covers the target; text that nobody heard is not exercised."""
    least, coverage = thresholds["coverage"], m.coverage or 0.0
    heard = m.covered > 0
    return conclude(
        NAME,
        action,
        m,
        thresholds,
        passed=coverage >= least,
        exercised=m.spoke and (heard or coverage < least),
        finding=(
            f"said {m.matched_tokens} of the {m.target_tokens} dictated tokens (coverage {coverage:.2f}); {least:.2f} expected"
            + ("" if heard else ", and nothing was spoken in the window")
        ),
        margin=coverage - least,
        unit="share",
        edge="none",
    )
