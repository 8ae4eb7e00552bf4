"""JSON schemas of answers: the small subset that is used, how a value is checked, and what a service is sent.

Conventions
-----------
* Used are ``type`` (one name or a list with "null"), ``properties``, ``required``, ``additionalProperties: false``, ``enum``,
  ``minimum``, ``maximum`` and ``description``.
* A number is not a boolean, and 4.0 is an integer, as JSON Schema has it.
* A field that was not asked for is dropped: it does no harm, and servers without structured output invent them.
* Structured output of the services does not take ranges everywhere, so they go into the description on the wire and are
  checked here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "null": (type(None),),
    "object": (dict,),
}


def record(fields: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object that has exactly these fields."""
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def text(description: str) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "description": description}


def integer(description: str, least: int, most: int) -> Schema:
    """Return the schema of a whole number in a range."""
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def number_or_none(description: str, least: float = 0.0) -> Schema:
    """Return the schema of a number that may be null."""
    return {"type": ["number", "null"], "minimum": least, "description": description}


def label(description: str, labels: Sequence[str]) -> Schema:
    """Return the schema of one label of a list."""
    return {"type": "string", "enum": list(labels), "description": description}


def fault(value: Any, schema: Mapping[str, Any], name: str = "the answer") -> str | None:
    """Return the first thing that is wrong with a value, in words, or None."""
    allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, kind) for kind in allowed):
        return f"{name} is {_shown(value)}; it must be of type {' or '.join(allowed)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} is {_shown(value)}; it must be one of {', '.join(schema['enum'])}"
    if value is not None and not isinstance(value, (str, dict)):
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not least <= value <= most:
            limits = f"{least:g} to {most:g}" if most < math.inf else f"{least:g} or more"
            return f"{name} is {_shown(value)}, out of range; it must be {limits}"
    return _object_fault(value, schema) if isinstance(value, dict) else None


def _object_fault(value: dict[str, Any], schema: Mapping[str, Any]) -> str | None:
    for name in schema["required"]:
        if name not in value:
            return f"field {name} is missing"
    for name, rule in schema["properties"].items():
        found = fault(value[name], rule, f"field {name}")
        if found is not None:
            return found
    return None


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, _TYPES[kind]):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return kind != "integer" or not isinstance(value, float) or value.is_integer()


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def tidied(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checked answer in the order of its schema, with whole numbers as integers."""
    out = {}
    for name, rule in schema["properties"].items():
        item = value[name]
        out[name] = int(item) if rule["type"] == "integer" else item
    return out


def on_wire(schema: Mapping[str, Any]) -> Schema:
    """Return a schema as services take it: the same, with ranges in the descriptions."""
    properties = {}
    for name, rule in schema["properties"].items():
        kept = {key: item for key, item in rule.items() if key not in ("minimum", "maximum")}
        if "maximum" in rule:
            kept["description"] = f"{rule['description']} ({rule['minimum']} to {rule['maximum']})"
        properties[name] = kept
    return {**schema, "properties": properties}
