"""The six verifiers of DSB-IFEval: one file each, registered by name and by the actions that they decide.

A verifier turns measurements into a verdict; it has no other input than its thresholds. Sources and defaults are
those of the verifier table.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsbeval.errors import OptionError, near
from dsbeval.ifeval.scene import Measurements
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers import (  # noqa: F401  importing a module registers its verifier
    action_at_trigger,
    bc_count,
    overlap_duration,
    readback,
    silence_tolerance,
    yield_latency,
)
from dsbeval.ifeval.verifiers.base import VERIFIERS, Verdict

Thresholds = Mapping[str, float]


def defaults() -> dict[Action, dict[str, float]]:
    """Return the default thresholds of every action."""
    return {action: dict(verifier.defaults[action]) for action, verifier in VERIFIERS.items()}


def parse_overrides(settings: list[str]) -> dict[Action, dict[str, float]]:
    """Parse ``ACTION.threshold=value`` settings. Raises :class:`~dsbeval.errors.OptionError`."""
    known = {f"{action}.{name}" for action, row in defaults().items() for name in row}
    out: dict[Action, dict[str, float]] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in known:
            raise OptionError(f"--set: {setting!r} is not ACTION.threshold=value; {near(key, known)}")
        try:
            number = float(value)
        except ValueError:
            raise OptionError(f"--set: {key}: {value!r} is not a number") from None
        action, name = key.split(".")
        out.setdefault(Action(action), {})[name] = number
    return out


def verify(
    action: Action,
    measurements: Measurements,
    thresholds: Thresholds,
    overrides: Mapping[Action, Thresholds] | None = None,
) -> Verdict:
    """Judge measurements for an action: defaults, then the cell's thresholds, then overrides."""
    verifier = VERIFIERS[action]
    settings = {**verifier.defaults[action], **thresholds, **(overrides or {}).get(action, {})}
    return verifier.judge(action, measurements, settings)


__all__ = ["VERIFIERS", "Verdict", "defaults", "parse_overrides", "verify"]
