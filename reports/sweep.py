"""The threshold sweep as text, and as a heat map of the gap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.ifeval.published import SWEEP
from dsbeval.judge.tables import table

CELL_NAMES = {"reactive": "reactive cells (published)", "all": "all cells"}
LISTED = 20


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def render(found: Mapping[str, Any], list_all: bool = False) -> list[str]:
    """Return the sweep as lines of text."""
    lines = [f"{len(found['settings'])} settings of the thresholds"]
    for name, title in CELL_NAMES.items():
        cells = found["cells"][name]
        rows = []
        for label, default in cells["default"].items():
            at = cells["gap"][label]
            spread = ("-", "-") if at is None else (_points(min(at)), _points(max(at)))
            rows.append((label, _points(default), *spread))
        lines += ["", *table((f"Entailment Gap, points, {title}", "default", "least", "most"), rows)]
        if cells["orders"] is not None:
            lines += _orders(cells["orders"], published=name == "reactive")
    return [*lines, *_near(found), *_borderline(found, list_all)]


def _orders(orders: Mapping[str, Any], *, published: bool) -> list[str]:
    if orders["mean"] is None:
        return ["  no order of models to compare: two or more runs with different gaps are needed"]
    stats = ", ".join(f"{key} {_figure(orders[key])}" for key in ("mean", "median", "min", "max", "sd"))
    kept = ", ".join(
        f"{key.replace('_', ' ')} {orders[key]}/{orders['settings']}"
        for key in ("top_1", "top_2", "full_order")
        if key in orders
    )
    lines = [f"  Kendall's tau against the default: {stats} ({orders['with_tau']} settings)", f"  order kept: {kept}"]
    if published:
        lines.append(
            f"  published, six models: mean {SWEEP['mean']}, median {SWEEP['median']}, min {SWEEP['min']}, max {SWEEP['max']}, "
            f"sd {SWEEP['sd']}; top 1 {SWEEP['top_1']}/180, top 2 {SWEEP['top_2']}/180, full order {SWEEP['full_order']}/180"
        )
    return lines


def _near(found: Mapping[str, Any]) -> list[str]:
    actions = {action: list(values) for near in found["near"].values() for action, values in near.items()}
    lines = []
    for action, thresholds in actions.items():
        rows = [
            (label, *(str(near[action][name]) if action in near else "-" for name in thresholds))
            for label, near in found["near"].items()
        ]
        lines += ["", *table((f"{action}: verdicts inside the VAD's error of", *thresholds), rows)]
    return lines


def _borderline(found: Mapping[str, Any], list_all: bool) -> list[str]:
    lines = [""]
    for label, entry in found["borderline"].items():
        if not entry["n"]:
            continue
        low, high = entry["ias_range"]
        counts = ", ".join(f"{action} {count}" for action, count in entry["by_action"].items())
        lines.append(
            f"{label}: {entry['borderline']} of {entry['n']} verdicts inside the VAD's error{': ' if counts else ''}{counts}; "
            f"IAS {100 * entry['ias']:.1f}, if they were all wrong {100 * low:.1f} to {100 * high:.1f}"
        )
        shown = entry["ids"] if list_all else entry["ids"][: LISTED if len(found["borderline"]) == 1 else 0]
        lines += [f"  {name}" for name in shown]
        if shown and len(shown) < len(entry["ids"]):
            lines.append(f"  ... and {len(entry['ids']) - len(shown)} more (--list shows all)")
    return lines


def render_dyads(found: Mapping[str, Any]) -> list[str]:
    """Return the sweep of the dyadic thresholds (:func:`dsbeval.dyadic.robustness.sweep`) as lines of text."""
    lines: list[str] = []
    for name, values in found.items():
        for measure in next(iter(values.values())):
            models = list(next(iter(values.values()))[measure]["by_model"])
            if not models:
                continue
            rows = [
                (
                    f"{name} {value}",
                    *(_figure(entry[measure]["by_model"].get(model)) for model in models),
                    _figure(entry[measure]["tau"]),
                )
                for value, entry in values.items()
            ]
            lines += ["", *table((f"{measure.replace('_', '-')}, mean", *models, "tau"), rows)]
    return lines


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Draw the gap of each run at each setting into ``path`` (png, svg or pdf)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    labels = [label for label in found["borderline"] if any(found["cells"][name]["gap"][label] for name in CELL_NAMES)]
    settings = found["settings"]
    # Outermost what moves most: blocks of yield limits, in each the waits, in these the interrupt limits and the ceilings.
    keys = ("yield_ms", "wait_s", "interrupt_ms", "ceiling_s")
    order = sorted(range(len(settings)), key=lambda k: tuple(settings[k][key] for key in keys))
    figure, panels = plt.subplots(2, 1, figsize=(11, 1.8 + 0.7 * len(labels)), sharex=True, layout="constrained")
    nothing = [np.nan] * len(settings)
    values = {
        name: np.array([found["cells"][name]["gap"][label] or nothing for label in labels], dtype=float)
        for name in CELL_NAMES
    }
    most = max((float(np.nanmax(np.abs(table))) for table in values.values() if np.isfinite(table).any()), default=0.0)
    image = None
    for axes, (name, title) in zip(panels, CELL_NAMES.items(), strict=True):
        shades = 100 * values[name][:, order]
        limit = 100 * most or 1.0
        image = axes.imshow(shades, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        axes.set_yticks(range(len(labels)), labels, fontsize=8)
        axes.set_title(title, fontsize=9, loc="left")
        for k in range(1, 15):
            axes.axvline(12 * k - 0.5, color="black", lw=1.0 if k % 3 == 0 else 0.3)
    blocks = sorted({setting["yield_ms"] for setting in settings})
    size = len(settings) / len(blocks)
    panels[1].set_xticks([size * (k + 0.5) - 0.5 for k in range(len(blocks))], [f"{value:g} ms" for value in blocks])
    panels[1].set_xlabel("yield limit; in each block the waits 1.5, 2.0, 2.5 s, in these interrupt limits and ceilings")
    assert image is not None
    figure.colorbar(image, ax=list(panels), label="Entailment Gap, points")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
