"""The tables of a summary as CSV: one row a figure, everything unrounded, nothing that is not in ``summary.json``.

Conventions
-----------
* Tidy: what a figure is of stands in columns of names (level, action, model ...), so a table can be filtered and pivoted.
* A rate has its n and, where there is one, its 95 % interval. What is not known is empty, never 0.
* A table without rows is not written.
* Tables of conversations say whose answers their scores are from (``judge``: the run's own, and each that was asked after it)
  and whether the conversations were had in speech or in writing (``medium``).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsbeval.audio import atomic_write

Table = tuple[Sequence[str], list[list[Any]]]

RATE = ("rate", "passed", "n", "ci95_low", "ci95_high")
MEAN = ("mean", "n", "ci95_low", "ci95_high")
ESTIMATE = ("value", "low", "high", "n")
COUNTS = ("cases", "passed", "failed", "error", "skipped", "missing")


def tables(summary: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of a summary by name: heads and rows."""
    found = {**_common(summary), **_judges(summary.get("judges", {}))}
    if "ifeval" in summary:
        found |= _ifeval(summary["ifeval"])
    for judge, medium, data in _conversations(summary):
        for name, (head, rows) in _dyadic(data).items():
            whole = found.setdefault(name, (("judge", "medium", *head), []))
            whole[1].extend([judge, medium, *row] for row in rows)
    return {name: table for name, table in found.items() if table[1]}


def write_tables(summary: Mapping[str, Any], folder: Path) -> None:
    """Write the tables of a summary into a folder, and remove those of an earlier one."""
    found = tables(summary)
    if folder.is_dir():
        for old in folder.glob("*.csv"):
            if old.stem not in found:
                old.unlink()
    for name, (head, rows) in found.items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
        with atomic_write(folder / f"{name}.csv") as file:
            file.write(text.getvalue().encode())


def _limits(cell: Mapping[str, Any]) -> list[Any]:
    return list(cell.get("ci95") or (None, None))


def _rate(cell: Mapping[str, Any]) -> list[Any]:
    return [cell["rate"], cell["passed"], cell["n"], *_limits(cell)]


def _mean(cell: Mapping[str, Any]) -> list[Any]:
    return [cell["mean"], cell["n"], *_limits(cell)]


def _estimate(cell: Mapping[str, Any]) -> list[Any]:
    return [cell[key] for key in ESTIMATE]


def _common(summary: Mapping[str, Any]) -> dict[str, Table]:
    blocks: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
    if "ifeval" in summary:
        blocks.append(("DSB-IFEval", summary["counts"], summary))
    if "dyadic" in summary:
        blocks.append(("DyaFDB", summary["dyadic"]["outcomes"], summary["dyadic"]))
    unscored = [
        [name, kind, entry["id"], entry["message"]]
        for name, _, block in blocks
        for key, kind in (("errors", "error"), ("skipped", "skipped"))
        for entry in block[key]
    ]
    unscored += [[name, "missing", one, None] for name, _, block in blocks for one in block["missing"]]
    out: dict[str, Table] = {
        "counts": (("benchmark", *COUNTS), [[name, *(counts[key] for key in COUNTS)] for name, counts, _ in blocks]),
        "without_verdict": (("benchmark", "outcome", "id", "message"), unscored),
    }
    if "realtime" in summary:
        out["realtime"] = (("figure", "value"), [[key, value] for key, value in summary["realtime"].items()])
    return out


def _ifeval(data: Mapping[str, Any]) -> dict[str, Table]:
    actions = [
        [action, level, *_rate(cell)]
        for action, levels in data["by_action_level"].items()
        for level, cell in (*levels.items(), ("overall", data["by_action"][action]))
    ]
    effects = [
        [
            cells,
            effect,
            found[effect],
            *found["n"][effect],
            *(found["ci95"][effect] or (None, None)),
            found["pairs"][effect],
            found["p"][effect],
        ]
        for cells, found in data["effects"].items()
        for effect in found["n"]
    ]
    gaps = [
        [by.removeprefix("by_"), key, cell["gap"], *cell["n"], *_limits(cell), cell["pairs"], cell["p"], cell["p_holm"]]
        for by, family in data["gaps"].items()
        for key, cell in family.items()
    ]
    return {
        "ias": (
            ("cells", "level", *RATE),
            [[cells, level, *_rate(cell)] for cells, levels in data["ias"].items() for level, cell in levels.items()],
        ),
        "effects": (
            ("cells", "effect", "value", "n_plus", "n_minus", "ci95_low", "ci95_high", "pairs", "p"),
            effects,
        ),
        "by_action": (("action", "level", *RATE), actions),
        "by_role": (("role", *RATE), [[role, *_rate(cell)] for role, cell in data["by_role"].items()]),
        "by_probe": (("probe", *RATE), [[probe, *_rate(cell)] for probe, cell in data["by_probe"].items()]),
        "by_role_probe": (
            ("role", "probe", "action", *RATE),
            [
                [role, probe, cell["action"], *_rate(cell)]
                for role, probes in data["by_role_probe"].items()
                for probe, cell in probes.items()
            ],
        ),
        "entailment_gaps": (
            ("by", "of", "gap", "n_plus", "n_minus", "ci95_low", "ci95_high", "pairs", "p", "p_holm"),
            gaps,
        ),
        "matched_audio": (("role", *RATE), [[role, *_rate(cell)] for role, cell in data["matched_audio"].items()]),
        "latency": _keyed("action", data["latency"], skip=("limits_s",)),
        "trials": (
            ("figure", "k", "rate", "n", "ci95_low", "ci95_high"),
            [
                [figure, k, cell["rate"], cell["n"], *_limits(cell)]
                for figure in ("pass_hat_k", "pass_at_k")
                for k, cell in data.get("trials", {}).get(figure, {}).items()
            ],
        ),
    }


