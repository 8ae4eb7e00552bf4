"""What of a result row goes into the report files of pytest itself (``--junitxml``): properties of the item."""

from __future__ import annotations

import pytest

from dsbeval.dyadic.rows import SIDES
from dsbeval.results import Row

FIELDS = (
    "id", "item", "outcome", "role", "probe", "level", "instance", "trial", "action", "scored_as", "exercised", "borderline",
    "label", "margin", "margin_unit", "judge", "pas", "l4_category", "l4_expected",
    "task", "scenario", "seats", "opener", "repeat", "medium", "model_a", "model_b", "role_a", "role_b", "seed",
)  # fmt: skip


SCORES = {f"score_{side}": side for side in SIDES}


def note_properties(item: pytest.Item, row: Row) -> None:
    """Give an item the properties of its row, instead of those of an earlier one; others keep theirs."""
    others = [(name, value) for name, value in item.user_properties if name not in (*FIELDS, *SCORES)]
    item.user_properties = others + properties(row)


def properties(row: Row) -> list[tuple[str, object]]:
    """Return names and values in a fixed order; what a row does not have, or what is None, is left out."""
    found = {name: row.get(name) for name in FIELDS}
    found |= {name: row.get("scores", {}).get(side, {}).get("score") for name, side in SCORES.items()}
    return [(name, _word(value)) for name, value in found.items() if value is not None]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
