"""Trials of a case: the same case again with another seed, and what the spread of its verdicts says.

Conventions
-----------
* The first trial has the case's own id, so that a run of one trial can be resumed with more, and compared with a run of more.
  Others are called ``ID~t2``, ``ID~t3``, ...; a trial is an item of its own, with a recording of its own.
* Seeds are derived from the run's seed, the conversation and the trial: in one trial the levels of a conversation share a seed.
  What the user says, and the room it is said in, are the same in all.
* Only cases with a verdict in every trial are counted here; the rates of a summary count every verdict.

Metrics
-------
* pass@1: the mean share of passes. pass^k: the chance that k trials of a case all pass; pass@k: that at least one does. Both are
  unbiased for k up to the number of trials: of c passes in K, C(c, k) / C(K, k) and 1 - C(K - c, k) / C(K, k).
* *within*: the mean variance of a verdict between the trials of a case; *between*: the variance of the cases' chances of passing.
* Trials for a precision: how many give IAS over these very cases an interval of plus or minus so much. More trials do
  nothing for the question what IAS would be over other conversations: its interval stays wider than ``limit``.

Source: pass^k as in tau-bench (arXiv 2406.12045), pass@k as in Codex (arXiv 2107.03374).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsbeval.results import Row

_TRIAL = re.compile(r"~t([1-9]\d*)$")
PRECISIONS = (0.01, 0.02, 0.03)
Z95 = 1.959964


def trial_id(case: str, trial: int) -> str:
    """Return the id of a trial of a case, counted from 1."""
    return case if trial == 1 else f"{case}~t{trial}"


def split_trial(name: str) -> tuple[str, int]:
    """Return the id of the case and the number of the trial."""
    found = _TRIAL.search(name)
    return (name, 1) if found is None else (name[: found.start()], int(found[1]))


def trials_in(names: Iterable[str]) -> int:
    """Return how many trials the ids of a run go up to."""
    return max((split_trial(name)[1] for name in names), default=1)


def summarise(rows: Sequence[Row], trials: int) -> dict[str, Any] | None:
    """Return the block of a summary about trials, from rows with a verdict; None for a run of one trial.

    Rates are fractions. ``trials_for`` gives, by half the width of the interval, how many trials are needed.
    """
    from dsbeval.stats import clustered_share

    if trials < 2:
        return None
    passes: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        passes[split_trial(str(row["id"]))[0]].append(bool(row["passed"]))
    whole = {case: sum(found) for case, found in passes.items() if len(found) == trials}
    out: dict[str, Any] = {"trials": trials, "cases": len(whole), "incomplete": len(passes) - len(whole)}
    if not whole:
        return out
    clusters = [case.rpartition("-")[0] for case in whole]
    counts = list(whole.values())

    def mean(values: Sequence[float]) -> dict[str, Any]:
        found = clustered_share(values, clusters)  # of chances between 0 and 1 it is wide rather than narrow
        return {"rate": found.value, "n": found.n, "clusters": len(set(clusters)), "ci95": found.interval}

    ks = range(1, trials + 1)
    all_pass = {str(k): mean([math.comb(c, k) / math.comb(trials, k) for c in counts]) for k in ks}
    one_passes = {str(k): mean([1 - math.comb(trials - c, k) / math.comb(trials, k) for c in counts]) for k in ks}
    within = sum(c * (trials - c) for c in counts) / (len(counts) * trials * (trials - 1))
    rates = [c / trials for c in counts]
    mean_rate = sum(rates) / len(rates)
    spread = sum((rate - mean_rate) ** 2 for rate in rates) / (len(rates) - 1) if len(rates) > 1 else 0.0
    return {
        **out,
        "pass_at_1": all_pass["1"],
        "pass_hat_k": all_pass,
        "pass_at_k": one_passes,
        "alike": sum(c in (0, trials) for c in counts) / len(counts),
        "within": within,
        "between": max(0.0, spread - within / trials),
        "trials_for": {f"{half:g}": trials_for(within, len(counts), half) for half in PRECISIONS},
        "limit": _limit(rates, clusters, within, trials),
    }


def trials_for(within: float, cases: int, half: float) -> int:
    """Return how many trials of each of so many cases give their mean an interval of plus or minus ``half``."""
    if half <= 0 or cases < 1:
        raise ValueError(f"half {half} and cases {cases} must be positive")
    return max(1, math.ceil(round(Z95**2 * within / (cases * half**2), 9)))


def _limit(rates: Sequence[float], clusters: Sequence[str], within: float, trials: int) -> float | None:
    """Return the half width, over other conversations of the same kind, that no number of trials goes below."""
    from dsbeval.stats import Sums

    sums = Sums.of(rates, clusters)
    size = len(sums.count)
    if size < 2:
        return None
    residual = sums.total - (sums.mean or 0.0) * sums.count
    variance = size / (size - 1) * float(residual @ residual) / sums.n**2
    return Z95 * math.sqrt(max(0.0, variance - within / (trials * len(rates))))
