"""The text that F-Actor is conditioned on: its fixed form, filled from a system prompt.

The model was trained on one form of prompt and knows no other: the headings, their order, the dash before the narrative,
Python's spelling of a truth value and the mark at the end are part of its interface, as a chat template is of others. What
stands in the narrative is ours: who is spoken with, and the system prompt in one paragraph.

Source of the form: the instructions of the model's repository (MaikeZuefle/f-actor, ``training/dialogue_creation``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapters.cascade.prompt import read_prompt

START = "<|SOS|>"
_NAMED = re.compile(r"^You are ([A-Z][a-z]+),")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the form asks for beside the narrative.

    Parameters
    ----------
    name, partner : str
        First names. An empty name is read from a prompt that begins "You are NAME,", and is Sam in any other.
    backchannels, interruptions : int
        How many in the whole conversation.
    """

    name: str = ""
    partner: str = "Alex"
    backchannels: int = 2
    interruptions: int = 2


def model_prompt(prompt: str, behaviour: Behaviour) -> str:
    """Return the model's prompt. Whether it starts is what the system prompt says of who begins."""
    named = _NAMED.match(prompt)
    name = behaviour.name or (named[1] if named else "Sam")
    return "\n".join(
        (
            f"Generate a dialogue between you ({name}) and another speaker ({behaviour.partner}) based on the given "
            "narrative. Follow the specific behavior instructions for you.",
            "",
            "Narrative:",
            f"- {narrative(prompt, behaviour.partner)}",
            "",
            "Your behaviors:",
            f"- backchannels: {behaviour.backchannels}",
            f"- interruptions: {behaviour.interruptions}",
            f"- starts the dialogue: {read_prompt(prompt).opens}",
            "",
            "Ensure that the dialogue reflects the behaviours of you.",
            START,
        )
    )


def narrative(prompt: str, partner: str) -> str:
    """Return the system prompt as a narrative in the second person: one paragraph, whoever wrote it in how many."""
    told = " ".join(prompt.split())
    if not told:
        return f"You have a friendly chat with {partner} about whatever comes up."
    return f"You are on a voice call with {partner} and take this part in it. {told}"
