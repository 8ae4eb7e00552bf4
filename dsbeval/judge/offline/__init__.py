"""The offline judge: content checks that can really be computed, without a model, a key or a network.

It is a **proxy**. It knows the eight roles of the benchmark by their names and checks what their content rules forbid and
ask for, with word lists and counting; it does not understand what was said. Its scores order agents that differ much
and say little about agents that differ little. They are marked ``offline`` wherever they appear and are never mixed with
those of a language model. ``docs/judging.md`` lists the checks.

The same question gives the same answer, byte for byte.
"""

from __future__ import annotations

import json

from dsbeval.judge.answers import read_answer
from dsbeval.judge.contract import Judgement, Kind, Question
from dsbeval.judge.offline.dyadic import answer_dyadic
from dsbeval.judge.offline.pas import answer_pas
from dsbeval.judge.prompts import VERSION, prompt_hash

RULES = "rules-1"
"""Version of the checks; a change to a check or a word list is a new one, so that old judgements are not taken for new."""


class OfflineJudge:
    """A :class:`~dsbeval.judge.contract.Judge` that computes."""

    provider = "offline"
    model = RULES
    address = None
    id = "offline"

    def ask(self, question: Question) -> Judgement:
        """Answer a question."""
        answer = answer_pas(question) if question.kind is Kind.PAS else answer_dyadic(question)
        raw = json.dumps(answer, ensure_ascii=False)
        checked, problem = read_answer(question, raw)
        assert checked is not None, problem
        return Judgement(
            kind=question.kind,
            answer=checked,
            raw=raw,
            provider=self.provider,
            model=self.model,
            prompt_hash=prompt_hash(question),
            prompt_version=VERSION,
            cost_usd=0.0,
        )

    def stop(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""
