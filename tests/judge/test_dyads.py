"""``dsbeval judge`` over the conversations of two agents: recorded over the bridge, judged from what lies on disk."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from adapters.dyadic_controls import Achiever, Forfeiter
from dsbeval.agent import Agent
from dsbeval.cli import main
from dsbeval.dyadic.protocol import Run, record_run
from dsbeval.dyadic.record import write_dyad
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.judge.cache import Store
from dsbeval.results import RunFolder
from tests.dyadic.dyads import print_of
from tests.judge.servers import prompt_of
from tests.judge.support import case, numbered, record
from tests.servers import OpenAIServer, Seen

SUITE = load_scenarios()
SCENARIOS = ("T1-1-01", "T3-1-01", "T4-1-01")
IDS = [f"DYA-{name}-ab-oA-r1@forfeiter" for name in SCENARIOS]


def made(agent: type[Agent], name: str) -> Agent:
    found = agent()
    found.name = name
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three conversations that nobody has judged: role adherence, competing, a choice."""
    root = tmp_path_factory.mktemp("dyads") / "run"
    folder = RunFolder.create(root, print_of("achiever"), IDS)
    for scenario, name in zip(SCENARIOS, IDS, strict=True):
        run = Run(scenario, "ab", "a", 1, False, "forfeiter")
        pair = made(Achiever, "achiever"), made(Forfeiter, "forfeiter")
        write_dyad(folder.recordings, name, record_run(run, SUITE, *pair, window_s=30.0, concurrent=False))
    return root


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> RunFolder:
    return RunFolder.open(Path(shutil.copytree(template, tmp_path / "run")))


