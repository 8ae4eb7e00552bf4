"""What a system prompt may set: the parameters of the floor, and their values when nothing is said.

Conventions
-----------
* Seconds. A gap is the silence between the audible end of the user and the audible start of the agent.
* A :class:`Floor` is a value; reading a prompt makes one, and nothing changes it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PLAIN_GAP_S = 0.7
"""Gap of an assistant that was told nothing."""

PROMPT_GAP_S = 0.5
"""Gap after "at once", "promptly", "fill every silence"."""

REACTION_S = 0.3
"""What a limit on silence is shortened by: an agent that starts at the limit is heard after it."""

PATIENCE = 1.5
"""A least silence is a floor and not a target, so it is exceeded by half."""

NEVER = float("inf")


class Overlap(StrEnum):
    """What the agent does when the user talks over it."""

    YIELD = "yield"
    FINISH = "finish"
    SHARE = "share"


class Trigger(StrEnum):
    """What the agent comes in on while the user is talking."""

    RED_FLAG = "red_flag"
    DOSE = "dose"
    CORRECTION = "correction"
    AMBIGUITY = "ambiguity"
    REASONING = "reasoning"


class Tone(StrEnum):
    """Which of the stock phrases are used."""

    PLAIN = "plain"
    GENTLE = "gentle"
    BRISK = "brisk"
    PLAYFUL = "playful"
    ASKING = "asking"
    RENDER = "render"


@dataclass(frozen=True, slots=True)
class Floor:
    """Parameters of the floor.

    Parameters
    ----------
    opens : bool
        It speaks first, without being spoken to.
    gap_s : float
        Silence after which the agent takes the turn; :data:`NEVER` leaves every silence alone.
    limit_s : float or None
        The longest silence that it was told to leave. Nothing lengthens the gap beyond it.
    answers_questions : bool
        A question put to it is answered after :data:`PLAIN_GAP_S`, however long the gap.
    backchannels : bool
    backchannels_per_minute, backchannel_s : float
        How often at most, and how long at most.
    answers_checks : bool
        "Are you still there?" and "you know?" get a listening sound.
    read_back : bool
        Say back what has been dictated.
    triggers : frozenset of Trigger
        What it comes in on. Empty: it never interrupts.
    overlap : Overlap
    turn_s : float or None
        Longest turn.
    tone : Tone
    """

    opens: bool = False
    gap_s: float = PLAIN_GAP_S
    limit_s: float | None = None
    answers_questions: bool = False
    backchannels: bool = False
    backchannels_per_minute: float = 3.0
    backchannel_s: float = 1.0
    answers_checks: bool = False
    read_back: bool = False
    triggers: frozenset[Trigger] = frozenset()
    overlap: Overlap = Overlap.YIELD
    turn_s: float | None = None
    tone: Tone = Tone.PLAIN

    @property
    def keeps_silence(self) -> bool:
        """Whether a silence belongs to the user, so that listening sounds are placed on speech only."""
        return self.gap_s > 2.0