def _keyed(name: str, found: Mapping[str, Mapping[str, Any]], skip: Iterable[str] = ()) -> Table:
    """Return a table of objects that have the same fields."""
    fields = [key for key in next(iter(found.values()), {}) if key not in skip]
    return (name, *fields), [[key, *(cell[field] for field in fields)] for key, cell in found.items()]


def _judges(judges: Mapping[str, Mapping[str, Any]]) -> dict[str, Table]:
    pas: list[list[Any]] = []
    conflict: list[list[Any]] = []
    for judge, data in judges.items():
        pas.append([judge, "overall", None, *_mean(data["pas"]["overall"])])
        for by in ("by_level", "by_role", "by_probe"):
            pas += [[judge, by.removeprefix("by_"), key, *_mean(cell)] for key, cell in data["pas"][by].items()]
        for level, profile in data["conflict"].items():
            conflict += [
                [judge, level, label, profile[label], profile["n"], *(profile["ci95"][label] or (None, None))]
                for label in profile["ci95"]
            ]
    return {
        "pas": (("judge", "by", "of", *MEAN), pas),
        "conflict": (("judge", "level", "resolution", "share", "n", "ci95_low", "ci95_high"), conflict),
        "safety_override": (
            ("judge", *MEAN),
            [[judge, *_mean(data["safety_override"])] for judge, data in judges.items()],
        ),
    }


def _conversations(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the analyses of conversations by who judged them and by how they were had."""
    own = summary.get("dyadic", {})
    judged = {judge: data["dyadic"] for judge, data in summary.get("judged", {}).items()}
    for judge, data in {", ".join(own.get("judges", ())): own, **judged}.items():
        if data.get("matrices"):
            yield judge, "speech", data
        if "text" in data:
            yield judge, "text", data["text"]


def _matrices(found: Mapping[str, Mapping[str, Any]]) -> list[list[Any]]:
    return [
        [name, model, partner, value, matrix["n"][i][j], *(matrix["ci95"][i][j] or (None, None))]
        for name, matrix in found.items()
        for i, model in enumerate(matrix["models"])
        for j, partner in enumerate(matrix["models"])
        if (value := matrix["values"][i][j]) is not None
    ]


def _dyadic(data: Mapping[str, Any]) -> dict[str, Table]:
    cell = ("model", "partner", "value", "n", "ci95_low", "ci95_high")
    curves = [
        (event, model, curve) for event, models in data.get("survival", {}).items() for model, curve in models.items()
    ]
    factors = [
        [task, model, factor, *_estimate(estimate)]
        for task, models in data.get("factors", {}).items()
        for model, found in models.items()
        if model != "acted"
        for factor, estimate in found.items()
    ]
    windows = [
        [task, window, model, kind, *_estimate(estimate)]
        for task, by_window in data.get("windows", {}).items()
        for window, models in by_window.items()
        for model, found in models.items()
        for kind, estimate in found.items()
        if estimate is not None
    ]
    return {
        "dyad_scores": (("task", *cell), _matrices(data.get("matrices", {}))),
        "dyad_turn_taking": (("measure", *cell), _matrices(data.get("turn_taking", {}))),
        "dyad_variance": (
            ("of", "term", "eta2", "sd"),
            [
                [name, term, share, (found["sd"] or {}).get(term)]
                for family in data.get("variance", {}).values()
                for name, found in family.items()
                if "eta2" in found
                for term, share in found["eta2"].items()
            ],
        ),
        "dyad_times": (
            ("event", "model", "n", "events", "median_s", "median_of_events_s"),
            [
                [event, model, *(c[key] for key in ("n", "events", "median_s", "median_of_events_s"))]
                for event, model, c in curves
            ],
        ),
        "dyad_survival": (
            ("event", "model", "time_s", "survival", "low", "high"),
            [
                [event, model, *point]
                for event, model, c in curves
                for point in zip(c["times_s"], c["survival"], c["low"], c["high"], strict=True)
            ],
        ),
        "dyad_factors": (("task", "model", "factor", *ESTIMATE), factors),
        "dyad_balance": (
            ("task", *ESTIMATE, "of", "over"),
            [[task, *_estimate(found), found["of"], found["over"]] for task, found in data.get("balance", {}).items()],
        ),
        "dyad_profiles": (
            ("model", "figure", "value", "n", "ci95_low", "ci95_high"),
            [
                [model, name, found["value"], found["n"], *(data["profiles_ci95"][model].get(name) or (None, None))]
                for model, figures in data.get("profiles", {}).items()
                for name, found in figures.items()
            ],
        ),
        "dyad_ratings": (
            ("over", "model", "rating", "low", "high", "share", "n"),
            [
                [over, model, *(found[key] for key in ("rating", "low", "high", "share", "n"))]
                for over, models in data.get("ratings", {}).items()
                for model, found in models.items()
                if model != "reason"
            ],
        ),
        "dyad_windows": (("task", "window_s", "model", "of", *ESTIMATE), windows),
        "dyad_robustness": (
            ("threshold", "at", "measure", "tau"),
            [
                [threshold, at, measure, found["tau"]]
                for threshold, values in data.get("robustness", {}).items()
                for at, measures in values.items()
                for measure, found in measures.items()
            ],
        ),
    }
