"""The result row of a dyad: what a conversation leaves behind, and all that the analyses read.

Conventions
-----------
* One row a conversation, ``item`` is ``"dyad"``. The letters ``a`` and ``b`` are always the *sides of the scenario*:
  ``model_a`` is the model that played side ``a``, ``role_a`` the role that it played, ``opener`` the side that spoke
  first. Which of the two models was the one under test has no part in a score.
* ``scores`` holds an entry for each *scored* side and for no other: both in T1-1, T2, T3-1 and T4-1, the role holder in
  T1-2, the presser in T3-2, the attacker in T4-2, the claimant in T4-3, the seller in T4-4.
* ``score`` is in [0, 1], or None where there is none: a run without a deal (T4-3, T4-4), without speech (T3), or that
  the judge could not judge. None has no part in a mean; 0 has.
* ``acted`` is *decided* in T2, T3-2 *asked*, T4-1 *decided*, T4-2 *asked*; absent elsewhere, None when unjudged.
* Times are seconds of the session, None where it did not happen; ``end_s`` is where observation ended.
* ``speech`` keeps the segments of both sides in samples of the session clock, so that turn-taking can be measured again
  with other thresholds without audio. In a text pairing it is empty and ``turn_taking`` is None.
* ``garble``, where a watcher listened: every take with its seeds and shares, and the sides that are garbled for good
  (:mod:`dsbeval.dyadic.garble`).
* A row that was measured is counted whatever its outcome: where a judge was not asked or has not answered, its scores are None,
  and its turn-taking is as good as any. A row that lacks ``scores`` is that of a conversation that broke or was not had.

Source: DyaFDB, tasks and analyses; the shape is this project's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, cast

from dsbeval.results import OUTCOMES

Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")

TASKS = ("T1-1", "T1-2", "T2", "T3-1", "T3-2", "T4-1", "T4-2", "T4-3", "T4-4")
MAIN_TASKS = TASKS[:7]
"""The seven archetypes of the main suite, whose cells the three-way decomposition takes."""

VERDICTS = ("passed", "failed")
"""Outcomes of a conversation that was judged, as far as its verdict needs a judge."""

SCORED_BOTH = ("T1-1", "T2", "T3-1", "T4-1")
"""Archetypes in which both sides are scored; in the others one role is."""


class SideScores(TypedDict):
    """What one scored side did. Fields beside ``score`` are those of the row's task."""

    score: float | None
    """T1 in role (1 or 0), T2 solved, T3 channel occupancy, T4-1 own option landed, T4-2 extracted, T4-3 the larger line
    (1) or the smaller (0), T4-4 share of the opening gap."""
    acted: NotRequired[bool | None]
    adherence: NotRequired[str | None]
    """T1: yes, partly, no."""
    entry_s: NotRequired[float | None]
    """T1: first utterance in role. Absent, like ``deviation_s``, where the timing was not judged."""
    deviation_s: NotRequired[float | None]
    """T1: first utterance off role after the entry."""
    disclosed: NotRequired[list[bool]]
    """T2: which of its own reasons this side said."""
    points: NotRequired[list[bool]]
    """T3-1: which of its own three points this side said."""
    agreement: NotRequired[bool | None]
    """T3-2: the permission was given."""
    leak_s: NotRequired[float | None]
    """T4-2, at the attacker: when the defender had said the whole private string."""
    price: NotRequired[float | None]
    """T4-4: the agreed price."""


class SideTurns(TypedDict):
    """Turn-taking of one side against the other (:meth:`dsbeval.dyadic.turn_taking.Measures.as_row`)."""

    pauses: int
    pauses_cut: int
    ends: int
    ends_taken: int
    backchannels: int
    barge_ins_won: int
    barge_ins_lost: int
    undecided: int
    segments: int
    speech_s: float
    exclusive_s: float
    tor_pause: float | None
    tor_end: float | None
    barge_in: float | None
    occupancy: float | None


class DyadRow(TypedDict):
    """A conversation that was measured. Other fields may stand beside these."""

    id: str
    item: Literal["dyad"]
    outcome: str
    task: str
    scenario: str
    medium: Literal["speech", "text"]
    window_s: float
    repeat: int
    opener: Side
    model_a: str
    model_b: str
    role_a: str
    role_b: str
    end_s: float
    scores: dict[Side, SideScores]
    turn_taking: dict[Side, SideTurns] | None
    speech: dict[Side, list[list[int]]]
    length: int
    """Samples of the session that were measured."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One side of one conversation, seen from the model that played it."""

    row: DyadRow
    side: Side
    model: str
    partner: str

    @property
    def scores(self) -> SideScores | None:
        """The scores of this side; None when it is not a scored one."""
        return self.row["scores"].get(self.side)

    @property
    def score(self) -> float | None:
        """The task's score of this side; None when there is none."""
        found = self.scores
        return None if found is None else found["score"]

    @property
    def turns(self) -> SideTurns | None:
        """The turn-taking of this side; None in a text pairing."""
        found = self.row["turn_taking"]
        return None if found is None else found[self.side]


def validate(rows: Iterable[Mapping[str, Any]]) -> list[DyadRow]:
    """Return the dyad rows that were measured. Raises ValueError for a row that no run writes."""
    out: list[DyadRow] = []
    for row in rows:
        if row.get("item") != "dyad":
            continue
        name = f"row {row.get('id')}"
        if row.get("outcome") not in OUTCOMES:
            raise ValueError(f"{name}: outcome {row.get('outcome')!r} is not one of {', '.join(OUTCOMES)}")
        if row["outcome"] not in VERDICTS and "scores" not in row:
            continue
        missing = sorted(DyadRow.__required_keys__ - set(row))
        if missing:
            raise ValueError(f"{name}: {missing[0]} is missing; a dyad row that was measured has it")
        if row["task"] not in TASKS:
            raise ValueError(f"{name}: task {row['task']!r} is not one of {', '.join(TASKS)}")
        scored = set(row["scores"])
        if not scored <= set(SIDES) or len(scored) != (2 if row["task"] in SCORED_BOTH else 1):
            raise ValueError(f"{name}: scores has the sides {sorted(scored)}; {row['task']} scores another number")
        for side, found in row["scores"].items():
            score = found.get("score", "absent")
            if score is not None and not (isinstance(score, (int, float)) and 0 <= score <= 1):
                raise ValueError(f"{name}: scores.{side}.score is {score!r}; it must be 0 to 1, or null")
        out.append(cast(DyadRow, row))
    return out


def seats(rows: Iterable[DyadRow], *, scored: bool = False) -> Iterator[Seat]:
    """Yield both sides of each row; with ``scored`` only the sides that are scored."""
    for row in rows:
        for side, model, partner in (("a", row["model_a"], row["model_b"]), ("b", row["model_b"], row["model_a"])):
            if not scored or side in row["scores"]:
                yield Seat(row, cast(Side, side), model, partner)
