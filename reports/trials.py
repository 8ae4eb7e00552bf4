"""Trials of a run as lines of text: pass^k, how much verdicts vary within a case, and how many trials a precision needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsbeval.stats import SMALL_N


def trial_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of :func:`dsbeval.ifeval.trials.summarise`."""
    lines = [
        f"{found['trials']} trials of {found['cases']} cases; {found['incomplete']} more lack a verdict in some trial"
    ]
    if not found["cases"]:
        return lines
    for title, key in (("pass^k", "pass_hat_k"), ("pass@k", "pass_at_k")):
        cells = [f"{title[:-1]}{k} {_share(cell)}" for k, cell in found[key].items() if k != "1"]
        lines.append("  " + "; ".join([f"pass@1 {_share(found['pass_at_1'])}", *cells]))
    lines.append(
        f"  {100 * found['alike']:.1f} % of cases came out alike in all trials; variance of a verdict "
        f"{found['within']:.4f} within a case, {found['between']:.4f} between cases"
    )
    needed = ", ".join(f"{100 * float(half):g} points: {n}" for half, n in found["trials_for"].items())
    lines.append(f"  trials for an IAS of these cases to plus or minus {needed}")
    if found["limit"] is not None:
        lines.append(f"  over other conversations no number of trials goes below {100 * found['limit']:.1f} points")
    return lines


def _share(cell: Mapping[str, Any]) -> str:
    limits = (
        ""
        if cell["ci95"] is None or cell["n"] < SMALL_N
        else " [{:.1f}, {:.1f}]".format(*(100 * limit for limit in cell["ci95"]))
    )
    return f"{100 * cell['rate']:.1f}{limits}"
