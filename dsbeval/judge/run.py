"""Judging a finished run again, alone: what is to be asked, what is there already, and the asking itself.

    plan = plan_run(judge, folder, pack, store)      what would be asked
    carry_out(plan)                                  ask it, eight at a time
    rows = persona_rows(folder, pack, store, judge.id)   the rows of one judge

Nothing but ``judgements.jsonl`` is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dsbeval.errors import RunError
from dsbeval.ifeval.pack import Pack
from dsbeval.ifeval.score import case_ids
from dsbeval.judge import cache
from dsbeval.judge.contract import Judge, Question
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


@dataclass(frozen=True, slots=True)
class Call:
    """One question to be asked, and the cases that wait for its answer (equal prompts share a call)."""

    question: Question
    repeat: int
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What judging a run takes."""

    judge: Judge
    store: cache.Store
    calls: tuple[Call, ...]
    wanted: int
    """Judgements in all: cases times repeats."""
    there: int
    """Judgements that are there already."""
    shared: list[tuple[Row, str]] = field(default_factory=list)
    """Answers that are there, and a case with the same question that has no row of its own yet."""
    without_recording: tuple[str, ...] = ()
    without_text: tuple[str, ...] = ()


def plan_run(
    judge: Judge, folder: RunFolder, pack: Pack, store: cache.Store, *, repeats: int = 1, seed: int = 0
) -> Plan:
    """Return what is to be asked of a run's recordings. A repeat has a seed of its own."""
    waiting: dict[str, tuple[Question, int, list[str]]] = {}
    shared: list[tuple[Row, str]] = []
    there = wanted = 0
    without_recording, without_text = [], []
    for case_id in case_ids(folder):
        if not (folder.recordings / f"{case_id}.rec.json").exists():
            without_recording.append(case_id)
            continue
        meta = read_meta(folder.recordings, case_id)
        if cannot_be_judged(meta) is not None:
            without_text.append(case_id)
            continue
        for repeat in range(repeats):
            question = pas_question(meta, pack, seed + repeat)
            key = cache.key_of(judge, question, repeat)
            wanted += 1
            row = store.find(key)
            if row is None:
                waiting.setdefault(key, (question, repeat, []))[2].append(case_id)
                continue
            there += 1
            own = store.newest(judge.id, case_id, ITEM, repeat)
            if own is None or own["key"] != key:
                shared.append((row, case_id))
    calls = tuple(Call(question, repeat, tuple(cases)) for question, repeat, cases in waiting.values())
    return Plan(judge, store, calls, wanted, there, shared, tuple(without_recording), tuple(without_text))


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
        row = cache.row_of(plan.judge, call.question, outcome, call.cases[0], ITEM, call.repeat)
        write(row)
        for case_id in call.cases[1:]:
            write(cache.reused(row, case_id, ITEM))
        progress()

    for row, case_id in plan.shared:
        write(cache.reused(row, case_id, ITEM))
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
        if case_id not in pack.cases:
            raise RunError(f"{case_id}: is not a case of the pack {pack.root}; name the pack of the run with --pack")
        case = pack.cases[case_id]
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
