"""The rule of a prompt about who speaks first."""

from __future__ import annotations

from dataclasses import replace

from adapters.cascade.floor import Floor
from adapters.cascade.sentence import Sentence, any_of

_BEGINS = any_of(
    r"(?:begin|open|start) (?:this|the) (?:conversation|call|talk|chat|scene)",
    r"say your first (?:sentence|line|words?)",
    r"(?:speak|talk|go) first",
    r"make the first move",
)
_LEFT_TO_OTHERS = any_of(
    r"(?:let|leave|allow|wait for|waiting for) (?:[\w']+ ){1,4}?(?:to )?(?:begin|open|start|speak|talk|go)",
    r"(?:they|he|she|user|caller|guest|customer|other side) (?:will |must |should )?(?:begins?|opens?|starts?|speaks?|goes)",
)


def opening(s: Sentence, floor: Floor) -> Floor | None:
    """As in "You begin this conversation"; "let the caller speak first"."""
    if s.says(_BEGINS) and s.says(_LEFT_TO_OTHERS):
        return replace(floor, opens=False)
    if s.commands(_BEGINS):
        return replace(floor, opens=True)
    return replace(floor, opens=False) if s.denies(_BEGINS) else None
