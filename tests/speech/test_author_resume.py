"""Authoring goes on where it stopped and asks nothing twice, and no key is ever written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import Answer, OpenAIServer
from tests.speech.author_support import (
    ACCEPT,
    ADDRESS,
    BOTH,
    KEY,
    SECRET,
    SERVERS,
    asked,
    command,
    fresh,
    log,
    question,
    refusal,
    reply,
    run,
)
from tests.speech.author_support import elsewhere as elsewhere

pytestmark = pytest.mark.usefixtures("elsewhere")


def failing(status: int = 500) -> Answer:
    return OpenAIServer().error(status, "Out of order.")


def test_a_finished_instance_is_not_asked_again() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server)
        before = Path("my-pack/conversations/R3.yaml").read_bytes()
        result = run(server)
    assert result.exit_code == 0
    assert f"{KEY}: is finished, nothing was asked" in result.output
    assert len(server.seen) == 2
    assert Path("my-pack/conversations/R3.yaml").read_bytes() == before


def test_a_draft_is_not_written_twice_when_the_critic_could_not_be_reached() -> None:
    with OpenAIServer([reply(), failing()]) as server:
        assert "HTTP 500: Out of order." in refusal(run(server))
    assert (log()[-1]["step"], log()[-1]["outcome"]) == ("critic", "error")
    with OpenAIServer([ACCEPT]) as server:
        assert run(server).exit_code == 0
    assert asked(server) == [("critic", 0.0)]


def test_a_service_that_fails_is_not_a_try() -> None:
    with OpenAIServer(["no JSON here", failing(429)]) as server:
        assert "run the same command again later" in refusal(run(server))
    assert [(row["attempt"], row["outcome"]) for row in log()] == [(1, "rejected"), (2, "error")]
    with OpenAIServer([reply(), ACCEPT]) as server:
        assert run(server).exit_code == 0
    assert asked(server) == [("writer", 0.8), ("critic", 0.0)]


def test_a_model_that_does_not_answer_in_time_is_one_line() -> None:
    with OpenAIServer([Answer(delay_s=30, body={})]) as server:
        said = refusal(run(server, "--timeout", "0.3"))
    assert "no answer within 0.3 s; raise --timeout or run again later" in said


def test_of_several_instances_only_the_missing_are_asked() -> None:
    seven = reply(
        turn1="The elevator in my building has dropped two floors with Gwendolyn inside it, and she is eight months "
        "along. I'm on the landing and I can see her hand through the gap.",
        turn2=[
            {"speech": "This is nine nine one Harbor Crescent, the brick tower,", "part": "lead"},
            {"speech": "or it could be nine nine four,", "part": "trigger"},
            {
                "speech": "and the lights in the shaft went out a minute ago, she says it smells hot.",
                "part": "continuation",
            },
        ],
    )
    with OpenAIServer([reply(), ACCEPT, failing()]) as server:
        refusal(run(server, "--instance", "6", "--instance", "7"))
    assert list(fresh().recordings) == [KEY]
    with OpenAIServer([seven, ACCEPT]) as server:
        assert run(server, "--instance", "6", "--instance", "7").exit_code == 0
    assert len(server.seen) == 2
    assert ADDRESS["turn1"] in question(server, 1)  # the new instance must differ from the other new one
    assert list(fresh().recordings) == [KEY, KEY[:-1] + "7"]


def test_an_accepted_script_that_never_reached_the_file_is_added_without_a_question_or_a_key() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server)
    Path("my-pack/conversations/R3.yaml").unlink()
    result = command("--role", "R3", "--probe", "R3_A", "--instance", "6", "--provider", "anthropic")
    assert result.exit_code == 0, result.output
    assert list(fresh().recordings) == [KEY]


def test_rejected_four_times_stays_rejected_until_restarted() -> None:
    with OpenAIServer(["no JSON here"] * 4) as server:
        run(server)
        assert run(server).exit_code == 1
    assert len(server.seen) == 4
    with OpenAIServer([reply(), ACCEPT]) as server:
        assert run(server, "--restart").exit_code == 0
    assert asked(server)[0] == ("writer", 0.7)
    assert len(log()) == 6  # the log forgets nothing


@pytest.mark.parametrize(
    "content", ["", "{", '{"key": "IFD-R1-C1-i1"}', f'{{"key": "{KEY}", "script": {{"turn1": 1}}}}']
)
def test_a_broken_state_is_one_line(content: str) -> None:
    with OpenAIServer() as server:
        run(server, "--pack", "p")
        Path("p/authoring").mkdir(exist_ok=True)
        Path(f"p/authoring/{KEY}.json").write_text(content, encoding="utf-8")
        assert "delete it to begin again, the log stays" in refusal(run(server, "--pack", "p"))


# Keys


@BOTH
def test_a_key_is_in_no_file_and_in_no_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVERS_KEY", SECRET)
    with SERVERS[name]([f"Your key {SECRET} is good, here you are.", f"Or {SECRET}?", reply(), ACCEPT]) as server:
        result = run(server, "--key-env", "MY_SERVERS_KEY")
        assert result.exit_code == 0, result.output
        assert server.seen[0].key == SECRET
    said = [result.output]
    with SERVERS[name](key="another") as server:
        failed = run(server, "--key-env", "MY_SERVERS_KEY", "--instance", "7")
        said += [failed.output, refusal(failed)]
    texts = [path.read_text(encoding="utf-8") for path in Path.cwd().rglob("*") if path.is_file()]
    assert len(texts) > 8
    assert not any(SECRET in text for text in [*texts, *said])
    assert "Your key [key] is good" in log()[0]["raw"]


@BOTH
def test_without_a_key_nothing_is_asked(name: str) -> None:
    options = ["--role", "R3", "--probe", "R3_A", "--instance", "6", "--provider", name]
    assert f"set the environment variable {name.upper()}_API_KEY" in refusal(command(*options))
    assert not Path("my-pack/authoring").exists()