def judge(folder: RunFolder, *args: str) -> Result:
    result = CliRunner().invoke(main, ["judge", str(folder.root), *args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def at(server: OpenAIServer, model: str = "m") -> list[str]:
    return [f"--judge=openai:{model}", f"--judge-base-url={server.base_url}"]


def summary_of(folder: RunFolder, name: str) -> dict[str, Any]:
    (path,) = folder.report.glob(f"judge-{name}*.json")
    return dict(json.loads(path.read_text()))


def reply(seen: Seen) -> str:
    """Answer every question: adherence yes, timing 2 s, no option."""
    words = {"reason": "It is said."}
    if "in_role_s" in prompt_of(seen):
        return json.dumps({**words, "in_role_s": 2.0, "off_role_s": None})
    return json.dumps({**words, "answer": "none" if "T4-1" in seen.model or "option" in prompt_of(seen) else "yes"})


def test_offline_judges_stored_conversations_and_asks_nothing_twice(folder: RunFolder) -> None:
    result = judge(folder, "--judge=offline")
    assert result.exit_code == 0, result.output
    assert "judge offline: 5 judgements, 0 there already, 5 to do" in result.output
    assert "3 conversations: 3 passed, 0 failed" in result.output
    assert "[offline: a proxy, not comparable with a language model]" in result.output
    rows = Store.of_run(folder.root).rows
    assert Counter((row["id"], row["item"]) for row in rows) == {
        (IDS[0], "dyad:adherence_a"): 1, (IDS[0], "dyad:timing_a"): 1, (IDS[0], "dyad:adherence_b"): 1,
        (IDS[0], "dyad:timing_b"): 1, (IDS[2], "dyad:option"): 1,
    }  # fmt: skip
    summary = summary_of(folder, "offline")
    assert (summary["judge"], summary["offline"]) == ("offline", True)
    assert {task: m["values"] for task, m in summary["dyadic"]["matrices"].items()} == {
        "T1-1": [[None, 1.0], [0.0, None]], "T3-1": [[None, 1.0], [0.0, None]], "T4-1": [[None, 1.0], [0.0, None]],
    }  # fmt: skip
    assert folder.rows() == []  # the run's own rows are the test run's affair
    before = (folder.root / "judgements.jsonl").read_bytes()
    again = judge(folder, "--judge=offline")
    assert "5 judgements, 5 there already, 0 to do" in again.output
    assert (folder.root / "judgements.jsonl").read_bytes() == before
    assert summary_of(folder, "offline") == summary


def test_a_model_judges_beside_it_and_says_otherwise(folder: RunFolder) -> None:
    judge(folder, "--judge=offline")
    with OpenAIServer(reply) as server:
        result = judge(folder, *at(server))
        assert len(server.seen) == 5
    assert result.exit_code == 0, result.output
    found = summary_of(folder, "openai")["dyadic"]
    assert found["matrices"]["T1-1"]["values"] == [[None, 1.0], [1.0, None]]
    assert found["matrices"]["T4-1"]["values"] == [[None, 0.0], [0.0, None]]
    assert (found["outcomes"]["passed"], found["outcomes"]["failed"]) == (2, 1)
    assert summary_of(folder, "offline")["dyadic"]["matrices"]["T4-1"]["values"] == [[None, 1.0], [0.0, None]]
    agreed = CliRunner().invoke(main, ["agree", str(folder.root), "--judges", "offline", "openai:m"])
    assert agreed.exit_code == 0, agreed.output
    line = next(line.split() for line in agreed.output.splitlines() if line.startswith("role_adherence "))
    assert line[:2] + line[4:5] == ["role_adherence", "50.0", "2"]


@pytest.mark.usefixtures("no_waiting")
def test_what_stays_unjudged_is_counted_and_asked_again(folder: RunFolder) -> None:
    def plan(seen: Seen) -> str:
        return "I cannot say." if "option" in prompt_of(seen) else reply(seen)

    with OpenAIServer(plan) as server:
        result = judge(folder, *at(server))
        assert result.exit_code == 1
        assert f"error: {IDS[2]}: unjudged: option; ask the judge again (unjudged after 4 attempts" in result.output
        assert summary_of(folder, "openai")["dyadic"]["outcomes"]["error"] == 1
        again = judge(folder, *at(server))
    assert "5 judgements, 4 there already, 1 to do" in again.output


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsbeval.judge.providers.base.BACKOFF_S", (0.02, 0.04, 0.06))


def test_repeats_have_seeds_of_their_own_and_report_self_agreement(folder: RunFolder) -> None:
    def plan(seen: Seen) -> str:
        return reply(seen) if seen.body["seed"] == 0 else reply(seen).replace('"yes"', '"no"')

    with OpenAIServer(plan) as server:
        result = judge(folder, *at(server), "--judge-repeats=2")
        assert Counter(seen.body["seed"] for seen in server.seen) == {0: 5, 1: 5}
    [line] = [line.split() for line in result.output.splitlines() if line.startswith("role_adherence ")]
    assert line[1] == "0.0"
    assert summary_of(folder, "openai")["dyadic"]["matrices"]["T1-1"]["values"] == [[None, 1.0], [1.0, None]]


def test_cases_of_both_benchmarks_are_judged_in_one_go(folder: RunFolder) -> None:
    one = case("R4/C1/i1/L2")
    cases = folder.root / "cases.json"
    cases.write_text(json.dumps([one.id, *IDS, "DYA-T4-1-02-ab-oA-r1@forfeiter"]))
    record(folder.recordings, one, numbered(one))
    result = judge(folder, "--judge=offline")
    assert result.exit_code == 0, result.output
    assert "judge offline: 6 judgements" in result.output
    assert "1 cases without a recording: DYA-T4-1-02-ab-oA-r1@forfeiter" in result.output
    summary = summary_of(folder, "offline")
    assert summary["counts"]["cases"] == 1
    assert (summary["dyadic"]["outcomes"]["cases"], summary["dyadic"]["missing"]) == (
        4,
        ["DYA-T4-1-02-ab-oA-r1@forfeiter"],
    )


def test_earlier_runs_join_as_the_same_judge_has_judged_them(folder: RunFolder, tmp_path: Path) -> None:
    name = "DYA-T4-1-01-ab-oA-r1"
    old = RunFolder.create(tmp_path / "old", print_of("forfeiter", judge={"id": "none", "prompts": "1"}), [name])
    pair = made(Forfeiter, "forfeiter"), made(Forfeiter, "forfeiter")
    recording = record_run(Run("T4-1-01", "ab", "a", 1, True), SUITE, *pair, window_s=30.0, concurrent=False)
    write_dyad(old.recordings, name, recording)
    result = judge(folder, "--judge=offline", f"--with-run={old.root}")
    assert "with run old: agent forfeiter, 1 conversations: 1 error" in result.output  # not judged there yet
    judge(old, "--judge=offline")
    result = judge(folder, "--judge=offline", f"--with-run={old.root}")
    assert "with run old: agent forfeiter, 1 conversations: 0 error" in result.output
    assert summary_of(folder, "offline")["dyadic"]["matrices"]["T4-1"]["n"] == [[0, 1], [1, 2]]


def test_a_conversation_under_other_prompts_is_refused_before_anything_is_asked(folder: RunFolder) -> None:
    path = folder.recordings / f"{IDS[0]}.rec.json"
    data = json.loads(path.read_text())
    data["prompts"]["a"] = "You are somebody else."
    path.write_text(json.dumps(data))
    result = judge(folder, "--judge=offline")
    assert result.exit_code == 2
    assert f"{IDS[0]}: was recorded under other prompts" in result.output
    assert not (folder.root / "judgements.jsonl").exists()
