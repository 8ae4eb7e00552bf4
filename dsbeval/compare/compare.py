"""The comparison of two runs: each metric's change with interval and test, the cases that flipped, the margins that moved.

Conventions
-----------
* Only what both runs have is compared: rows of one id and item that have a verdict on both sides (a conversation of two
  agents: that was measured). What is on one side only is counted and has no part in a figure.
* A change is *new* minus *base*. Its interval is a bootstrap over conversations in which both runs are drawn together, its p is
  the exact test of :mod:`dsbeval.paired`, with a conversation as the unit; ``p_holm`` is adjusted within the family.
* The verdict is *better* or *worse* where the adjusted p is below alpha and the metric has a better direction, *changed* where
  it has none, else *no evidence*: which does not say that nothing has changed.
* Shares, and values that are shares, are fractions, PAS is 0 to 100, margins are seconds (READBACK: a share).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dsbeval import paired
from dsbeval.compare.alike import check_alike, shown, unlike
from dsbeval.compare.metrics import Metric, cluster, metrics_of
from dsbeval.compare.side import Side
from dsbeval.results import Row
from dsbeval.stats import Estimate, Sums, clustered_contrast
from dsbeval.vad import OFFSET_ERROR_S

SCHEMA = 1
ALPHA = 0.05
VERDICTS = ("better", "worse", "changed", "no evidence")
SCALE = {"points": 1.0, "PAS": 100.0}
"""The largest value that one outcome can have, where there is one."""

Pair = tuple[Row, Row]


@dataclass(frozen=True, slots=True)
class Change:
    """How a metric has changed from one run to another."""

    name: str
    title: str
    family: str
    direction: int
    unit: str
    base: float | None
    new: float | None
    n_base: int
    n_new: int
    clusters: int
    delta: float | None
    ci95: list[float] | None
    p: float | None
    p_holm: float | None = None
    verdict: str = "no evidence"

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``compare --json`` prints it."""
        return asdict(self)


def pairs_of(base: Side, new: Side) -> list[Pair]:
    """Return the rows that both sides have, in the order of the base."""
    other = {(row["id"], row["item"]): row for row in new.rows}
    found = ((row, other[key]) for row in base.rows if (key := (row["id"], row["item"])) in other)
    return [(one, two) for one, two in found if _counts(one) and _counts(two) and one.get("judge") == two.get("judge")]


def _counts(row: Row) -> bool:
    return "scores" in row if row["item"] == "dyad" else "passed" in row


def sums_of(metric: Metric, pairs: Sequence[Pair]) -> list[Sums]:
    """Return the aligned sums of a metric: of the new run, of the base; for an effect what is subtracted, likewise."""
    own = [pair for pair in pairs if pair[0]["item"] == metric.item]
    order = list(dict.fromkeys(cluster(row) for row, _ in own))
    out = []
    for value in metric.values:
        for k in (1, 0):
            known = [(found, cluster(pair[k])) for pair in own if (found := value(pair[k])) is not None]
            out.append(Sums.of([found for found, _ in known], [name for _, name in known], order))
    return out


def p_of(sums: Sequence[Sums], alternative: paired.Alternative = "two-sided") -> float:
    """Return the p of a change, from :func:`sums_of`."""
    if len(sums) == 2:
        return paired.swap(sums[0], sums[1], alternative)
    new, base, new_minus, base_minus = sums
    n, n_minus = new.n, new_minus.n
    if n == n_minus:  # whole numbers stay whole, and the test exact
        return paired.sign_flip(new.total - base.total - new_minus.total + base_minus.total, alternative)
    return paired.sign_flip((new.total - base.total) / n - (new_minus.total - base_minus.total) / n_minus, alternative)


def change(metric: Metric, sums: Sequence[Sums]) -> Change:
    """Return the change of a metric, not yet judged."""
    empty = any(not side.n for side in sums)
    signs = (1, -1, -1, 1)[: len(sums)]
    found = Estimate(None, None, None, 0)
    if not empty:
        found = clustered_contrast(sums, signs, scale=SCALE.get(metric.unit))
    means = [side.mean for side in sums]
    values = [
        None if empty else sum(s * (m or 0.0) for s, m in zip((1, -1), means[k::2], strict=False)) for k in (1, 0)
    ]
    return Change(
        metric.name, metric.title, metric.family, metric.direction, metric.unit,
        values[0], values[1], sum(s.n for s in sums[1::2]), sum(s.n for s in sums[::2]),
        found.clusters, found.value, found.interval, None if empty else p_of(sums),
    )  # fmt: skip


