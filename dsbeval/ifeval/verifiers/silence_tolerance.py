"""TAKE_TURN: the agent takes the floor before the silence grows too long."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.base import Verdict, verifier
from dsbeval.ifeval.verifiers.onset import judge_onset
from dsbeval.spans import to_samples

NAME = "silence_tolerance"


@verifier(NAME, {Action.TAKE_TURN: {"max_wait_s": 2.0}})
def judge(action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """Pass when a new onset exists and comes at most ``max_wait_s`` after the window opens."""
    limit = to_samples(thresholds["max_wait_s"], RATE)
    return judge_onset(NAME, action, m, thresholds, limit, "after the user fell silent")
