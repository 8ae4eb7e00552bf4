"""``dsbeval judge`` and ``dsbeval agree`` as a user calls them, on run folders on disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsbeval.cli import main
from dsbeval.judge.cache import Store
from dsbeval.results import RunFolder
from tests.inner import ROOT
from tests.judge.servers import KEY, HangingServer, prompt_of
from tests.judge.support import case, files_of, make_run, numbered, pack, pas_reply
from tests.servers import Answer, AnthropicServer, OpenAIServer, Seen

TEN = [case(f"{role}/C1/i{k}/L2") for role in ("R4", "R5") for k in range(1, 6)]


def dsbeval(*args: object) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def at(server: OpenAIServer | AnthropicServer, model: str = "judge-1") -> list[str]:
    name = "openai" if isinstance(server, OpenAIServer) else "anthropic"
    return [f"--judge={name}:{model}", f"--judge-base-url={server.base_url}"]


@pytest.fixture
def ten(tmp_path: Path) -> RunFolder:
    """Ten recorded cases, no two of which share a prompt."""
    return make_run(tmp_path / "run", TEN, numbered)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the ladder: four attempts as ever, a hundredth of the time apart."""
    monkeypatch.setattr("dsbeval.judge.providers.base.BACKOFF_S", (0.02, 0.04, 0.06))


def summary_of(folder: RunFolder, name: str) -> dict[str, Any]:
    (path,) = folder.report.glob(f"judge-{name}*.json")
    return dict(json.loads(path.read_text()))


# Judging


def test_offline_judges_a_run_alone_and_writes_its_summary(ten: RunFolder) -> None:
    result = dsbeval("judge", ten.root, "--judge=offline")
    assert result.exit_code == 0, result.output
    assert "judge offline: 10 judgements, 0 there already, 10 to do" in result.output
    assert "[offline: a proxy, not comparable with a language model]" in result.output
    summary = summary_of(ten, "offline")
    assert summary["offline"] is True
    assert summary["counts"]["cases"] == 10
    assert len(Store.of_run(ten.root).rows) == 10
    assert ten.rows() == []  # the run's own rows are the test run's affair


def test_offline_twice_is_the_same_and_asks_nothing(ten: RunFolder) -> None:
    dsbeval("judge", ten.root, "--judge=offline")
    before = files_of(ten.root)
    result = dsbeval("judge", ten.root, "--judge=offline")
    assert "10 judgements, 10 there already, 0 to do" in result.output
    assert files_of(ten.root) == before