def judge(changes: Sequence[Change], alpha: float = ALPHA) -> list[Change]:
    """Return changes with p adjusted in their families, and verdicts."""
    out: dict[str, Change] = {}
    for family in dict.fromkeys(one.family for one in changes):
        members = [one for one in changes if one.family == family and one.p is not None]
        for one, p in zip(members, paired.holm([one.p or 0.0 for one in members]), strict=True):
            out[one.name] = Change(**{**asdict(one), "p_holm": p, "verdict": _verdict(one, p, alpha)})
    return [out.get(one.name, one) for one in changes]


def _verdict(one: Change, p: float, alpha: float) -> str:
    if p >= alpha or not one.delta:
        return "no evidence"
    if not one.direction:
        return "changed"
    return "better" if one.delta * one.direction > 0 else "worse"


# Cases


def flips(pairs: Sequence[Pair]) -> dict[str, list[dict[str, Any]]]:
    """Return the cases that passed in one run and failed in the other, both ways, with their margins."""
    out: dict[str, list[dict[str, Any]]] = {"to_fail": [], "to_pass": []}
    for base, new in pairs:
        outcomes = (base["outcome"], new["outcome"])
        way = {("passed", "failed"): "to_fail", ("failed", "passed"): "to_pass"}.get(outcomes)
        if way is not None:
            out[way].append(
                {
                    "id": base["id"], "item": base["item"], "action": base.get("action", base.get("task")),
                    "margin_base": base.get("margin"), "margin_new": new.get("margin"), "unit": base.get("margin_unit"),
                }
            )  # fmt: skip
    return out


def moved(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return the margins in seconds that have moved by more than the error of a detected edge, the furthest first."""
    found = []
    for base, new in pairs:
        units = {base.get("margin_unit"), new.get("margin_unit")}
        one, other = base.get("margin"), new.get("margin")
        if units == {"s"} and one is not None and other is not None and abs(other - one) > OFFSET_ERROR_S:
            found.append(
                {"id": base["id"], "action": base["action"], "base": one, "new": other, "delta": round(other - one, 4)}
            )
    return sorted(found, key=lambda entry: (-abs(entry["delta"]), entry["id"]))


# The whole


def compare(base: Side, new: Side, *, allow_unlike: bool = False, alpha: float = ALPHA) -> dict[str, Any]:
    """Return the comparison of two runs as plain data (``dsbeval compare --json``, described in docs/gate.md).

    Raises :class:`~dsbeval.errors.RunError`, which names the difference, where the runs are unlike and that is not allowed.
    """
    if not allow_unlike:
        check_alike(base.fingerprint, new.fingerprint, (base.label, new.label))
    pairs = pairs_of(base, new)
    metrics = metrics_of([row for pair in pairs for row in pair])
    measured = [(metric, sums_of(metric, pairs)) for metric in metrics]
    changes = judge([change(metric, sums) for metric, sums in measured if any(side.n for side in sums)], alpha)
    return {
        "schema": SCHEMA,
        "alpha": alpha,
        "base": told(base),
        "new": told(new),
        "unlike": unlike(base.fingerprint, new.fingerprint),
        "differs": shown(base.fingerprint, new.fingerprint),
        "pairs": _pair_counts(base, new, pairs),
        "metrics": [one.as_dict() for one in changes],
        "flips": flips(pairs),
        "margins_moved": moved(pairs),
    }


def told(side: Side) -> dict[str, Any]:
    """Return what a comparison says about a side: who it is, and what became of its items."""
    items: dict[str, dict[str, int]] = {}
    for row in side.rows:
        counts = items.setdefault(row["item"], {"passed": 0, "failed": 0, "error": 0, "skipped": 0})
        counts[row["outcome"]] += 1
    return {
        "label": side.label,
        **{key: side.fingerprint.get(key) for key in ("agent", "agent_args", "checkpoint", "device", "seed")},
        "cases": len(side.cases),
        "missing": len(set(side.cases) - {row["id"] for row in side.rows}),
        "items": items,
    }


def _pair_counts(base: Side, new: Side, pairs: Sequence[Pair]) -> dict[str, int]:
    both = {(row["id"], row["item"]) for row, _ in pairs}
    counted = [{(row["id"], row["item"]) for row in side.rows if _counts(row)} for side in (base, new)]
    return {"both": len(both), "base_only": len(counted[0] - both), "new_only": len(counted[1] - both)}


def by_action(found: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many flips there are of each action, most first."""
    counts: dict[str, int] = {}
    for entry in found:
        counts[str(entry["action"])] = counts.get(str(entry["action"]), 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
