"""Metrics of DSB-IFEval over result rows: IAS, effects of the prompt, tables by action and role.

Conventions
-----------
* A rate counts rows with a verdict (passed or failed) and nothing else: errors, skips and missing cases have no part
  in it and are counted apart. A rate over nothing is None, never 0.
* Rates and effects are fractions, unrounded.
* *all* counts every cell, *reactive* the 31 cells of the published headline (LISTEN, TAKE_TURN, YIELD, READBACK),
  *exercised* the cases in which the agent could have failed or passed by what it did.

Metrics
-------
* IAS(level) = mean pass rate.
* Entailment Gap = IAS(L1) - IAS(L2): what inferring costs. Redundancy Gain = IAS(L3) - IAS(L2). Role Tax = IAS(L3) -
  IAS(L1).
* enacted = share of the L4a cases whose floor behaviour was the action that the contradiction asks for, so that a
  directive followed in words but not on the floor is seen (IAS at L4a is against the base action, as published).
* Gap of a role, over all six of its cells; IAS by base action; IAS by role on the recordings that R1, R2 and R3 share.

Source: DSB-IFEval, metrics section; the reactive cells follow from its tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dsbeval.ifeval.pack import LEVELS
from dsbeval.ifeval.schema import REACTIVE, Action
from dsbeval.results import OUTCOMES, Row

SUBSETS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,  # noqa: ARG005
    "reactive": lambda row: row["action"] in REACTIVE,
    "exercised": lambda row: bool(row["exercised"]),
}

EFFECTS = {"entailment_gap": ("L1", "L2"), "redundancy_gain": ("L3", "L2"), "role_tax": ("L3", "L1")}


def validate(rows: Iterable[Row]) -> None:
    """Raise ValueError for a row that no run writes."""
    for row in rows:
        if row.get("outcome") not in OUTCOMES:
            raise ValueError(f"row {row.get('id')}: outcome {row.get('outcome')!r} is not one of {', '.join(OUTCOMES)}")


def scored(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have a verdict."""
    return [row for row in rows if row["outcome"] in ("passed", "failed")]


def rate(rows: Sequence[Row]) -> dict[str, Any]:
    """Return ``{"rate", "passed", "n"}`` of rows with a verdict; the rate of none is None."""
    passed = sum(bool(row["passed"]) for row in rows)
    return {"rate": passed / len(rows) if rows else None, "passed": passed, "n": len(rows)}


def ias(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the pass rate at each level and over all of them."""
    out = {level: rate([row for row in rows if row["level"] == level]) for level in LEVELS}
    return out | {"overall": rate(rows)}


def effects(by_level: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the three effects of a table of :func:`ias`, each with the two n behind it; None where a level has no cases."""
    out: dict[str, Any] = {}
    counts: dict[str, list[int]] = {}
    for name, (plus, minus) in EFFECTS.items():
        one, other = by_level[plus]["rate"], by_level[minus]["rate"]
        out[name] = None if one is None or other is None else one - other
        counts[name] = [by_level[plus]["n"], by_level[minus]["n"]]
    return out | {"n": counts}


def _by(rows: Sequence[Row], field: str, order: Iterable[str]) -> dict[str, dict[str, Any]]:
    return {key: found for key in order if (found := rate([row for row in rows if row[field] == key]))["n"]}


def _role_gaps(rows: Sequence[Row], roles: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    gaps: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for role in roles:
        effect = effects(ias([row for row in rows if row["role"] == role]))
        gaps[role], counts[role] = effect["entailment_gap"], effect["n"]["entailment_gap"]
    return gaps, counts


def realtime(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return how the agent stood against real time, where that was measured: factors, the largest lag, cases behind.

    On the wall clock it is the jitter of the frames that were sent. None where neither was measured.
    """
    found = [row["realtime"] for row in rows if "realtime" in row]
    measured = [facts for facts in found if facts["latency"] == "measured"]
    if measured:
        return {
            "latency": "measured",
            "n": len(measured),
            "rtf_mean": sum(facts["rtf_mean"] for facts in measured) / len(measured),
            "rtf_p95_max": max(facts["rtf_p95"] for facts in measured),
            "max_lag_s": max(facts["max_lag_s"] for facts in measured),
            "behind": sum(not facts["holds_real_time"] for facts in measured),
        }
    if found:
        return {
            "latency": "wall",
            "n": len(found),
            "jitter_ms_p99_max": max(facts["jitter_ms"]["p99"] for facts in found),
            "jitter_ms_max": max(facts["jitter_ms"]["max"] for facts in found),
        }
    return None


def counts(rows: Sequence[Row], cases: Iterable[str]) -> dict[str, int]:
    """Return how many cases there were and what became of them; missing: no row at all."""
    wanted = set(cases)
    found = Counter(str(row["outcome"]) for row in rows if row["id"] in wanted)
    out = {"cases": len(wanted), **{outcome: found[outcome] for outcome in OUTCOMES}}
    return out | {"missing": len(wanted - {row["id"] for row in rows})}


def summarise(rows: Sequence[Row], cases: Sequence[str], fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of a run (``report/summary.json``, described in docs/results.md)."""
    validate(rows)
    floor = [row for row in rows if row["item"] == "floor"]
    judged = scored(floor)
    roles = sorted({str(row["role"]) for row in judged}, key=lambda role: (len(role), role))
    tables = {name: ias([row for row in judged if keep(row)]) for name, keep in SUBSETS.items()}
    gaps, gap_counts = _role_gaps(judged, roles)
    matched = [row for row in judged if row["matched"]]
    return {
        "schema": 1,
        "fingerprint": dict(fingerprint),
        "counts": counts(floor, cases),
        "ifeval": {
            "ias": tables,
            "effects": {name: effects(table) for name, table in tables.items()},
            "by_action": _by(judged, "action", sorted(Action)),
            "by_role_gap": gaps,
            "by_role_gap_n": gap_counts,
            "by_role": _by(judged, "role", roles),
            "by_probe": _by(judged, "probe", dict.fromkeys(str(row["probe"]) for row in judged)),
            "matched_audio": _by(matched, "role", roles),
            "enacted": rate([{"passed": row["enacted"]} for row in judged if "enacted" in row]),
            "borderline": sum(bool(row["borderline"]) for row in judged),
            "not_exercised": sum(not row["exercised"] for row in judged),
        },
        **({"realtime": clocked} if (clocked := realtime(judged)) else {}),
        "errors": [{"id": row["id"], "message": row["message"]} for row in floor if row["outcome"] == "error"],
        "skipped": [{"id": row["id"], "message": row["message"]} for row in floor if row["outcome"] == "skipped"],
        "missing": sorted(set(cases) - {str(row["id"]) for row in floor}),
    }
