"""Comparing two runs: by hand, with themselves, with a planted change; what is refused, and what may differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsbeval.cli import main
from dsbeval.compare.compare import compare
from dsbeval.compare.side import KEPT, read_side, side_of_run, write_baseline
from dsbeval.errors import RunError
from dsbeval.paired import mcnemar, sign_flip
from reports.comparison import metric_row
from tests.compare.runs import FINGERPRINT, attack, cases, error, floor, folder, passing, persona, side

CASES = cases(levels=["L1", "L2"])


def dsbeval(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def metric(found: dict[str, Any], name: str) -> dict[str, Any]:
    entry: dict[str, Any] = next(entry for entry in found["metrics"] if entry["name"] == name)
    return entry


def verdicts(found: dict[str, Any]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for entry in found["metrics"]:
        out.setdefault(entry["verdict"], []).append(entry["name"])
    return out


# What is found


def test_a_run_and_itself_differ_in_nothing() -> None:
    rows = passing(CASES, lambda case: case.instance == 1)
    found = compare(side(rows), side(rows))
    assert set(verdicts(found)) == {"no evidence"}
    assert all(entry["delta"] == 0 and entry["p"] == 1 for entry in found["metrics"])
    assert found["flips"] == {"to_fail": [], "to_pass": []}
    assert found["margins_moved"] == []
    assert found["pairs"] == {"both": 480, "base_only": 0, "new_only": 0}


def test_a_change_is_found_where_it_is_and_has_the_exact_p() -> None:
    """Every YIELD fails: 60 cases of 30 conversations."""
    found = compare(side(passing(CASES)), side(passing(CASES, lambda case: case.action == "YIELD")))
    entry = metric(found, "action.YIELD")
    assert (entry["base"], entry["new"], entry["delta"], entry["n_base"], entry["clusters"]) == (1, 0, -1, 60, 30)
    assert entry["p"] == pytest.approx(mcnemar(0, 30)) == pytest.approx(sign_flip([-2.0] * 30))
    assert entry["p_holm"] == pytest.approx(9 * entry["p"])
    assert entry["verdict"] == "worse"
    assert metric(found, "ias.reactive")["delta"] == pytest.approx(-60 / 310)
    assert metric(found, "ias.reactive")["verdict"] == "worse"
    assert metric(found, "action.LISTEN")["verdict"] == "no evidence"
    assert metric(found, "effect.entailment_gap")["delta"] == 0
    assert len(found["flips"]["to_fail"]) == 60
    assert {entry["action"] for entry in found["flips"]["to_fail"]} == {"YIELD"}
    assert not verdicts(found).get("better")
    back = compare(side(passing(CASES, lambda case: case.action == "YIELD")), side(passing(CASES)))
    assert metric(back, "action.YIELD")["verdict"] == "better"
    assert len(back["flips"]["to_pass"]) == 60


def test_a_gap_that_moves_is_changed_and_neither_better_nor_worse() -> None:
    found = compare(side(passing(CASES)), side(passing(CASES, lambda case: case.level == "L2" and case.instance < 3)))
    entry = metric(found, "effect.entailment_gap")
    assert (entry["base"], entry["new"], entry["verdict"]) == (0, pytest.approx(0.4), "changed")
    assert entry["p"] == pytest.approx(mcnemar(62, 0))
    assert metric(found, "level.L2")["verdict"] == "worse"
    assert metric(found, "level.L1")["verdict"] == "no evidence"


def test_only_pairs_with_two_verdicts_are_compared() -> None:
    rows = passing(CASES)
    new = [error(row) if k < 30 else row for k, row in enumerate(rows)][:-40]
    found = compare(side(rows), side(new))
    assert found["pairs"] == {"both": 480 - 70, "base_only": 70, "new_only": 0}
    assert metric(found, "ias.all")["n_base"] == metric(found, "ias.all")["n_new"] == 410
    assert metric(found, "ias.all")["delta"] == 0
    assert found["new"]["items"]["floor"] == {"passed": 410, "failed": 0, "error": 30, "skipped": 0}


def test_margins_that_moved_beyond_the_vads_error() -> None:
    rows = [floor(case, True, margin=0.50) for case in CASES[:40]]
    new = [
        {**row, "margin": {0: 1.5, 1: 0.65, 2: -0.1, 3: None}.get(k, 0.5)}
        | ({"margin_unit": "share"} if k == 4 else {})
        for k, row in enumerate(rows)
    ]
    moved = compare(side(rows), side(new))["margins_moved"]
    assert [(entry["id"], entry["delta"]) for entry in moved] == [(rows[0]["id"], 1.0), (rows[2]["id"], -0.6)]


def test_exercised_cases_may_be_others_in_the_other_run() -> None:
    chosen = cases(levels=["L1"])
    rows = [floor(case, True, exercised=k % 2 == 0) for k, case in enumerate(chosen)]
    new = [floor(case, True, exercised=k % 3 == 0) for k, case in enumerate(chosen)]
    entry = metric(compare(side(rows), side(new)), "ias.exercised")
    assert (entry["n_base"], entry["n_new"], entry["delta"], entry["p"]) == (120, 80, 0, 1)


def test_the_persona_and_the_safety_override() -> None:
    chosen = cases(levels=["L2", "L4b"])
    rows = [persona(case, 60, "persona-wins") for case in chosen]
    new = [persona(case, 40 if case.level == "L2" else 60, "hedged") for case in chosen]
    found = compare(side(rows), side(new))
    assert metric(found, "pas.L2") | {} == metric(found, "pas.L2")
    assert (metric(found, "pas.L2")["delta"], metric(found, "pas.L2")["verdict"]) == (-20, "worse")
    assert metric(found, "pas.L4b")["delta"] == 0
    override = metric(found, "safety_override")
    assert (override["base"], override["new"], override["n_new"], override["verdict"]) == (1, 0, 30, "worse")
    assert metric(found, "safety_override")["p"] == pytest.approx(mcnemar(0, 30))
    other = [{**row, "judge": "another"} for row in new]
    assert compare(side(rows), side(other))["pairs"]["both"] == 0


def test_a_secret_that_is_given_away_more_often_is_worse() -> None:
    """The model under test sits at b and holds the secret; its attacker's score is no score of its own."""
    rows = [attack(number, 0.0) for number in range(20)]
    found = compare(side(rows), side([attack(number, float(number < 15)) for number in range(20)]))
    leak = metric(found, "leak")
    assert (leak["base"], leak["new"], leak["n_new"], leak["verdict"]) == (0, 0.75, 20, "worse")
    assert not any(entry["name"] == "dyad.T4-2" for entry in found["metrics"])
    attacker = [attack(number, float(number < 15), seats="ab") for number in range(20)]
    mine = compare(side([{**row, "scores": {"a": {"score": 0.0}}} for row in attacker]), side(attacker))
    assert metric(mine, "dyad.T4-2")["verdict"] == "better"
    assert not any(entry["name"] == "leak" for entry in mine["metrics"])


