"""Judging a recorded conversation of two agents, and its result row from what lies in the run folder.

    conversation = read_conversation(folder.recordings, name, suite)
    answered(judge, question, name, item_of(key), store)      for each of conversation.questions
    verdict, row = score_conversation(conversation, store, judge.id)

Conventions
-----------
* A conversation raises up to four questions; the item of each in ``judgements.jsonl`` is ``dyad:`` and its name, as
  :func:`dsbeval.dyadic.transcript.questions` gives it.
* A judgement of another prompt than the recording gives now does not count.
* The row has ``judge`` beside the fields of :mod:`dsbeval.dyadic.rows`: ``none`` where nobody was asked. A run and ``dsbeval
  score`` make it by the same function, from the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dsbeval.dyadic.record import read_dyad
from dsbeval.dyadic.rows import SIDES
from dsbeval.dyadic.scenarios import Suite
from dsbeval.dyadic.schema import AnyScenario
from dsbeval.dyadic.textrun import KIND as TEXT
from dsbeval.dyadic.textrun import read_talk
from dsbeval.dyadic.transcript import Heard, hear, hear_talk, questions
from dsbeval.dyadic.verdict import ITEM, DyadVerdict, score_heard
from dsbeval.errors import DsbevalError, RunError, near
from dsbeval.judge.cache import Store
from dsbeval.judge.contract import Question
from dsbeval.judge.prompts import prompt_hash
from dsbeval.recording import read_facts
from dsbeval.results import Row, RunFolder

PREFIX = "DYA-"
"""How the ids of conversations begin; a run folder may hold cases of DSB-IFEval beside them."""


def conversation_ids(folder: RunFolder) -> list[str]:
    """Return the ids of the conversations that were to be run."""
    return [name for name in folder.cases() if name.startswith(PREFIX)]


def item_of(question: str) -> str:
    """Return the item under which the answer to a question lies in ``judgements.jsonl``."""
    return f"{ITEM}:{question}"


@dataclass(frozen=True)
class Conversation:
    """A recorded conversation as its scorers have it."""

    name: str
    meta: Mapping[str, Any]
    scenario: AnyScenario
    heard: Heard

    @cached_property
    def questions(self) -> dict[str, Question]:
        """What a judge is asked about it."""
        return questions(self.scenario, self.heard)

    def question(self, name: str, seed: int) -> Question:
        """Return one of its questions with another seed."""
        return replace(self.questions[name], seed=seed)


def read_conversation(recordings: Path, name: str, suite: Suite) -> Conversation:
    """Read a conversation, in speech or in text, and segment it.

    Raises :class:`RunError` where it cannot be read, or was recorded with other scenarios.
    """
    meta, heard = _read(recordings, name)
    scenario = suite.scenarios.get(str(meta["scenario"]))
    if scenario is None:
        raise RunError(
            f"{name}: {meta['scenario']} is not a scenario of {suite.root}; {near(meta['scenario'], suite.scenarios)}"
        )
    if any(meta["prompts"][side] != suite.prompt(scenario, side, meta["opener"]) for side in SIDES):
        raise RunError(f"{name}: was recorded under other prompts than {suite.root} gives it; record it again")
    return Conversation(name, meta, scenario, heard)


def _read(recordings: Path, name: str) -> tuple[Mapping[str, Any], Heard]:
    """Return what is known of a conversation in speech or in text, and what its listeners have of it."""
    if read_facts(recordings, name).get("kind") == TEXT:
        talk = read_talk(recordings, name)
        return talk.meta, hear_talk(talk.talk)
    recording = read_dyad(recordings, name)
    return recording.meta, hear(recording)


def score_conversation(conversation: Conversation, store: Store | None, judge_id: str) -> tuple[DyadVerdict, Row]:
    """Return the verdict on a conversation and its row, with the answers of one judge; ``store`` is None where none is asked."""
    answers: dict[str, Mapping[str, Any] | None] | None = None
    problem = ""
    if store is not None:
        answers = {}
        for name, question in conversation.questions.items():
            row = store.newest(judge_id, conversation.name, item_of(name))
            known = row is not None and row["prompt_hash"] == prompt_hash(question)
            answers[name] = row["answer"] if known and row is not None else None
            if known and row is not None and row["outcome"] == "unjudged":
                problem = problem or f" ({row['problem']})"
    verdict, row = score_heard(conversation.meta, conversation.heard, conversation.scenario, answers)
    if verdict.outcome == "error" and problem:
        verdict = replace(verdict, message=verdict.message + problem)
    return verdict, {**row, "message": verdict.message, "judge": judge_id if store is not None else "none"}


def dyad_rows(folder: RunFolder, suite: Suite, judge_id: str) -> list[Row]:
    """Derive the rows of a run's conversations again from its recordings and judgements, asking nobody.

    A recording that cannot be read is an error row. Errors and skips of the run that left no recording are kept.
    """
    store = None if judge_id == "none" else Store.of_run(folder.root)
    kept = {str(row["id"]): row for row in folder.rows() if row["item"] == ITEM}
    out: list[Row] = []
    for name in conversation_ids(folder):
        if not (folder.recordings / f"{name}.rec.json").exists():
            if name in kept and kept[name]["outcome"] in ("error", "skipped"):
                out.append(kept[name])
            continue
        try:
            out.append(score_conversation(read_conversation(folder.recordings, name, suite), store, judge_id)[1])
        except (DsbevalError, KeyError, ValueError) as error:
            message = (
                str(error) if isinstance(error, DsbevalError) else f"{name}.rec.json: {type(error).__name__} {error}"
            )
            out.append({"id": name, "item": ITEM, "outcome": "error", "message": message})
    return out
