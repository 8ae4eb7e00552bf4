"""Intervals against SciPy and statsmodels, at their edges, and by how often they cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.stats import (
    Estimate,
    Sums,
    clustered_contrast,
    clustered_gap,
    clustered_mean,
    clustered_score,
    clustered_share,
    drawn_means,
    expanded,
    kendall_tau,
    percentiles,
    wilson,
)

properties = settings(deadline=None, max_examples=100)


@properties
@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys(n: int, share: float, level: float) -> None:
    from scipy.stats import binomtest

    k = round(share * n)
    found, theirs = wilson(k, n, level), binomtest(k, n).proportion_ci(level, "wilson")
    assert found.low is not None
    assert found.high is not None
    assert found.value == k / n
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert 0 <= found.low <= k / n <= found.high <= 1


def test_wilson_of_a_weighted_count_is_statsmodels() -> None:
    from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

    found = wilson(7.5, 20)
    assert (found.low, found.high) == pytest.approx(proportion_confint(7.5, 20, method="wilson"))


def test_wilson_at_the_edges() -> None:
    assert wilson(0, 0) == Estimate(None, None, None, 0)
    assert wilson(0, 10).low == 0.0
    assert wilson(10, 10).high == 1.0
    assert wilson(0, 10).high == pytest.approx(0.2775, abs=1e-4)


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (1, 0), (float("nan"), 3)])
def test_impossible_counts_are_refused(k: float, n: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        wilson(k, n)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_share(level: float) -> None:
    for ask in (
        lambda: wilson(1, 2, level),
        lambda: clustered_mean([1.0], ["x"], level=level),
        lambda: percentiles(np.arange(5.0), level),
    ):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            ask()


def test_a_mean_of_nothing_is_none() -> None:
    assert clustered_mean([], []).as_dict() == {"value": None, "low": None, "high": None, "n": 0}


def test_one_cluster_has_a_mean_and_no_interval() -> None:
    assert clustered_mean([1.0, 0.0], ["s", "s"]) == Estimate(0.5, None, None, 2)


@pytest.mark.parametrize("size", [2, 3])
def test_the_interval_of_a_few_clusters_is_all_that_was_seen(size: int) -> None:
    found = clustered_mean(
        [k / size for k in range(size) for _ in range(2)], [k for k in range(size) for _ in range(2)]
    )
    assert (found.low, found.high) == pytest.approx((0, (size - 1) / size))
    one, other = (Sums(np.array(values), np.ones(size)) for values in (np.arange(size) * 0.1, np.zeros(size)))
    gap = clustered_contrast((one, other), (1, -1))
    assert gap.low is not None


def test_percentiles_go_further_out_the_fewer_clusters_there_are() -> None:
    """Of many clusters as far as asked; of twenty as far as Student's t, and the variance of a sample, say."""
    assert expanded(0.95, 10_000) == pytest.approx(0.95, abs=1e-4)
    levels = [expanded(0.95, size) for size in (2, 5, 10, 20, 60, 240)]
    assert levels == sorted(levels, reverse=True)
    from scipy.stats import norm, t

    assert expanded(0.95, 20) == pytest.approx(1 - 2 * norm.cdf(t.ppf(0.025, 19) * (20 / 19) ** 0.5))


def test_values_and_clusters_go_together() -> None:
    with pytest.raises(ValueError, match="2 values, but 1 clusters"):
        clustered_mean([1.0, 0.0], ["s"])


def test_equal_values_do_not_tell_how_they_vary() -> None:
    assert clustered_mean([0.25] * 6, [1, 1, 2, 2, 3, 3]) == Estimate(0.25, None, None, 6)
    assert clustered_mean([0.1] * 30, list(range(30))).interval is None


def test_scores_that_are_yes_or_no_have_the_interval_of_a_share() -> None:
    clusters = [k // 2 for k in range(40)]
    assert clustered_score([0.0] * 40, clusters) == clustered_share([0.0] * 40, clusters)
    assert clustered_score([0.0] * 40, clusters).high > 0.1  # type: ignore[operator]
    graded = [k / 40 for k in range(40)]
    assert clustered_score(graded, clusters) == clustered_mean(graded, clusters)


def test_runs_of_one_scenario_are_not_independent() -> None:
    """Ten scenarios, all runs of one alike: as many runs as one likes make the interval no narrower."""
    once = clustered_mean([float(s % 2) for s in range(10)], list(range(10)))
    often = clustered_mean(
        [float(s % 2) for s in range(10) for _ in range(20)], [s for s in range(10) for _ in range(20)]
    )
    assert (once.low, once.high) == pytest.approx((often.low, often.high))
    free = clustered_mean([float(s % 2) for s in range(10) for _ in range(20)], list(range(200)))
    assert None not in (free.low, free.high, often.low, often.high)
    assert free.high - free.low < (often.high - often.low) / 3  # type: ignore[operator]


def test_equal_seeds_draw_equal_intervals() -> None:
    values, clusters = [0.1, 0.9, 0.4, 0.7], ["a", "b", "c", "d"]
    assert clustered_mean(values, clusters) == clustered_mean(values, clusters)
    assert clustered_mean(values, clusters, seed=1).low != clustered_mean(values, clusters, draws=17).low


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        centres = rng.normal(0.5, 0.2, 40)
        values = (centres[:, None] + rng.normal(0, 0.1, (40, 6))).ravel().tolist()
        found = clustered_mean(values, np.repeat(np.arange(40), 6).tolist(), draws=400)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.5 <= found.high
    assert 180 <= hits <= 199


def test_means_are_drawn_group_by_group() -> None:
    drawn = drawn_means([[0.0, 1.0] * 50, [5.0]], draws=500)
    assert drawn.shape == (500, 2)
    assert (drawn[:, 1] == 5).all()
    assert drawn[:, 0].mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[:, 0].std() == pytest.approx(0.05, abs=0.01)
    with pytest.raises(ValueError, match="group 1 is empty"):
        drawn_means([[1.0], []])


orders = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9)


