"""The published figures, for comparison columns and as what the analyses are tested on. Rounded as printed.

Rows are the model that is scored, columns its partner; the order is PersonaPlex, MiniCPM-o, Raon-SpeechChat, and in the
tables with a fourth model Lychee-FD.

Source: DyaFDB (arXiv 2610.08125), results.
"""

from __future__ import annotations

import numpy as np

from dsbeval.stats import Numbers

MODELS = ("PP", "MCPM", "Raon")
FOURTH = "LFD"
NAMES = {
    "PP": "PersonaPlex-7B",
    "MCPM": "MiniCPM-o 4.5",
    "Raon": "Raon-SpeechChat",
    "LFD": "Lychee-FD",
}

Table = tuple[tuple[float, ...], ...]

SCORES: dict[str, Table] = {
    "T1-1": ((0.44, 0.55, 0.55), (0.64, 0.60, 0.61), (0.69, 0.64, 0.72)),
    "T1-2": ((0.23, 0.29, 0.35), (0.62, 0.52, 0.62), (0.86, 0.87, 0.77)),
    "T2": ((0.05, 0.07, 0.23), (0.07, 0.14, 0.30), (0.23, 0.30, 0.35)),
    "T3-1": ((0.50, 0.48, 0.38), (0.52, 0.50, 0.25), (0.62, 0.75, 0.50)),
    "T3-2": ((0.52, 0.56, 0.45), (0.45, 0.56, 0.21), (0.62, 0.75, 0.52)),
    "T4-1": ((0.24, 0.12, 0.11), (0.27, 0.12, 0.05), (0.45, 0.20, 0.16)),
    "T4-2": ((0.46, 0.30, 0.63), (0.36, 0.30, 0.41), (0.31, 0.28, 0.39)),
    "T4-3": ((0.38, 0.33, 0.26), (0.76, 0.54, 0.52), (0.89, 0.85, 0.56)),
    "T4-4": ((0.74, 0.54, 0.48), (0.71, 0.66, 0.44), (0.66, 0.79, 0.47)),
}

FOURTH_ROW: dict[str, tuple[float, ...]] = {
    "T1-1": (0.46, 0.53, 0.37, 0.40),
    "T1-2": (0.45, 0.33, 0.33, 0.33),
    "T2": (0.19, 0.20, 0.28, 0.15),
    "T3-1": (0.64, 0.72, 0.51, 0.50),
    "T3-2": (0.63, 0.72, 0.51, 0.53),
    "T4-1": (0.23, 0.05, 0.05, 0.11),
    "T4-2": (0.35, 0.28, 0.51, 0.19),
}
"""The fourth model against each partner, itself last."""

FOURTH_COLUMN: dict[str, tuple[float, ...]] = {
    "T1-1": (0.51, 0.56, 0.62, 0.40),
    "T1-2": (0.32, 0.61, 0.78, 0.33),
    "T3-2": (0.44, 0.35, 0.54, 0.53),
    "T4-1": (0.27, 0.44, 0.48, 0.11),
    "T4-2": (0.14, 0.20, 0.13, 0.19),
}
"""Each model against the fourth; in T2 it is the row again, in T3-1 one minus it."""

TURN_TAKING: dict[str, dict[str, float]] = {
    "tor_pause": {"task": 0.02, "model": 0.74, "partner": 0.05, "interaction": 0.07, "residual": 0.12},
    "backchannels": {"task": 0.01, "model": 0.49, "partner": 0.12, "interaction": 0.32, "residual": 0.07},
    "barge_in": {"task": 0.01, "model": 0.29, "partner": 0.49, "interaction": 0.05, "residual": 0.17},
    "tor_end": {"task": 0.01, "model": 0.19, "partner": 0.65, "interaction": 0.12, "residual": 0.04},
}
"""Shares of variance over the 63 cells."""

MODEL_TERM = {"T1-1": 0.78, "T1-2": 0.96}
"""Share of the model in a task's own nine cells."""
DEFENDER_TERM_WITH_FOURTH = 0.81
"""Share of the defender in T4-2 over sixteen cells; 0.805 from the rounded cells."""

PROFILES: dict[str, dict[str, float]] = {
    "holds_role": {"PP": 0.51, "MCPM": 0.62, "Raon": 0.68},
    "discloses": {"PP": 0.37, "MCPM": 0.34, "Raon": 0.47},
    "solves_once_decided": {"PP": 0.22, "MCPM": 0.40, "Raon": 0.40},
    "permission_by_pressing": {"PP": 0.09, "MCPM": 0.19, "Raon": 0.17},
    "wins_choice": {"PP": 0.16, "MCPM": 0.14, "Raon": 0.27},
    "asks": {"PP": 0.55, "MCPM": 0.71, "Raon": 0.56},
    "extracts_once_asks": {"PP": 0.56, "MCPM": 0.39, "Raon": 0.43},
}

TEXT_PAIRS: dict[str, dict[str, float]] = {
    "Qwen2.5-7B": {"T1-1": 0.82, "T2": 0.55, "T3-2": 0.55, "T4-2": 0.53},
    "Qwen3-8B": {"T1-1": 0.88, "T2": 0.55, "T3-2": 0.50, "T4-2": 0.68},
}


def scores(task: str, *, fourth: bool = False) -> Numbers:
    """Return the published score matrix of a task, with the fourth model if asked for. Raises KeyError where none was."""
    table = np.array(SCORES[task])
    if not fourth:
        return table
    row = np.array(FOURTH_ROW[task])
    own = {"T2": row, "T3-1": 1 - row}
    column = own[task] if task in own else np.array(FOURTH_COLUMN[task])
    return np.vstack([np.hstack([table, column[:-1, None]]), row])
