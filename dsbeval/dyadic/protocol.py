"""The run matrix: which conversations a pairing records, what they are called, and how one is recorded.

Conventions
-----------
* A *pairing* is the model under test against a partner; against itself it is self-play.
* Role assignment and opener are crossed and repeated: a cross-play pairing records 2 x 2 x 3 = 12 conversations a scenario,
  self-play 2 x 3 = 6, because swapping the roles of one model changes nothing.
* ``seats`` says who plays the sides a and b: ``ab`` the model under test plays a and the partner b, ``ba`` the other way
  round. ``opener`` is a side. An id says all of it: ``DYA-T1-1-01-ab-oA-r1``; where one folder holds several pairings, the
  partner's name follows: ``DYA-T1-1-01-ab-oA-r1@echo``.
* Seeds come from the run's seed, the conversation, the side and the take alone. They are the same whoever the partner is, so
  pairings differ by the partner and not by chance. There is more than one take only where a garbled one is recorded again
  (:mod:`dsbeval.dyadic.garble`).

Source: DyaFDB (arXiv 2610.08125), protocol.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from dsbeval.agent import Agent
from dsbeval.clock import WallClock
from dsbeval.dyadic.bridge import LEAD_IN_S, WINDOW_S, run_dyad
from dsbeval.dyadic.participant import DyadBrief
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES, TASKS, Side
from dsbeval.dyadic.scenarios import Suite
from dsbeval.dyadic.schema import AnyScenario
from dsbeval.errors import OptionError, near

REPEATS = 3

Seats = Literal["ab", "ba"]

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Run:
    """One conversation of a pairing."""

    scenario: str
    seats: Seats
    opener: Side
    repeat: int
    self_play: bool
    partner: str = ""
    """The partner's name, in a folder of several pairings."""

    @property
    def conversation(self) -> str:
        """What is had, whoever the partner is."""
        return f"DYA-{self.scenario}-{self.seats}-o{self.opener.upper()}-r{self.repeat}"

    @property
    def id(self) -> str:
        """Its id in a run folder, which is also the name of its recording."""
        return f"{self.conversation}@{_UNSAFE.sub('_', self.partner)}" if self.partner else self.conversation

    @property
    def archetype(self) -> str:
        """The archetype of its scenario."""
        return self.scenario.rpartition("-")[0]

    @property
    def model_sides(self) -> tuple[Side, ...]:
        """The sides that the model under test plays."""
        if self.self_play:
            return SIDES
        return ("a",) if self.seats == "ab" else ("b",)

    def named(self, model: str, partner: str) -> dict[Side, str]:
        """Return the name at each side."""
        return {"a": model, "b": partner} if self.seats == "ab" else {"a": partner, "b": model}

    def seeds(self, seed: int, take: int = 0) -> tuple[int, int]:
        """Return the seeds of the two sides; ``take`` counts the recordings of one conversation."""
        again = f"/take{take}" if take else ""
        a, b = (_seed(f"{seed}/{self.conversation}/{side}{again}") for side in SIDES)
        return a, b


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") & 0x7FFFFFFF


def run_matrix(
    scenarios: Iterable[AnyScenario], *, self_play: bool, repeats: int = REPEATS, partner: str = ""
) -> list[Run]:
    """Return the conversations that a pairing records: scenario by scenario, the repetitions innermost.

    ``partner`` goes into the ids, for a folder of several pairings. Raises :class:`OptionError` when ``repeats`` is not positive.
    """
    if repeats < 1:
        raise OptionError(f"--repeats: {repeats} is not a positive number")
    seats: tuple[Seats, ...] = ("ab",) if self_play else ("ab", "ba")
    return [
        Run(scenario.id, seat, opener, repeat, self_play, partner)
        for scenario in scenarios
        for seat, opener, repeat in product(seats, SIDES, range(1, repeats + 1))
    ]


def parse_tasks(text: str) -> tuple[str, ...]:
    """Return the archetypes of a ``--tasks`` option, in the benchmark's order: ``T1-1,T4-2``.

    Raises :class:`OptionError`.
    """
    named = [name.strip() for name in text.split(",") if name.strip()]
    for name in named:
        if name not in TASKS:
            raise OptionError(f"--tasks: {name!r} is not a task; {near(name, TASKS)}")
    if not named:
        raise OptionError(f"--tasks: names no task; there are {', '.join(TASKS)}")
    return tuple(task for task in TASKS if task in named)


def run_meta(
    run: Run, suite: Suite, model: str, partner: str, *, seed: int = 0, window_s: float = WINDOW_S
) -> dict[str, Any]:
    """Return what is known of a conversation before it is had: it goes into the recording, and into the row if that fails.

    ``model`` and ``partner`` are the names that tables use.
    """
    scenario = suite.scenarios[run.scenario]
    return {
        "test_case_id": run.id,
        "task": run.archetype,
        "scenario": run.scenario,
        "setting": scenario.setting,
        "seats": run.seats,
        "opener": run.opener,
        "repeat": run.repeat,
        "self_play": run.self_play,
        "model": model,
        "partner": partner,
        "model_sides": list(run.model_sides),
        "models": run.named(model, partner),
        "roles": {side: scenario.sides.of(side).role for side in SIDES},
        "seed": seed,
        "window_s": window_s,
    }


def record_run(
    run: Run,
    suite: Suite,
    model: Agent,
    partner: Agent,
    *,
    seed: int = 0,
    window_s: float = WINDOW_S,
    lead_in_s: float = LEAD_IN_S,
    concurrent: bool = True,
    latency: str = "none",
    wall: WallClock | None = None,
    names: tuple[str, str] | None = None,
    take: int = 0,
) -> DyadRecording:
    """Record a conversation of a pairing, with everything in it that scoring needs.

    In self-play ``model`` and ``partner`` are two instances of one agent, or the same one. ``names`` are what the model and
    the partner are called in tables, where that is not the agents' own. Another ``take`` has other seeds.
    """
    scenario = suite.scenarios[run.scenario]
    a, b = (model, partner) if run.seats == "ab" else (partner, model)
    model_name, partner_name = names or (model.name, partner.name)
    return run_dyad(
        a,
        b,
        (suite.prompt(scenario, "a", run.opener), suite.prompt(scenario, "b", run.opener)),
        run.seeds(seed, take),
        opener=run.opener,
        window_s=window_s,
        lead_in_s=lead_in_s,
        concurrent=concurrent,
        latency=latency,
        wall=wall,
        brief=DyadBrief(scenario, run.opener),
        meta=run_meta(run, suite, model_name, partner_name, seed=seed, window_s=window_s),
    )
