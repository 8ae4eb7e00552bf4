"""The conversations of a run as pytest items: real inner runs of ``cases/dyadic``, the calibration agents on both sides."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  pytester drops what a test is the first to import, and numpy cannot come in twice
import pytest
from click.testing import CliRunner

from dsbeval.cli import main
from dsbeval.dyadic.rows import TASKS
from tests.inner import ROOT, Inner, run

pytest_plugins = ["pytester"]

DYADS = ROOT / "cases" / "dyadic"
SHORT = ("--window=30", "--repeats=1")


def dyads(pytester: pytest.Pytester, *args: str, run_dir: Path | None = None, target: Path = DYADS) -> Inner:
    return run(pytester, *SHORT, *args, run_dir=run_dir, target=target)


def outcomes(inner: Inner) -> dict[str, int]:
    found: dict[str, int] = inner.summary["dyadic"]["outcomes"]
    return found


def by_id(inner: Inner) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in inner.rows()}


def adapter(pytester: pytest.Pytester, step: str, init: str = "pass") -> str:
    """Write an agent whose ``step`` and constructor are given; return its spec."""
    source = """
    from pathlib import Path
    from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session

    def note(name):
        with open(name, "a") as file:
            file.write("x")

    class Mine(Agent):
        def __init__(self):
            {init}
        @property
        def capabilities(self):
            return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=1920)
        def open(self, prompt, seed):
            note("opened")
            return MySession()

    class MySession(Session):
        def step(self, heard):
            {step}
    """
    path = pytester.path / "mine.py"
    path.write_text(textwrap.dedent(source).format(init=init, step=step))
    return f"{path}:Mine"


# Collection


@pytest.mark.parametrize(
    ("args", "count"),
    [(["--model=echo"], 840), (["--model=echo", "--partner=silent"], 1680), (["--partner=echo", "--partner=silent"], 3360)],
)  # fmt: skip
def test_a_pairing_has_its_runs_and_collecting_imports_nothing_heavy(
    pytester: pytest.Pytester, args: list[str], count: int
) -> None:
    heavy = (
        "torch",
        "onnxruntime",
        "soundfile",
        "soxr",
        "scipy",
        "hibari",
        "openai",
        "anthropic",
        "pandas",
        "adapters.controls",
    )
    pytester.makepyfile(
        sentinel=f"""
        import sys
        def pytest_collection_finish(session):
            print("HEAVY", [name for name in {heavy!r} if name in sys.modules], len(session.items))
        """
    )
    pytester.syspathinsert()
    inner = run(pytester, "--collect-only", "-q", "-s", "-p", "sentinel", *args, target=DYADS)
    assert f"HEAVY [] {count}" in inner.out
    assert not inner.run_dir.exists()


def test_an_id_says_scenario_seats_opener_repeat_and_partner(pytester: pytest.Pytester) -> None:
    inner = run(
        pytester,
        "--collect-only",
        "-q",
        "--model=echo",
        "--partner=silent",
        "--partner=echo",
        "--tasks=T4-3",
        target=DYADS,
    )
    ids = re.findall(r"test_dyad\[(.*)\]", inner.out)
    assert (len(ids), len(set(ids))) == (20 * (12 + 6), 20 * (12 + 6))
    assert ids[:2] == ["DYA-T4-3-01-ab-oA-r1@silent", "DYA-T4-3-01-ab-oA-r2@silent"]
    assert ids[11] == "DYA-T4-3-01-ba-oB-r3@silent"
    assert ids[-1] == "DYA-T4-3-20-ab-oB-r3"


def test_conversations_are_left_out_of_the_whole_suite_until_they_are_asked_for(pytester: pytest.Pytester) -> None:
    whole = run(pytester, "--collect-only", "-q", target=ROOT / "cases")
    assert "1038 tests collected" in whole.out
    both = run(pytester, "--collect-only", "-q", "--tasks=T2", target=ROOT / "cases")
    assert "1158 tests collected" in both.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--partner=forfeitor"], "--partner: 'forfeitor' is not a known agent; did you mean forfeiter"),
        (["--tasks=T4-9"], "--tasks: 'T4-9' is not a task"),
        (["--repeats=0"], "--repeats: 0 is not a positive number"),
        (["--partner=a/b.c:D", "--partner=a_b.c:D"], "--partner: a/b.c:D, a_b.c:D give the same ids"),
    ],
)
def test_a_wrong_option_is_one_line_before_anything_runs(
    pytester: pytest.Pytester, args: list[str], message: str
) -> None:
    inner = run(pytester, *args, target=DYADS)
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in inner.err.splitlines() if line.strip()]
    assert message in line
    assert not inner.run_dir.exists()


# Calibration: every archetype at both of its ends


def test_the_calibration_pairs_give_one_and_zero_where_they_must(pytester: pytest.Pytester) -> None:
    inner = dyads(
        pytester, "--model=achiever", "--partner=forfeiter", "--partner=achiever", "--partner=silent",
        f"--tasks={','.join(TASKS)}", "--judge=offline", "-n2",
        "-k", "(01-ab-oA or 01-ba-oA) and (not silent or T3-2)",
    )  # fmt: skip
    assert inner.status == pytest.ExitCode.TESTS_FAILED
    data = inner.summary["dyadic"]
    assert data["outcomes"] == {"cases": 29, "passed": 22, "failed": 7, "error": 0, "skipped": 0, "missing": 0}
    assert list(data["matrices"]) == list(TASKS)
    cells = {
        task: [matrix["values"][matrix["models"].index(row)][matrix["models"].index(column)] for row, column in PAIRS]
        for task, matrix in data["matrices"].items()
    }
    assert cells == CALIBRATION
    [pressing] = [data["matrices"]["T3-2"]]
    assert pressing["models"] == ["achiever", "forfeiter", "silent"]
    assert (pressing["values"][0][2], pressing["values"][2][0]) == (1.0, 0.0)
    # What is said, and that it is said with its n.
    assert re.search(r"^achiever +1\.00 \(2\) +1\.00 \(2\) +1\.00 \(2\)$", inner.out, re.MULTILINE)
    assert "[offline: a proxy, not comparable with a language model]" in inner.out
    assert re.search(r"^silent with achiever .* 0\.00 \(2\)$", inner.out, re.MULTILINE)
    rows = by_id(inner)
    assert rows["DYA-T4-2-01-ab-oA-r1@forfeiter"]["outcome"] == "passed"
    assert rows["DYA-T2-01-ab-oA-r1"]["message"].startswith("solved: ")
    failed = rows["DYA-T3-2-01-ab-oA-r1@silent"]
    assert failed["outcome"] == "failed"
    assert failed["message"].startswith("no permission to ")
    assert failed["message"] in inner.out
    assert all(len(row["message"].splitlines()) <= 2 for row in rows.values())
    assert {row["judge"] for row in rows.values()} == {"offline"}


PAIRS = [("achiever", "forfeiter"), ("forfeiter", "achiever"), ("achiever", "achiever")]
CALIBRATION = {
    "T1-1": [1.0, 0.0, 1.0],
    "T1-2": [1.0, 0.0, 1.0],
    "T2": [0.0, 0.0, 1.0],
    "T3-1": [1.0, 0.0, 0.5],
    "T3-2": [pytest.approx(0.6, abs=0.15), 0.0, pytest.approx(0.6, abs=0.15)],
    "T4-1": [1.0, 0.0, 0.0],
    "T4-2": [1.0, 0.0, 0.0],
    "T4-3": [1.0, 0.0, None],
    "T4-4": [1.0, 0.0, None],
}
"""Scores of the first scenario of each archetype, model before partner. T3-2 comes out at 1 against a silent partner."""


# Determinism, and scoring again


def test_equal_seeds_give_equal_bytes_and_rows_at_any_n_and_score_finds_them_again(pytester: pytest.Pytester) -> None:
    args = ("--model=achiever", "--partner=forfeiter", "--tasks=T1-1", "--limit=4", "--judge=offline")
    one, two = (
        dyads(pytester, *args, *extra, run_dir=pytester.path / name) for name, extra in (("0", ()), ("2", ("-n2",)))
    )
    names = sorted(path.name for path in (one.run_dir / "recordings").iterdir())
    assert len(names) == 8
    for name in names:
        assert (one.run_dir / "recordings" / name).read_bytes() == (two.run_dir / "recordings" / name).read_bytes()
    assert one.rows() == two.rows()
    assert one.summary == two.summary
    summary = one.run_dir / "report" / "summary.json"
    before = summary.read_bytes()
    summary.unlink()
    for path in (one.run_dir / "results").iterdir():
        path.unlink()
    scored = CliRunner().invoke(main, ["score", str(one.run_dir)])
    assert scored.exit_code == 0, scored.output
    assert summary.read_bytes() == before
    # Without the judgements nothing is made up.
    (one.run_dir / "judgements.jsonl").unlink()
    scored = CliRunner().invoke(main, ["score", str(one.run_dir)])
    assert scored.exit_code == 0, scored.output
    counts = json.loads(summary.read_text())["dyadic"]["outcomes"]
    assert (counts["error"], counts["passed"], counts["failed"]) == (4, 0, 0)


# What breaks is an error of its item, and names the side


def test_an_agent_that_raises_is_an_error_that_names_its_side(pytester: pytest.Pytester) -> None:
    spec = adapter(pytester, "raise RuntimeError('device lost')")
    inner = dyads(pytester, "--model=forfeiter", f"--partner={spec}", "--tasks=T4-2", "--limit=4", "-k", "oA")
    assert outcomes(inner)["error"] == 2
    assert outcomes(inner)["failed"] == 0
    messages = {row["seats"]: row["message"] for row in inner.rows()}
    assert messages["ab"].startswith(f"side b: agent {spec}: RuntimeError: device lost at mine.py:")
    assert messages["ba"].startswith(f"side a: agent {spec}: RuntimeError: device lost at mine.py:")
    assert messages["ab"] in inner.out
    assert "Traceback" not in inner.out
    assert len(list((inner.run_dir / "errors").iterdir())) == 2


def test_a_partner_that_cannot_be_built_is_tried_once_and_an_error_of_its_pairing(pytester: pytest.Pytester) -> None:
    init = "note('built'); raise OSError('no weights')"
    spec = adapter(pytester, "return Emission()", init)
    inner = dyads(
        pytester, "--model=forfeiter", f"--partner={spec}", "--partner=silent", "--tasks=T4-2", "-k", "T4-2-01"
    )
    rows = by_id(inner)
    broken = [row for name, row in rows.items() if "mine.py" in name]
    assert [row["outcome"] for row in broken] == ["error"] * 4
    assert broken[0]["message"].startswith(f"side b: agent {spec}: OSError: no weights at mine.py:")
    assert (pytester.path / "built").read_text() == "x"
    assert outcomes(inner)["error"] == 4
    assert outcomes(inner)["cases"] == 8


def test_a_worker_that_dies_is_an_error_of_its_conversation(pytester: pytest.Pytester) -> None:
    step = "Path('bomb').exists() and (Path('bomb').unlink(), __import__('os')._exit(9)); return Emission()"
    (pytester.path / "bomb").touch()
    inner = dyads(pytester, f"--model={adapter(pytester, step)}", "--tasks=T4-2", "--limit=4", "-n2")
    assert (outcomes(inner)["error"], outcomes(inner)["missing"]) == (1, 0)
    [row] = [row for row in inner.rows() if row["outcome"] == "error"]
    assert "worker process died" in row["message"]
    assert (row["task"], row["self_play"]) == ("T4-2", True)


def test_without_a_judge_what_needs_one_is_skipped_and_the_rest_is_scored(pytester: pytest.Pytester) -> None:
    inner = dyads(
        pytester,
        "--model=forfeiter",
        "--partner=achiever",
        "--tasks=T4-1,T4-2",
        "-k",
        "ab-oA",
        "--judge=none",
        "--sample=2",
        "--acoustics=noisy",
    )
    assert {row["task"]: row["outcome"] for row in inner.rows()} == {"T4-1": "skipped", "T4-2": "failed"}
    # A sample is honoured; what has no part in it is said.
    assert inner.summary["dyadic"]["ignored"] == ["--acoustics"]
    assert inner.out.count("--acoustics has no part in conversations of two agents") == 2
    skipped = next(row for row in inner.rows() if row["task"] == "T4-1")
    assert skipped["outcome"] == "skipped"
    assert "needs a judge (option), and none was asked for" in skipped["message"]
    assert not (inner.run_dir / "judgements.jsonl").exists()


# Resuming, and one folder for both benchmarks


def test_a_folder_is_resumed_with_another_partner_and_nothing_is_recorded_again(pytester: pytest.Pytester) -> None:
    spec = adapter(pytester, "return Emission()")
    args = (f"--model={spec}", "--tasks=T4-2", "-k", "T4-2-01")
    first = dyads(pytester, *args, "--partner=silent")
    assert (pytester.path / "opened").read_text() == "x" * 4
    before = {path: path.stat().st_mtime_ns for path in (first.run_dir / "recordings").iterdir()}
    other = dyads(pytester, *args, "--partner=silent", "--resume", "--window=60")
    assert "was made with another dyadic" in other.out + other.err
    resumed = dyads(pytester, *args, "--partner=silent", "--partner=echo", "--resume")
    assert (pytester.path / "opened").read_text() == "x" * 8
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert outcomes(resumed)["cases"] == 8
    assert outcomes(resumed)["missing"] == 0
    assert resumed.summary["dyadic"]["models"] == sorted([spec, "silent", "echo"])


def test_a_partner_of_models_toml_may_come_later_and_may_not_change(pytester: pytest.Pytester) -> None:
    def resumed(options: str, *partners: str, more: tuple[str, ...] = ("--resume",)) -> Inner:
        (pytester.path / "some.toml").write_text(f'[far]\nagent = "echo"\noptions = {options}\n')
        args = (f"--models={pytester.path / 'some.toml'}", "--model=silent", "--tasks=T4-2", "--limit=1")
        return dyads(pytester, *args, *(f"--partner={partner}" for partner in partners), *more)

    resumed("{}", "silent", more=())
    joined = resumed("{gain = 0.5}", "far")
    assert outcomes(joined)["cases"] == 2, joined.out + joined.err
    assert joined.summary["fingerprint"]["dyadic"]["partners"] == {"far": {"agent": "echo", "args": {"gain": 0.5}}}
    other = resumed("{gain = 0.25}", "silent", "far")
    assert "was made with another partner far; name another folder" in other.out + other.err


def test_both_benchmarks_share_a_run_folder(pytester: pytest.Pytester) -> None:
    args = ("--model=silent", "--levels=L0", "--limit=2")
    alone = run(pytester, *args, run_dir=pytester.path / "alone")
    both = dyads(pytester, *args, "--tasks=T4-2", run_dir=pytester.path / "both", target=ROOT / "cases")
    assert both.counts == alone.counts
    assert both.summary["ifeval"] == alone.summary["ifeval"]
    assert outcomes(both)["cases"] == 2
    assert "DSB-IFEval" in both.out
    assert "DyaFDB" in both.out
    assert "dyadic" not in alone.summary
    joined = dyads(pytester, *args, "--tasks=T4-2", "--resume", run_dir=alone.run_dir)
    assert joined.summary == both.summary
    before = (both.run_dir / "report" / "summary.json").read_bytes()
    scored = CliRunner().invoke(main, ["score", str(both.run_dir)])
    assert scored.exit_code == 0, scored.output
    assert (both.run_dir / "report" / "summary.json").read_bytes() == before
