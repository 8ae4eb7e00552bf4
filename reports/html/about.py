"""What a run was made with: its fingerprint, field by field."""

from __future__ import annotations

from typing import Any

from reports.html.page import Ref, label, section, table
from reports.html.view import View


def about(view: View) -> dict[str, Any]:
    """Return the page."""
    fields: dict[tuple[str, ...], None] = {}
    for side in view.sides:
        fields |= dict.fromkeys(_leaves(side.root["fingerprint"]))
    rows = [
        ([".".join(path).replace("_", " ")], [_value(side.root.get("fingerprint", *path)) for side in view.sides])
        for path in fields
    ]
    heads = ["", *(side.name for side in view.sides)]
    return {
        "title": "About the run",
        "sections": [section("fingerprint", "Made with", table("Fingerprint", heads, rows))],
    }


def _leaves(ref: Ref, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(ref.value, dict) and ref.value:
        return [leaf for key, inside in ref.items() for leaf in _leaves(inside, (*path, key))]
    return [path]


def _value(ref: Ref | None) -> dict[str, Any]:
    if ref is None or ref.value is None or ref.value in ({}, []):
        return {"p": []}
    if isinstance(ref.value, bool) or not isinstance(ref.value, (int, float)):
        shown = ", ".join(map(str, ref.value)) if isinstance(ref.value, list) else str(ref.value)
        return {"p": [label(shown)]}
    return {"p": [ref.number("raw")]}
