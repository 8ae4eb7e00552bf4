"""YIELD and CONTINUE: how long the agent speaks on after the user has come in."""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers.base import Verdict, conclude, seconds, verifier
from dsbeval.spans import to_samples

NAME = "yield_latency"


@verifier(NAME, {Action.YIELD: {"max_latency_ms": 600.0}, Action.CONTINUE: {"max_latency_ms": 600.0}})
def judge(action: Action, m: Measurements, thresholds: Mapping[str, float]) -> Verdict:
    """YIELD passes when the first model offset at or after the barge-in comes in time; CONTINUE when YIELD would not.

    As published, the offset may belong to a later utterance of an agent that was silent at the barge-in, and CONTINUE
    then passes vacuously: ``exercised`` tells these apart.
    """
    limit = to_samples(thresholds["max_latency_ms"] / 1000, RATE)
    yielded = m.first_offset is not None and m.first_offset <= limit
    if m.first_offset is None:
        finding = "was not heard at or after the barge-in"
    elif m.speaking_at_start:
        finding = f"spoke on for {seconds(m.first_offset)} after the barge-in"
    else:
        finding = f"was silent at the barge-in, and fell silent next {seconds(m.first_offset)} after it"
    finding += f"; {'limit' if action is Action.YIELD else 'must be over'} {seconds(limit)}"
    margin = None if m.first_offset is None else (limit - m.first_offset) / RATE
    if margin is not None and action is Action.CONTINUE:
        margin = -margin
    return conclude(
        NAME,
        action,
        m,
        thresholds,
        passed=yielded if action is Action.YIELD else not yielded,
        exercised=m.speaking_at_start and not m.forced,
        finding=finding,
        margin=margin,
        edge="offset",
    )
