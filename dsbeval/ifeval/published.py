"""The published figures of DSB-IFEval, for comparison columns and as what the analyses are tested on. Rounded as printed.

Conventions
-----------
* Rates and effects are in percent and percentage points, as printed; None where nothing was.
* IAS is over the 31 *reactive* cells, the gap of a role over all six of its cells, IAS by action over all levels.

Source: DSB-IFEval (arXiv 2609.03423), results.
"""

from __future__ import annotations

from typing import Any

from dsbeval.ifeval.pack import LEVELS

MODELS = ("PersonaPlex", "F-Actor", "Moshi", "GPT-Realtime", "MiniCPM-o", "Fun-Audio-Chat")
PERSONA_BLIND = "Moshi"
"""Takes no prompt: its effects are noise."""

REACTIVE_CASES = {"L0": 31, "L1": 155, "L2": 155, "L3": 155, "L4a": 155, "L4b": 10}
"""Cases behind an IAS."""


def _by_level(*values: float) -> dict[str, float]:
    return dict(zip(LEVELS, values, strict=True))


IAS: dict[str, dict[str, float]] = {
    "PersonaPlex": _by_level(6.5, 11.0, 6.5, 6.5, 10.3, 0.0),
    "F-Actor": _by_level(24.8, 35.5, 25.8, 27.7, 28.4, 0.0),
    "Moshi": _by_level(41.9, 31.6, 31.6, 26.5, 26.5, 0.0),
    "GPT-Realtime": _by_level(16.1, 19.4, 20.6, 17.4, 17.4, 0.0),
    "MiniCPM-o": _by_level(41.9, 45.8, 43.2, 45.2, 45.2, 30.0),
    "Fun-Audio-Chat": _by_level(48.4, 46.5, 47.1, 46.5, 45.8, 30.0),
}

PAS: dict[str, dict[str, float]] = {
    "PersonaPlex": _by_level(16.5, 18.0, 22.9, 23.4, 18.8, 24.2),
    "F-Actor": _by_level(3.2, 6.9, 7.6, 7.1, 8.3, 6.0),
    "Moshi": _by_level(15.2, 12.9, 13.7, 13.1, 12.3, 11.0),
    "GPT-Realtime": _by_level(31.0, 46.2, 62.6, 65.6, 56.2, 55.3),
    "MiniCPM-o": _by_level(46.2, 58.5, 66.2, 71.1, 61.2, 75.0),
    "Fun-Audio-Chat": _by_level(36.0, 67.8, 65.9, 81.7, 60.9, 67.3),
}


def _effects(gap: float, gain: float, tax: float) -> dict[str, float]:
    return {"entailment_gap": gap, "redundancy_gain": gain, "role_tax": tax}


EFFECTS: dict[str, dict[str, float]] = {
    "PersonaPlex": _effects(4.5, 0.0, -4.5),
    "F-Actor": _effects(9.7, 1.9, -7.8),
    "MiniCPM-o": _effects(2.6, 2.0, -0.6),
    "Moshi": _effects(0.0, -5.1, -5.1),
    "GPT-Realtime": _effects(-1.2, -3.2, -2.0),
    "Fun-Audio-Chat": _effects(-0.6, -0.6, 0.0),
}

ACTIONS = (
    "ACCEPT_OVERLAP", "BACKCHANNEL", "CONTINUE", "INTERRUPT", "LISTEN", "NO_BACKCHANNEL", "READBACK", "TAKE_TURN", "YIELD",
)  # fmt: skip


def _by_action(*values: float) -> dict[str, float]:
    return dict(zip(ACTIONS, values, strict=True))


BY_ACTION: dict[str, dict[str, float]] = {
    "PersonaPlex": _by_action(57.5, 0.7, 70.0, 5.0, 10.8, 25.0, 1.1, 6.2, 11.7),
    "F-Actor": _by_action(67.5, 10.0, 50.0, 33.3, 1.9, 5.0, 0.0, 72.5, 50.8),
    "Moshi": _by_action(54.8, 6.1, 90.5, 12.0, 42.1, 50.0, 1.1, 38.7, 9.5),
    "GPT-Realtime": _by_action(100.0, 0.0, 81.0, 30.4, 5.1, 39.0, 19.1, 42.3, 14.3),
    "MiniCPM-o": _by_action(0.0, 0.0, 100.0, 0.0, 61.5, 100.0, 45.7, 49.4, 0.0),
    "Fun-Audio-Chat": _by_action(0.0, 0.0, 100.0, 0.0, 61.5, 100.0, 57.4, 50.0, 0.0),
}