# What may be compared


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("pack", "d" * 64, "pack: bbbbbbbbbbbb, dddddddddddd"),
        ("protocol", {"frame_synchronous": {"between_s": 2.0}}, "protocol.frame_synchronous.between_s: 3.0, 2.0"),
        (
            "thresholds",
            {"LISTEN": {}, "YIELD": {"max_latency_ms": 400.0}},
            "thresholds.YIELD.max_latency_ms: 600.0, 400.0",
        ),
        ("acoustics", "telephone: 8 kHz", "acoustics: clean: the recording as it is, telephone: 8 kHz"),
        ("latency", "measured", "latency: none, measured"),
        ("vad", {"model": "c" * 64, "merge_s": 0.5}, "vad.merge_s: 0.3, 0.5"),
        ("versions", {"dsbeval": "0.1.0", "resampler": "soxr-VHQ"}, "versions.resampler: soxr-HQ, soxr-VHQ"),
        ("trigger", 1, "trigger: none, 1"),
    ],
)
def test_unlike_runs_are_refused_and_the_difference_is_named(field: str, value: Any, named: str) -> None:
    rows = passing(CASES[:4])
    base, new = side(rows, "base"), side(rows, "new", **{field: value})
    with pytest.raises(RunError, match="base and new cannot be compared: they differ in") as caught:
        compare(base, new)
    assert named in str(caught.value)
    assert "--allow-unlike" in str(caught.value)
    assert compare(base, new, allow_unlike=True)["unlike"] == [named]


def test_another_judge_is_refused_and_no_judge_is_not() -> None:
    rows = passing(CASES[:4])
    judges = [{"name": name, "id": name, "server": None, "prompts": "1"} for name in ("x:y", "x:z")]
    with pytest.raises(RunError, match=r"judge\.id: x:y, x:z"):
        compare(side(rows, judge=judges[0]), side(rows, judge=judges[1]))
    assert compare(side(rows), side(rows, judge=judges[1]))["differs"] == ["judge: none, x:z"]


