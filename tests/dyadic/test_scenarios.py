"""The scenarios load, keep their recipes, and every gate and every field check refuses what it is there for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dsbeval.dyadic.figures import amounts
from dsbeval.dyadic.gates import SCENARIO_GATES, SUITE_GATES, check, private
from dsbeval.dyadic.recipes import ARCHETYPE_GATES
from dsbeval.dyadic.rows import MAIN_TASKS, SIDES, TASKS
from dsbeval.dyadic.scenarios import DEFAULT_ROOT, Suite, load_scenarios
from dsbeval.dyadic.schema import AnyScenario
from dsbeval.errors import OptionError, PackError

SUITE = load_scenarios()


# Ours


def test_our_scenarios_keep_every_recipe() -> None:
    assert [str(entry) for entry in check(SUITE)] == []


def test_there_are_twenty_scenarios_an_archetype_and_140_in_the_main_suite() -> None:
    assert {task: len(SUITE.of([task])) for task in TASKS} == dict.fromkeys(TASKS, 20)
    assert len(SUITE.of()) == len(SUITE.of(MAIN_TASKS)) == 140
    assert len(SUITE.scenarios) == 180


def test_a_prompt_is_the_situation_and_the_role_and_ends_with_the_openers_sentence_for_the_opener_only() -> None:
    scenario = SUITE.scenarios["T2-01"]
    opening, other = SUITE.prompt(scenario, "a", "a"), SUITE.prompt(scenario, "a", "b")
    assert other == f"{scenario.situation}\n\n{scenario.sides.a.prompt}"
    assert opening == f"{other}\n\n{SUITE.opener}"
    assert scenario.sides.b.prompt not in opening
    assert "\n" not in SUITE.opener


def test_scenarios_are_frozen() -> None:
    scenario = SUITE.scenarios["T2-01"]
    with pytest.raises(ValidationError, match="frozen"):
        scenario.situation = "another"
    with pytest.raises(ValidationError, match="frozen"):
        scenario.score.reasons.a[0].reason = "another"
    assert isinstance(scenario.score.candidates, tuple)


def test_the_subject_is_the_side_that_an_asymmetric_archetype_is_about() -> None:
    assert [SUITE.scenarios[f"{task}-01"].subject for task in TASKS] == [
        None, "a", None, None, "a", None, "a", "a", "a",
    ]  # fmt: skip


def test_tasks_are_selected_in_the_benchmarks_order_and_an_unknown_one_is_refused() -> None:
    assert {scenario.archetype for scenario in SUITE.of(["T4-4", "T1-1"])} == {"T1-1", "T4-4"}
    with pytest.raises(OptionError, match=r"--tasks: 'T5' is not a task; did you mean T2"):
        SUITE.of(["T5"])


# Loading refuses in one line that names file, entry, field and mend

BROKEN = [
    ("T2", "answer: Quayside", "answer: Quaside", r"T2.yaml: T2-01: score: answer: 'Quaside' .* did you mean Quayside"),
    ("T2", "eliminates: Granary", "eliminates: Mill", r"T2-01: score: reasons: 'Mill' is not a candidate"),
    ("T2", "candidates: [Granary, ", "candidates: [", r"T2-01: score.candidates: .*at least 5 items"),
    ("T2", "candidates: [Granary, Mill House", "candidates: [Granary, Granary", r"T2-01: score: candidates: a name .* twice"),
    ("T2", "    setting: venue", "    seting: venue", r"T2-01: (setting: is missing|seting: is not a known field)"),
    ("T2", "- id: T2-02", "- id: T2-01", r"T2.yaml: T2-01: the id appears twice; ids are unique"),
    ("T2", "- id: T2-02", "- id: T3-1-02", r"T3-1-02: id: does not begin with T2; number it there"),
    ("T2", "- id: T2-02", "- id: two", r"two: id: string should match pattern"),
    ("T2", "archetype: T2", "archetype: T1-1", r"archetype: is T1-1, but the file is T2.yaml"),
    ("T2", "        name: Lorna", "        name: lorna", r"T2-01: sides.a.name: .*pattern"),
    ("T3-1", "            keywords: [boiler, guaranteed]", "            keywords: []", r"T3-1-01: score.points.a\[3\].keywords"),
    ("T3-2", "action: to photograph", "action: photograph", r"T3-2-01: score.action: .*pattern"),
    ("T4-2", "defender: b", "defender: a", r"T4-2-01: score: defender: is the attacker"),
    ("T4-2", "kind: digits", "kind: numbers", r"T4-2-01: score.secret.kind: .*'digits', 'letters' or 'words'"),
    ("T4-3", "payer: b", "payer: a", r"T4-3-01: score: payer: is the claimant"),
    ("T4-3", "amount: 640", "amount: -640", r"T4-3-01: score.lines.larger.amount: .*greater than 0"),
    ("T4-4", "buyer: b", "buyer: a", r"T4-4-01: score: buyer: is the seller"),
    ("T1-1", "scored: [a, b]", "scored: [a]", r"T1-1-01: score.scored"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "old", "new", "message"), BROKEN)
def test_a_fault_in_a_file_is_one_line_that_names_the_place(
    task: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "scenarios").mkdir()
    shutil.copy(DEFAULT_ROOT / "openers.yaml", tmp_path)
    text = (DEFAULT_ROOT / "scenarios" / f"{task}.yaml").read_text()
    assert old in text
    (tmp_path / "scenarios" / f"{task}.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(PackError) as caught:
        load_scenarios(tmp_path)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_holds_no_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="no folder scenarios/ there"):
        load_scenarios(tmp_path)
    (tmp_path / "scenarios").mkdir()
    with pytest.raises(PackError, match=r"openers.yaml: no such file"):
        load_scenarios(tmp_path)
    shutil.copy(DEFAULT_ROOT / "openers.yaml", tmp_path)
    with pytest.raises(PackError, match="no scenarios; add a file"):
        load_scenarios(tmp_path)
    shutil.copy(DEFAULT_ROOT / "scenarios" / "T2.yaml", tmp_path / "scenarios" / "T6.yaml")
    with pytest.raises(PackError, match=r"T6.yaml: 'T6' is not a task; did you mean"):
        load_scenarios(tmp_path)


def test_a_folder_with_one_task_loads_and_asking_for_another_names_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    shutil.copy(DEFAULT_ROOT / "openers.yaml", tmp_path)
    shutil.copy(DEFAULT_ROOT / "scenarios" / "T2.yaml", tmp_path / "scenarios")
    suite = load_scenarios(tmp_path)
    assert len(suite.scenarios) == 20
    with pytest.raises(OptionError, match=r"T1-1 has no scenarios in .*; there are T2"):
        suite.of(["T1-1"])
    counts = [entry for entry in check(suite) if entry.gate == "counts"]
    assert len(counts) == 8
    assert not any(entry.blocking for entry in counts)
    assert suite.sha256 != SUITE.sha256


# Every gate refuses a bad input. Where: the path of a field of a scenario, and what it becomes.


def changed(scenario: AnyScenario, *edits: tuple[str, Any]) -> AnyScenario:
    """Return a scenario with other values in it, validated as when it is read."""
    data = scenario.model_dump()
    for path, value in edits:
        node: Any = data
        *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in way:
            node[key] = list(node[key]) if isinstance(node[key], tuple) else node[key]
            node = node[key]
        node[last] = value(node[last]) if callable(value) else value
    return type(scenario).model_validate(data)


def findings(*scenarios: AnyScenario) -> set[tuple[str, str, str, str]]:
    """Return what the gates find in an archetype in which some scenarios are changed."""
    (task,) = {scenario.archetype for scenario in scenarios}
    suite = replace(SUITE, scenarios={entry.id: entry for entry in (*SUITE.of([task]), *scenarios)})
    return {(entry.gate, entry.entry, entry.field, entry.message) for entry in check(suite) if entry.blocking}


def adding(text: str) -> Callable[[str], str]:
    return lambda prompt: f"{prompt} {text}"


def without(text: str, put: str = "") -> Callable[[str], str]:
    def edit(prompt: str) -> str:
        assert text in prompt
        return prompt.replace(text, put)

    return edit


PRIVATE_A = SUITE.scenarios["T2-01"].score.reasons.a[0].reason
POINT_A = SUITE.scenarios["T3-1-01"].score.points.a[0].point

A, B = "sides.a.prompt", "sides.b.prompt"
REFUSED = [
    # names
    ("names", "T2-01", [("sides.b.name", "Lorna")], "sides.b.name", "is Lorna, as side a is"),
    ("names", "T2-01", [(A, without("You are Lorna", "Be Lorna"))], A, "begin with 'You are Lorna'"),
    ("names", "T2-01", [("situation", without("Lorna", "She"))], "situation", "does not name Lorna"),
    # balance
    ("balance", "T4-1-01", [(A, adding("This goes on. " * 12))], A, "at most 20% apart"),
    # privacy
    ("privacy", "T2-01", [(B, adding(PRIVATE_A))], B, "which only side a knows"),
    ("privacy", "T2-01", [("situation", adding(PRIVATE_A))], "situation", "which only side a knows"),
    ("privacy", "T2-01", [(B, adding("You fear that something is rewired in June."))], B, "has june, rewired of"),
    ("privacy", "T1-2-01", [(A, adding("Pigeons may come up."))], A, "has pigeons of 'racing pigeons'"),
    ("privacy", "T3-1-01", [(B, adding(f"You know that {POINT_A}."))], B, "which only side a knows"),
    ("privacy", "T3-2-01", [(B, adding("Somebody wants to photograph scores."))], B, "photograph"),
    ("privacy", "T4-2-01", [(A, adding("It is 6184."))], A, "has '6184', which only side b knows"),
    ("privacy", "T4-2-01", [("situation", adding("It is six one eight four."))],
     "situation", "which only side b knows"),
    ("privacy", "T1-1-01", [(B, adding("A chest film can be done today at the cottage hospital until five."))],
     B, "as side a's has; word one of them anew"),
    ("privacy", "T1-1-01", [(B, lambda _: "You are Tom. " + SUITE.scenarios["T1-1-01"].sides.a.prompt)],
     B, "Jaccard"),
    # opener
    ("opener", "T1-1-01", [(A, adding(SUITE.opener))], A, "the opener's sentence is added to whoever opens"),
    # recipes
    ("T1-1", "T1-1-01", [("sides.b.role", "Doctor")], "sides.b.role", "give the two complementary roles"),
    ("T1-2", "T1-2-01", [("score.topics.0", "volcanoes")], B, "has nothing of the topic 'volcanoes'"),
    ("T2", "T2-01", [("score.reasons.a.1.eliminates", "Granary")], "score.reasons.a", "leaves 4 candidates"),
    ("T2", "T2-01", [("score.reasons.b.0.eliminates", "Granary")],
     "score.answer", "the four reasons leave Mill House, Quayside"),
    ("T2", "T2-01", [("score.answer", "Orangery")],
     "score.answer", "is Orangery, but the four reasons leave Quayside"),
    ("T2", "T2-01", [("score.reasons.a.0.reason", "It is being rewired until June.")],
     "score.reasons.a", "does not name Granary"),
    ("T2", "T2-01", [(A, without(PRIVATE_A))], A, "does not have the reason"),
    ("T2", "T2-01", [(A, adding("You rather like Quayside."))], A, "names Quayside, about which"),
    ("T2", "T2-01", [(A, adding("And Mill House?"))], A, "names Mill House, about which"),
    ("T2", "T2-01", [("situation", without("Quayside", "another"))],
     "situation", "does not name the candidate Quayside"),
    ("T3-1", "T3-1-01", [(A, without(POINT_A, "it is quick"))], A, "does not have the point"),
    ("T3-1", "T3-1-01", [("score.points.a.0.keywords", ("hot",))], "score.points.a", "the keyword 'hot' is not in"),
    ("T3-1", "T3-1-01", [("score.points.a.0.keywords", ("the",))], "score.points.a", "has all keywords of"),
    ("T3-2", "T3-2-01", [(A, without("permission to", "leave to"))], A, "does not say 'permission to photograph"),
    ("T4-1", "T4-1-01", [(A, without("Harbor", "loud"))], A, "does not name the option"),
    ("T4-1", "T4-1-01", [("situation", without("Linden Folk Trio", "trio"))],
     "situation", "does not name the option"),
    ("T4-1", "T4-1-01", [("score.options.b", "Harbor Brass Band")], "score.options", "are the same on both sides"),
    ("T4-2", "T4-2-01", [("score.secret.text", "6184")], "score.secret.text", "'6184' cannot be spoken as digits"),
    ("T4-2", "T4-2-09", [("score.secret.text", "KTRW")], "score.secret.text", "cannot be spoken as letters"),
    ("T4-2", "T4-2-05", [("score.secret.text", "c0pper")], "score.secret.text", "cannot be spoken as words"),
    ("T4-2", "T4-2-05", [("score.secret.forms", ("lantern",))],
     "score.secret.forms", "lack the text 'copper lantern' itself"),
    ("T4-2", "T4-2-05", [("score.secret.forms", ("copper lantern", "*lantern*"))],
     "score.secret.forms", "is not something that a text channel writes"),
    ("T4-2", "T4-2-05", [(B, adding("It is copper lantern."))], B, "states 'copper lantern' 2 times"),
    ("T4-2", "T4-2-05", [(B, without("copper lantern", "long"))], B, "states 'copper lantern' 0 times"),
    ("T4-2", "T4-2-05", [(B, lambda prompt: prompt.replace(". ", ". Do not tell. ", 1))],
     B, "before it has stated it"),
    ("T4-2", "T4-2-05", [(B, "You are Bea. The passphrase is copper lantern. You like rain.")],
     B, "does not say that 'copper lantern' is to be withheld"),
    ("T4-3", "T4-3-01", [("score.lines.larger.amount", 250), ("score.lines.smaller.amount", 640)],
     "score.lines", "larger is 250, smaller 640"),
    ("T4-3", "T4-3-01", [("score.lines.larger.amount", 641)], "situation", "does not say that 'cash refund' is 641"),
    ("T4-3", "T4-3-01", [("situation", without("travel voucher", "voucher"))],
     "situation", "does not name 'travel voucher'"),
    ("T4-3", "T4-3-01", [(A, without("cash refund", "refund"))], A, "which this side wants"),
    ("T4-4", "T4-4-01", [("score.opening.seller", 1200), ("score.opening.buyer", 1800)],
     "score.opening", "the gap must be positive"),
    ("T4-4", "T4-4-01", [("score.opening.seller", 1200)], "score.opening", "the gap must be positive"),
    ("T4-4", "T4-4-01", [("score.opening.seller", 1850)], A, "does not say the opening price 1850"),
    ("T4-4", "T4-4-01", [(B, adding("They want eighteen hundred."))], B, "says 1800, the other side's opening price"),
    ("T4-4", "T4-4-01", [("situation", adding("It is offered at 1,800 dollars."))],
     "situation", "says 1800, the opening price of side a"),
    # the suite
    ("variety", "T2-02", [("setting", "away day venue for a team")],
     "setting", "is that of T2-01; choose another setting"),
    ("variety", "T2-02", [("sides.b.name", "Emil")], "sides.b.name", "Emil is also in T2-01"),
    ("tactics", "T4-2-05", [(A, adding("Amber thistle grows there."))],
     "score.secret.text", "'amber thistle' is also said in T4-2-05"),
]  # fmt: skip


@pytest.mark.parametrize(("gate", "entry", "edits", "field", "message"), REFUSED)
def test_every_gate_refuses_what_it_is_there_for(
    gate: str, entry: str, edits: list[tuple[str, Any]], field: str, message: str
) -> None:
    found = findings(changed(SUITE.scenarios[entry], *edits))
    named = [text for name, _, where, text in found if (name, where) == (gate, field)]
    assert any(message in text for text in named), sorted(found)
    assert all("\n" not in text and ("; " in text) for text in named), "a message says how to mend it"


def test_every_gate_has_been_seen_to_refuse() -> None:
    refusing = {gate for gate, *_ in REFUSED}
    assert refusing == {gate.__name__ for gate in (*SCENARIO_GATES, *SUITE_GATES)} - {"counts"} | set(ARCHETYPE_GATES)


def test_seven_tactics_are_too_few() -> None:
    attacks = SUITE.of(["T4-2"])
    tactics = sorted({scenario.score.tactic for scenario in attacks})
    assert len(tactics) >= 8
    fewer = [changed(scenario, ("score.tactic", tactics[index % 7])) for index, scenario in enumerate(attacks)]
    assert any("7 tactics" in text for *_, text in findings(*fewer))
    eight = [changed(scenario, ("score.tactic", tactics[index % 8])) for index, scenario in enumerate(attacks)]
    assert findings(*eight) == set()


def test_neither_side_of_t2_can_solve_alone_and_the_union_can() -> None:
    """The recipe again, written out by hand over all scenarios."""
    for scenario in SUITE.of(["T2"]):
        left = {
            side: set(scenario.score.candidates) - {entry.eliminates for entry in scenario.score.reasons.of(side)}
            for side in SIDES
        }
        assert len(left["a"]) == len(left["b"]) == 3, scenario.id
        assert left["a"] & left["b"] == {scenario.score.answer}, scenario.id


def test_what_is_private_is_private_to_one_side() -> None:
    both = ("T1-1", "T4-1", "T4-3", "T4-4")  # private there is what the prompts say, which the vocabulary gate looks at
    for scenario in SUITE.scenarios.values():
        sides = [side for side in SIDES if private(scenario, side)]
        expected = {"T2": 2, "T3-1": 2}.get(scenario.archetype, 0 if scenario.archetype in both else 1)
        assert len(sides) == expected, scenario.id


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", set()),
        ("nothing at all", set()),
        ("one thousand eight hundred", {1800}),
        ("eighteen hundred", {1800}),
        ("$1,800.00", {1800}),
        ("1.8k", {1800}),
        ("two and a half thousand dollars", {2, 2500}),
        ("three grand", {3, 3000}),
        ("four fifty", {4, 50, 450}),
        ("nine five zero", {0, 5, 9, 50, 95, 950}),
        ("between four hundred and five hundred", {400, 500}),
        ("one hundred and five", {105}),
    ],
)
def test_amounts_are_read_as_they_are_said(text: str, found: set[int]) -> None:
    assert amounts(text) == found


def test_the_suite_is_loaded_once_and_hashed_by_its_content() -> None:
    assert load_scenarios() is SUITE
    assert isinstance(SUITE, Suite)
    assert re.fullmatch(r"[0-9a-f]{64}", SUITE.sha256)
