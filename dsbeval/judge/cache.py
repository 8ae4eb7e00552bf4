"""``judgements.jsonl`` of a run folder: every reply kept, and found again by what was asked of whom.

A row::

    {"key", "judge", "id", "item", "kind", "provider", "address", "model", "prompt_hash", "prompt_version", "seed",
     "repeat", "outcome": judged|unjudged, "answer", "raw", "failed": [{"problem", "raw"}], "attempts",
     "tokens": {"input", "output"}, "latency_s", "sent", "cost_usd", "problem", "reused"}

Conventions
-----------
* ``key`` is the hash of (provider, address, model, prompt hash, seed, repeat): two models, two repeats, two prompts or
  two servers never share an answer. ``prompt_hash`` covers the schema and, through the prompt, everything that was judged.
* A replay asks nothing again that the run which it replays was told: the row is marked ``reused``.
* Two cases with the same prompt share one call. The second has a row of its own, marked ``reused``, with no tokens and no cost.
* Append-only. A row is written whole, under a lock where the system has one, so several processes may write. A line that is
  torn (a process died while it wrote) is passed over: its question is asked again.
* An unjudged row is kept for the record and found by nobody: the question is asked again the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dsbeval.errors import RunError
from dsbeval.judge.contract import Judge, Judgement, Kind, Question, Tokens, Unjudged
from dsbeval.judge.prompts import VERSION, prompt_hash
from dsbeval.results import Row

FILE = "judgements.jsonl"

Place = tuple[str, str, str, int]
"""Judge, case, item, repeat: what a row is about."""


def key_of(judge: Judge, question: Question, repeat: int) -> str:
    """Return the address of an answer."""
    asked = [judge.provider, judge.address, judge.model, prompt_hash(question), question.seed, repeat]
    return hashlib.sha256(json.dumps(asked, ensure_ascii=True).encode()).hexdigest()


class Store:
    """The judgements of a run. May be used from several threads.

    What the ``earlier`` store was told is found like what was asked before, and is no row of this one.
    """

    def __init__(self, path: Path, earlier: Store | None = None) -> None:
        self.path = path
        self.torn = 0
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._by_key: dict[str, Row] = dict(earlier._by_key) if earlier is not None else {}
        self._latest: dict[Place, Row] = {}
        for row in self._read():
            self._keep(row)

    @classmethod
    def of_run(cls, root: Path, replayed: Path | None = None) -> Store:
        """Return the store of a run folder, and of the folder that it replays, which need be none of a run."""
        return cls(root / FILE, None if replayed is None else cls(replayed / FILE))

    @property
    def rows(self) -> list[Row]:
        """All rows in the order in which they were written."""
        with self._lock:
            return list(self._rows)

    def find(self, key: str) -> Row | None:
        """Return the judged row of an address, or None."""
        with self._lock:
            return self._by_key.get(key)

    def latest(self) -> dict[Place, Row]:
        """Return the newest row by (judge, id, item, repeat).

        A judged row is not replaced by an unjudged one of the same prompt.
        """
        with self._lock:
            return dict(self._latest)

    def newest(self, judge: str, case: str, item: str, repeat: int = 0) -> Row | None:
        """Return the newest row of one place, as :meth:`latest` has it, or None."""
        with self._lock:
            return self._latest.get((judge, case, item, repeat))

    def append(self, row: Row) -> None:
        """Write a row and keep it."""
        line = json.dumps(row, ensure_ascii=False, sort_keys=True, allow_nan=False).encode() + b"\n"
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file, _locked(file):
                end = file.seek(0, os.SEEK_END)
                if end:
                    file.seek(end - 1)
                    line = line if file.read(1) == b"\n" else b"\n" + line
                file.write(line)
                file.flush()
            self._keep(row)

    def _keep(self, row: Row) -> None:
        self._rows.append(row)
        if row["outcome"] == "judged":
            self._by_key.setdefault(row["key"], row)
        place = (row["judge"], row["id"], row["item"], row["repeat"])
        old = self._latest.get(place)
        kept = old is not None and old["outcome"] == "judged" and old["prompt_hash"] == row["prompt_hash"]
        if not (kept and row["outcome"] == "unjudged"):
            self._latest[place] = row

    def _read(self) -> Iterator[Row]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError:
                self.torn += 1
                continue
            if not isinstance(row, dict) or not row.keys() >= _FIELDS:
                raise RunError(f"{self.path}: holds a row that is no judgement; it was written by another version")
            yield row


_FIELDS = frozenset(
    {"key", "judge", "id", "item", "kind", "prompt_hash", "repeat", "outcome", "answer", "attempts", "tokens"}
)


@contextlib.contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the file against other processes, where the system can."""
    try:
        import fcntl
    except ImportError:  # Windows: appends of one process at a time
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


