"""Result rows and fingerprints of dyads, built by hand: real ones with a few fields set."""

from __future__ import annotations

from typing import Any

from dsbeval.audio import RATE
from dsbeval.dyadic.robustness import measured
from dsbeval.dyadic.rows import SCORED_BOTH, DyadRow


def dyad(
    task: str,
    models: tuple[str, str],
    scores: dict[str, Any],
    *,
    scenario: int = 1,
    speech: dict[str, list[list[int]]] | None = None,
    **fields: Any,
) -> DyadRow:
    """Return a row. ``scores`` are those of each scored side; a bare number is a score."""
    name = f"{task}-{scenario:02}"
    row: dict[str, Any] = {
        "id": f"{name}-{models[0]}-{models[1]}",
        "item": "dyad",
        "outcome": "passed",
        "task": task,
        "scenario": name,
        "medium": "speech",
        "window_s": 60.0,
        "repeat": 1,
        "opener": "a",
        "model_a": models[0],
        "model_b": models[1],
        "role_a": "caller",
        "role_b": "clerk",
        "end_s": 60.0,
        "scores": {side: found if isinstance(found, dict) else {"score": found} for side, found in scores.items()},
        "turn_taking": None,
        "speech": speech or {"a": [], "b": []},
        "length": 60 * RATE,
        **fields,
    }
    if speech is not None:
        row["turn_taking"] = {side: found.as_row() for side, found in measured(row).items()}  # type: ignore[arg-type]
    return row  # type: ignore[return-value]


def from_matrix(task: str, models: tuple[str, ...], table: Any, runs: int = 100) -> list[DyadRow]:
    """Return conversations whose score matrix is ``table``: yes/no scores, or occupancies in T3.

    Each pairing has ``runs`` conversations, ten a scenario; in a symmetric task both sides of one are scored.
    """
    rows: list[DyadRow] = []
    for m, model in enumerate(models):
        for p, partner in enumerate(models):
            if task in SCORED_BOTH and p < m:
                continue
            for k in range(runs):
                one, other = (_score(task, table[i][j], k, runs) for i, j in ((m, p), (p, m)))
                scores = {"a": one, "b": other} if task in SCORED_BOTH else {"a": one}
                rows.append(dyad(task, (model, partner), scores, scenario=k % 10, repeat=k // 10))
    return rows


def _score(task: str, mean: float, k: int, runs: int) -> float:
    return float(mean) if task.startswith("T3") else float((k * 7) % runs < round(mean * runs))


def print_of(agent: str, **fields: Any) -> dict[str, Any]:
    """Return what of a fingerprint matters here."""
    dyadic = {"medium": "speech", "scenarios": "s1", "window_s": 60, "lead_in_s": 1.5, "partner_args": {}}
    return {
        "agent": agent,
        "agent_args": {},
        "checkpoint": None,
        "seed": 0,
        "latency": "none",
        "judge": {"name": "offline", "id": "offline", "prompts": "1"},
        "versions": {"dsbeval": "1", "resampler": "soxr", "python": "3.12"},
        "selection": {"partners": []},
        **fields,
        "dyadic": {**dyadic, **fields.get("dyadic", {})},
    }
