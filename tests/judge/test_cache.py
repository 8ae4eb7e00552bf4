"""judgements.jsonl: what shares an entry and what does not, what survives, and several writers at once."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsbeval.errors import RunError
from dsbeval.judge.cache import Store, judgement_of, key_of, reused, row_of
from dsbeval.judge.contract import Attempt, Judgement, Tokens, Unjudged
from dsbeval.judge.offline import OfflineJudge
from tests.judge.support import question


class Named(OfflineJudge):
    """A judge in name only, for addresses of answers."""

    def __init__(self, provider: str, model: str, address: str) -> None:
        self.provider, self.model = provider, model
        self.address = address  # type: ignore[assignment]
        self.id = f"{provider}:{model}"


ONE = Named("openai", "m", "http://a/v1")
ASKED = question()


def judged(judge: Named = ONE, case: str = "case-1", repeat: int = 0, said: str | None = None) -> dict[str, Any]:
    asked = ASKED if said is None else question(said=said)
    return row_of(judge, asked, replace(judge.ask(asked), tokens=Tokens(5, 7), cost_usd=0.1), case, "persona", repeat)


def test_nothing_shares_an_entry_that_was_not_asked_the_same_of_the_same() -> None:
    keys = [
        key_of(ONE, ASKED, 0),
        key_of(ONE, ASKED, 1),
        key_of(ONE, replace(ASKED, seed=1), 0),
        key_of(ONE, question(said="Another."), 0),
        key_of(ONE, replace(ASKED, schema={**ASKED.schema, "title": "x"}), 0),
        key_of(Named("openai", "m2", "http://a/v1"), ASKED, 0),
        key_of(Named("anthropic", "m", "http://a/v1"), ASKED, 0),
        key_of(Named("openai", "m", "http://b/v1"), ASKED, 0),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(Named("openai", "m", "http://a/v1"), question(), 0) == keys[0]


def test_what_is_written_is_found_again(tmp_path: Path) -> None:
    row = judged()
    Store(tmp_path / "judgements.jsonl").append(row)
    again = Store(tmp_path / "judgements.jsonl")
    assert again.find(row["key"]) == row
    assert again.rows == [row]
    assert judgement_of(row).answer == ONE.ask(ASKED).answer
    assert again.find(key_of(ONE, ASKED, 1)) is None


def test_every_reply_of_every_attempt_is_kept(tmp_path: Path) -> None:
    outcome = replace(ONE.ask(ASKED), attempts=3, failed=(Attempt("HTTP 500: x"), Attempt("not JSON", "eighty")))
    store = Store(tmp_path / "j.jsonl")
    store.append(row_of(ONE, ASKED, outcome, "case-1", "persona"))
    (row,) = Store(tmp_path / "j.jsonl").rows
    assert row["failed"] == [{"problem": "HTTP 500: x", "raw": None}, {"problem": "not JSON", "raw": "eighty"}]
    assert row["raw"] == outcome.raw
    assert (row["model"], row["prompt_hash"], row["attempts"]) == ("m", outcome.prompt_hash, 3)


def test_an_unjudged_row_is_kept_and_answers_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.jsonl")
    row = row_of(ONE, ASKED, Unjudged((Attempt("refused: no", "no"),), tokens=Tokens(3, 1)), "case-1", "persona")
    store.append(row)
    assert store.find(row["key"]) is None
    again = Store(store.path)
    assert again.rows[0]["problem"] == "unjudged after 1 attempt: refused: no"
    assert again.newest(ONE.id, "case-1", "persona") == row


def test_an_answer_is_not_undone_by_a_later_failure_but_by_a_later_prompt() -> None:
    store = Store(Path("nowhere/j.jsonl"))
    answered, other = judged(), judged(said="Another.")
    failed = row_of(ONE, ASKED, Unjudged((Attempt("x"),)), "case-1", "persona")
    store._keep(answered)
    store._keep(failed)
    assert store.newest(ONE.id, "case-1", "persona") == answered
    store._keep(other)
    assert store.newest(ONE.id, "case-1", "persona") == other


def test_a_shared_answer_costs_nothing_twice() -> None:
    row = judged()
    second = reused(row, "case-2", "persona")
    assert (second["id"], second["key"], second["answer"]) == ("case-2", row["key"], row["answer"])
    assert (second["tokens"], second["cost_usd"], second["attempts"]) == ({"input": 0, "output": 0}, 0.0, 0)
    assert second["reused"]


# Damage


@pytest.mark.parametrize("bytes_left", [1, 40, -2])
def test_a_torn_last_line_is_passed_over_and_the_next_row_is_whole(tmp_path: Path, bytes_left: int) -> None:
    path = tmp_path / "j.jsonl"
    store = Store(path)
    store.append(judged(case="case-1"))
    whole = path.stat().st_size
    store.append(judged(case="case-2", said="Another."))
    data = path.read_bytes()
    path.write_bytes(data[: whole + bytes_left] if bytes_left > 0 else data[:bytes_left])
    torn = Store(path)
    assert torn.torn == 1
    assert [row["id"] for row in torn.rows] == ["case-1"]
    torn.append(judged(case="case-3", said="A third."))
    again = Store(path)
    assert [row["id"] for row in again.rows] == ["case-1", "case-3"]
    assert again.torn == 1


def test_a_last_line_that_lacks_only_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    Store(path).append(judged())
    path.write_bytes(path.read_bytes()[:-1])
    store = Store(path)
    assert (len(store.rows), store.torn) == (1, 0)
    store.append(judged(case="case-2", said="Another."))
    assert len(Store(path).rows) == 2


def test_a_row_of_another_kind_is_one_line_of_error(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text('{"id": 1}\n')
    with pytest.raises(RunError, match="written by another version"):
        Store(path)


def test_a_missing_file_is_an_empty_store(tmp_path: Path) -> None:
    assert Store.of_run(tmp_path).rows == []


def test_every_character_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    said = 'quote " brace } line\u2028end \U0001f600 \u00e9'
    row = {**judged(), "raw": said}
    Store(path).append(row)
    assert Store(path).rows == [row]
    assert path.read_bytes().count(b"\n") == 1


# Several writers


def _write(path: Path, writer: int, count: int) -> None:
    store = Store(path)
    for k in range(count):
        store.append({**judged(case=f"w{writer}-{k}"), "raw": "x" * 20_000})


def test_several_processes_write_whole_rows(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(path, k, 25)) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    store = Store(path)
    assert store.torn == 0
    assert sorted(row["id"] for row in store.rows) == sorted(f"w{w}-{k}" for w in range(4) for k in range(25))
    for line in path.read_text().splitlines():
        assert len(json.loads(line)["raw"]) == 20_000


def test_a_judgement_is_a_value() -> None:
    assert isinstance(ONE.ask(ASKED), Judgement)
    assert ONE.ask(ASKED) == ONE.ask(ASKED)