# Rows


def _base(judge: Judge, question: Question, case: str, item: str, repeat: int) -> Row:
    return {
        "key": key_of(judge, question, repeat),
        "judge": judge.id,
        "id": case,
        "item": item,
        "kind": question.kind.value,
        "provider": judge.provider,
        "address": judge.address,
        "model": judge.model,
        "prompt_hash": prompt_hash(question),
        "prompt_version": VERSION,
        "seed": question.seed,
        "repeat": repeat,
    }


def row_of(
    judge: Judge, question: Question, outcome: Judgement | Unjudged, case: str, item: str, repeat: int = 0
) -> Row:
    """Return the row of an outcome."""
    row = {
        **_base(judge, question, case, item, repeat),
        "failed": [{"problem": attempt.problem, "raw": attempt.raw} for attempt in outcome.failed],
        "tokens": {"input": outcome.tokens.input, "output": outcome.tokens.output},
        "cost_usd": outcome.cost_usd,
        "reused": False,
    }
    if isinstance(outcome, Unjudged):
        return {
            **row,
            "outcome": "unjudged",
            "answer": None,
            "raw": None,
            "problem": str(outcome),
            "attempts": len(outcome.failed),
            "latency_s": None,
            "sent": {},
        }
    return {
        **row,
        "outcome": "judged",
        "answer": dict(outcome.answer),
        "raw": outcome.raw,
        "problem": None,
        "attempts": outcome.attempts,
        "latency_s": outcome.latency_s,
        "sent": dict(outcome.sent),
    }


def answered(judge: Judge, question: Question, case: str, item: str, store: Store) -> Row:
    """Return the row of a question about a case, judged or unjudged; what has been answered before is not asked again."""
    there = store.find(key_of(judge, question, 0))
    if there is None:
        outcome: Judgement | Unjudged
        try:
            outcome = judge.ask(question)
        except Unjudged as error:
            outcome = error
        row = row_of(judge, question, outcome, case, item)
        store.append(row)
        return row
    own = store.newest(judge.id, case, item)
    if own is not None and own["key"] == there["key"]:
        return own
    row = reused(there, case, item)
    store.append(row)
    return row


def reused(row: Row, case: str, item: str) -> Row:
    """Return the row of a case whose question another case has had answered."""
    nothing = {"tokens": {"input": 0, "output": 0}, "cost_usd": 0.0, "attempts": 0, "failed": []}
    return {**row, **nothing, "id": case, "item": item, "reused": True}


def judgement_of(row: Row) -> Judgement:
    """Return the judgement that a judged row holds."""
    return Judgement(
        kind=Kind(row["kind"]),
        answer=row["answer"],
        raw=row["raw"],
        provider=row["provider"],
        model=row["model"],
        prompt_hash=row["prompt_hash"],
        prompt_version=row["prompt_version"],
        tokens=Tokens(**row["tokens"]),
        latency_s=row["latency_s"],
        attempts=row["attempts"],
        sent=row["sent"],
        cost_usd=row["cost_usd"],
    )
