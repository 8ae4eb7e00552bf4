"""What every verifier shares: the verdict, the registry, and the words of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dsbeval.audio import RATE
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.spans import to_samples
from dsbeval.vad import OFFSET_ERROR_S, ONSET_ERROR_S

DEFAULT_CEILING_S = 1.0
"""Longest backchannel, where an action does not set its own (published default)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A threshold on a measurement.

    Parameters
    ----------
    passed : bool
    exercised : bool
        False when the agent could not have failed or passed by what it did: it was silent at a barge-in, or never
        spoke at all.
    margin : float or None
        Signed distance to the threshold, positive on the passing side; None when there was nothing to measure.
    unit : "s", "share" or "count"
    borderline : bool
        Whether the margin lies inside the stated error of the edge that was measured.
    label : str
        silent, backchannel or floor_take.
    message : str
        The verdict in words: action, what was measured, threshold, margin.
    """

    action: Action
    verifier: str
    passed: bool
    exercised: bool
    margin: float | None
    unit: str
    borderline: bool
    label: str
    thresholds: dict[str, float]
    message: str

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data, for a result row."""
        return {
            "verifier": self.verifier,
            "passed": self.passed,
            "exercised": self.exercised,
            "margin": self.margin,
            "margin_unit": self.unit,
            "borderline": self.borderline,
            "label": self.label,
            "thresholds": self.thresholds,
            "message": self.message,
        }


Judge = Callable[[Action, Measurements, Mapping[str, float]], Verdict]


@dataclass(frozen=True, slots=True)
class Verifier:
    """A named verifier, the actions that it decides, and their default thresholds."""

    name: str
    defaults: Mapping[Action, Mapping[str, float]]
    judge: Judge


VERIFIERS: dict[Action, Verifier] = {}


def verifier(name: str, defaults: Mapping[Action, Mapping[str, float]]) -> Callable[[Judge], Judge]:
    """Register a judge function as the verifier of the actions in ``defaults``."""

    def register(judge: Judge) -> Judge:
        for action in defaults:
            VERIFIERS[action] = Verifier(name, defaults, judge)
        return judge

    return register


def conclude(
    name: str,
    action: Action,
    m: Measurements,
    thresholds: Mapping[str, float],
    *,
    passed: bool,
    exercised: bool,
    finding: str,
    margin: float | None = None,
    unit: str = "s",
    edge: str = "onset",
) -> Verdict:
    """Put a verdict together; ``edge`` says which kind of detected edge the margin hangs on (onset, offset, or none)."""
    error = {"onset": ONSET_ERROR_S, "offset": OFFSET_ERROR_S, "none": 0.0}[edge]
    borderline = margin is not None and unit == "s" and abs(margin) < error
    ceiling = to_samples(thresholds.get("bc_ceiling_s", DEFAULT_CEILING_S), RATE)
    window = f"window {m.window.start / RATE:.3f}-{m.window.end / RATE:.3f} s"
    notes = [window]
    if margin is not None:
        notes.append(
            f"margin {margin:+.3f}{' s' if unit == 's' else ''}" + (", inside the VAD's error" if borderline else "")
        )
    if m.observed < m.window.duration:
        notes.append(f"only {m.observed / RATE:.3f} s of the window recorded")
    if not exercised:
        notes.append("not exercised: " + ("the agent never spoke" if not m.spoke else "it was silent when it mattered"))
    return Verdict(
        action=action,
        verifier=name,
        passed=passed,
        exercised=exercised,
        margin=None if margin is None else round(margin, 4),
        unit=unit,
        borderline=borderline,
        label=m.label(ceiling),
        thresholds=dict(thresholds),
        message=f"{action}: {finding} ({'; '.join(notes)})",
    )


def seconds(samples: int) -> str:
    """Return a duration for a message."""
    return f"{samples / RATE:.3f} s"
