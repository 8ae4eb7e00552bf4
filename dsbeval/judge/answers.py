"""From the text of a reply to a checked answer.

A reply may wrap its JSON object in prose or a code fence; two objects, or a field out of range, are no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsbeval.judge.contract import Kind, Question
from dsbeval.judge.prompts import clean
from dsbeval.judge.schema import fault, tidied
from dsbeval.replies import read_object


def read_answer(question: Question, text: str) -> tuple[dict[str, Any] | None, str | None]:
    """Return the answer that a reply holds, or None and what is wrong with it."""
    try:
        value = read_object(text)
    except (ValueError, RecursionError) as error:
        return None, " ".join(str(error).split()) or "the reply cannot be read"
    found = fault(value, question.schema) or _contradiction(question.kind, value)
    if found:
        return None, f"the reply is not an answer: {found}"
    answer = tidied(value, question.schema)
    return {name: clean(item) if isinstance(item, str) else item for name, item in answer.items()}, None


def _contradiction(kind: Kind, value: Mapping[str, Any]) -> str | None:
    """Return what no schema can say."""
    if kind is not Kind.ROLE_TIMING or value["off_role_s"] is None:
        return None
    if value["in_role_s"] is None:
        return "off_role_s is given although in_role_s is null"
    if value["off_role_s"] <= value["in_role_s"]:
        return "off_role_s is not after in_role_s"
    return None
