"""Agreement: figures against hand-worked examples, and labels of people from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.errors import RunError
from dsbeval.judge.agreement import (
    FIELDS,
    PUBLISHED,
    agreement_of,
    cohen_kappa,
    confusion,
    exact_match,
    self_agreement,
    spearman,
)
from dsbeval.judge.contract import Kind
from dsbeval.judge.humans import agreement_with_humans, majority, read_humans
from dsbeval.judge.tables import render_agreement
from dsbeval.results import Row
from tests.judge.support import GOOD_PAS


def judged(case: str, answer: dict[str, Any], kind: Kind = Kind.PAS, repeat: int = 0, prompt: str = "p") -> Row:
    answer = {**GOOD_PAS, **answer} if kind is Kind.PAS else answer
    return {
        "outcome": "judged", "id": case, "item": kind.value, "kind": kind.value, "answer": answer,
        "prompt_hash": f"{prompt}-{case}", "repeat": repeat,
    }  # fmt: skip


# Figures

# Cohen's own layout: 25 agree on yes, 15 on no, 5 and 5 apart: p_o = 0.8, p_e = 0.6 * 0.6 + 0.4 * 0.4 = 0.52
TABLE = [("y", "y")] * 25 + [("n", "n")] * 15 + [("y", "n")] * 5 + [("n", "y")] * 5


def test_exact_match_and_kappa_of_a_table_worked_by_hand() -> None:
    assert exact_match(TABLE) == 0.8
    assert cohen_kappa(TABLE) == pytest.approx((0.8 - 0.52) / 0.48)


def test_kappa_at_its_edges() -> None:
    assert cohen_kappa([]) is None
    assert exact_match([]) is None
    assert cohen_kappa([("y", "y")] * 9) is None  # chance agrees fully: nothing to be better than
    assert cohen_kappa([("y", "y"), ("n", "n")]) == 1.0
    assert cohen_kappa([("y", "n"), ("n", "y")]) == -1.0
    assert cohen_kappa([("y", "y"), ("y", "n"), ("n", "y"), ("n", "n")]) == 0.0


def test_spearman_of_ranks_worked_by_hand() -> None:
    assert spearman([(1, 10), (2, 20), (3, 30)]) == pytest.approx(1.0)
    assert spearman([(1, 30), (2, 20), (3, 10)]) == pytest.approx(-1.0)
    # ranks 1..5 against 2, 1, 4, 3, 5: sum of d^2 = 4, rho = 1 - 6 * 4 / (5 * 24)
    assert spearman([(1, 2), (2, 1), (3, 4), (4, 3), (5, 5)]) == pytest.approx(0.8)
    # ties at their mean rank: (1.5, 1.5, 3) against (1, 2, 3) is sqrt(3) / 2
    assert spearman([(7, 1), (7, 2), (9, 3)]) == pytest.approx(3**0.5 / 2)
    assert spearman([(1, 2), (1, 3), (1, 4)]) is None
    assert spearman([(1, 2), (2, 3)]) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=40))
@settings(deadline=None, max_examples=100)
def test_kappa_and_confusion_hold_together(pairs: list[tuple[str, str]]) -> None:
    swapped = [(b, a) for a, b in pairs]
    kappa = cohen_kappa(pairs)
    assert kappa == pytest.approx(cohen_kappa(swapped)) if kappa is not None else cohen_kappa(swapped) is None
    assert kappa is None or kappa <= 1.0 + 1e-12
    found = confusion(pairs)
    assert sum(map(sum, found["table"])) == len(pairs)
    diagonal = sum(found["table"][k][k] for k in range(len(found["labels"])))
    assert diagonal / len(pairs) == exact_match(pairs)


def test_confusion_keeps_the_order_of_ordered_labels() -> None:
    found = confusion([("yes", "no"), ("partly", "yes"), ("yes", "yes")], ("no", "partly", "yes"))
    assert found == {"labels": ["no", "partly", "yes"], "table": [[0, 0, 0], [0, 0, 1], [1, 0, 1]]}


# Two judges


def test_two_judges_are_compared_on_what_both_were_asked_alike() -> None:
    one = [
        judged(f"c{k}", {"pas": pas, "register_fit": fit})
        for k, (pas, fit) in enumerate([(80, 4), (20, 1), (60, 3), (90, 5)])
    ]
    other = [
        judged("c0", {"pas": 70, "register_fit": 4}),
        judged("c1", {"pas": 60, "register_fit": 2}),
        judged("c2", {"pas": 60, "register_fit": 3}, prompt="another"),
        judged("c9", {"pas": 10}),
    ]
    found = agreement_of(one, other)
    assert "role_adherence" not in found
    assert found["persona"]["n"] == 2
    assert found["persona"]["exact"] == 0.5  # 80 and 70 pass, 20 fails where 60 passes
    assert found["persona"]["confusion"] == {"labels": ["failed", "passed"], "table": [[0, 1], [0, 1]]}
    assert found["register_fit"]["exact"] == 0.5
    assert (found["persona"]["only_one"], found["persona"]["other_prompt"]) == (2, 1)
    assert found["pas"]["exact"] == 0.0
    assert found["pas"]["kappa"] is None


def test_ordered_labels_have_a_rank_correlation_and_the_published_figure() -> None:
    labels = ["no", "partly", "yes", "yes", "no"]
    others = ["no", "yes", "yes", "partly", "no"]
    kind = Kind.ROLE_ADHERENCE
    one = [judged(f"c{k}", {"answer": label}, kind) for k, label in enumerate(labels)]
    other = [judged(f"c{k}", {"answer": label}, kind) for k, label in enumerate(others)]
    row = agreement_of(one, other)["role_adherence"]
    assert row["exact"] == 0.6
    ranks = {"no": 0.0, "partly": 1.0, "yes": 2.0}
    assert row["rho"] == spearman([(ranks[a], ranks[b]) for a, b in zip(labels, others, strict=True)])
    assert "86.6 %" in row["published"]
    text = "\n".join(render_agreement("A and B", {"role_adherence": row}))
    assert "published, role_adherence" in text
    assert text.count("partly") == 2


def test_the_conflict_label_is_compared_at_l4_alone() -> None:
    one = [judged("c0", {"l4_category": "n/a"}), judged("c1", {"l4_category": "hedged"})]
    other = [judged("c0", {"l4_category": "n/a"}), judged("c1", {"l4_category": "incoherent"})]
    assert agreement_of(one, other)["l4_category"]["n"] == 1


def test_none_is_a_label_like_another_and_has_no_rank() -> None:
    kind = Kind.AGREED_PRICE
    one = [judged(f"c{k}", {"answer": price}, kind) for k, price in enumerate([100, None, 250.5, 1234567])]
    other = [judged(f"c{k}", {"answer": price}, kind) for k, price in enumerate([100.0, None, None, 1234568])]
    row = agreement_of(one, other)["agreed_price"]
    assert row["exact"] == 0.5
    assert row["rho"] is None  # two pairs of numbers


def test_every_published_figure_belongs_to_a_field() -> None:
    assert set(PUBLISHED) <= {field.name for field in FIELDS}
    assert {field.kind for field in FIELDS} == set(Kind)


# A judge with itself


def test_self_agreement_is_over_all_pairs_of_repeats() -> None:
    rows = [
        *(judged("c0", {"pas": pas}, repeat=k) for k, pas in enumerate([80, 80, 40])),
        *(judged("c1", {"pas": pas}, repeat=k) for k, pas in enumerate([10, 20, 30])),
        judged("c2", {"pas": 10}),
    ]
    found = self_agreement(rows)
    assert (found["persona"]["cases"], found["persona"]["n"]) == (2, 6)
    assert found["persona"]["exact"] == pytest.approx(4 / 6)
    assert found["pas"]["mean_difference"] == pytest.approx((0 + 40 + 40 + 10 + 20 + 10) / 6)
    assert found["content_fit"]["exact"] == 1.0
    assert self_agreement(rows[-1:]) == {}


def test_repeats_of_another_prompt_are_no_pair() -> None:
    assert self_agreement([judged("c0", {}), judged("c0", {}, repeat=1, prompt="another")]) == {}


# People


def test_the_majority_is_more_than_half() -> None:
    assert majority(["yes", "yes", "no"]) == "yes"
    assert majority(["yes", "no"]) is None
    assert majority(["yes", "partly", "no"]) is None
    assert majority(["yes", "yes", "no", "no", "yes"]) == "yes"
    assert majority([]) is None


def labels(tmp_path: Path, *lines: str, head: str = "id,field,annotator,label") -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8-sig")
    return path


def test_people_stand_beside_a_judge_with_their_majority(tmp_path: Path) -> None:
    path = labels(
        tmp_path,
        "c0,register_fit,p1,4", "c0,register_fit,p2,4", "c0,register_fit,p3,1",
        "c1,register_fit,p1,2", "c1,register_fit,p2,3", "c1,register_fit,p3,3",
        "c2,register_fit,p1,2", "c2,register_fit,p2,3",
        "c3,register_fit,p1,5",
        "c0,pas,p1,80.0",
    )  # fmt: skip
    people = read_humans(path)
    assert (people.annotators, people.without_majority) == (3, 1)
    rows = [judged("c0", {"register_fit": 4, "pas": 80}), judged("c1", {"register_fit": 1}), judged("c2", {})]
    found = agreement_with_humans(rows, people)
    assert set(found) == {"register_fit", "pas"}
    assert (found["register_fit"]["n"], found["register_fit"]["exact"]) == (2, 0.5)
    assert found["register_fit"]["only_one"] == 1
    assert found["pas"]["exact"] == 1.0


def test_a_case_with_two_items_of_a_field_is_named_with_its_item(tmp_path: Path) -> None:
    kind = Kind.ROLE_ADHERENCE
    rows = [
        {**judged("run-1", {"answer": "yes"}, kind), "item": "A"},
        {**judged("run-1", {"answer": "no"}, kind), "item": "B"},
    ]
    people = read_humans(labels(tmp_path, "run-1/A,role_adherence,p1,yes", "run-1/B,role_adherence,p1,partly"))
    found = agreement_with_humans(rows, people)["role_adherence"]
    assert (found["n"], found["exact"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("lines", "head", "words"),
    [
        (["c0,register_fit,p1"], "id,field,annotator,label", "line 2: label is empty"),
        (["c0,registerfit,p1,4"], "id,field,annotator,label", "did you mean register_fit"),
        (["c0,register_fit,p1,6"], "id,field,annotator,label", "label: '6' is not one of 0, 1, 2, 3, 4, 5"),
        (["c0,l4_category,p1,balanced"], "id,field,annotator,label", "is not one of directive-wins"),
        (["c0,pas,p1,high"], "id,field,annotator,label", "neither a number nor none"),
        (["c0,pas,p1,4", "c0,pas,p1,5"], "id,field,annotator,label", "line 3: p1 has labelled this already"),
        (["c0,pas,4"], "id,field,label", "has no column 'annotator'"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, lines: list[str], head: str, words: str) -> None:
    with pytest.raises(RunError) as error:
        read_humans(labels(tmp_path, *lines, head=head))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_not_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        read_humans(tmp_path / "nowhere.csv")
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RunError, match="cannot be read"):
        read_humans(tmp_path / "x.csv")
