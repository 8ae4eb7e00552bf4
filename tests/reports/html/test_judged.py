"""Judges that are asked after a run: the report has what they said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from dsbeval.cli import main
from dsbeval.results import RunFolder
from reports.csv_tables import tables
from reports.html.shown import at, formatted
from reports.judged import join_persona
from tests.inner import ROOT, run
from tests.reports.html.conftest import FEW, make
from tests.reports.html.page import Page
from tests.reports.html.runs import dyadic_run, ifeval_run

pytest_plugins = ["pytester"]

Look = Callable[..., Page]
NUMBERS = """
  const all = [...document.querySelectorAll("main [data-key]")];
  return all.map((e) => [e.dataset.key, e.dataset.format, e.textContent]);
"""
SCHEMA = json.loads((ROOT / "docs" / "summary.schema.json").read_text(encoding="utf-8"))


def judge(folder: RunFolder) -> None:
    done = CliRunner().invoke(main, ["judge", str(folder.root), "--judge=offline"])
    assert done.exit_code == 0, done.output


def test_a_judge_asked_afterwards_is_in_overview_and_list(look: Look, tmp_path: Path) -> None:
    folder = ifeval_run(tmp_path / "run", "turn_based", FEW)
    assert make(folder).summary["judges"] == {}
    judge(folder)
    made = make(folder)
    jsonschema.validate(json.loads(json.dumps(made.summary)), SCHEMA)
    told = made.summary["judges"]["offline"]
    assert told["pas"]["overall"]["n"] == told["counts"]["passed"] + told["counts"]["failed"] == len(FEW)
    assert 1 <= told["asked"]["asked"] <= len(FEW)  # equal prompts are asked once
    page = look(made.page).open("#/overview")
    assert "No judge" not in page.text()
    assert formatted(told["pas"]["overall"]["mean"], "f1") in page.text("#s-judge-0")
    page.go("#/cases")
    assert page.texts("tbody td:nth-child(5)") == [str(made.rows[name, "persona"]["pas"]) for name in FEW]


def test_a_judge_asked_after_conversations_has_a_page_of_them(look: Look, tmp_path: Path) -> None:
    folder = dyadic_run(tmp_path / "run", "achiever", "forfeiter", ["T4-1-01"], judge="none")
    assert "judged" not in make(folder).summary
    judge(folder)
    made = make(folder)
    jsonschema.validate(json.loads(json.dumps(made.summary)), SCHEMA)
    assert "T4-1" not in made.summary["dyadic"]["matrices"]
    page = look(made.page).open("#/dyads-0")
    assert page.texts("#nav a[aria-current]") == ["Dyads, judged by offline"]
    matrix = made.summary["judged"]["offline"]["dyadic"]["matrices"]["T4-1"]
    assert sorted(value for row in matrix["values"] for value in row if value is not None) == [0, 1]
    shown = page.js(
        "return [...document.querySelectorAll('main [data-key]')].map((e) => [e.dataset.key, e.dataset.format, e.textContent])"
    )
    head, rows = tables(made.summary)["dyad_scores"]
    told = [dict(zip(head, row, strict=True)) for row in rows]
    assert {(row["judge"], row["task"]) for row in told} == {("offline", "T4-1")}
    assert {row["value"] for row in told} == {0, 1}
    assert any(key.startswith("/judged/offline/dyadic/matrices/T4-1/") for key, *_ in shown)
    for key, form, text in shown:
        assert text == formatted(at(made.summary, key), form), key
    plots = page.js("return [...document.querySelectorAll('figure.plot')].map((e) => e.dataset.plot)")
    assert plots
    assert all(plot.startswith("0-") for plot in plots)


def test_of_two_tables_of_one_judge_the_fuller_counts(tmp_path: Path) -> None:
    folder = ifeval_run(tmp_path / "run", "turn_based", FEW, judge="offline")
    rows = folder.rows()
    judge(folder)
    assert join_persona(rows, folder) == rows
    unjudged = [
        {"outcome": "error"} | {k: row[k] for k in ("id", "item", "judge")} if row["item"] == "persona" else row
        for row in rows
    ]
    joined = join_persona(unjudged, folder)
    assert sum("pas" in row for row in joined) == len(FEW)
    assert len(joined) == len(rows)


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = ifeval_run(tmp_path / "run", "silent", FEW[:1])
    make(folder)
    for content in ("{ torn", "[]", '{"judge": 1}'):
        (folder.report / "judge-x.json").write_text(content)
        done = CliRunner().invoke(main, ["report", str(folder.root)])
        assert done.exit_code == 2, done.output
        assert "judge-x.json" in done.output
        assert "run dsbeval judge again" in done.output
        assert len(done.output.strip().splitlines()) == 1


def test_a_run_that_goes_on_keeps_what_was_judged_meanwhile(pytester: pytest.Pytester) -> None:
    chosen = ("--model=silent", "--levels=L2", "--roles=R1", "--limit=1")
    inner = run(pytester, *chosen)
    folder = RunFolder.open(inner.run_dir)
    judge(folder)
    again = run(pytester, *chosen, "--resume", "--report=linked")
    assert again.summary["judges"]["offline"]["pas"]["overall"]["n"] == 1
    assert '"judge":"offline"' in (folder.report / "data" / "r0-case-0.js").read_text()
    (folder.report / "judge-offline.json").write_text("{ torn")
    broken = run(pytester, *chosen, "--resume")
    assert broken.status == again.status
    assert "summary: not made: " in broken.out
    assert "judge-offline.json: cannot be read" in broken.out
