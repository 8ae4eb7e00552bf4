"""Persona adherence of a case: the question from what lies in the run folder, and the result row from the judgement.

What the judge sees: role, persona, content rule, the user's script with the lengths of its pauses, and all that the agent said
(:data:`NO_SPEECH` where that is nothing). At L4 also what the contradicting instruction asks for and which of the two is
right. It sees no time, no verdict, no label of the floor, no level, no model.

A row of the persona item::

    {"id", "item": "persona", "outcome": passed|failed|error|skipped, "role", "probe", "level", "instance", "action",
     "matched", "seed", "judge", "passed", "pas", "pas_pass", "register_fit", "content_fit", "l4_category", "l4_expected",
     "summary", "prompt_hash", "message"}

An error or skipped row has the identifying fields, the judge, the outcome and the message only. Rows hold no time, worker or
cost, so equal judgements give equal rows.

Source: DSB-IFEval (arXiv 2609.03423), persona adherence and conflict profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsbeval.errors import RunError, near
from dsbeval.ifeval.pack import Case, Pack
from dsbeval.judge import cache
from dsbeval.judge.contract import Judge, Judgement, Kind, Question
from dsbeval.judge.schema import Schema, integer, label, record, text
from dsbeval.judge.script import write_script
from dsbeval.results import Row

ITEM = "persona"
PAS_PASS = 50
NO_SPEECH = "(the agent said nothing)"
CATEGORIES = ("directive-wins", "persona-wins", "hedged", "incoherent")
NO_CONFLICT = "n/a"


# The question


def pas_schema(*, conflict: bool) -> Schema:
    """Return the schema of the answer; the conflict label has a meaning at L4 only."""
    return record(
        {
            "formalize": text("what the role should do with what the user said"),
            "timeline": text("what the agent said, in order"),
            "register_fit": integer("how well it sounds like the role", 0, 5),
            "register_rationale": text("why"),
            "content_fit": integer("how well it says what the content rule asks for", 0, 5),
            "content_rationale": text("why"),
            "pas": integer("persona adherence", 0, 100),
            "l4_category": label("how the conflict came out", CATEGORIES if conflict else (NO_CONFLICT,)),
            "summary": text("one sentence with the strongest reason"),
        }
    )


def read_meta(recordings: Path, case_id: str) -> dict[str, Any]:
    """Return the rec.json of a case; the audio is not read. Raises :class:`~dsbeval.errors.RunError`."""
    path = recordings / f"{case_id}.rec.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: no such recording; run the case first") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error}); record the case again") from None
    missing = [name for name in ("test_case_id", "prompt", "transcript", "user") if name not in data]
    if missing:
        raise RunError(f"{path}: {missing[0]}: is missing; record the case again")
    return dict(data)


def case_of(meta: Mapping[str, Any], pack: Pack) -> Case:
    """Return the case of a recording. Raises :class:`~dsbeval.errors.RunError` where the pack is not the one it was made with."""
    name = str(meta["test_case_id"])
    case = pack.case(name)
    if case is None:
        raise RunError(f"{name}: is not a case of the pack {pack.root}; {near(name, pack.cases)}")
    if meta["prompt"] != pack.prompt(case):
        raise RunError(
            f"{name}: was recorded under another prompt than the pack {pack.root} gives it; name the pack of the run with --pack"
        )
    return case


def pas_question(meta: Mapping[str, Any], pack: Pack, seed: int = 0) -> Question:
    """Return the question about a recording (the content of its rec.json)."""
    case = case_of(meta, pack)
    role = pack.roles[case.role]
    parts = {
        "role": role.name,
        "persona": role.persona,
        "content_rule": role.content_rule,
        "script": write_script(meta["user"]),
        "transcript": str(meta["transcript"]).strip() or NO_SPEECH,
    }
    if case.l4_expected is not None:
        contradiction = pack.contradictions[case.role, case.probe]
        wanted = contradiction.l4b if case.level == "L4b" else contradiction.target
        parts |= {"instruction": str(wanted), "resolution": case.l4_expected}
    return Question(Kind.PAS, parts, pas_schema(conflict=case.l4_expected is not None), seed)


def cannot_be_judged(meta: Mapping[str, Any]) -> str | None:
    """Return why a recording holds nothing that a judge could read, or None: an agent that gives no text has no words here."""
    gives_text = meta.get("capabilities", {}).get("text", True)
    if gives_text or str(meta["transcript"]).strip():
        return None
    return (
        f"agent {meta.get('agent', '?')}: gives no text, and its audio was not transcribed; there is nothing to judge"
    )


# The row


def _identity(case: Case, judge_id: str) -> Row:
    return {
        "id": case.id,
        "item": ITEM,
        "role": case.role,
        "probe": case.probe,
        "level": case.level,
        "instance": case.instance,
        "action": case.action.value,
        "matched": case.matched,
        "judge": judge_id,
    }


def persona_row(case: Case, judge_id: str, judgement: Judgement, pas_pass: int = PAS_PASS) -> Row:
    """Return the row of a judged case: passed with a PAS of ``pas_pass`` or more and, at L4, the right label."""
    answer = judgement.answer
    problems = []
    if answer["pas"] < pas_pass:
        problems.append(f"PAS {answer['pas']} is below {pas_pass}")
    if case.l4_expected is not None and answer["l4_category"] != case.l4_expected:
        problems.append(f"the conflict is {answer['l4_category']}, not {case.l4_expected}")
    verdict = " and ".join(problems) or f"PAS {answer['pas']}"
    summary = " ".join(str(answer["summary"]).split())
    return {
        **_identity(case, judge_id),
        "outcome": "failed" if problems else "passed",
        "passed": not problems,
        "pas": answer["pas"],
        "pas_pass": pas_pass,
        "register_fit": answer["register_fit"],
        "content_fit": answer["content_fit"],
        "l4_category": answer["l4_category"],
        "l4_expected": case.l4_expected,
        "summary": summary,
        "prompt_hash": judgement.prompt_hash,
        "message": f"{verdict} (judge {judge_id})\n{summary}",
    }


def unscored_row(case: Case, judge_id: str, outcome: str, message: str) -> Row:
    """Return the row of a case without a judgement: ``error`` or ``skipped``."""
    return {**_identity(case, judge_id), "outcome": outcome, "message": message}


def judge_case(
    judge: Judge,
    recordings: Path,
    case_id: str,
    pack: Pack,
    store: cache.Store,
    *,
    pas_pass: int = PAS_PASS,
    seed: int = 0,
) -> Row:
    """Judge one recorded case and return its row; what has been answered before is not asked again.

    Parameters
    ----------
    judge : Judge
    recordings : Path
        The folder of the recordings, of which only ``{case_id}.rec.json`` is read.
    case_id : str
    pack : Pack
        The pack that the case was recorded with.
    store : Store
        The judgements of the run; the reply is written there before the row is made.
    pas_pass : int
        Lowest PAS that passes.
    seed : int
        For services that take one.

    Returns
    -------
    Row
        ``passed`` or ``failed``; ``error`` with a message that begins "unjudged" where no reply could be used; ``skipped`` where
        the agent gives no text.

    Raises
    ------
    JudgeError, RunError
        Where nothing can be asked at all: no key, no such model, no such recording.
    """
    meta = read_meta(recordings, case_id)
    case = case_of(meta, pack)
    nothing = cannot_be_judged(meta)
    if nothing is not None:
        return unscored_row(case, judge.id, "skipped", nothing)
    row = cache.answered(judge, pas_question(meta, pack, seed), case_id, ITEM, store)
    if row["outcome"] == "unjudged":
        return unscored_row(case, judge.id, "error", str(row["problem"]))
    return persona_row(case, judge.id, cache.judgement_of(row), pas_pass)
