"""The instruments come out right: what makes a number from the suite believable."""

from __future__ import annotations

import re

import pytest

from tests.inner import run

pytest_plugins = ["pytester"]

SIGNATURE = {
    "ACCEPT_OVERLAP": 0.0,
    "BACKCHANNEL": 0.0,
    "CONTINUE": 100.0,
    "INTERRUPT": 0.0,
    "LISTEN": 61.5,
    "NO_BACKCHANNEL": 100.0,
    "TAKE_TURN": 50.0,
    "YIELD": 0.0,
}


def test_a_turn_based_agent_gives_the_published_signature(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=turn_based", "--levels=L0")
    assert inner.status == pytest.ExitCode.TESTS_FAILED
    assert inner.counts["cases"] == 48
    assert inner.counts["error"] == inner.counts["missing"] == 0
    by_action = inner.by_action()
    assert by_action.pop("READBACK") == 0.0
    assert by_action == SIGNATURE
    matched = {role: cell["rate"] for role, cell in inner.summary["ifeval"]["matched_audio"].items()}
    assert matched == {"R1": 0.0, "R2": 0.5, "R3": 0.0}
    assert re.search(r"LISTEN +61\.5 \(8/13\)", inner.out)


def test_the_oracle_passes_every_case(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=oracle", "--levels=L0,L4b", "-n2")
    assert inner.status == pytest.ExitCode.OK
    assert inner.counts == {"cases": 78, "passed": 78, "failed": 0, "error": 0, "skipped": 0, "missing": 0}
    assert inner.summary["ifeval"]["not_exercised"] == 0


def test_the_contrarian_passes_none(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=contrarian", "--levels=L0", "-n2")
    assert inner.counts == {"cases": 48, "passed": 0, "failed": 48, "error": 0, "skipped": 0, "missing": 0}


def test_the_silent_agent_passes_by_silence_and_is_never_exercised(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=silent", "--levels=L0", "-n2")
    passing = {"LISTEN", "NO_BACKCHANNEL", "CONTINUE"}
    assert inner.by_action() == {action: 100.0 if action in passing else 0.0 for action in inner.by_action()}
    assert len(inner.by_action()) == 9
    assert inner.summary["ifeval"]["ias"]["exercised"]["overall"] == {
        "rate": None, "passed": 0, "n": 0, "clusters": 0, "ci95": None,
    }  # fmt: skip
    assert inner.summary["ifeval"]["not_exercised"] == 48


def test_a_babbler_has_no_latency_and_takes_no_turn(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=babbler", "--levels=L0", "--roles=R8", "--probes=C1,C2,R8_A,C3")
    rows = {row["probe"]: row for row in inner.rows()}
    for probe in ("C1", "C2", "R8_A_premise_offer_beat"):
        assert rows[probe]["outcome"] == "failed"
        assert rows[probe]["margin"] is None
        assert rows[probe]["measurements"]["genuine_s"] is None
        assert rows[probe]["measurements"]["speaking_at_start"]
    assert rows["C3"]["outcome"] == "passed"
