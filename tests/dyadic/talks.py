"""Conversations in writing with scripted chats."""

from __future__ import annotations

from collections.abc import Sequence

from dsbeval.dyadic.rows import Side
from dsbeval.dyadic.textpair import Chat, Message, Talk, converse

OPENER = "You begin."


class Scripted:
    """A chat that says its lines in turn and keeps what it was sent."""

    def __init__(self, *lines: str) -> None:
        self.lines, self.sent = list(lines), list[list[Message]]()

    def __call__(self, messages: Sequence[Message]) -> str:
        self.sent.append(list(messages))
        return self.lines.pop(0) if self.lines else "and so on"


def talk(a: Chat, b: Chat, opener: Side = "a", words: int = 240, turns: int = 20) -> Talk:
    prompts: dict[Side, str] = {"a": "You are Ada.", "b": "You are Bo."}
    prompts[opener] += f"\n\n{OPENER}"
    return converse({"a": a, "b": b}, prompts, opener, OPENER, words=words, turns=turns)