def test_agent_checkpoint_device_and_seed_may_differ_and_are_shown() -> None:
    rows = passing(CASES[:4])
    new = side(
        rows, agent="other", checkpoint={"name": "step-2000", "sha256": "e" * 64}, device="cuda", seed=1,
        versions={"dsbeval": "0.2.0", "resampler": "soxr-HQ"}, selection={"levels": ["L1"]},
    )  # fmt: skip
    found = compare(side(rows), new)
    assert found["unlike"] == []
    assert found["differs"] == [
        "agent: mine, other",
        "checkpoint.name: step-1000, step-2000",
        "checkpoint.sha256: aaaaaaaaaaaa, eeeeeeeeeeee",
        "device: cpu, cuda",
        "seed: 0, 1",
        "versions.dsbeval: 0.1.0, 0.2.0",
    ]


# The commands


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    folder(tmp_path / "base", passing(CASES))
    folder(tmp_path / "new", passing(CASES, lambda case: case.action == "YIELD"), agent="mine|2")
    return tmp_path / "base", tmp_path / "new"


def test_the_command_prints_tables_json_and_markdown(two_runs: tuple[Path, Path]) -> None:
    result = dsbeval("compare", *two_runs)
    assert result.exit_code == 0, result.output
    line = next(line.split() for line in result.output.splitlines() if line.startswith("YIELD"))
    assert line[:4] == ["YIELD", "100.0", "0.0", "-100.0"]
    assert line[-3:] == ["60", "<0.001", "worse"]
    assert "60 passed before, fail now: YIELD 60" in result.output
    assert "  ... and 50 more" in result.output
    assert "differs in agent: mine, mine|2" in result.output
    assert result.output.splitlines()[-1].startswith("worse: ias.reactive, ias.all")
    found = json.loads(dsbeval("compare", *two_runs, "--json").output)
    assert found == json.loads(json.dumps(compare(*map(read_side, two_runs))))
    text = dsbeval("compare", *two_runs, "--markdown").output
    assert text.startswith("**worse: ias.reactive")
    assert "| YIELD | 100.0 | 0.0 | -100.0 |" in text
    assert text.count("<details>") == text.count("</details>") > 3


def test_few_cases_are_shown_as_counts() -> None:
    few = CASES[:7]
    found = compare(side(passing(few)), side(passing(few, lambda case: case == few[0])))
    entry = metric(found, "ias.all")
    assert metric_row(entry) == ("IAS, all cells", "7/7", "6/7", "-1", "-", "7", "1.000", "no evidence")


def test_a_baseline_is_small_and_compares_like_its_run(two_runs: tuple[Path, Path]) -> None:
    path = two_runs[0].parent / "baseline.json"
    result = dsbeval("baseline", two_runs[0], "-o", path)
    assert result.exit_code == 0, result.output
    assert "480 rows of 480 cases" in result.output
    assert path.stat().st_size / 480 < 250  # bytes a row
    assert all(row.keys() <= set(KEPT["floor"]) for row in json.loads(path.read_text())["rows"])
    one, other = (json.loads(dsbeval("compare", base, two_runs[1], "--json").output) for base in (two_runs[0], path))
    one["base"]["label"] = other["base"]["label"]
    assert one == other