def test_all_cases_of_the_pack_are_judged_offline(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", pack().cases.values(), numbered)
    result = dsbeval("judge", folder.root, "--judge=offline")
    assert result.exit_code == 0, result.output
    counts = summary_of(folder, "offline")["counts"]
    assert counts["cases"] == counts["passed"] + counts["failed"] == len(pack().cases) >= 1038


def test_before_and_after_say_what_it_takes(ten: RunFolder) -> None:
    with OpenAIServer(lambda seen: pas_reply()) as server:
        result = dsbeval("judge", ten.root, *at(server), "--price=100,1000")
    assert result.exit_code == 0, result.output
    assert f"at {server.base_url}: 10 calls, about " in result.output
    assert "about $" in result.output
    assert "10 questions asked in 10 attempts, 100 tokens in, 100 out, $0.11" in result.output


def test_without_a_price_no_cost_is_stated(ten: RunFolder) -> None:
    with OpenAIServer(lambda seen: pas_reply()) as server:
        result = dsbeval("judge", ten.root, *at(server, "gpt-4o"))  # the table's price is not this server's
    assert "cost unknown (give --price IN,OUT)" in result.output
    assert "$" not in result.output


@pytest.mark.usefixtures("no_waiting")
def test_unjudged_cases_are_counted_listed_and_asked_again(ten: RunFolder) -> None:
    def plan(seen: Seen) -> Answer | str:
        return "I cannot say." if TEN[3].id in prompt_of(seen) else pas_reply()

    with OpenAIServer(plan) as server:
        args = ["judge", ten.root, *at(server)]
        result = dsbeval(*args, "--pas-pass=90")
        assert result.exit_code == 1
        assert "10 cases: 0 passed, 9 failed, 1 error (1 unjudged)" in result.output
        assert f"error: {TEN[3].id}: unjudged after 4 attempts: the reply holds no JSON object" in result.output
        asked = len(server.seen)
        assert asked == 9 + 4
        again = dsbeval(*args)
        assert "10 judgements, 9 there already, 1 to do" in again.output
        assert len(server.seen) == asked + 4


def test_a_second_judge_lies_beside_the_first(ten: RunFolder) -> None:
    dsbeval("judge", ten.root, "--judge=offline")
    with OpenAIServer(lambda seen: pas_reply(pas=70)) as one, AnthropicServer(lambda seen: pas_reply(pas=30)) as other:
        dsbeval("judge", ten.root, *at(one))
        dsbeval("judge", ten.root, *at(other))
        dsbeval("judge", ten.root, *at(one, "judge-2"))
        assert (len(one.seen), len(other.seen)) == (20, 10)  # another model is another judge
    rows = Store.of_run(ten.root).rows
    assert Counter(row["judge"].split("@")[0] for row in rows) == {
        "offline": 10, "openai:judge-1": 10, "anthropic:judge-1": 10, "openai:judge-2": 10,
    }  # fmt: skip
    assert summary_of(ten, "openai-judge-1")["pas"]["overall"]["mean"] == 70
    assert summary_of(ten, "anthropic")["pas"]["overall"]["mean"] == 30
    assert summary_of(ten, "offline")["offline"]


def test_repeats_have_entries_and_seeds_of_their_own_and_report_self_agreement(ten: RunFolder) -> None:
    def plan(seen: Seen) -> str:
        return pas_reply(pas=80 if seen.body["seed"] < 2 else 20)

    with OpenAIServer(plan) as server:
        first = dsbeval("judge", ten.root, *at(server))
        assert "with itself" not in first.output
        result = dsbeval("judge", ten.root, *at(server), "--judge-repeats=3")
        assert "30 judgements, 10 there already, 20 to do" in result.output
        assert len(server.seen) == 30
    assert Counter(seen.body["seed"] for seen in server.seen) == {0: 10, 1: 10, 2: 10}
    (line,) = [line for line in result.output.splitlines() if line.startswith("persona ")]
    assert line.split() == ["persona", "33.3", "-0.50", "-", "30"]
    assert summary_of(ten, "openai")["pas"]["overall"]["mean"] == 80  # the tables are those of the first


def test_cases_with_one_prompt_cost_one_call(tmp_path: Path) -> None:
    levels = [case(f"R2/C1/i1/{level}") for level in ("L0", "L1", "L2", "L3")]
    folder = make_run(tmp_path / "run", levels, "Take your time.")
    with OpenAIServer([pas_reply()]) as server:
        result = dsbeval("judge", folder.root, *at(server))
    assert result.exit_code == 0, result.output
    assert "4 judgements, 0 there already, 4 to do (3 share a prompt)" in result.output
    assert "4 cases: 4 passed" in result.output


def test_a_recording_that_was_made_again_is_judged_again(ten: RunFolder) -> None:
    from tests.judge.support import record

    with OpenAIServer(lambda seen: pas_reply()) as server:
        dsbeval("judge", ten.root, *at(server))
        record(ten.recordings, TEN[0], "Something else.")
        result = dsbeval("judge", ten.root, *at(server))
        assert "10 judgements, 9 there already, 1 to do" in result.output
        assert len(server.seen) == 11


def test_missing_recordings_and_agents_without_text_are_named(ten: RunFolder) -> None:
    from tests.judge.support import record

    (ten.recordings / f"{TEN[0].id}.rec.json").unlink()
    record(ten.recordings, TEN[1], "", text=False)
    result = dsbeval("judge", ten.root, "--judge=offline")
    assert f"1 cases without a recording: {TEN[0].id}" in result.output
    assert f"1 cases without text: {TEN[1].id}" in result.output
    assert "1 skipped, 1 missing" in result.output


# Killed, interrupted, resumed


def start(folder: RunFolder, server: OpenAIServer) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dsbeval.cli", "judge", str(folder.root), *at(server)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def rows_on_disk(folder: RunFolder) -> int:
    path = folder.root / "judgements.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_until(done: object, seconds: float = 180.0) -> None:
    limit = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def forty(tmp_path: Path) -> RunFolder:
    chosen = [one for one in pack().cases.values() if one.level == "L2" and one.instance <= 2][:40]
    return make_run(tmp_path / "run", chosen, numbered)


def test_a_run_killed_at_half_asks_exactly_the_missing_half(forty: RunFolder) -> None:
    with HangingServer(pas_reply(), answers=20) as server:
        process = start(forty, server)
        wait_until(lambda: rows_on_disk(forty) == 20)
        process.kill()
        process.communicate()
        port = server.base_url
    there = {row["id"] for row in Store.of_run(forty.root).rows}
    assert len(there) == 20
    with OpenAIServer(lambda seen: pas_reply()) as second:
        # The address is part of what was asked of whom, so the second server must stand in for the first.
        _readdress(forty, port, second.base_url)
        result = dsbeval("judge", forty.root, *at(second))
    assert "40 judgements, 20 there already, 20 to do" in result.output
    assert len(second.seen) == 20
    asked = {one for one in forty.cases() if any(f"case {one}." in prompt_of(seen) for seen in second.seen)}
    assert asked == set(forty.cases()) - there
    assert "40 cases: 40 passed" in result.output


def _readdress(folder: RunFolder, old: str, new: str) -> None:
    """Write the judgements of one server again as those of another, by the store's own means."""
    from dsbeval.judge.cache import judgement_of, row_of
    from dsbeval.judge.choose import make_judge
    from dsbeval.judge.pas import pas_question, read_meta

    rows = Store.of_run(folder.root).rows
    assert {row["address"] for row in rows} == {old}
    (folder.root / "judgements.jsonl").unlink()
    store, judge = Store.of_run(folder.root), make_judge("openai:judge-1", new)
    assert judge is not None
    for row in rows:
        asked = pas_question(read_meta(folder.recordings, row["id"]), pack())
        store.append(row_of(judge, asked, judgement_of(row), row["id"], "persona"))
    judge.close()


def test_a_torn_line_is_asked_again(ten: RunFolder) -> None:
    with OpenAIServer(lambda seen: pas_reply()) as server:
        dsbeval("judge", ten.root, *at(server))
        path = ten.root / "judgements.jsonl"
        path.write_bytes(path.read_bytes()[:-30])
        result = dsbeval("judge", ten.root, *at(server))
        assert "1 torn line(s) passed over" in result.output
        assert "10 judgements, 9 there already, 1 to do" in result.output
        assert len(server.seen) == 11
    assert "10 cases: 10 passed" in result.output


def test_an_interrupt_loses_nothing(forty: RunFolder) -> None:
    with HangingServer(pas_reply(), answers=10) as server:
        process = start(forty, server)
        wait_until(lambda: rows_on_disk(forty) == 10 and server.hanging.is_set())
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "waiting for the calls under way" in process.stderr.readline() + process.stderr.readline()
        server._closing.set()  # the server comes round
        err = process.stderr.read()  # not communicate, which would lose what has been read ahead
        assert process.wait(180) == 130
        process.stderr.close()
    assert "interrupted; nothing is lost, run the same command to go on" in err
    assert "Traceback" not in err
    assert rows_on_disk(forty) == len(server.seen) <= 10 + 8


# Wrong calls


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--judge=gpt"], "--judge: 'gpt' is not none, offline"),
        (["--judge=none"], "none judges nothing"),
        (["--judge=openai:m"], "openai needs a key; set the environment variable OPENAI_API_KEY"),
        (["--judge=openai:m", "--judge-base-url=http://u:p@h/v1"], "must not hold credentials"),
        (["--judge=offline", "--price=3"], "--price: '3' is not IN,OUT"),
        (["--judge=offline", "--pack=nowhere"], "nowhere: no such folder"),
    ],
)
def test_a_wrong_call_is_one_line_and_writes_nothing(ten: RunFolder, args: list[str], words: str) -> None:
    result = dsbeval("judge", ten.root, *args)
    assert result.exit_code == 2
    assert words in result.output
    assert result.output.count("\n") == 1
    assert not (ten.root / "judgements.jsonl").exists()


