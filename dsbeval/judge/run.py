"""Judging a finished run again, alone: what is to be asked, what is there already, and the asking itself.

    plan = plan_run(judge, folder, pack, store)      what would be asked
    carry_out(plan)                                  ask it, eight at a time
    rows = persona_rows(folder, pack, store, judge.id)   the rows of one judge
    rows = dyad_rows(folder, suite, judge.id)        of :mod:`dsbeval.judge.dyads`, where two agents talked

Nothing but ``judgements.jsonl`` is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dsbeval.dyadic.scenarios import Suite, load_scenarios
from dsbeval.errors import RunError
from dsbeval.ifeval.pack import Pack
from dsbeval.ifeval.score import case_ids
from dsbeval.judge import cache
from dsbeval.judge.contract import Judge, Question
from dsbeval.judge.dyads import conversation_ids, item_of, read_conversation
from dsbeval.judge.parallel import PARALLEL, Outcome, ask_all
from dsbeval.judge.pas import (
    ITEM,
    PAS_PASS,
    cannot_be_judged,
    case_of,
    pas_question,
    persona_row,
    read_meta,
    unscored_row,
)
from dsbeval.judge.prompts import prompt_hash
from dsbeval.results import Row, RunFolder

Place = tuple[str, str]
"""A case or conversation, and its item."""


@dataclass(frozen=True, slots=True)
class Call:
    """One question to be asked, and what waits for its answer (equal prompts share a call)."""

    question: Question
    repeat: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Plan:
    """What judging a run takes."""

    judge: Judge
    store: cache.Store
    calls: tuple[Call, ...]
    wanted: int
    """Judgements in all: questions times repeats."""
    there: int
    """Judgements that are there already."""
    shared: list[tuple[Row, Place]] = field(default_factory=list)
    """Answers that are there, and what raises the same question and has no row of its own yet."""
    without_recording: tuple[str, ...] = ()
    without_text: tuple[str, ...] = ()


def plan_run(
    judge: Judge,
    folder: RunFolder,
    pack: Pack,
    store: cache.Store,
    *,
    repeats: int = 1,
    seed: int = 0,
    suite: Suite | None = None,
) -> Plan:
    """Return what is to be asked of a run's recordings. A repeat has a seed of its own.

    ``suite`` are the scenarios of the conversations of two agents, by default the suite's own.
    """
    waiting: dict[str, tuple[Question, int, list[Place]]] = {}
    shared: list[tuple[Row, Place]] = []
    there = wanted = 0
    recorded, without_recording = _recorded(folder)
    without_text: list[str] = []
    for (case_id, item), asked in _asked(folder, recorded, pack, suite or load_scenarios(), without_text):
        for repeat in range(repeats):
            question = asked(seed + repeat)
            key = cache.key_of(judge, question, repeat)
            wanted += 1
            row = store.find(key)
            if row is None:
                waiting.setdefault(key, (question, repeat, []))[2].append((case_id, item))
                continue
            there += 1
            own = store.newest(judge.id, case_id, item, repeat)
            if own is None or own["key"] != key:
                shared.append((row, (case_id, item)))
    calls = tuple(Call(question, repeat, tuple(places)) for question, repeat, places in waiting.values())
    return Plan(judge, store, calls, wanted, there, shared, tuple(without_recording), tuple(without_text))


def _recorded(folder: RunFolder) -> tuple[list[str], list[str]]:
    """Return what is recorded and what is not."""
    found: tuple[list[str], list[str]] = [], []
    for name in (*case_ids(folder), *conversation_ids(folder)):
        found[not (folder.recordings / f"{name}.rec.json").exists()].append(name)
    return found


def _asked(
    folder: RunFolder, recorded: list[str], pack: Pack, suite: Suite, without_text: list[str]
) -> Iterator[tuple[Place, Callable[[int], Question]]]:
    """Yield what the recordings raise, each as what makes its question for a seed; note the cases without text."""
    cases, conversations = set(case_ids(folder)), set(conversation_ids(folder))
    for name in (name for name in recorded if name in cases):
        meta = read_meta(folder.recordings, name)
        if cannot_be_judged(meta) is None:
            yield (name, ITEM), functools.partial(pas_question, meta, pack)
        else:
            without_text.append(name)
    for name in (name for name in recorded if name in conversations):
        conversation = read_conversation(folder.recordings, name, suite)
        for key in conversation.questions:
            yield (name, item_of(key)), functools.partial(conversation.question, key)


def carry_out(
    plan: Plan,
    *,
    parallel: int = PARALLEL,
    progress: Callable[[], None] = lambda: None,
    on_interrupt: Callable[[], None] = lambda: None,
) -> list[Row]:
    """Ask what is missing and return the rows that were written; each is on disk before the next question is asked."""
    written: list[Row] = []

    def write(row: Row) -> None:
        plan.store.append(row)
        written.append(row)

    def done(index: int, outcome: Outcome) -> None:
        call = plan.calls[index]
        row = cache.row_of(plan.judge, call.question, outcome, *call.places[0], call.repeat)
        write(row)
        for place in call.places[1:]:
            write(cache.reused(row, *place))
        progress()

    for row, place in plan.shared:
        write(cache.reused(row, *place))
    questions = [call.question for call in plan.calls]
    ask_all(plan.judge, questions, done, parallel=parallel, on_interrupt=on_interrupt)
    return written


def judges_of(store: cache.Store) -> list[str]:
    """Return the ids of the judges that have judged the run, in the order in which they began."""
    return list(dict.fromkeys(str(row["judge"]) for row in store.rows))


def persona_rows(
    folder: RunFolder, pack: Pack, store: cache.Store, judge_id: str, *, pas_pass: int = PAS_PASS
) -> list[Row]:
    """Return one row a case for one judge, from what is on disk: asked of nobody.

    A judgement of another prompt than the recording gives now (it was recorded again, or the prompts have changed) does not
    count. A case that was not judged is an error row that says so; one that was not recorded has no row.
    """
    out = []
    for case_id in case_ids(folder):
        case = pack.case(case_id)
        if case is None:
            raise RunError(f"{case_id}: is not a case of the pack {pack.root}; name the pack of the run with --pack")
        if not (folder.recordings / f"{case_id}.rec.json").exists():
            continue
        meta = read_meta(folder.recordings, case_id)
        case_of(meta, pack)
        nothing = cannot_be_judged(meta)
        if nothing is not None:
            out.append(unscored_row(case, judge_id, "skipped", nothing))
            continue
        row = store.newest(judge_id, case_id, ITEM)
        if row is None or row["prompt_hash"] != prompt_hash(pas_question(meta, pack)):
            out.append(unscored_row(case, judge_id, "error", f"unjudged: {judge_id} has not been asked"))
        elif row["outcome"] == "unjudged":
            out.append(unscored_row(case, judge_id, "error", str(row["problem"])))
        else:
            out.append(persona_row(case, judge_id, cache.judgement_of(row), pas_pass))
    return out
