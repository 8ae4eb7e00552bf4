"""The run matrix: how many conversations there are, what they are called, who sits where, and what each is told."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.controls import Silent
from dsbeval.agent import Agent, Session
from dsbeval.dyadic.protocol import Run, parse_tasks, record_run, run_matrix, run_meta
from dsbeval.dyadic.rows import MAIN_TASKS, SIDES, TASKS
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.errors import OptionError

SUITE = load_scenarios()


def named(name: str) -> Silent:
    agent = Silent()
    agent.name = name
    return agent


def test_the_main_suite_has_840_conversations_of_self_play_and_1680_of_cross_play() -> None:
    assert len(run_matrix(SUITE.of(), self_play=True)) == 840
    assert len(run_matrix(SUITE.of(), self_play=False)) == 1680
    # Three models: three pairings of self-play and three of cross-play.
    assert 3 * 840 + 3 * 1680 == 7560
    assert len(run_matrix(SUITE.of(TASKS), self_play=False)) == 180 * 12
    assert len(run_matrix(SUITE.of(["T4-4"]), self_play=True, repeats=1)) == 20 * 2


@pytest.mark.parametrize("count", [1, 7, 9, 16, 500])
def test_a_sample_is_spread_over_the_tasks_and_the_same_every_time(count: int) -> None:
    found = SUITE.of(MAIN_TASKS, count)
    assert len(found) == min(count, 140)
    shares = Counter(scenario.archetype for scenario in found)
    assert max(shares.values()) - min([shares[task] for task in MAIN_TASKS]) <= 1
    assert found == [scenario for scenario in SUITE.of() if scenario in SUITE.of(MAIN_TASKS, count)]
    assert {scenario.id for scenario in found} <= {scenario.id for scenario in SUITE.of(MAIN_TASKS, count + 1)}


def test_roles_openers_and_repetitions_are_crossed() -> None:
    runs = run_matrix(SUITE.of(["T2"])[:1], self_play=False)
    assert [(run.seats, run.opener, run.repeat) for run in runs] == [
        (seats, opener, repeat) for seats in ("ab", "ba") for opener in "ab" for repeat in (1, 2, 3)
    ]
    assert {run.scenario for run in runs} == {"T2-01"}
    own = run_matrix(SUITE.of(["T2"])[:1], self_play=True)
    assert {run.seats for run in own} == {"ab"}
    assert Counter(run.opener for run in own) == {"a": 3, "b": 3}


def test_an_id_says_scenario_seats_opener_and_repeat_and_is_a_file_name() -> None:
    assert Run("T1-1-01", "ab", "a", 1, False).id == "DYA-T1-1-01-ab-oA-r1"
    assert Run("T2-20", "ba", "b", 3, False).id == "DYA-T2-20-ba-oB-r3"
    assert Run("T2-20", "ba", "b", 3, False, "my/agent.py:Mine").id == "DYA-T2-20-ba-oB-r3@my_agent.py_Mine"
    ids = [run.id for run in run_matrix(SUITE.of(TASKS), self_play=False, partner="echo")]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"DYA-T\d(-\d)?-\d\d-(ab|ba)-o[AB]-r\d@echo", name) for name in ids)


def test_the_model_under_test_plays_one_side_of_a_pairing_and_both_of_self_play() -> None:
    ab, ba = (Run("T2-01", seats, "a", 1, False) for seats in ("ab", "ba"))
    assert (ab.model_sides, ba.model_sides) == (("a",), ("b",))
    assert ab.named("model", "partner") == {"a": "model", "b": "partner"}
    assert ba.named("model", "partner") == {"a": "partner", "b": "model"}
    assert Run("T2-01", "ab", "a", 1, True).model_sides == SIDES


@given(st.integers(0, 2**31), st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_seeds_are_those_of_the_conversation_whoever_the_partner_is(seed: int, repeat: int) -> None:
    run = Run("T2-01", "ab", "a", repeat, False)
    assert run.seeds(seed) == Run("T2-01", "ab", "a", repeat, False, "somebody").seeds(seed)
    a, b = run.seeds(seed)
    assert a != b
    assert all(0 <= value < 2**31 for value in (a, b))
    assert run.seeds(seed) != run.seeds(seed + 1)
    assert run.seeds(seed) != Run("T2-01", "ab", "a", repeat + 1, False).seeds(seed)


def test_seeds_are_fixed_for_ever() -> None:
    assert Run("T1-1-01", "ab", "a", 1, False).seeds(0) == (1780684107, 2138154340)


def test_tasks_are_parsed_into_the_benchmarks_order() -> None:
    assert parse_tasks("T4-2, T1-1") == ("T1-1", "T4-2")
    assert parse_tasks(",".join(reversed(MAIN_TASKS))) == MAIN_TASKS
    with pytest.raises(OptionError, match=r"--tasks: 'T4-5' is not a task; did you mean T4-\d"):
        parse_tasks("T1-1,T4-5")
    with pytest.raises(OptionError, match="--tasks: names no task"):
        parse_tasks(" , ")
    with pytest.raises(OptionError, match="--repeats: 0 is not a positive number"):
        run_matrix(SUITE.of(["T2"]), self_play=True, repeats=0)


class Noting(Silent):
    """Keeps the prompts and seeds that it is opened with."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, int]] = []

    def open(self, prompt: str, seed: int) -> Session:
        self.opened.append((prompt, seed))
        return super().open(prompt, seed)


@pytest.mark.parametrize("seats", ["ab", "ba"])
@pytest.mark.parametrize("opener", ["a", "b"])
def test_everyone_gets_the_prompt_and_the_seed_of_its_side(seats: str, opener: str) -> None:
    run = Run("T4-4-03", seats, opener, 2, False)  # type: ignore[arg-type]
    model, partner = Noting(), Noting()
    recording = record_run(run, SUITE, model, partner, seed=7, window_s=2.0, names=("one", "two"))
    scenario = SUITE.scenarios["T4-4-03"]
    agents: dict[str, Noting] = {"a": model, "b": partner} if seats == "ab" else {"a": partner, "b": model}
    for side, seed in zip(SIDES, run.seeds(7), strict=True):
        assert agents[side].opened == [(SUITE.prompt(scenario, side, run.opener), seed)]
    opening: Agent = agents[opener]
    assert isinstance(opening, Noting)
    assert opening.opened[0][0].endswith(SUITE.opener)
    meta = recording.meta
    assert meta["models"] == ({"a": "one", "b": "two"} if seats == "ab" else {"a": "two", "b": "one"})
    assert (meta["test_case_id"], meta["opener"], meta["window_s"]) == (run.id, opener, 2.0)
    assert meta["prompts"] == {side: agents[side].opened[0][0] for side in SIDES}
    assert run_meta(run, SUITE, "one", "two", seed=7, window_s=2.0).items() <= meta.items()
