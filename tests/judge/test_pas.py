"""A case from its recording to its row, with the judges as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsbeval.errors import RunError
from dsbeval.judge.cache import Store
from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge, JudgeError
from dsbeval.judge.pas import judge_case, pas_question
from dsbeval.judge.run import persona_rows
from dsbeval.results import Row, RunFolder
from tests.ifeval.packs import copy_pack, edit
from tests.judge.servers import open_judge, refusal
from tests.judge.support import case, make_run, meta_of, pack, pas_reply, record
from tests.servers import OpenAIServer

GOOD = "Hold on a second. When you take five x away from three x, what does that leave you with?"


def offline() -> Judge:
    judge = make_judge("offline")
    assert judge is not None
    return judge


def judged(folder: RunFolder, name: str, judge: Judge | None = None, pas_pass: int = 50) -> Row:
    store = Store.of_run(folder.root)
    return judge_case(judge or offline(), folder.recordings, case(name).id, pack(), store, pas_pass=pas_pass)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run", [case("R5/R5_A/i1/L2"), case("R1/C2/i1/L4a")], GOOD)


def test_a_row_holds_what_the_tables_need_and_can_be_appended(folder: RunFolder) -> None:
    row = judged(folder, "R5/R5_A/i1/L2")
    assert row["outcome"] == "passed"
    assert {k: row[k] for k in ("id", "item", "role", "probe", "level", "instance", "action", "judge")} == {
        "id": "IFD-R5-R5_A_wrong_intermediate_step-i1-L2",
        "item": "persona",
        "role": "R5",
        "probe": "R5_A_wrong_intermediate_step",
        "level": "L2",
        "instance": 1,
        "action": "INTERRUPT",
        "judge": "offline",
    }
    assert (row["pas"], row["passed"], row["l4_category"], row["l4_expected"]) == (100, True, "n/a", None)
    folder.append(row)
    assert folder.rows() == [row]


def test_the_offline_judge_gives_the_same_row_every_time(folder: RunFolder, tmp_path: Path) -> None:
    one = judged(folder, "R5/R5_A/i1/L2")
    (folder.root / "judgements.jsonl").unlink()
    again = judged(folder, "R5/R5_A/i1/L2")
    other = make_run(tmp_path / "other", [case("R5/R5_A/i1/L2")], GOOD)
    assert json.dumps(one) == json.dumps(again) == json.dumps(judged(other, "R5/R5_A/i1/L2"))


def test_the_pass_mark_is_inclusive(folder: RunFolder) -> None:
    with OpenAIServer([pas_reply(pas=50)]) as server:
        judge = open_judge(server)
        assert judged(folder, "R5/R5_A/i1/L2", judge)["outcome"] == "passed"
        row = judged(folder, "R5/R5_A/i1/L2", judge, pas_pass=51)  # not asked again
        judge.close()
    assert row["outcome"] == "failed"
    assert row["message"] == f"PAS 50 is below 51 (judge {row['judge']})\nIt stays in role."


@pytest.mark.parametrize(
    ("pas", "label", "outcome", "words"),
    [
        (80, "directive-wins", "passed", "PAS 80"),
        (80, "persona-wins", "failed", "the conflict is persona-wins, not directive-wins"),
        (80, "hedged", "failed", "the conflict is hedged, not directive-wins"),
        (20, "directive-wins", "failed", "PAS 20 is below 50"),
        (20, "incoherent", "failed", "PAS 20 is below 50 and the conflict is incoherent, not directive-wins"),
    ],
)
def test_at_l4_both_the_score_and_the_label_must_be_right(
    folder: RunFolder, pas: int, label: str, outcome: str, words: str
) -> None:
    with OpenAIServer([pas_reply(pas=pas, l4_category=label)]) as server:
        judge = open_judge(server)
        row = judged(folder, "R1/C2/i1/L4a", judge)
        judge.close()
    assert (row["outcome"], row["passed"]) == (outcome, outcome == "passed")
    assert row["message"].startswith(f"{words} (judge openai:judge-1@127.0.0.1:")
    assert row["message"].endswith("\nIt stays in role.")
    assert row["message"].count("\n") == 1


def test_an_unjudged_case_is_an_error_without_a_score_and_is_asked_again(folder: RunFolder) -> None:
    with OpenAIServer([refusal("openai")] * 4 + [pas_reply()]) as server:
        judge = open_judge(server)
        row = judged(folder, "R5/R5_A/i1/L2", judge)
        assert row["outcome"] == "error"
        assert row["message"] == "unjudged after 4 attempts: refused: I can't help with grading that."
        assert "pas" not in row
        assert judged(folder, "R5/R5_A/i1/L2", judge)["outcome"] == "passed"
        judge.close()
    outcomes = [(row["outcome"], row["attempts"]) for row in Store.of_run(folder.root).rows]
    assert outcomes == [("unjudged", 4), ("judged", 1)]


def test_a_judge_that_cannot_be_asked_is_no_row(folder: RunFolder) -> None:
    with OpenAIServer(key="another") as server:
        judge = open_judge(server)
        with pytest.raises(JudgeError, match="check the key"):
            judged(folder, "R5/R5_A/i1/L2", judge)
        judge.close()
    assert Store.of_run(folder.root).rows == []


def test_two_judges_answers_lie_beside_each_other(folder: RunFolder) -> None:
    with OpenAIServer([pas_reply(pas=12)]) as server:
        judge = open_judge(server)
        assert judged(folder, "R5/R5_A/i1/L2")["pas"] == 100
        assert judged(folder, "R5/R5_A/i1/L2", judge)["pas"] == 12
        assert judged(folder, "R5/R5_A/i1/L2")["pas"] == 100
        judge.close()
    assert len(Store.of_run(folder.root).rows) == 2


def test_equal_prompts_are_asked_once(tmp_path: Path) -> None:
    levels = [case(f"R2/C1/i1/{level}") for level in ("L0", "L1", "L2", "L3")]
    folder = make_run(tmp_path / "run", levels, "Take your time.")
    with OpenAIServer([pas_reply()]) as server:  # a second question would be refused
        judge = open_judge(server)
        store = Store.of_run(folder.root)
        rows = [judge_case(judge, folder.recordings, one.id, pack(), store) for one in levels]
        again = [judge_case(judge, folder.recordings, one.id, pack(), store) for one in levels]
        judge.close()
    assert [row["level"] for row in rows] == ["L0", "L1", "L2", "L3"]
    assert again == rows
    written = Store.of_run(folder.root).rows
    assert [row["reused"] for row in written] == [False, True, True, True]
    assert [row["id"] for row in written] == [one.id for one in levels]


def test_rows_are_derived_from_disk_and_an_old_prompt_does_not_count(tmp_path: Path) -> None:
    chosen = [case("R5/R5_A/i1/L2"), case("R2/C1/i1/L2"), case("R4/C1/i1/L2")]
    folder = make_run(tmp_path / "run", chosen, GOOD)
    made = [judged(folder, name) for name in ("R5/R5_A/i1/L2", "R2/C1/i1/L2")]
    store = Store.of_run(folder.root)
    rows = persona_rows(folder, pack(), store, "offline")
    assert rows[:2] == made
    assert (rows[2]["outcome"], rows[2]["message"]) == ("error", "unjudged: offline has not been asked")
    record(folder.recordings, chosen[0], "Something else.")
    (folder.recordings / f"{chosen[1].id}.rec.json").unlink()
    rows = persona_rows(folder, pack(), store, "offline")
    assert [(row["id"], row["outcome"]) for row in rows] == [(chosen[0].id, "error"), (chosen[2].id, "error")]
    assert {row["message"] for row in rows} == {"unjudged: offline has not been asked"}


def test_an_agent_without_text_is_skipped_unless_it_was_transcribed(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [])
    one = case("R5/R5_A/i1/L2")
    record(folder.recordings, one, "", text=False)
    row = judged(folder, "R5/R5_A/i1/L2")
    assert row["outcome"] == "skipped"
    assert "gives no text" in row["message"]
    assert not (folder.root / "judgements.jsonl").exists()
    record(folder.recordings, one, GOOD, text=False)
    assert judged(folder, "R5/R5_A/i1/L2")["outcome"] == "passed"


def test_an_agent_that_says_nothing_is_judged(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [case("R5/R5_A/i1/L2")], "")
    row = judged(folder, "R5/R5_A/i1/L2")
    assert (row["outcome"], row["pas"]) == ("failed", 0)


def test_a_recording_of_another_pack_is_refused(tmp_path: Path) -> None:
    from dsbeval.ifeval.pack import load_pack

    root = copy_pack(tmp_path)
    edit(root, "roles.yaml", "A furrowed brow", "A wrinkled brow")
    one = case("R5/R5_A/i1/L2")
    with pytest.raises(RunError, match=r"recorded under another prompt than the pack .* name the pack of the run"):
        pas_question({**meta_of(one), "transcript": "Okay."}, load_pack(root))
    with pytest.raises(RunError, match="is not a case of the pack"):
        pas_question({**meta_of(one), "transcript": "Okay.", "test_case_id": "IFD-R5-R5_A-i9-L2"}, pack())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "no such recording"),
        (lambda path: path.write_text("{"), "not valid JSON"),
        (lambda path: path.write_text('{"test_case_id": "x"}'), "prompt: is missing"),
    ],
)
def test_a_damaged_recording_is_one_line(folder: RunFolder, spoil: object, words: str) -> None:
    spoil(folder.recordings / f"{case('R5/R5_A/i1/L2').id}.rec.json")  # type: ignore[operator]
    with pytest.raises(RunError, match=words) as error:
        judged(folder, "R5/R5_A/i1/L2")
    assert "\n" not in str(error.value)