def test_a_baseline_keeps_what_is_judged_and_what_two_agents_said(tmp_path: Path) -> None:
    turns = {"tor_pause": None, "tor_end": 1.0, "backchannels": 2, "barge_in": None, "occupancy": 0.5, "segments": 3}
    rows = [
        persona(CASES[0], 70),
        error(floor(CASES[1], True)),
        {
            **attack(3, 1.0, speech={"a": [[0, 48_000]], "b": [[60_000, 90_000]]}),
            "turn_taking": {key: {**turns} for key in "ab"},
        },
    ]
    whole = side_of_run(folder(tmp_path / "run", rows))
    write_baseline(whole, tmp_path / "baseline.json")
    back = read_side(tmp_path / "baseline.json")
    assert (back.rows, back.cases, back.fingerprint) == (whole.rows, whole.cases, whole.fingerprint)
    assert [row.get("speech") for row in back.rows] == [None] * 3
    assert back.rows[2]["turn_taking"]["b"]["backchannels"] == 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such run folder or baseline"),
        ("{", "not a baseline (Expecting"),
        ("[]", "not a baseline (no kind"),
        ('{"kind": "dsbeval-baseline", "schema": 7}', "schema is 7; 1 is needed"),
        ('{"kind": "dsbeval-baseline", "schema": 1, "fingerprint": {}, "cases": []}', "rows is missing"),
        ('{"kind": "dsbeval-baseline", "schema": 1, "fingerprint": {}, "cases": [1], "rows": []}', "cases: holds what"),
    ],
)
def test_what_is_no_baseline_is_one_line(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "baseline.json"
    if content is not None:
        path.write_text(content)
    result = dsbeval("compare", path, path)
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert str(path) in result.output
    assert problem in result.output


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("x", "row 2 has no id"),
        ({"id": "x"}, "row 2 (x): item is None, not one of floor, persona, dyad"),
        ({"id": "x", "item": "floor", "outcome": "won"}, "row 2 (x): outcome is 'won', not one of passed,"),
        ({"id": "x", "item": "floor", "outcome": "failed"}, "row 2 (x): role is missing"),
        ({**floor(CASES[1], True), "passed": "yes"}, "passed is 'yes'"),
        (floor(CASES[1], True, margin="0.5"), "margin is '0.5'"),
        (floor(CASES[1], True, margin=True), "margin is True"),
        (persona(CASES[1], 70, l4_category=None), "l4_category is None"),
        (attack(3, 1.0, scores={"a": {"score": "1"}}), "scores.a is {'score': '1'}"),
        (attack(3, 1.0, turn_taking={"a": {"tor_end": "x"}}), "turn_taking.a is {'tor_end': 'x'}"),
        (floor(CASES[0], True), f"row 2 ({CASES[0].id}): is there twice"),
    ],
)
def test_a_row_that_was_edited_is_named_with_its_field_and_mended_by_the_command(
    tmp_path: Path, row: Any, problem: str
) -> None:
    path = tmp_path / "baseline.json"
    rows = [floor(CASES[0], True), row]
    data = {"kind": "dsbeval-baseline", "schema": 1, "fingerprint": {}, "cases": [], "rows": rows}
    path.write_text(json.dumps(data))
    with pytest.raises(RunError) as caught:
        read_side(path)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{path}: row 2 ")
    assert str(caught.value).endswith(f"make the baseline again: dsbeval baseline RUN -o {path}")


def test_a_folder_that_is_no_run_and_two_formats_are_one_line(tmp_path: Path) -> None:
    for args in (("compare", tmp_path, tmp_path), ("baseline", tmp_path, "-o", tmp_path / "x.json")):
        assert "not a run folder" in dsbeval(*args).output
    both = dsbeval("compare", tmp_path, tmp_path, "--json", "--markdown")
    assert (both.exit_code, both.output) == (2, "dsbeval: --json and --markdown: give one of them\n")


def test_runs_without_a_verdict_are_no_baseline_and_nothing_to_compare(tmp_path: Path) -> None:
    broken = [error(floor(case, True)) for case in CASES[:3]]
    folder(tmp_path / "run", broken)
    refused = dsbeval("baseline", tmp_path / "run", "-o", tmp_path / "baseline.json")
    assert (refused.exit_code, refused.output.count("\n")) == (2, 1)
    assert "has no rows with a verdict" in refused.output
    assert not (tmp_path / "baseline.json").exists()
    told = dsbeval("compare", tmp_path / "run", tmp_path / "run").output
    assert told.splitlines()[-1] == "nothing to compare: no item has a verdict in both runs"


def test_the_command_refuses_unlike_runs(tmp_path: Path) -> None:
    one, other = (tmp_path / name for name in ("one", "other"))
    folder(one, passing(CASES[:4]))
    folder(other, passing(CASES[:4]), pack="f" * 64)
    refused = dsbeval("compare", one, other)
    assert refused.exit_code == 2
    assert "they differ in pack: bbbbbbbbbbbb, ffffffffffff" in refused.output
    assert refused.output.count("\n") == 1
    allowed = dsbeval("compare", one, other, "--allow-unlike")
    assert allowed.exit_code == 0
    assert "UNLIKE pack: bbbbbbbbbbbb, ffffffffffff" in allowed.output
    assert FINGERPRINT["pack"] == "b" * 64
