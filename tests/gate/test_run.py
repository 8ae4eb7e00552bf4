"""The gate in real test runs: exit status, table and refusals, with and without xdist.

The agent under test is the oracle in a mood: by its seed it does the opposite in some conversations, as a sampled model does
better and worse; by its arguments it stops yielding, or breaks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsbeval.cli import main
from dsbeval.compare.side import read_side
from tests.inner import IFEVAL, ROOT, Inner, run

pytest_plugins = ["pytester"]

SOME = ("--levels=L1", "--roles=R1,R2", "--probes=C3,C4", "--limit=15")
"""Ten conversations of YIELD and five of BACKCHANNEL."""

AGENT = """
import random
from adapters.controls import Contrarian, Oracle

class Moody(Oracle):
    def __init__(self, yields=True, breaks=0.0):
        self._yields, self._breaks = yields, breaks

    def open_case(self, brief, prompt, seed):
        luck = random.Random(seed)
        if luck.random() < self._breaks:
            raise RuntimeError("CUDA error: device lost")
        stubborn = brief.action == "YIELD" and not self._yields
        wrong = stubborn or luck.random() < 0.15
        return (Contrarian() if wrong else super()).open_case(brief, prompt, seed)
"""

RULES = """
[evidence]
min_conversations = 10

[[rule]]
metric = ["ias.all"]
drop = 3
required = true

[[rule]]
metric = ["action.*"]
drop = 10
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent, the rules, a run of the agent and its baseline."""
    root = tmp_path_factory.mktemp("gate")
    (root / "moody.py").write_text(textwrap.dedent(AGENT))
    (root / "gate.toml").write_text(RULES)
    made = subprocess.run(
        [
            sys.executable, "-m", "pytest", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider",
            str(IFEVAL), f"--model={root / 'moody.py'}:Moody", "--judge=none", "--run-dir", str(root / "base"), *SOME,
        ],
        capture_output=True, text=True, check=False, cwd=root,
    )  # fmt: skip
    assert made.returncode == 1, made.stdout + made.stderr
    written = CliRunner().invoke(main, ["baseline", str(root / "base"), "-o", str(root / "baseline.json")])
    assert written.exit_code == 0, written.output
    return root


def gated(pytester: pytest.Pytester, place: Path, *args: str, base: str = "baseline.json") -> Inner:
    options = ["--baseline", str(place / base), f"--gate={place / 'gate.toml'}"]
    return run(pytester, f"--model={place / 'moody.py'}:Moody", *SOME, *options, *args)


def decision(inner: Inner) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((inner.run_dir / "report" / "gate.json").read_text())
    return found


def test_a_checkpoint_that_has_stopped_yielding_is_stopped_and_named(pytester: pytest.Pytester, place: Path) -> None:
    inner = gated(pytester, place, "--model-arg", "yields=false", "-n2")
    assert inner.status == 1
    assert inner.counts["cases"] == 15
    assert "gate: REGRESSION: ias.all, action.YIELD (exit status 1)" in inner.out
    assert "action.YIELD" in decision(inner)["checks"][-1]["what"]
    assert "differs in agent_args.yields: none, False" in inner.out
    flips = decision(inner)["comparison"]["flips"]
    assert {flip["action"] for flip in flips["to_fail"]} == {"YIELD"}
    assert f"{len(flips['to_fail'])} passed before, fail now: YIELD {len(flips['to_fail'])}" in inner.out


def test_the_same_agent_with_another_seed_passes_though_cases_fail(pytester: pytest.Pytester, place: Path) -> None:
    inner = gated(pytester, place, "--seed=3", base="base")
    assert inner.status == 0
    assert inner.counts["failed"] > 0  # pytest's own status would be 1
    assert "gate: PASS (exit status 0)" in inner.out
    assert "differs in seed: 0, 3" in inner.out
    flips = decision(inner)["comparison"]["flips"]
    assert flips["to_fail"]
    assert flips["to_pass"]


def test_a_run_full_of_errors_is_not_enough_evidence(pytester: pytest.Pytester, place: Path) -> None:
    inner = gated(pytester, place, "--model-arg", "breaks=0.9")
    assert inner.status == 2
    assert inner.counts["error"] > 10
    assert "gate: NOT ENOUGH EVIDENCE: errors, coverage" in inner.out
    assert f"{inner.counts['error']} of 15 items ended in an error; at most 0" in inner.out


def stopped_early(inner: Inner) -> bool:
    assert "--max-errors: 3 of 15 items ended in an error" in inner.out
    assert 3 <= inner.counts["error"] < 15
    return inner.counts["missing"] == 15 - inner.counts["error"]


def test_max_errors_stops_workers_of_a_run_that_breaks(pytester: pytest.Pytester, place: Path) -> None:
    inner = gated(pytester, place, "--model-arg", "breaks=1.0", "--max-errors=2", "-n1")
    assert inner.status == 2
    assert stopped_early(inner)
    assert "items ended in an error; at most 2" in inner.out


def test_a_baseline_without_a_gate_is_compared_with_and_changes_no_status(
    pytester: pytest.Pytester, place: Path
) -> None:
    """Alone, unlike but allowed, and stopped after three errors."""
    unlike = ("--acoustics=telephone", "--allow-unlike", "--baseline", str(place / "baseline.json"))
    broken = ("--model-arg", "breaks=1.0", "--max-errors=2")
    inner = run(pytester, f"--model={place / 'moody.py'}:Moody", *SOME, *unlike, *broken)
    assert inner.status == pytest.ExitCode.INTERRUPTED
    assert stopped_early(inner)
    assert "comparison with the baseline" in inner.out
    assert "UNLIKE acoustics" in inner.out
    assert "0 pairs; 15 more in the base only" in inner.out


@pytest.mark.parametrize("parallel", [(), ("-n1",)], ids=["alone", "xdist"])
def test_an_unlike_baseline_is_refused_before_anything_is_recorded(
    pytester: pytest.Pytester, place: Path, parallel: tuple[str, ...]
) -> None:
    inner = gated(pytester, place, "--acoustics=telephone", *parallel)
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    said = inner.out + inner.err
    assert "they differ in acoustics: clean" in said
    assert "--allow-unlike" in said
    assert "Traceback" not in said
    assert not inner.run_dir.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gate",), "--gate: its rules need --baseline RUN"),
        (("--gate", str(ROOT / "cases"), "--baseline=x"), "is a folder; write --gate=FILE"),
    ],
)
def test_wrong_options_are_one_line_before_collection(
    pytester: pytest.Pytester, options: tuple[str, ...], said: str
) -> None:
    inner = run(pytester, "--model=oracle", *SOME, *options)
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    assert said in inner.err
    assert "Traceback" not in inner.err
    assert not inner.run_dir.exists()


def test_no_case_at_all_is_not_enough_evidence(pytester: pytest.Pytester, place: Path) -> None:
    inner = gated(pytester, place, "-k", "nothing")
    assert inner.status == 2
    assert "gate: NOT ENOUGH EVIDENCE: no case was run" in inner.out


def test_the_baseline_is_what_was_run(place: Path) -> None:
    side = read_side(place / "baseline.json")
    assert len(side.rows) == 15
    assert {row["action"] for row in side.rows} == {"YIELD", "BACKCHANNEL"}
    assert (place / "baseline.json").stat().st_size < 12_000
