"""The scored window of a case, from construction, never from the mix.

Source: DSB-IFEval, probe table ("scored window") and appendix D.
"""

from __future__ import annotations

from dsbeval.audio import RATE
from dsbeval.ifeval.schema import Edge, TurnRule
from dsbeval.spans import Span, to_samples
from dsbeval.speech.assemble import UserTurn


def scored_window(rule: TurnRule, turn: UserTurn, onset: int = 0) -> Span:
    """Return the window of ``rule`` in a turn that begins at ``onset``, in session samples."""

    def place(edge: Edge) -> int:
        span = turn.segments[edge.segment - 1].span
        return onset + (span.start if edge.edge == "on" else span.end) + to_samples(edge.plus, RATE)

    return Span(place(rule.window.start), place(rule.window.end))