ROLES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8")


def _by_role(*values: float) -> dict[str, float]:
    return dict(zip(ROLES, values, strict=True))


ROLE_GAPS: dict[str, dict[str, float]] = {
    "PersonaPlex": _by_role(-6.7, -6.7, 6.7, 6.7, 10.0, 13.3, -6.7, -6.7),
    "F-Actor": _by_role(0.0, 10.0, 6.7, 0.0, -6.7, 16.7, -10.0, 13.3),
    "Moshi": _by_role(0.0, 13.3, -6.7, 10.0, 0.0, -10.0, 6.7, -13.3),
    "GPT-Realtime": _by_role(10.0, 3.3, -6.7, -13.4, 3.4, -13.4, -0.7, 10.0),
    "MiniCPM-o": _by_role(0.0, 0.0, -3.4, 3.4, 0.0, 13.3, 0.0, 0.0),
    "Fun-Audio-Chat": _by_role(0.0, 0.0, 0.0, 0.0, 0.0, -3.3, 0.0, 0.0),
}

MATCHED_AUDIO: dict[str, tuple[float, float, float]] = {
    "PersonaPlex": (0.0, 9.4, 3.1),
    "F-Actor": (43.8, 6.2, 56.2),
    "Moshi": (17.6, 29.4, 23.5),
    "GPT-Realtime": (8.8, 14.7, 23.5),
    "MiniCPM-o": (0.0, 50.0, 0.0),
    "Fun-Audio-Chat": (0.0, 50.0, 0.0),
}
"""IAS of R1, R2, R3 on the recordings that they share."""

CONFLICT: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "PersonaPlex": {"L4a": (53.3, 18.8, 0.0, 27.9), "L4b": (66.7, 6.7, 0.0, 26.7)},
    "F-Actor": {"L4a": (2.1, 0.8, 0.0, 97.0), "L4b": (6.7, 0.0, 0.0, 93.3)},
    "Moshi": {"L4a": (52.1, 26.3, 0.0, 21.7), "L4b": (80.0, 0.0, 0.0, 20.0)},
    "GPT-Realtime": {"L4a": (79.6, 15.8, 1.3, 3.3), "L4b": (50.0, 33.3, 10.0, 6.7)},
    "MiniCPM-o": {"L4a": (88.8, 10.8, 0.0, 0.4), "L4b": (36.7, 60.0, 3.3, 0.0)},
    "Fun-Audio-Chat": {"L4a": (89.9, 10.1, 0.0, 0.0), "L4b": (56.7, 43.3, 0.0, 0.0)},
}
"""Shares of directive wins, persona wins, balanced, incoherent; persona wins at L4b is SafetyOverride."""

SWEEP = {
    "settings": 180, "mean": 0.796, "median": 0.867, "min": 0.467, "max": 1.0, "sd": 0.153,
    "top_1": 180, "top_2": 132, "full_order": 36,
}  # fmt: skip
"""Kendall's tau of the order of the six models by Entailment Gap, over the settings of the sweep."""


def as_dict() -> dict[str, Any]:
    """Return the tables that a report shows beside a run's own, as ``summary.json`` has them: in percent, as printed."""
    return {
        "models": list(MODELS),
        "persona_blind": PERSONA_BLIND,
        "ias_reactive": IAS,
        "pas": PAS,
        "effects": EFFECTS,
        "by_action": BY_ACTION,
        "by_role_gap": ROLE_GAPS,
        "matched_audio": {model: list(rates) for model, rates in MATCHED_AUDIO.items()},
        "conflict": {model: {level: list(row) for level, row in levels.items()} for model, levels in CONFLICT.items()},
    }
