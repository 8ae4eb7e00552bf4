"""Tiers: how much of the pack, and that nothing is left out of the smallest."""

from __future__ import annotations

from collections import Counter

import pytest

from dsbeval.ifeval.pack import LEVELS, load_pack
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.tiers import tier_of
from tests.inner import run

pytest_plugins = ["pytester"]

PACK = load_pack()
WHOLE = list(PACK.cases.values())


def test_smoke_has_every_action_at_every_level_it_is_at() -> None:
    smoke = tier_of(WHOLE, "smoke")
    assert len(smoke) == len({case.id for case in smoke}) == 96
    strata = Counter((case.action, case.level) for case in smoke)
    assert set(strata) == {(case.action, case.level) for case in WHOLE}
    assert len(strata) == 48
    assert {case.action for case in smoke} == set(Action)
    assert {case.level for case in smoke} == set(LEVELS)
    assert {case.role for case in smoke} == set(PACK.roles)
    assert [stratum for stratum, n in strata.items() if n < 2] == [(Action.CONTINUE, "L0")]  # there is but one
    assert min(Counter(case.action for case in smoke).values()) >= 9
    assert len({case.conversation_id for case in smoke}) > 85


def test_core_has_every_cell_twice_at_every_level() -> None:
    core = tier_of(WHOLE, "core")
    assert len(core) == 444
    cells = Counter((case.role, case.probe, case.level) for case in core)
    assert {cells[case.role, case.probe, case.level] for case in core if case.level not in ("L0",)} == {2}
    assert len({case.conversation_id for case in core}) == 96


def test_full_is_all_and_the_order_is_the_packs() -> None:
    assert tier_of(WHOLE, "full") == WHOLE
    for tier in ("smoke", "core"):
        chosen = tier_of(WHOLE, tier)
        assert chosen == [case for case in WHOLE if case in chosen]
        assert tier_of(reversed(WHOLE), tier) == chosen[::-1]  # whatever the order, the same cases
    with pytest.raises(ValueError, match="'huge' is not one of smoke, core, full"):
        tier_of(WHOLE, "huge")


def test_a_small_pack_is_taken_whole() -> None:
    assert tier_of(WHOLE[:40], "smoke") == WHOLE[:40]


def test_the_option_collects_the_tier(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=oracle", "--tier=smoke", "--levels=L1,L2", "--collect-only", "-q")
    smoke = [case.id for case in tier_of(WHOLE, "smoke") if case.level in ("L1", "L2")]
    assert [line.partition("[")[2].rstrip("]") for line in inner.out.splitlines() if "::" in line] == smoke
