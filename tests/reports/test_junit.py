"""``--junitxml``: an item is found by its id, its properties are its row's, and an error is no failure."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

BREAKS = """
from adapters.controls import Silent


class Breaks(Silent):
    def open(self, prompt, seed):
        if prompt:
            raise RuntimeError("lost its mind")
        return super().open(prompt, seed)
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_item_has_the_properties_of_its_row(pytester: pytest.Pytester, workers: str) -> None:
    agent = pytester.path / "breaks.py"
    agent.write_text(BREAKS)
    xml = pytester.path / "junit.xml"
    inner = run(
        pytester, f"--model={agent}:Breaks", "--judge=offline", "--levels=L0,L2", "--roles=R1", "--limit=2",
        f"--junit-xml={xml}", "-n", workers,
    )  # fmt: skip
    rows = {(row["id"], row["item"]): row for row in inner.rows()}
    found = {}
    for case in ElementTree.parse(xml).getroot().iter("testcase"):
        told = {one.get("name"): one.get("value") for one in case.iter("property")}
        row = rows[str(told["id"]), str(told["item"])]
        assert case.get("name") == f"test_{row['item']}[{row['id']}]"
        outcome = next((name for name in ("error", "failure", "skipped") if case.find(name) is not None), "passed")
        assert outcome == {"failed": "failure"}.get(row["outcome"], row["outcome"])
        for name in ("outcome", "role", "probe", "level", "action", "judge", "pas", "margin", "seed"):
            assert told.get(name) == (None if row.get(name) is None else str(row[name])), name
        found[row["id"], row["item"]] = outcome
    assert found.keys() == rows.keys()
    assert len(rows) == 4
    assert {outcome for (case, _), outcome in found.items() if case.endswith("L2")} == {"error"}
    assert "error" not in {outcome for (case, _), outcome in found.items() if case.endswith("L0")}


def test_a_conversation_has_the_scores_of_both_sides(pytester: pytest.Pytester) -> None:
    xml = pytester.path / "junit.xml"
    inner = run(
        pytester, "--model=achiever", "--partner=forfeiter", "--tasks=T4-2", "--limit=1", "--repeats=1", "--window=30",
        "--judge=offline", f"--junit-xml={xml}", target=ROOT / "cases" / "dyadic",
    )  # fmt: skip
    (row,) = inner.rows()
    (case,) = ElementTree.parse(xml).getroot().iter("testcase")
    told = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert told["id"] == row["id"]
    assert (told["model_a"], told["model_b"]) == (row["model_a"], row["model_b"])
    scores = {
        f"score_{side}": str(found["score"]) for side, found in row["scores"].items() if found["score"] is not None
    }
    assert scores
    assert scores == {name: value for name, value in told.items() if str(name).startswith("score_")}
