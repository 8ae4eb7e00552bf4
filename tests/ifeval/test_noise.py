"""The noise floor: from the published tables, from agents with known noise, and what has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dsbeval.cli import main
from dsbeval.ifeval import published
from dsbeval.ifeval.noise import cleared, clears, floor_of
from dsbeval.ifeval.pack import each_trial, load_pack
from tests.compare.runs import attack, cases, floor, folder
from tests.ifeval.test_metrics import as_rows

Row = dict[str, Any]
PACK = load_pack()
CASES = cases(levels=["L1", "L2", "L3"])


def test_the_published_control_has_a_largest_effect_of_five_points() -> None:
    found = floor_of(list(as_rows(published.IAS[published.PERSONA_BLIND])))
    assert 100 * found["reactive"]["largest"] == pytest.approx(5.1, abs=0.1)


def test_which_published_effects_clear_the_published_noise() -> None:
    """Held against the control's own effects, as printed: 0.0, -5.1 and -5.1 points."""
    noise = published.EFFECTS[published.PERSONA_BLIND]
    largest = max(abs(value) for value in noise.values())
    assert largest == 5.1
    flags = {
        (model, name): clears(value, None, largest)
        for model, effects in published.EFFECTS.items()
        for name, value in effects.items()
    }
    assert {key for key, clear in flags.items() if clear} == {("F-Actor", "entailment_gap"), ("F-Actor", "role_tax")}


def blind(rng: np.random.Generator, rate: float = 0.5, *, seeded: bool = False, trials: int = 1) -> list[Row]:
    """Return the rows of an agent that does not hear its prompt: every case is a coin, or every conversation in a trial."""
    rows: list[Row] = []
    luck: dict[object, bool] = {}
    for case in each_trial(PACK, CASES, trials):
        key = (case.conversation_id, case.trial) if seeded else case.id
        rows.append(floor(case, luck.setdefault(key, bool(rng.random() < rate))))
    return rows


def test_effects_of_a_blind_agent_stay_below_the_floor_95_times_of_a_hundred() -> None:
    rng, inside, floors = np.random.default_rng(5), [], []
    for _ in range(60):
        found = floor_of(blind(rng))["reactive"]
        inside += [abs(found["effects"][name]) <= found["floor"][name] for name in found["floor"]]
        floors += list(found["floor"].values())
    assert 0.9 <= np.mean(inside) <= 0.99
    assert np.mean(floors) == pytest.approx(1.96 * (2 * 0.25 / 155) ** 0.5, rel=0.02)


def test_an_agent_that_takes_its_seed_shows_its_noise_between_trials_only() -> None:
    rng = np.random.default_rng(6)
    once = floor_of(blind(rng, seeded=True))
    assert "run it with --trials 3" in once["reason"]
    assert set(once["all"]["floor"].values()) == {None}
    thrice = floor_of(blind(rng, seeded=True, trials=3))
    assert thrice["reason"] is None
    assert set(thrice["all"]["effects"].values()) == {0.0}
    assert thrice["all"]["floor"]["entailment_gap"] == pytest.approx(1.96 * (2 * 0.25 / 240) ** 0.5, rel=0.05)


def test_more_trials_of_a_run_clear_more() -> None:
    """A gap of 6 points: inside the noise of one trial, outside that of nine."""
    noise = floor_of(blind(np.random.default_rng(7), seeded=True, trials=3))
    count = len(CASES) // 3
    lost = {case.conversation_id for case in CASES[: round(0.06 * count) * 3]}
    for trials, clear in ((1, False), (9, True)):
        rows = [
            floor(case, not (case.level == "L2" and case.conversation_id in lost))
            for case in each_trial(PACK, CASES, trials)
        ]
        told = cleared(noise, rows)["all"]["entailment_gap"]
        assert told["value"] == pytest.approx(0.06, abs=0.003)
        assert told["clears"] is clear


def test_a_level_that_is_missing_has_no_floor() -> None:
    found = floor_of([row for row in blind(np.random.default_rng(8)) if row["level"] != "L3"])
    assert found["all"]["floor"]["entailment_gap"] > 0
    assert found["all"]["floor"]["role_tax"] is None
    assert clears(None, 0.1, 0.1) is clears(0.2, None, None) is None


# The command


def dsbeval(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_the_command_flags_what_is_within_the_noise(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    folder(tmp_path / "blind", blind(rng), agent="blind")
    folder(tmp_path / "mine", [floor(case, case.level != "L2" or case.instance > 2) for case in CASES])
    folder(tmp_path / "seeded", blind(rng, seeded=True))
    folder(tmp_path / "other", blind(rng), pack="0" * 64)
    result = dsbeval("noise", tmp_path / "blind", tmp_path / "mine", tmp_path / "blind")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert any(
        line.startswith("entailment_gap reactive +40.0 ") and line.endswith("155, 155 clears the noise")
        for line in lines
    )
    assert any(line.startswith("role_tax reactive +0.0 ") and line.endswith("WITHIN THE NOISE") for line in lines)
    told = json.loads(dsbeval("noise", tmp_path / "blind", tmp_path / "mine", "--json").output)
    assert told["runs"][str(tmp_path / "mine")]["all"]["entailment_gap"]["clears"] is True
    for args, said in (
        ((tmp_path / "seeded",), "it takes its seed, so one trial says nothing about noise"),
        ((tmp_path / "blind", tmp_path / "other"), "they differ in pack"),
    ):
        refused = dsbeval("noise", *args)
        assert (refused.exit_code, refused.output.count("\n")) == (2, 1)
        assert said in refused.output


def test_a_control_that_takes_its_prompt_is_pointed_out(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", blind(np.random.default_rng(10)))
    path = run.recordings / f"{CASES[0].id}.rec.json"
    for taken, said in ((True, True), (False, False)):
        path.write_text(json.dumps({"prompt_taken": taken}))
        assert ("its recordings say that it takes its prompt" in dsbeval("noise", run.root).output) is said


def test_a_run_that_says_nothing_about_noise_is_one_line(tmp_path: Path) -> None:
    folder(tmp_path / "dyads", [attack(1, 0.0)])
    folder(tmp_path / "one", [floor(case, True) for case in cases(levels=["L1"])])
    for name, said in (
        ("dyads", "has no verdicts of DSB-IFEval; run an agent"),
        ("one", "run it with --levels=L1,L2,L3"),
    ):
        result = CliRunner().invoke(main, ["noise", str(tmp_path / name)])
        assert (result.exit_code, result.output.count("\n")) == (2, 1)
        assert said in result.output
