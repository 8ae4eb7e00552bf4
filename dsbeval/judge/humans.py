"""Labels of people, beside which a judge is put.

Conventions
-----------
* A CSV file in UTF-8 with the columns ``id, field, annotator, label``, a line a label. ``id`` is the case's, or
  ``id/item`` where a case has several items of a field.
* The label of a case is that of more than half of its annotators; a case without one is left out and counted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsbeval.errors import RunError, near
from dsbeval.judge.agreement import FIELDS, Field, Label, compare, labels_of
from dsbeval.judge.dyadic import NONE
from dsbeval.judge.pas import CATEGORIES
from dsbeval.results import Row


def majority(labels: Iterable[Label]) -> Label | None:
    """Return the label that more than half have given, or None."""
    counts = Counter(labels)
    label, count = counts.most_common(1)[0] if counts else ("", 0)
    return label if 2 * count > counts.total() else None


@dataclass(frozen=True, slots=True)
class Humans:
    """Labels of people: the majority by (id, field), and how many cases had none."""

    labels: dict[tuple[str, str], Label]
    without_majority: int
    annotators: int


COLUMNS = ("id", "field", "annotator", "label")


def read_humans(path: Path) -> Humans:
    """Read labels of people. Raises :class:`RunError` with the line that is wrong."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
            names = set(rows[0]) if rows else set(COLUMNS)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{path}: cannot be read ({error}); give a CSV file in UTF-8") from None
    absent = [name for name in COLUMNS if name not in names]
    if absent:
        raise RunError(f"{path}: has no column {absent[0]!r}; the columns are {', '.join(COLUMNS)}")
    fields = {field.name: field for field in FIELDS}
    given: dict[tuple[str, str], dict[str, Label]] = {}
    for number, row in enumerate(rows, start=2):
        values = {name: (row[name] or "").strip() for name in COLUMNS}
        if not all(values.values()):
            empty = next(name for name in COLUMNS if not values[name])
            raise RunError(f"{path}: line {number}: {empty} is empty; fill it in or remove the line")
        field = fields.get(values["field"])
        if field is None:
            raise RunError(
                f"{path}: line {number}: field: {values['field']!r} is unknown; {near(values['field'], fields)}"
            )
        _check_label(f"{path}: line {number}", field, values["label"])
        by_person = given.setdefault((values["id"], field.name), {})
        if values["annotator"] in by_person:
            raise RunError(f"{path}: line {number}: {values['annotator']} has labelled this already; keep one line")
        by_person[values["annotator"]] = values["label"]
    decided = {place: majority(by_person.values()) for place, by_person in given.items()}
    labels = {place: label for place, label in decided.items() if label is not None}
    people = {name for by_person in given.values() for name in by_person}
    return Humans(labels, len(decided) - len(labels), len(people))


def _check_label(where: str, field: Field, label: Label) -> None:
    allowed = field.order or (CATEGORIES if field.name == "l4_category" else None)
    if allowed is not None and label not in allowed:
        raise RunError(f"{where}: label: {label!r} is not one of {', '.join(allowed)}")
    if field.numeric and label != NONE:
        try:
            float(label)
        except ValueError:
            raise RunError(f"{where}: label: {label!r} is neither a number nor {NONE}") from None


def agreement_with_humans(rows: Sequence[Row], humans: Humans) -> dict[str, dict[str, Any]]:
    """Return the agreement of a judge (first) with the majority of people (second) by field."""
    out = {}
    for field in FIELDS:
        mine: dict[str, Label] = {}
        for (case, item), (label, _) in labels_of(rows, field).items():
            mine[f"{case}/{item}"] = mine[case] = label
        theirs = {case: label for (case, name), label in humans.labels.items() if name == field.name}
        if theirs:
            pairs = [(mine[case], _normal(field, theirs[case])) for case in sorted(mine.keys() & theirs.keys())]
            out[field.name] = {**compare(field, pairs), "only_one": len(theirs.keys() - mine.keys())}
    return out


def _normal(field: Field, label: Label) -> Label:
    return f"{float(label):.10g}" if field.numeric and label != NONE else label
