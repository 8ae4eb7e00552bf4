"""The ladder of tries for one script: write, check, criticise, and again, with everything on record.

Conventions
-----------
* Try ``k`` of :data:`TRIES` is written at temperature ``0.7 + 0.1 (k - 1)``, the last :data:`FALLBACK_TRIES` by the
  fallback model; the critic is always the same model, at temperature 0. What a try was rejected for goes to the next.
* A work folder holds two files a script. ``KEY.json`` is where it stands: written whole after every step, so that a
  run that was cut off goes on at the step it had not finished, and asks no question twice. ``KEY.jsonl`` is the log: a
  line for every answer of a model, with the reason when it was rejected, and for every answer that never came.
* A service that fails is not a try: the run ends, the log has the line, the state does not.

Source: DSB-IFEval (arXiv 2609.03423), generation of the user side.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dsbeval.audio import atomic_write
from dsbeval.ifeval.schema import Script
from dsbeval.replies import ReplyError, read_object
from dsbeval.speech.author import AuthorError, candidate, prompts
from dsbeval.speech.author.candidate import Task
from dsbeval.speech.author.providers import Provider, Reply

TRIES = 4
FALLBACK_TRIES = 2
MAX_TOKENS = 1500
FIRST_TEMPERATURE, STEP = 0.7, 0.1

Step = Literal["write", "critic"]
Outcome = Literal["accepted", "rejected", "error"]


@dataclass(frozen=True, slots=True)
class Models:
    """Who writes, who writes when that failed twice, who criticises."""

    writer: str
    fallback: str
    critic: str
    max_tokens: int = MAX_TOKENS


class State(BaseModel):
    """Where a script stands."""

    model_config = ConfigDict(extra="forbid")

    key: str
    reasons: list[str] = Field(default_factory=list)
    """Why each try so far was rejected."""
    draft: Script | None = None
    """A try that passed the local gates and has not been before the critic."""
    script: Script | None = None
    """The one that was accepted."""


def state_path(work: Path, key: str) -> Path:
    """Return the file that says where a script stands."""
    return work / f"{key}.json"


def read_state(work: Path, key: str) -> State:
    """Return where a script stands; the beginning when nothing was asked yet. Raises :class:`AuthorError`."""
    path = state_path(work, key)
    try:
        state = State.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return State(key=key)
    except ValidationError:
        raise AuthorError(f"{path}: is not the state of a script; delete it to begin again, the log stays") from None
    if state.key != key:
        raise AuthorError(f"{path}: is the state of {state.key}; delete it to begin again, the log stays")
    return state


def forget(work: Path, key: str) -> None:
    """Begin again with a script. The log stays."""
    state_path(work, key).unlink(missing_ok=True)


def climb(task: Task, provider: Provider, models: Models, work: Path, say: Callable[[str], None]) -> Script | None:
    """Return the accepted script, asking only what is missing; None when every try was rejected.

    Raises :class:`AuthorError` when the service gives no answer.
    """
    run = _Run(task, provider, models, work, say, read_state(work, task.key))
    while run.state.script is None and len(run.state.reasons) < TRIES:
        if run.state.draft is None:
            run.write()
        else:
            run.criticise(run.state.draft)
    return run.state.script


@dataclass
class _Run:
    task: Task
    provider: Provider
    models: Models
    work: Path
    say: Callable[[str], None]
    state: State

    @property
    def number(self) -> int:
        return len(self.state.reasons) + 1

    def write(self) -> None:
        """Ask the writer once; the state gains a draft or a reason."""
        model = self.models.fallback if self.number > TRIES - FALLBACK_TRIES else self.models.writer
        temperature = round(FIRST_TEMPERATURE + STEP * (self.number - 1), 1)
        asked = candidate.writer_prompts(self.task, self.state.reasons)
        reply = self._ask("write", asked, model, temperature, candidate.reply_schema(self.task))
        try:
            script = candidate.read_script(self.task, _object_of(reply))
        except ReplyError as error:
            reason = str(error)
        else:
            reason = "; ".join(candidate.faults(self.task, script))
        self._log("write", model, reply.temperature, reply.text, "rejected" if reason else "accepted", reason)
        if reason:
            self._reject(model, reason)
            return
        self.state.draft = script
        self._save()

    def criticise(self, script: Script) -> None:
        """Ask the critic once about the draft; the state gains a script or a reason."""
        model = self.models.critic
        reply = self._ask("critic", candidate.critic_prompts(self.task, script), model, 0.0, candidate.VERDICT_SCHEMA)
        reason = ""
        try:
            verdict = _object_of(reply)
            if not isinstance(verdict.get("accept"), bool):
                raise ReplyError("it has no field accept that is true or false")
            if not verdict["accept"]:
                reason = f"critic: {' '.join(str(verdict.get('reason') or 'no reason given').split())}"
        except ReplyError as error:
            # Not heard is not accepted.
            reason = f"critic: the verdict cannot be read: {error}"
        self._log("critic", model, reply.temperature, reply.text, "rejected" if reason else "accepted", reason)
        if reason:
            self._reject(model, reason)
            return
        self.state.script, self.state.draft = script, None
        self._save()
        self.say(f"{self.task.key}: try {self.number} of {TRIES}: accepted")

    def _ask(self, step: Step, asked: tuple[str, str], model: str, temperature: float, schema: dict[str, Any]) -> Reply:
        try:
            return self.provider.ask(
                *asked, model=model, temperature=temperature, max_tokens=self.models.max_tokens, schema=schema
            )
        except AuthorError as error:
            self._log(step, model, temperature, None, "error", str(error))
            raise

    def _reject(self, model: str, reason: str) -> None:
        self.say(f"{self.task.key}: try {self.number} of {TRIES} ({model}): rejected: {reason}")
        self.state.reasons.append(reason)
        self.state.draft = None
        self._save()

    def _save(self) -> None:
        with atomic_write(state_path(self.work, self.task.key)) as file:
            file.write(self.state.model_dump_json(by_alias=True, exclude_none=True, indent=1).encode())

    def _log(
        self, step: Step, model: str, temperature: float | None, raw: str | None, outcome: Outcome, reason: str
    ) -> None:
        row = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "key": self.task.key,
            "attempt": self.number,
            "step": step,
            "provider": self.provider.name,
            "address": self.provider.address,
            "model": model,
            "temperature": temperature,
            "prompts": prompts.VERSION,
            "outcome": outcome,
            "reason": self.provider.scrub(reason) or None,
            "raw": raw,
        }
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / f"{self.task.key}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _object_of(reply: Reply) -> dict[str, Any]:
    if reply.problem is not None:
        raise ReplyError(reply.problem)
    return read_object(reply.text)
