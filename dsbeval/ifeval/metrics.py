"""Metrics of DSB-IFEval over result rows: IAS, effects of the prompt, tables by action and role.

Conventions
-----------
* A rate counts rows with a verdict (passed or failed) and nothing else: errors, skips and missing cases have no part
  in it and are counted apart. A rate over nothing is None, never 0.
* Rates and effects are fractions, unrounded.
* Intervals are 95 %, by conversation (:mod:`dsbeval.stats`): the cases of a conversation share a recording of the user. The
  two levels of an effect are drawn together. Its p is McNemar's exact test over the pairs of cases that differ by the level
  alone, with a conversation as the unit where it has several pairs; p-values of roles and of actions are Holm's.
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

from dsbeval import paired
from dsbeval.caveats import tally
from dsbeval.ifeval import trials
from dsbeval.ifeval.pack import LEVELS
from dsbeval.ifeval.schema import REACTIVE, Action
from dsbeval.results import OUTCOMES, Row
from dsbeval.stats import Sums, clustered_gap, clustered_share

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


def conversation(row: Row) -> str:
    """Return the conversation behind a row: its id without the level (and the trial)."""
    return str(row["id"]).rpartition("-")[0]


def rate(rows: Sequence[Row]) -> dict[str, Any]:
    """Return ``{"rate", "passed", "n", "clusters", "ci95"}`` of rows with a verdict; the rate of none is None."""
    passed = sum(bool(row["passed"]) for row in rows)
    found = clustered_share([float(row["passed"]) for row in rows], [conversation(row) for row in rows])
    return {
        "rate": passed / len(rows) if rows else None,
        "passed": passed,
        "n": len(rows),
        "clusters": found.clusters,
        "ci95": found.interval,
    }


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


def gap(rows: Sequence[Row], effect: str) -> dict[str, Any]:
    """Return an effect of rows with its interval, the pairs of cases that gained and lost by it, and p.

    ``{"gap", "n": [n, n], "clusters", "ci95", "pairs", "gained", "lost", "p"}``: *gained* pairs passed at the first level of
    the effect only.
    """
    levels = EFFECTS[effect]
    order = list(dict.fromkeys(conversation(row) for row in rows if row["level"] in levels))
    sides = [_sums([row for row in rows if row["level"] == level], order) for level in levels]
    found = clustered_gap(*sides)
    pairs = _pairs(rows, levels)
    moved = Counter(int(one) - int(other) for _, one, other in pairs)
    unit = Sums.of([float(one) - float(other) for _, one, other in pairs], [name for name, _, _ in pairs])
    return {
        "gap": found.value,
        "n": [side.n for side in sides],
        "clusters": found.clusters,
        "ci95": found.interval,
        "pairs": len(pairs),
        "gained": moved[1],
        "lost": moved[-1],
        "p": paired.sign_flip(unit.total) if pairs else None,
    }


def _sums(rows: Sequence[Row], order: Sequence[str]) -> Sums:
    return Sums.of([float(row["passed"]) for row in rows], [conversation(row) for row in rows], order)


def _pairs(rows: Sequence[Row], levels: tuple[str, str]) -> list[tuple[str, bool, bool]]:
    """Return conversation and both verdicts of each pair of cases that differ by the level alone."""
    sides: tuple[dict[str, Row], dict[str, Row]] = ({}, {})
    for row in rows:
        if row["level"] in levels:
            head, _, tail = str(row["id"]).rpartition("-")
            sides[levels.index(row["level"])][head + tail.removeprefix(row["level"])] = row
    return [
        (conversation(row), bool(row["passed"]), bool(sides[1][name]["passed"]))
        for name, row in sides[0].items()
        if name in sides[1]
    ]


def tested(rows: Sequence[Row]) -> dict[str, Any]:
    """Return interval and p of the three effects, as :func:`summarise` puts them beside the effects."""
    found = {name: gap(rows, name) for name in EFFECTS}
    return {
        field: {name: cell[field] for name, cell in found.items()} for field in ("ci95", "pairs", "gained", "lost", "p")
    }


def gap_family(rows: Sequence[Row], field: str, order: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the Entailment Gap by role or action; ``p_holm`` is adjusted over those that have pairs."""
    out = {key: gap([row for row in rows if row[field] == key], "entailment_gap") for key in order}
    out = {key: cell for key, cell in out.items() if sum(cell["n"])}
    with_pairs = [key for key, cell in out.items() if cell["p"] is not None]
    adjusted = dict(zip(with_pairs, paired.holm([out[key]["p"] for key in with_pairs]), strict=True))
    return {key: cell | {"p_holm": adjusted.get(key)} for key, cell in out.items()}


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
            "effects": {
                name: effects(table) | tested([row for row in judged if SUBSETS[name](row)])
                for name, table in tables.items()
            },
            "by_action": _by(judged, "action", sorted(Action)),
            "by_role_gap": gaps,
            "by_role_gap_n": gap_counts,
            "gaps": {
                "by_role": gap_family(judged, "role", roles),
                "by_action": gap_family(judged, "action", sorted(Action)),
            },
            "by_role": _by(judged, "role", roles),
            "by_probe": _by(judged, "probe", dict.fromkeys(str(row["probe"]) for row in judged)),
            "matched_audio": _by(matched, "role", roles),
            "enacted": rate([row | {"passed": row["enacted"]} for row in judged if "enacted" in row]),
            **({"trials": again} if (again := trials.summarise(judged, trials.trials_in(cases))) else {}),
            "borderline": sum(bool(row["borderline"]) for row in judged),
            "not_exercised": sum(not row["exercised"] for row in judged),
        },
        **({"realtime": clocked} if (clocked := realtime(judged)) else {}),
        **({"caveats": told} if (told := tally(judged, str(fingerprint.get("agent")))) else {}),
        "errors": [{"id": row["id"], "message": row["message"]} for row in floor if row["outcome"] == "error"],
        "skipped": [{"id": row["id"], "message": row["message"]} for row in floor if row["outcome"] == "skipped"],
        "missing": sorted(set(cases) - {str(row["id"]) for row in floor}),
    }
