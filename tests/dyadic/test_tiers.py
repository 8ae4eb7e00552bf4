"""Tiers of conversations between two agents: every task in the smallest, and what ``--tier`` and ``--trials`` say."""

from __future__ import annotations

from collections import Counter

import pytest

from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.tiers import tier_of
from dsbeval.ifeval.tiers import TIERS
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

DYADIC = ROOT / "cases" / "dyadic"


def test_every_tier_has_every_task_and_holds_the_one_before() -> None:
    scenarios = load_scenarios().of()
    found = {tier: tier_of(scenarios, tier) for tier in TIERS}
    counts = {tier: set(Counter(one.archetype for one in found[tier]).values()) for tier in TIERS}
    assert counts == {"smoke": {2}, "core": {7}, "full": {20}}
    assert {one.archetype for one in found["smoke"]} == {one.archetype for one in scenarios}
    ids = [{one.id for one in found[tier]} for tier in TIERS]
    assert ids[0] < ids[1] < ids[2]
    with pytest.raises(ValueError, match="'huge' is not one of smoke, core, full"):
        tier_of(scenarios, "huge")


def test_the_option_collects_the_tier(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=achiever", "--tier=smoke", "--repeats=1", "--collect-only", "-q", target=DYADIC)
    names = [line.partition("[")[2].rstrip("]") for line in inner.out.splitlines() if "::" in line]
    assert len(names) == 7 * 2 * 2  # tasks, scenarios, openers
    assert {"-".join(name.split("-")[1:-3]) for name in names} == {
        one.id for one in tier_of(load_scenarios().of(), "smoke")
    }


def test_trials_of_conversations_are_refused_in_one_line(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=achiever", "--trials=3", target=DYADIC)
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    assert "--trials: is for cases/ifeval; conversations of two agents are repeated by --repeats 3" in inner.err
    assert "Traceback" not in inner.err
    assert not inner.run_dir.exists()
