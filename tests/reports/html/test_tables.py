"""The tables of a run: CSV and Markdown say what summary.json says, and summary.json is what its schema says."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsbeval.results import RunFolder
from reports.csv_tables import tables, write_tables
from reports.markdown import markdown
from reports.summary import build
from tests.inner import ROOT
from tests.reports.html.conftest import BROKEN, CUT, Made
from tests.reports.html.runs import fingerprint

SCHEMA = json.loads((ROOT / "docs" / "summary.schema.json").read_text(encoding="utf-8"))


def _faults(summary: dict[str, Any]) -> list[str]:
    Draft202012Validator.check_schema(SCHEMA)
    plain = json.loads(json.dumps(summary))
    return [
        f"{'/'.join(map(str, one.absolute_path))}: {one.message[:200]}"
        for one in Draft202012Validator(SCHEMA).iter_errors(plain)
    ]


def test_summaries_keep_the_schema(turn_based: Made, conversations: Made, tmp_path: Path) -> None:
    empty = RunFolder.create(tmp_path / "run", fingerprint("cascade"), [])
    for summary in (turn_based.summary, conversations.summary, build(empty)):
        assert _faults(summary) == []


@pytest.mark.parametrize("clocked", [
    {"latency": "measured", "rtf_mean": 0.5, "rtf_p95": 0.7, "max_lag_s": 0.01, "holds_real_time": True},
    {"latency": "wall", "jitter_ms": {"p99": 1.0, "max": 2.0}},
])  # fmt: skip
def test_a_clocked_run_with_caveats_keeps_the_schema(turn_based: Made, clocked: dict[str, Any]) -> None:
    rows = [
        row | {"realtime": clocked, "caveats": ["prompt_not_taken"]} if "passed" in row else row
        for row in turn_based.run.rows
    ]
    summary = build(turn_based.folder, rows)
    assert {"realtime", "caveats"} <= set(summary)
    assert _faults(summary) == []


def test_the_schema_refuses_what_no_run_writes(turn_based: Made) -> None:
    summary = json.loads(json.dumps(turn_based.summary))
    summary["ifeval"]["ias"]["all"]["L2"]["rate"] = 44.4
    summary["counts"]["lost"] = 1
    assert {fault.split(":")[0] for fault in _faults(summary)} == {"ifeval/ias/all/L2/rate", "counts"}


def _numbers(value: Any) -> set[float]:
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, (int, float)):
        return {float(value)}
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(_numbers, inside))


@pytest.mark.parametrize("which", ["turn_based", "conversations"])
def test_every_number_of_a_table_is_in_the_summary(request: pytest.FixtureRequest, tmp_path: Path, which: str) -> None:
    made: Made = request.getfixturevalue(which)
    write_tables(made.summary, tmp_path)
    known = _numbers(made.summary)
    found = {
        path.stem: list(csv.reader(io.StringIO(path.read_text(encoding="utf-8")))) for path in tmp_path.glob("*.csv")
    }
    assert set(found) == set(tables(made.summary))
    assert {"counts", *(("ias", "effects", "by_role_probe", "pas", "latency") if which == "turn_based" else
                        ("dyad_scores", "dyad_turn_taking", "dyad_survival", "dyad_profiles"))} <= set(found)  # fmt: skip
    for name, (head, *rows) in found.items():
        assert rows, name
        for values, written in zip(tables(made.summary)[name][1], rows, strict=True):
            assert len(written) == len(head)
            assert written == ["" if value is None else str(value) for value in values]
            numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
            assert all(float(value) in known for value in numbers), (name, values)


def test_a_table_is_the_summary_row_by_row(turn_based: Made) -> None:
    head, rows = tables(turn_based.summary)["ias"]
    assert list(head) == ["cells", "level", "rate", "passed", "n", "ci95_low", "ci95_high"]
    for cells, level, rate, passed, n, *limits in rows:
        cell = turn_based.summary["ifeval"]["ias"][cells][level]
        assert (rate, passed, n, limits) == (
            cell["rate"],
            cell["passed"],
            cell["n"],
            list(cell["ci95"] or (None, None)),
        )
    assert len(rows) == 3 * 7
    _, without = tables(turn_based.summary)["without_verdict"]
    assert [row[1:3] for row in without] == [["error", BROKEN], ["missing", CUT]]


def test_a_table_of_an_earlier_run_does_not_stay(turn_based: Made, conversations: Made, tmp_path: Path) -> None:
    write_tables(turn_based.summary, tmp_path)
    write_tables(conversations.summary, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.csv")} == set(tables(conversations.summary))


def test_markdown_has_counts_rates_and_warnings(turn_based: Made) -> None:
    text = markdown(turn_based.summary, "run-1")
    counts = turn_based.summary["counts"]
    assert f"{counts['passed']} passed, {counts['failed']} failed, 1 error, 0 skipped, 1 missing" in text
    assert f"> **Warning.** The run was cut: 1 of {counts['cases']} cases have no result." in text
    overall = turn_based.summary["ifeval"]["ias"]["all"]["overall"]
    assert f"{overall['passed']}/{overall['n']} |" in text  # fewer than ten: counts alone
    assert f"- `{BROKEN}`: agent turn\\_based: RuntimeError: broke" in text
    assert "a proxy, not comparable with a language model" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    widths = {tuple(len(row.split("|")) for row in rows[:5])}
    assert len({*widths.pop()}) == 1


def test_markdown_of_conversations(conversations: Made) -> None:
    text = markdown(conversations.summary, "run-2")
    assert "**DyaFDB**: 6 conversations" in text
    assert "| T4-2 secret extracted | achiever | " in text


def test_markdown_takes_names_as_names(turn_based: Made) -> None:
    summary = turn_based.summary | {"fingerprint": turn_based.summary["fingerprint"] | {"agent": "a|b<script>*x*\n# y"}}
    assert r"### dsbeval: a\|b\<script\>\*x\* \# y" in markdown(summary, "run")
