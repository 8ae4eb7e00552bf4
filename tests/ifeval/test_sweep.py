"""The threshold sweep: every verdict as the verifiers give it, orders as SciPy compares them, and what lies near a threshold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.cli import main
from dsbeval.ifeval.metrics import SUBSETS
from dsbeval.ifeval.pack import Case, load_pack
from dsbeval.ifeval.scene import Measurements, ModelSpan
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.sweep import SETTINGS, Measured, Setting, borderline, compare_orders, gaps, near, sweep
from dsbeval.ifeval.verifiers import verify
from dsbeval.spans import Span
from reports.sweep import draw, render
from tests.compare.runs import floor, folder
from tests.dyadic.test_robustness import LONGER, SHORT, talk

Row = dict[str, Any]
PACK = load_pack()
WINDOW = Span(240_000, 480_000)


def scene(
    genuine: float | None = None, offset: float | None = None, spans: tuple[tuple[float, float, bool, bool], ...] = ()
) -> Measurements:
    """Return measurements with what the swept thresholds read; seconds."""
    found = tuple(ModelSpan(round(a * RATE), round(b * RATE), turn, resumes) for a, b, turn, resumes in spans)
    return Measurements(
        window=WINDOW, observed=WINDOW.duration, spans=found, speaking_at_start=False,
        genuine=None if genuine is None else round(genuine * RATE), first_offset=None if offset is None else round(offset * RATE),
        covered=sum(span.duration for span in found), nearest=None, overlap=0, spoke=True, forced=False, target_tokens=0,
        matched_tokens=0,
    )  # fmt: skip


def row(case: Case, m: Measurements) -> Row:
    """Return the row of a case that was measured so, judged by the real verifiers."""
    verdict = verify(case.scored_as, m, dict(case.thresholds))
    return floor(case, verdict.passed) | verdict.as_dict() | {"measurements": m.as_dict()}


seconds = st.none() | st.floats(0, 4)
sounds = st.lists(st.tuples(st.floats(-1, 10), st.floats(0.05, 2), st.booleans(), st.booleans()), max_size=3)
any_scene = st.builds(
    lambda genuine, offset, spans: scene(genuine, offset, tuple((a, a + d, turn, resumes) for a, d, turn, resumes in spans)),
    seconds, seconds, sounds,
)  # fmt: skip
swept_cases = [next(case for case in PACK.cases.values() if case.scored_as == action) for action in Action]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(swept_cases), any_scene), min_size=1, max_size=6))
def test_every_verdict_is_the_verifiers_own(found: list[tuple[Case, Measurements]]) -> None:
    rows = [row(case, m) for case, m in found]
    table = Measured.of(rows).verdicts()
    assert table.shape == (180, len(rows))
    for k, setting in enumerate(SETTINGS[::7]):
        for index, (case, m) in enumerate(found):
            again = verify(
                case.scored_as,
                Measurements.from_dict(json.loads(json.dumps(m.as_dict()))),
                dict(case.thresholds),
                setting.overrides,
            )
            assert table[7 * k, index] == again.passed, (setting, case.id, m)


def test_there_are_the_published_settings() -> None:
    assert len(set(SETTINGS)) == 180
    assert Setting(2.0, 600, 1500, 1.0) in SETTINGS


def test_a_limit_is_met_in_its_last_sample_and_a_ceiling_is_not() -> None:
    take, back = (
        next(case for case in PACK.cases.values() if case.scored_as == action and case.role == "R1")
        for action in ("TAKE_TURN", "BACKCHANNEL")
    )
    rows = [
        row(take, scene(genuine=1.5)), row(take, scene(genuine=1.5 + 1 / RATE)),
        row(back, scene(spans=((1.0, 1.8, True, True),))), row(back, scene(spans=((1.0, 1.8 - 1 / RATE, True, True),))),
    ]  # fmt: skip
    at = [Setting(1.5, 600, 1500, 0.8), Setting(2.0, 600, 1500, 1.0)]
    assert Measured.of(rows).verdicts(at).tolist() == [[True, False, False, True], [True, True, True, True]]


# The order of models


def model(onsets: tuple[float, float], offsets: tuple[float, float], share: tuple[float, float]) -> list[Row]:
    """Return the rows of a model at L1 and L2: when it takes the turn and stops, in which share of the conversations."""
    rows = []
    for level, onset, offset, part in zip(("L1", "L2"), onsets, offsets, share, strict=True):
        for action in ("TAKE_TURN", "YIELD", "LISTEN"):
            cases = [case for case in PACK.cases.values() if case.level == level and case.action == action]
            for k, case in enumerate(cases):
                does = k < part * len(cases)
                rows.append(row(case, scene(onset if does else None, offset if does else None)))
    return rows


SIX = {
    "a": model((0.4, 0.4), (0.3, 0.3), (0.9, 0.2)),
    "b": model((0.4, 1.8), (0.3, 0.3), (0.8, 0.8)),
    "c": model((0.4, 0.4), (0.3, 0.9), (0.7, 0.7)),
    "d": model((2.2, 0.4), (0.3, 0.3), (0.6, 0.5)),
    "e": model((0.4, 0.4), (1.2, 0.3), (0.5, 0.5)),
    "f": model((0.4, 0.4), (0.3, 0.3), (0.4, 0.4)),
}


def test_the_orders_of_six_models_are_scipys() -> None:
    from scipy.stats import kendalltau

    found = sweep(SIX)
    for cells in ("reactive", "all"):
        part = found["cells"][cells]
        default = {label: _gap(rows, cells, lambda r: r["passed"]) for label, rows in SIX.items()}
        assert part["default"] == pytest.approx(default)
        taus = []
        for k, setting in enumerate(SETTINGS):
            at = (
                {label: _gap(rows, cells, lambda r, s=setting: _again(r, s)) for label, rows in SIX.items()}
                if k % 30 == 0
                else {label: part["gap"][label][k] for label in SIX}
            )
            assert [part["gap"][label][k] for label in SIX] == pytest.approx(list(at.values()))
            values = [round(value, 12) for value in at.values()]
            taus.append(kendalltau([round(value, 12) for value in default.values()], values).statistic)
        assert part["orders"]["tau"] == pytest.approx(taus)
        assert part["orders"]["mean"] == pytest.approx(np.mean(taus))
        assert part["orders"]["sd"] == pytest.approx(np.std(taus, ddof=1))
        assert (part["orders"]["min"], part["orders"]["median"]) == pytest.approx((min(taus), np.median(taus)))
        assert 0 < part["orders"]["full_order"] < 180
        for k in (1, 2):
            first = _largest(part["default"], k)
            kept = sum(_largest({label: part["gap"][label][n] for label in SIX}, k) == first for n in range(180))
            assert part["orders"][f"top_{k}"] == kept < 180


def _largest(gaps: dict[str, float], k: int) -> set[str]:
    return {label for label, gap in gaps.items() if sum(other > gap for other in gaps.values()) < k}


def _gap(rows: list[Row], cells: str, passed: Any) -> float:
    kept = [r for r in rows if SUBSETS[cells](r)]
    one, other = ([passed(r) for r in kept if r["level"] == level] for level in ("L1", "L2"))
    return float(np.mean(one) - np.mean(other))


def _again(row: Row, setting: Setting) -> bool:
    case = PACK.cases[row["id"]]
    return verify(
        case.scored_as, Measurements.from_dict(row["measurements"]), dict(case.thresholds), setting.overrides
    ).passed


def test_reactive_gaps_do_not_know_the_interrupt_limit_and_the_ceiling() -> None:
    """Fifteen different settings, twelve of each: the published counts are multiples of twelve for this reason."""
    at = np.array(sweep(SIX)["cells"]["reactive"]["gap"]["c"]).reshape(15, 12)
    assert (at == at[:, :1]).all()
    assert len(np.unique(at)) > 1


def test_orders_by_hand() -> None:
    found = compare_orders(
        [0.3, 0.2, 0.1], np.array([[0.3, 0.2, 0.1], [0.3, 0.1, 0.2], [0.1, 0.2, 0.3], [0.2, 0.2, 0.2], [0.3, 0.3, 0.1]])
    )
    assert found["tau"] == pytest.approx([1, 1 / 3, -1, None, 0.8164966])
    assert (found["with_tau"], found["top_1"], found["top_2"], found["full_order"]) == (4, 2, 2, 1)


def test_one_run_has_gaps_and_no_order() -> None:
    found = sweep({"a": SIX["a"]})
    orders = found["cells"]["all"]["orders"]
    assert (orders["mean"], orders["with_tau"], orders["top_1"]) == (None, 0, 180)
    assert "no order of models to compare" in "\n".join(render(found))
    half = sweep({"a": [r for r in SIX["a"] if r["level"] == "L1"]})
    assert half["cells"]["all"]["default"] == {"a": None}
    assert half["cells"]["all"]["orders"] is None
    assert gaps([], "all") == (None, None)


# Near a threshold


def test_what_lies_near_a_threshold() -> None:
    take, stop = (
        next(case for case in PACK.cases.values() if case.scored_as == action and case.role == "R1")
        for action in ("TAKE_TURN", "YIELD")
    )
    rows = [
        row(take, scene(genuine=1.95)), row(take, scene(genuine=2.05)), row(take, scene(genuine=1.2)), row(take, scene()),
        row(stop, scene(offset=0.45)), row(stop, scene(offset=1.45)),
    ]  # fmt: skip
    found = near(rows)
    assert found["TAKE_TURN"] == {"1.5 s": 0, "2 s": 2, "2.5 s": 0}
    assert found["YIELD"] == {"200 ms": 0, "400 ms": 1, "600 ms": 1, "1000 ms": 0, "1500 ms": 1}
    assert "INTERRUPT" not in found
    told = borderline(rows)
    assert (told["n"], told["borderline"], told["by_action"]) == (6, 3, {"TAKE_TURN": 2, "YIELD": 1})
    assert (told["ias"], told["ias_range"]) == (3 / 6, [1 / 6, 4 / 6])
    assert near([]) == {}


# The command


def dsbeval(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    for label, rows in SIX.items():
        folder(tmp_path / label, rows, agent=f"model-{label}")
    return [tmp_path / label for label in SIX]


def test_the_command_prints_the_sweep_and_draws_it(runs: list[Path], tmp_path: Path) -> None:
    result = dsbeval("sweep", *runs, "-o", tmp_path / "pictures" / "sweep.png")
    assert result.exit_code == 0, result.output
    assert "Kendall's tau against the default: mean 0." in result.output
    assert "published, six models: mean 0.796" in result.output
    assert "model-a: 0 of " in result.output
    picture = tmp_path / "pictures" / "sweep.png"
    assert picture.read_bytes()[:4] == b"\x89PNG"
    told = json.loads(dsbeval("sweep", *runs, "--json").output)
    assert told == json.loads(json.dumps(sweep({f"model-{label}": rows for label, rows in SIX.items()})))


def test_a_run_without_both_levels_is_drawn_as_nothing(tmp_path: Path) -> None:
    found = sweep({"a": SIX["a"], "b": [r for r in SIX["b"] if r["level"] == "L1"]})
    draw(found, tmp_path / "sweep.svg")
    assert "model" not in (tmp_path / "sweep.svg").read_text()
    assert [found["cells"]["all"]["gap"][label] is None for label in "ab"] == [False, True]


def test_a_heat_map_of_no_gap_is_refused_in_one_line(tmp_path: Path) -> None:
    one = [row(case, scene(0.3)) for case in PACK.select(levels=["L1"])[:6]]
    folder(tmp_path / "one", one)
    folder(tmp_path / "dyads", [{**talk(("x", "y"), SHORT, LONGER)}])
    for name in ("one", "dyads"):
        result = CliRunner().invoke(main, ["sweep", str(tmp_path / name), "-o", str(tmp_path / "map.png")])
        assert (result.exit_code, result.output.count("\n")) == (2, 1)
        assert "no run has verdicts at L1 and at L2" in result.output
        assert not (tmp_path / "map.png").exists()


def test_conversations_are_swept_by_their_own_thresholds(tmp_path: Path) -> None:
    rows = [talk(("x", "z"), SHORT, [(0.0, 60.0)]), talk(("y", "z"), LONGER, [(0.0, 60.0)])]
    folder(tmp_path / "run", [dict(one) for one in rows])
    result = dsbeval("sweep", tmp_path / "run")
    assert result.exit_code == 0, result.output
    line = next(line.split() for line in result.output.splitlines() if line.startswith("backchannel_s 0.5"))
    assert line == ["backchannel_s", "0.5", "16.000", "0.000", "0.000", "0.816"]


def test_what_cannot_be_swept_is_one_line(runs: list[Path], tmp_path: Path) -> None:
    folder(tmp_path / "other", SIX["a"], pack="9" * 64)
    folder(tmp_path / "empty", [], names=["IFD-R1-C1-i1-L1"])
    for args, said in (
        ((runs[0], tmp_path / "other"), "they differ in pack"),
        ((tmp_path / "empty",), "has no rows with a verdict"),
        ((runs[0], "-o", "sweep.txt"), "a picture ends in .png, .svg, .pdf"),
        ((tmp_path / "nowhere",), "not a run folder"),
    ):
        result = dsbeval("sweep", *args)
        assert (result.exit_code, result.output.count("\n")) == (2, 1), result.output
        assert said in result.output
    assert dsbeval("sweep", runs[0], tmp_path / "other", "--allow-unlike").exit_code == 0


def test_a_baseline_cannot_be_swept() -> None:
    with pytest.raises(ValueError, match="has no measurements; sweep a run folder"):
        Measured.of([floor(swept_cases[0], True)])
