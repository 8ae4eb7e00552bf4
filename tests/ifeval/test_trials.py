"""Trials: ids and seeds, pass^k by hand and by drawing, what a precision needs, and a real run of them."""

from __future__ import annotations

import itertools
import json
import textwrap
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from dsbeval.cli import main
from dsbeval.ifeval.episode import case_seed, room_seed
from dsbeval.ifeval.pack import each_trial, load_pack
from dsbeval.ifeval.trials import split_trial, summarise, trial_id, trials_for, trials_in
from reports.trials import trial_lines
from tests.compare.runs import cases, floor
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

Row = dict[str, Any]
SCHEMA = ROOT / "docs" / "summary.schema.json"
PACK = load_pack()
CASES = cases(levels=["L1"])


def rows(passes: dict[int, str], trials: int | None = None) -> list[Row]:
    """Return rows of the first cases: of each, the verdicts of its trials as a string of + and -."""
    return [
        floor(again, mark == "+")
        for index, marks in passes.items()
        for again, mark in zip(each_trial(PACK, [CASES[index]], len(marks)), marks, strict=True)
        if mark in "+-"
    ]


def test_the_first_trial_is_the_case_itself() -> None:
    case = CASES[0]
    assert [one.id for one in each_trial(PACK, [case], 3)] == [case.id, f"{case.id}~t2", f"{case.id}~t3"]
    assert PACK.case(case.id) is case
    again = PACK.case(f"{case.id}~t2")
    assert again is not None
    assert (again.trial, again.conversation_id, again.level) == (2, case.conversation_id, case.level)
    assert PACK.prompt(again) == PACK.prompt(case)
    assert PACK.case("IFD-R9-C1-i1-L1") is PACK.case("IFD-R1-C1-i1-L1~t") is PACK.case("IFD-R1-C1-i1-L1~t0") is None
    assert split_trial(trial_id("x", 12)) == ("x", 12)
    assert trials_in([]) == 1
    assert trials_in(["a", "a~t2", "b"]) == 2


def test_trials_have_seeds_of_their_own_and_levels_share_them() -> None:
    pair = [PACK.cases[f"IFD-R1-C1-i1-{level}"] for level in ("L1", "L2")]
    seeds = [[case_seed(5, one) for one in each_trial(PACK, [case], 4)] for case in pair]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 4
    assert len({room_seed(one) for one in each_trial(PACK, pair, 4)}) == 1
    assert room_seed(pair[0]) == case_seed(0, pair[0])


# What is counted


def test_by_hand() -> None:
    """Four cases, three trials: 3, 2, 1 and 0 passes; a fifth lacks one."""
    found = summarise(rows({0: "+++", 5: "++-", 10: "-+-", 15: "---", 20: "++?"}), 3)
    assert found is not None
    assert (found["trials"], found["cases"], found["incomplete"]) == (3, 4, 1)
    assert found["pass_at_1"]["rate"] == pytest.approx(0.5)
    assert {k: cell["rate"] for k, cell in found["pass_hat_k"].items()} == pytest.approx(
        {"1": 0.5, "2": (1 + 1 / 3) / 4, "3": 1 / 4}
    )
    assert {k: cell["rate"] for k, cell in found["pass_at_k"].items()} == pytest.approx(
        {"1": 0.5, "2": (1 + 1 + 2 / 3) / 4, "3": 3 / 4}
    )
    assert found["alike"] == 0.5
    assert found["within"] == pytest.approx((0 + 1 / 3 + 1 / 3 + 0) / 4)
    spread = np.var([1, 2 / 3, 1 / 3, 0], ddof=1)
    assert found["between"] == pytest.approx(spread - found["within"] / 3)
    assert "3 trials of 4 cases; 1 more lack a verdict in some trial" in trial_lines(found)


