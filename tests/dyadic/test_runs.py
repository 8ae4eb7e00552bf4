"""Runs put together: recorded apart they give what one folder gives, and what is unlike is refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  pytester drops what a test is the first to import, and numpy cannot come in twice
import pytest
from click.testing import CliRunner, Result

from dsbeval.cli import main
from dsbeval.dyadic.runs import comparable, join_earlier
from dsbeval.errors import DsbevalError
from dsbeval.results import RunFolder
from tests.dyadic.dyads import dyad, print_of
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

DYADS = ROOT / "cases" / "dyadic"
ARGS = ("--window=30", "--repeats=1", "--tasks=T4-2", "-k", "T4-2-01", "--judge=offline")


def dsbeval(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_a_new_model_is_scored_by_recording_only_its_own_pairings(pytester: pytest.Pytester) -> None:
    old = run(pytester, *ARGS, "--model=forfeiter", run_dir=pytester.path / "old", target=DYADS)
    new = run(
        pytester, *ARGS, "--model=achiever", "--partner=achiever", "--partner=forfeiter", f"--with-run={old.run_dir}",
        run_dir=pytester.path / "new", target=DYADS,
    )  # fmt: skip
    assert old.summary["dyadic"]["variance"]["tasks"]["T4-2"] == {"reason": "needs two models or more"}
    found = new.summary["dyadic"]
    assert found["matrices"]["T4-2"]["models"] == ["achiever", "forfeiter"]
    assert found["matrices"]["T4-2"]["values"] == [[0.0, 1.0], [0.0, 0.0]]
    assert found["matrices"]["T4-2"]["n"] == [[2, 2], [2, 2]]
    assert set(found["variance"]["tasks"]["T4-2"]["eta2"]) == {"model", "partner", "interaction"}
    # What became of the items is the run's own affair; what joined is named with its gaps.
    assert found["outcomes"]["cases"] == 6
    assert found["conversations"] == 8
    joined = {"run": "old", "agent": "forfeiter", "cases": 2, "passed": 2, "failed": 0, "error": 0, "skipped": 0}
    assert found["with_runs"] == [{**joined, "missing": 0}]
    assert "with run old: agent forfeiter, 2 conversations: 0 error, 0 skipped, 0 missing" in new.out

    # After the fact the same, and alone without.
    path = new.run_dir / "report" / "summary.json"
    before = path.read_bytes()
    assert dsbeval("score", new.run_dir, "--with-run", old.run_dir).exit_code == 0
    assert path.read_bytes() == before
    assert dsbeval("score", new.run_dir).exit_code == 0
    alone = json.loads(path.read_text())["dyadic"]
    assert alone["matrices"]["T4-2"]["n"] == [[2, 2], [2, 0]]
    assert "with_runs" not in alone


def test_an_earlier_run_that_does_not_fit_is_one_line_before_anything_runs(pytester: pytest.Pytester) -> None:
    old = folder(pytester.path / "old", "forfeiter", ["DYA-T4-2-01-ab-oA-r1"])
    args = ("--model=achiever", "--partner=forfeiter", "--tasks=T4-2", f"--with-run={old.root}")
    unlike = run(pytester, *args, target=DYADS)
    assert unlike.status == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in unlike.err.splitlines() if line.strip()]
    assert (
        f"--with-run: {old.root} was made with another dsbeval version, resampler, scenarios, judge; it cannot" in line
    )
    assert not unlike.run_dir.exists()
    nobody = run(pytester, "--model=silent", f"--with-run={old.root}")
    assert "--with-run: no conversations of two agents are asked for" in nobody.err


# Which runs may stand together


def folder(root: Path, agent: str, cases: list[str], *, partner: str = "", **fields: Any) -> RunFolder:
    """Make a run folder whose conversations all have a row."""
    made = RunFolder.create(root, print_of(agent, **fields), cases)
    for name in cases:
        row: dict[str, Any] = dict(dyad("T4-2", (agent, partner or agent), {"a": 1.0}))
        made.append({**row, "id": name, "model": agent, "partner": partner or agent, "judge": "offline"})
    return made


OWN = ["DYA-T4-2-01-ab-oA-r1@b"]


def joined(
    tmp_path: Path, *, agent: str = "b", cases: tuple[str, ...] = ("DYA-T4-2-01-ab-oA-r1",), **fields: Any
) -> Any:
    own = folder(tmp_path / "own", "a", OWN, partner="b")
    other = folder(tmp_path / "other", agent, list(cases), **fields)
    return join_earlier([other.root], own)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"versions": {"dsbeval": "1", "resampler": "soxr", "python": "3.11"}},  # moves nothing of a conversation
        {"dyadic": {"window_s": 30}},
        {"dyadic": {"medium": "text", "words": 240}},
        {"agent": "c", "agent_args": {"voice": "x"}},
        {"agent": "a", "partner": "c"},
        {"agent": "a", "partner": "c", "dyadic": {"partners": {"c": {"agent": "d", "args": {"voice": "x"}}}}},
        {"agent": "a", "cases": ("DYA-T4-2-01-ab-oA-r1@b",), "partner": "b", "dyadic": {"window_s": 120}},
    ],
)
def test_runs_that_differ_in_nothing_that_matters_are_joined(tmp_path: Path, fields: dict[str, Any]) -> None:
    [found] = joined(tmp_path, **fields)
    assert [row["id"] for row in found.rows] == list(found.cases)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": 1}, "other was made with another seed; it cannot stand in one matrix"),
        ({"latency": "measured"}, "another latency"),
        ({"versions": {"dsbeval": "2", "resampler": "soxr"}}, "another dsbeval version"),
        ({"judge": {"id": "openai:m", "prompts": "1"}}, "another judge;"),
        ({"judge": {"id": "offline", "prompts": "2"}}, "another judge's prompts"),
        ({"dyadic": {"scenarios": "s2", "lead_in_s": 2.0}}, "another scenarios, lead_in_s"),
        ({"agent_args": {"voice": "x"}}, "b in .*other has other arguments or another checkpoint than in .*own"),
        ({"checkpoint": {"name": "c.pt", "sha256": "1"}}, "b in .*other has other arguments or another checkpoint"),
        ({"agent": "c", "partner": "b", "dyadic": {"partner_args": {"voice": "x"}}}, "b in .*other has other arguments"),
        (
            {"agent": "c", "partner": "b", "dyadic": {"partners": {"b": {"agent": "b", "args": {"voice": "x"}}}}},
            "b in .*other has other arguments",
        ),
        (
            {"agent": "c", "partner": "b", "dyadic": {"partner_checkpoints": {"b": {"name": "c.pt", "sha256": "1"}}}},
            "b in .*other has other arguments or another checkpoint",
        ),
        (
            {"agent": "a", "partner": "b", "cases": tuple(OWN)},
            r"own and .*other both hold DYA-T4-2-01-ab-oA-r1@b of a; a conversation counts once",
        ),
    ],
)  # fmt: skip
def test_what_is_unlike_is_refused_by_name(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DsbevalError, match=message) as caught:
        joined(tmp_path, **fields)
    assert "\n" not in str(caught.value)


def test_one_checkpoint_is_itself_wherever_it_lies(tmp_path: Path) -> None:
    own = folder(tmp_path / "own", "a", OWN, checkpoint={"name": "x/c.pt", "sha256": "1"})
    same = folder(tmp_path / "same", "a", ["DYA-T4-2-01-ab-oA-r1"], checkpoint={"name": "y/c.pt", "sha256": "1"})
    other = folder(tmp_path / "other", "a", ["DYA-T4-2-02-ab-oA-r1"], checkpoint={"name": "x/c.pt", "sha256": "2"})
    assert len(join_earlier([same.root], own)) == 1
    with pytest.raises(DsbevalError, match="another checkpoint than in"):
        join_earlier([other.root], own)


def test_earlier_runs_must_fit_one_another_too(tmp_path: Path) -> None:
    own = folder(tmp_path / "own", "a", OWN)
    one, two = (
        folder(tmp_path / name, "c", ["DYA-T4-2-01-ab-oA-r1"], agent_args={"voice": name}) for name in ("x", "y")
    )
    with pytest.raises(DsbevalError, match=r"c in .*y has other arguments or another checkpoint than in .*x"):
        join_earlier([one.root, two.root], own)
    copy = tmp_path / "copy"
    shutil.copytree(one.root, copy)
    with pytest.raises(DsbevalError, match=r"x and .*copy both hold"):
        join_earlier([one.root, copy], own)


def test_a_folder_that_is_no_earlier_run_is_named(tmp_path: Path) -> None:
    own = folder(tmp_path / "own", "a", OWN)
    cases = RunFolder.create(tmp_path / "cases", {"agent": "a"}, ["IFD-R1"])
    for path, message in (
        (tmp_path / "nowhere", "not a run folder"),
        (own.root, "is the run itself"),
        (cases.root, "cases holds no conversations of two agents"),
    ):
        with pytest.raises(DsbevalError, match=message):
            join_earlier([path], own)
    with pytest.raises(DsbevalError, match="cases holds no conversations of two agents that an earlier run could join"):
        join_earlier([own.root], cases)
    other = folder(tmp_path / "other", "b", ["DYA-T4-2-01-ab-oA-r1"])
    with pytest.raises(DsbevalError, match="is named twice"):
        join_earlier([other.root, other.root], own)


def test_what_is_compared_has_a_name() -> None:
    assert set(comparable(print_of("a"))) == {
        "seed", "latency", "dsbeval version", "resampler", "medium", "scenarios", "lead_in_s", "judge", "judge's prompts",
    }  # fmt: skip
    assert "judge" not in comparable(print_of("a"), judge=False)
