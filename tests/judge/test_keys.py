"""A key is in the request and nowhere else: not in logs, errors, standard output, or the run folder."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dsbeval.errors import OptionError
from dsbeval.judge.cache import Store
from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge, JudgeError, Unjudged
from dsbeval.judge.pas import judge_case
from tests.judge.servers import KEY, SERVERS, Server, Waits, cut_reply, provider_of, refusal
from tests.judge.support import case, files_of, make_run, pack, pas_reply, question
from tests.servers import Answer

BOTH = pytest.mark.parametrize("name", SERVERS)
SAYS_KEY = f"Your key is {KEY}."


@pytest.fixture
def judge_with_key(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("DSBEVAL_JUDGE_API_KEY", KEY)

    def make(server: Server, timeout_s: float = 20.0) -> Judge:
        spec = f"{provider_of(server)}:judge-1"
        judge = make_judge(spec, server.base_url, timeout_s=timeout_s, sleep=Waits())
        assert judge is not None
        return judge

    return make


@BOTH
def test_a_key_in_every_kind_of_answer_is_blanked_out_everywhere(
    name: str,
    judge_with_key: object,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    one = case("R5/R5_A/i1/L2")
    folder = make_run(tmp_path / "run", [one])
    plan: list[Answer | str] = [
        SERVERS[name]().error(500, SAYS_KEY),
        SAYS_KEY,
        cut_reply(name, SAYS_KEY),
        pas_reply(summary=SAYS_KEY),
    ]
    store = Store.of_run(folder.root)
    with SERVERS[name](plan, key=KEY) as server:
        judge = judge_with_key(server)  # type: ignore[operator]
        row = judge_case(judge, folder.recordings, one.id, pack(), store)
        judge.close()
    assert [seen.key for seen in server.seen] == [KEY] * 4  # it was really sent
    folder.append(row)
    assert row["summary"] == "Your key is [key]."
    written = files_of(folder.root)
    assert written.count("Your key is [key].") >= 5
    out = capfd.readouterr()
    for text in (written, caplog.text, out.out, out.err, str(row)):
        assert KEY not in text


@BOTH
def test_a_key_is_in_no_error(name: str, judge_with_key: object, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with SERVERS[name](key="another") as server:  # answers 401 and repeats the key
        judge = judge_with_key(server)  # type: ignore[operator]
        with pytest.raises(JudgeError) as wrong:
            judge.ask(question())
        judge.close()
    assert "[key]" in str(wrong.value)
    assert "DSBEVAL_JUDGE_API_KEY" in str(wrong.value)
    with SERVERS[name](
        [refusal(name), Answer(delay_s=30, body={}), Answer(body=SAYS_KEY.encode()), SAYS_KEY]
    ) as server:
        judge = judge_with_key(server, timeout_s=0.5)  # type: ignore[operator]
        with pytest.raises(Unjudged) as none:
            judge.ask(question())
        judge.close()
    for error in (wrong.value, none.value):
        assert KEY not in repr(error)
        assert KEY not in str(error.__cause__)
        assert error.__suppress_context__ or KEY not in repr(error.__context__)
    assert KEY not in repr(none.value.failed)
    assert KEY not in caplog.text


@BOTH
def test_the_key_of_the_service_reaches_no_other_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    with SERVERS[name]([pas_reply()]) as server:
        judge = make_judge(f"{name}:judge-1", server.base_url)
        assert judge is not None
        judge.ask(question())
        judge.close()
    assert KEY not in str(server.seen[0].headers)
    assert server.seen[0].key == "none"


@pytest.mark.parametrize(
    "url", ["http://user:secret@127.0.0.1:9/v1", "http://secret@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?key=secret"]
)
def test_an_address_with_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(OptionError, match="must not hold credentials") as error:
        make_judge("openai:m", url)
    assert "secret" not in str(error.value)