def test_pass_hat_k_is_that_of_every_choice_of_trials() -> None:
    marks = "++-+-"
    found = summarise(rows({0: marks}), 5)
    assert found is not None
    for k in range(1, 6):
        chosen = list(itertools.combinations(marks, k))
        assert found["pass_hat_k"][str(k)]["rate"] == pytest.approx(np.mean([set(some) == {"+"} for some in chosen]))
        assert found["pass_at_k"][str(k)]["rate"] == pytest.approx(np.mean(["+" in some for some in chosen]))


def test_one_trial_has_no_block_and_none_whole_has_no_figures() -> None:
    assert summarise(rows({0: "+"}), 1) is None
    assert summarise(rows({0: "+?"}), 2) == {"trials": 2, "cases": 0, "incomplete": 1}
    assert trial_lines({"trials": 2, "cases": 0, "incomplete": 1})[1:] == []


def test_the_variances_and_the_precision_are_those_of_the_truth() -> None:
    """240 cases whose chance of passing is 0.2 or 0.8: 0.16 within, 0.09 between."""
    rng = np.random.default_rng(3)
    chance = np.where(np.arange(240) % 2, 0.2, 0.8)
    made = rows({k: "".join("+" if rng.random() < chance[k] else "-" for _ in range(8)) for k in range(240)})
    found = summarise(made, 8)
    assert found is not None
    assert found["within"] == pytest.approx(0.16, abs=0.01)
    assert found["between"] == pytest.approx(0.09, abs=0.015)
    needed = found["trials_for"]["0.02"]
    assert needed == pytest.approx(1.96**2 * 0.16 / (240 * 0.02**2), abs=1)
    runs = [(rng.random((needed, 240)) < chance).mean() for _ in range(400)]
    assert 0.92 <= np.mean(np.abs(np.array(runs) - 0.5) <= 0.02) <= 0.99
    assert found["limit"] == pytest.approx(1.96 * (0.09 / 240) ** 0.5, abs=0.004)


def test_a_precision_of_nothing_is_refused() -> None:
    assert trials_for(0.0, 10, 0.01) == 1
    for bad in ((0.2, 10, 0.0), (0.2, 0, 0.01)):
        with pytest.raises(ValueError, match="must be positive"):
            trials_for(*bad)


# A run of them

AGENT = """
import random
from adapters.controls import Contrarian, Oracle

class Moody(Oracle):
    def open_case(self, brief, prompt, seed):
        return (Contrarian() if random.Random(seed).random() < 0.5 else super()).open_case(brief, prompt, seed)
"""


def test_a_run_of_trials_scores_judges_and_resumes(pytester: pytest.Pytester) -> None:
    (pytester.path / "moody.py").write_text(textwrap.dedent(AGENT))
    model = f"--model={pytester.path / 'moody.py'}:Moody"
    some = (model, "--levels=L1", "--roles=R1", "--probes=C4", "--limit=2", "--judge=offline")
    once = run(pytester, *some)
    assert once.counts["cases"] == 2
    assert "trials" not in once.summary["ifeval"]
    first = {row["id"]: row for row in once.rows()}
    again = run(pytester, *some, "--trials=2", "--resume")
    assert again.counts["cases"] == 4
    assert again.counts["error"] == again.counts["missing"] == 0
    by_item = {item: [row for row in again.rows() if row["item"] == item] for item in ("floor", "persona")}
    assert [len(found) for found in by_item.values()] == [4, 4]
    assert {row["id"]: row for row in again.rows() if "~" not in row["id"]} == first
    assert len({row["seed"] for row in by_item["floor"]}) == 4
    told = again.summary["ifeval"]["trials"]
    assert (told["trials"], told["cases"]) == (2, 2)
    assert "2 trials of 2 cases" in again.out
    assert not list(Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(again.summary))
    before = json.loads((again.run_dir / "report" / "summary.json").read_text())
    result = CliRunner().invoke(main, ["score", str(again.run_dir)])
    assert result.exit_code == 0, result.output
    assert json.loads((again.run_dir / "report" / "summary.json").read_text())["ifeval"] == before["ifeval"]


def test_no_number_of_trials_is_one_line(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=oracle", "--trials=0")
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    assert "--trials: 0 is not a number of trials; give 1 or more" in inner.err