def test_a_wrong_key_is_one_line_and_is_nowhere(ten: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBEVAL_JUDGE_API_KEY", KEY)
    with OpenAIServer(key="another") as server:
        result = dsbeval("judge", ten.root, *at(server))
    assert result.exit_code == 2
    assert "HTTP 401: Incorrect API key provided: [key].; check the key in DSBEVAL_JUDGE_API_KEY" in result.output
    assert KEY not in result.output + files_of(ten.root)


# Agreement


def test_agree_compares_two_judges_and_people(ten: RunFolder, tmp_path: Path) -> None:
    def plan(seen: Seen) -> str:
        fit = next(k for k, one in enumerate(TEN) if one.id in prompt_of(seen)) % 5
        return pas_reply(pas=20 * fit, register_fit=fit)

    with OpenAIServer(plan) as one, OpenAIServer(lambda seen: pas_reply(pas=70, register_fit=2)) as other:
        dsbeval("judge", ten.root, *at(one))
        dsbeval("judge", ten.root, *at(other, "judge-2"))
    people = tmp_path / "labels.csv"
    people.write_text(
        "id,field,annotator,label\n"
        + "".join(f"{c.id},register_fit,p{p},{k % 5}\n" for k, c in enumerate(TEN) for p in range(3))
    )
    result = dsbeval("agree", ten.root, "--judges", "openai:judge-1", "openai:judge-2", "--human", people)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["persona", "40.0", "0.00", "-", "10", "0", "0"] in lines  # 2 of 5 pass, the other passes all
    assert ["register_fit", "20.0", "0.00", "-", "10", "0", "0"] in lines
    assert ["register_fit", "100.0", "1.00", "1.00", "10", "0", "0"] in lines  # the first judge and people
    assert "3 annotators; 0 cases without a majority left out" in result.output
    (path,) = ten.report.glob("agreement-*.json")
    data = json.loads(path.read_text())
    assert data["agreement"]["persona"]["confusion"] == {"labels": ["failed", "passed"], "table": [[0, 6], [0, 4]]}


@pytest.mark.parametrize(
    ("judges", "words"),
    [
        (["offline", "offline"], "offline twice"),
        (["offline", "ofline"], "'ofline' has not judged this run; did you mean offline?"),
        (["openai:m", "offline"], "'openai:m' has not judged this run"),
    ],
)
def test_agree_names_a_judge_that_is_not_there(ten: RunFolder, judges: list[str], words: str) -> None:
    dsbeval("judge", ten.root, "--judge=offline")
    result = dsbeval("agree", ten.root, "--judges", *judges)
    assert result.exit_code == 2
    assert words in result.output
    assert result.output.count("\n") == 1


def test_agree_on_a_run_that_nobody_judged(ten: RunFolder) -> None:
    result = dsbeval("agree", ten.root, "--judges", "offline", "openai:m")
    assert result.exit_code == 2
    assert "nobody has judged this run" in result.output
