"""BACKCHANNEL and NO_BACKCHANNEL: short listening sounds in the window, counted."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.action_at_trigger import judge_silent
from dsbeval.ifeval.verifiers.base import DEFAULT_CEILING_S, Verdict, conclude, seconds, verifier
from dsbeval.spans import to_samples

NAME = "bc_count"


@verifier(
    NAME,
    {
        Action.BACKCHANNEL: {"bc_ceiling_s": DEFAULT_CEILING_S, "bc_window_max": 1.0},
        Action.NO_BACKCHANNEL: {"bc_window_max": 0.0},
    },
)
def judge(action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """BACKCHANNEL passes with 1 to ``bc_window_max`` onsets, all of them short; NO_BACKCHANNEL with silence."""
    if action is Action.NO_BACKCHANNEL:
        return judge_silent(NAME, action, m, thresholds)
    ceiling, most = to_samples(thresholds["bc_ceiling_s"], RATE), int(thresholds["bc_window_max"])
    label, count = m.label(ceiling), len(m.onsets)
    longest = max((span.duration for span in m.spans), default=None)
    margin = None if longest is None else (ceiling - longest) / RATE
    if label == "silent":
        finding = f"no sound in the window; 1 to {most} of under {seconds(ceiling)} expected"
    elif label == "floor_take":
        finding = f"took the floor with {seconds(longest or 0)} of speech; a backchannel is under {seconds(ceiling)}"
    else:
        finding = (
            f"{count} onset(s) in the window, the longest sound {seconds(longest or 0)}; "
            f"1 to {most} of under {seconds(ceiling)} expected"
        )
    passed = label == "backchannel" and 1 <= count <= most
    return conclude(
        NAME, action, m, thresholds, passed=passed, exercised=m.spoke, finding=finding, margin=margin, edge="offset"
    )