@properties
@given(orders)
def test_kendalls_tau_is_scipys_ties_and_all(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import kendalltau

    one, other = ([float(pair[k]) for pair in pairs] for k in (0, 1))
    found = kendall_tau(one, other)
    if len(set(one)) < 2 or len(set(other)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(kendalltau(one, other).statistic)


# Shares and gaps by cluster


def test_a_share_with_one_outcome_a_cluster_is_wilsons() -> None:
    found = clustered_share([1.0, 0.0, 1.0] * 20, list(range(60)))
    assert (found, found.method, found.clusters) == (wilson(40, 60), "wilson", 60)


def test_a_share_of_nothing_and_of_one_cluster() -> None:
    assert clustered_share([], []) == Estimate(None, None, None, 0)
    assert clustered_share([1.0, 0.0], ["a", "a"]) == Estimate(0.5, None, None, 2)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_of_all_or_none_still_has_a_width(value: float) -> None:
    """Forty passes in ten conversations are as sure as ten, not as forty, and not beyond doubt."""
    found = clustered_share([value] * 40, [k // 4 for k in range(40)])
    assert found.method == "design effect"
    assert None not in (found.low, found.high)
    assert value in (found.low, found.high)
    one, ten = wilson(round(40 * value), 40), wilson(round(10 * value), 10)
    assert one.high - one.low < ten.high - ten.low <= found.high - found.low < 0.4  # type: ignore[operator]


def test_which_interval_a_share_has() -> None:
    clusters = [k // 2 for k in range(80)]
    often = [float(k % 4 < 2) for k in range(80)]
    rarely = [float(k < 10) for k in range(80)]
    assert clustered_share(often, clusters).method == "bootstrap"
    assert clustered_share(rarely, clusters).method == "design effect"
    assert clustered_share(often, clusters) == clustered_share(often, clusters)
    assert clustered_share(often, clusters).interval == clustered_mean(often, clusters).interval


def test_a_gap_needs_both_sides_and_aligned_clusters() -> None:
    one = Sums.of([1.0, 0.0], ["a", "b"], ["a", "b"])
    assert clustered_gap(one, Sums(np.zeros(2), np.zeros(2))) == Estimate(None, None, None, 2)
    with pytest.raises(ValueError, match="sides of 2, 1 clusters; align them"):
        clustered_gap(one, Sums.of([1.0], ["a"]))
    with pytest.raises(ValueError, match="2 values, but 1 clusters"):
        Sums.of([1.0, 0.0], ["a"])


def test_a_gap_between_equals_is_not_beyond_doubt() -> None:
    side = Sums(np.ones(30), np.ones(30))
    found = clustered_gap(side, side)
    assert (found.value, found.n, found.method) == (0.0, 60, "adjusted")
    assert found.low == pytest.approx(-found.high)  # type: ignore[operator]
    assert 0.05 < found.high < 0.12  # type: ignore[operator]


def test_a_contrast_of_gaps() -> None:
    """How a gap has moved between two runs: (0.6 - 0.4) - (0.5 - 0.5)."""
    count = np.ones(60)
    levels = [Sums((np.arange(60) < 60 * rate).astype(float), count) for rate in (0.6, 0.4, 0.5, 0.5)]
    found = clustered_contrast(levels, (1, -1, -1, 1))
    assert found.value == pytest.approx(0.2)
    assert found.low < 0.2 < found.high  # type: ignore[operator]
    assert found == clustered_contrast(levels, (1, -1, -1, 1))


def test_a_gap_stays_within_what_an_outcome_can_be() -> None:
    found = clustered_gap(Sums(np.full(30, 100.0), np.ones(30)), Sums(np.zeros(30), np.ones(30)), scale=100)
    assert (found.value, found.high, found.method) == (100, 100, "adjusted")
    assert 70 < found.low < 90  # type: ignore[operator]


@properties
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_an_interval_holds_its_estimate(table: list[tuple[int, int, int]]) -> None:
    values = np.array([[min(a, n), min(b, n), n] for a, b, n in table], float)
    one, other = Sums(values[:, 0], values[:, 2]), Sums(values[:, 1], values[:, 2])
    found = clustered_gap(one, other, draws=50)
    if found.low is not None and found.value is not None and found.method == "adjusted":
        assert -1 <= found.low <= found.value <= found.high <= 1  # type: ignore[operator]
    assert (found.value is None) == (not values[:, 2].any())
