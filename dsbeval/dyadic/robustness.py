"""Does the turn-taking pattern hang on its thresholds? Backchannels and barge-ins, measured again with others.

Conventions
-----------
* One threshold is moved at a time, the other stays at its default: backchannel length 0.5 to 1.5 s, hold 0.3 to 1.0 s.
* The *pattern* is the order of the models by the mean of a measure over their pairings. Kendall's tau compares it with the
  default's; None with fewer than two models, or where either has nothing but ties.
* Only rows of speech count. The segments in the row are what is measured: no audio is read.

Source: DyaFDB, turn-taking metrics (robustness).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dsbeval.dyadic.matrices import Groups
from dsbeval.dyadic.rows import DyadRow, Side
from dsbeval.dyadic.turn_taking import BENCHMARK, Measures, Thresholds, floor_outcomes, measure_both, share
from dsbeval.spans import Span, Timeline
from dsbeval.stats import kendall_tau

SWEEPS: dict[str, tuple[float, ...]] = {
    "backchannel_s": (0.5, 0.75, 1.0, 1.25, 1.5),
    "hold_s": (0.3, 0.5, 0.75, 1.0),
}
MEASURES = ("backchannels", "barge_in")


def measured(row: DyadRow, thresholds: Thresholds = BENCHMARK) -> dict[str, Measures]:
    """Return the turn-taking of both sides from the segments that a row keeps."""
    return measure_both(_channel(row, "a"), _channel(row, "b"), Span(0, row["length"]), thresholds)


def sweep(rows: Sequence[DyadRow], default: Thresholds = BENCHMARK) -> dict[str, Any]:
    """Return, for each threshold and value, the mean of each measure by model and its tau against the default."""
    channels: list[tuple[str, str, Timeline, Timeline]] = []
    for row in rows:
        if row["medium"] == "speech" and row["length"] > 0:
            a, b = _channel(row, "a"), _channel(row, "b")
            channels += ((row["model_a"], row["model_b"], a, b), (row["model_b"], row["model_a"], b, a))
    base = _means(channels, default)
    out: dict[str, Any] = {}
    for name, values in SWEEPS.items():
        for value in values:
            found = _means(channels, replace(default, **{name: value}))
            out.setdefault(name, {})[f"{value:g}"] = {
                measure: {"by_model": found[measure], "tau": tau(base[measure], found[measure])} for measure in MEASURES
            }
    return out


def _channel(row: DyadRow, side: Side) -> Timeline:
    return Timeline(Span(start, end) for start, end in row["speech"][side]).clip(Span(0, row["length"]))


def _means(
    channels: Sequence[tuple[str, str, Timeline, Timeline]], thresholds: Thresholds
) -> dict[str, dict[str, float | None]]:
    groups: dict[str, Groups] = {name: {} for name in MEASURES}
    for model, partner, own, other in channels:
        found = floor_outcomes(own, other, thresholds)
        won, lost = found.count("won"), found.count("lost")
        for name, value in (("backchannels", found.count("backchannel")), ("barge_in", share(won, won + lost))):
            if value is not None:
                groups[name].setdefault((model, partner), []).append(float(value))
    models = sorted({model for model, *_ in channels})
    return {name: {model: _average(groups[name], model) for model in models} for name in MEASURES}


def _average(groups: Groups, model: str) -> float | None:
    cells = [sum(values) / len(values) for (name, _), values in groups.items() if name == model]
    return sum(cells) / len(cells) if cells else None


def tau(one: dict[str, float | None], other: dict[str, float | None]) -> float | None:
    """Return Kendall's tau-b of two tables over the models that both have; None where there is no order to compare."""
    pairs = [(x, y) for model, x in one.items() if x is not None and (y := other.get(model)) is not None]
    return kendall_tau([x for x, _ in pairs], [y for _, y in pairs])
