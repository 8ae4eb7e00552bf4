"""LISTEN and INTERRUPT: what the agent does at the trigger."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.base import Verdict, conclude, seconds, verifier
from dsbeval.ifeval.verifiers.onset import judge_onset
from dsbeval.spans import to_samples

NAME = "action_at_trigger"


@verifier(NAME, {Action.LISTEN: {}, Action.INTERRUPT: {"max_latency_ms": 1500.0}})
def judge(action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """LISTEN passes when no model speech touches the window; INTERRUPT when a new onset comes in time."""
    if action is Action.INTERRUPT:
        limit = to_samples(thresholds["max_latency_ms"] / 1000, RATE)
        return judge_onset(NAME, action, m, thresholds, limit, "after the trigger")
    return judge_silent(NAME, action, m, thresholds)


def judge_silent(name: str, action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """Pass when the label is silent. The margin is the distance to the nearest speech, or minus the speech in the window."""
    passed = not m.spans
    if passed:
        nearest = m.nearest
        finding = "stayed silent" if nearest is None else f"stayed silent, nearest speech {seconds(nearest)} away"
        margin = None if nearest is None else nearest / RATE
    else:
        first = m.spans[0]
        began = (
            f"{seconds(first.start)} into the window"
            if first.start >= 0
            else f"{seconds(-first.start)} before it opened"
        )
        finding = f"spoke for {seconds(m.covered)} where silence was due, beginning {began}"
        margin = -m.covered / RATE
    return conclude(
        name, action, m, thresholds, passed=passed, exercised=m.spoke, finding=finding, margin=margin, edge="offset"
    )
