"""The file of rules: what it may say, and how it is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbeval.compare.metrics import OF_THE_PACK, catalogue, item_of, metrics_of
from dsbeval.errors import OptionError
from dsbeval.gate.decide import MaxErrors
from dsbeval.gate.rules import Rules, read_rules
from tests.compare.runs import cases, passing, persona
from tests.dyadic.dyads import dyad

RULE = '[[rule]]\nmetric = ["ias.all"]\ndrop = 3\n'


def test_the_default_rules_are_read_and_name_metrics() -> None:
    rules = read_rules()
    assert rules.alpha == 0.05
    assert [rule.metric[0] for rule in rules.rule if rule.required] == ["ias.reactive"]
    assert rules.rule[0].drop == 3.0


def test_the_catalogue_has_every_metric_of_a_run_with_its_direction() -> None:
    """Rules are checked against the catalogue before there is a run."""
    turns = {"tor_pause": 0.1, "tor_end": 0.1, "barge_in": 0.5, "backchannels": 2, "occupancy": 0.5}
    rows = [
        *passing(cases()),
        *({**row, "enacted": True} for row in passing(cases(levels=["L4a"]))),
        *(persona(case, 60, "persona-wins") for case in cases()),
        *(
            {
                **dyad(task, ("x", "x"), {"a": 1.0, "b": 0.0} if task in ("T1-1", "T2", "T3-1", "T4-1") else {"a": 1.0}),
                "self_play": True, "seats": "ab", "turn_taking": {"a": turns, "b": turns},
            }
            for task in ("T1-1", "T1-2", "T2", "T3-1", "T3-2", "T4-1", "T4-2", "T4-3", "T4-4")
        ),
    ]  # fmt: skip
    found = {metric.name: metric.direction for metric in metrics_of(rows)}
    own = {name: way for name, way in found.items() if not name.startswith(OF_THE_PACK)}
    assert own == catalogue()
    assert {metric.name: metric.item for metric in metrics_of(rows)} == {name: item_of(name) for name in found}
    assert all(way == 1 for name, way in found.items() if name not in own)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no rule, limit or must_pass; there is nothing to judge"),
        ("alpha = 0.05 0.06", "not a TOML file of rules"),
        (f"alpha = 5\n{RULE}", "alpha: Input should be less than 1"),
        (f"{RULE}droop = 3\n", "rule[0].droop: is not a known field; did you mean drop?"),
        ('[[rule]]\nmetric = ["ias.all"]\n', "rule[0].drop: is missing"),
        (RULE.replace("ias.all", "ias.reactiv"), "'ias.reactiv' is not a metric; did you mean ias.reactive"),
        (RULE.replace("ias.all", "turns.*"), 'turns.barge_in has no better direction of its own; give worse = "fall"'),
        ('[[limit]]\nmetric = "leak"\n', "limit[0]: has either min or max"),
        ('[[limit]]\nmetric = "leaks"\nmax = 0.1\n', "'leaks' is not a metric; did you mean leak"),
        ("alpha = nan\n" + RULE, "alpha: Input should be a finite number"),
        (RULE.replace("drop = 3", "drop = inf"), "rule[0].drop: Input should be a finite number"),
        (RULE.replace("drop = 3", 'drop = "three"'), "rule[0].drop: Input should be a valid number"),
        ('[[limit]]\nmetric = "leak"\nmax = nan\n', "limit[0].max: Input should be a finite number"),
        (
            '[[limit]]\nmetric = "leak"\nmax = 0.3\nstrict = "no way"\n',
            "limit[0].strict: Input should be a valid boolean",
        ),
        (RULE.replace("metric", "metrics"), "rule[0].metrics: is not a known field; did you mean metric?"),
        (RULE.replace("[[rule]]", "[rule]"), "; write [[rule]] before its fields"),
        (
            RULE.replace('["ias.all"]', '"ias.all"'),
            "rule[0].metric: Input should be a valid list, not 'ias.all'; write metric = [",
        ),
        (f"{RULE}[evidence]\nmin_coverage = 98\n", "evidence.min_coverage: Input should be less than or equal to 1"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(text)
    with pytest.raises(OptionError) as caught:
        read_rules(path)
    assert str(caught.value).startswith(f"--gate: {path}: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_missing_file_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"is a folder; write --gate=FILE"):
        read_rules(tmp_path)
    with pytest.raises(OptionError, match=r"no such file; name a TOML file of rules"):
        read_rules(tmp_path / "gate.toml")


def test_a_rule_may_say_which_way_is_worse(tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_text('[[rule]]\nmetric = ["turns.occupancy"]\ndrop = 5\nworse = "rise"\n')
    assert read_rules(path).rule[0].worse == "rise"
    assert Rules.model_validate({"must_pass": ["R1_A"]}).rule == []


@pytest.mark.parametrize(("text", "items", "most"), [("12", 100, 12), ("0", 100, 0), ("2%", 149, 2), ("2.5%", 200, 5)])
def test_most_errors(text: str, items: int, most: int) -> None:
    assert MaxErrors.parse(text).most(items) == most


@pytest.mark.parametrize("text", ["", "few", "-1", "101%", "1.5", "2 %x"])
def test_what_is_no_number_of_errors(text: str) -> None:
    with pytest.raises(OptionError, match="is not a number of items"):
        MaxErrors.parse(text)
