"""``dsbeval speech author`` from the command line to the pack's file, with a model behind a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbeval.ifeval.pack import load_pack
from dsbeval.speech.author import prompts
from tests.servers import Answer, OpenAIServer
from tests.servers.openai_chat import completion
from tests.speech.author_support import (
    ACCEPT,
    ADDRESS,
    BOTH,
    KEY,
    ORDER,
    PRESENCE,
    PRESENCE_L4B,
    SERVERS,
    asked,
    fresh,
    log,
    question,
    reject,
    reply,
    run,
    with_segment,
)
from tests.speech.author_support import elsewhere as elsewhere

pytestmark = pytest.mark.usefixtures("elsewhere")


@BOTH
def test_an_accepted_script_is_an_instance_of_a_pack_that_loads(name: str) -> None:
    with SERVERS[name]([reply(), ACCEPT]) as server:
        result = run(server)
    assert result.exit_code == 0, result.output
    assert asked(server) == [("writer", 0.7), ("critic", 0.0)]
    assert [seen.body["max_tokens"] for seen in server.seen] == [1500, 1500]
    pack = fresh()
    script = pack.recordings[KEY].script
    assert (script.turn1, script.situation, script.fact) == (ADDRESS["turn1"], ADDRESS["situation"], ADDRESS["fact"])
    assert [segment.model_dump(exclude_none=True) for segment in script.turn2] == ADDRESS["turn2"]
    assert list(pack.cases) == [f"{KEY}-{level}" for level in ("L1", "L2", "L3", "L4a", "L4b")]
    assert f"{KEY}: added to my-pack/conversations/R3.yaml" in result.output


def test_a_new_folder_gets_the_rules_and_no_conversations_of_ours() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        result = run(server, "--pack", "packs/mine")
    assert "packs/mine: made, with the rules of the benchmark's pack" in result.output
    pack = fresh("packs/mine")
    assert list(pack.recordings) == [KEY]
    assert pack.roles == load_pack().roles
    assert {path.name for path in Path("packs/mine").iterdir()} >= {"voices.yaml", "lexicon.txt"}


def test_the_log_holds_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server)
    rows = log()
    assert [(r["attempt"], r["step"], r["model"], r["temperature"], r["outcome"], r["reason"]) for r in rows] == [
        (1, "write", "writer", 0.7, "accepted", None),
        (1, "critic", "critic", 0.0, "accepted", None),
    ]
    assert [row["raw"] for row in rows] == [reply(), ACCEPT]
    assert {row["prompts"] for row in rows} == {prompts.VERSION}
    assert {row["address"] for row in rows} == {server.base_url}


def test_a_temperature_that_a_model_does_not_take_is_not_claimed_in_the_log() -> None:
    with OpenAIServer([reply(), ACCEPT], refuses=["temperature"]) as server:
        assert run(server).exit_code == 0
    assert [row["temperature"] for row in log()] == [None, None]


def test_names_that_the_spell_check_will_stop_at_are_listed() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        result = run(server)
    assert "words that no word list has: Larkmoor; put those that are names into my-pack/lexicon.txt" in result.output


def test_an_instance_is_appended_to_what_is_there() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server)
    path = Path("my-pack/conversations/R3.yaml")
    path.write_text("# Kept as it is.\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    another = reply(
        turn1="The basement of the old mill is flooding fast and Ferdinand has gone down there to look for the cat. "
        "I can hear him shouting, but the stairs are already under the water.",
        turn2=[
            {"speech": "It's two two six Pinecone Lane, behind the feed store,", "part": "lead"},
            {"speech": "sorry, um, two two eight, or whichever it was,", "part": "trigger"},
            {"speech": ADDRESS["turn2"][2]["speech"], "part": "continuation"},
        ],
    )
    with OpenAIServer([another, ACCEPT]) as server:
        assert run(server, "--instance", "7").exit_code == 0
    assert path.read_text(encoding="utf-8").startswith(before)
    assert list(fresh().recordings) == [KEY, KEY[:-1] + "7"]


def test_a_probe_with_a_turn_of_its_own_at_l4b_gets_both_or_neither() -> None:
    plan = [reply(PRESENCE), ACCEPT, reply(PRESENCE_L4B, turn1="Something else, which is not wanted."), ACCEPT]
    with OpenAIServer(plan) as server:
        result = run(server, role="R2", probe="R2_B")
    assert result.exit_code == 0, result.output
    base, variant = (fresh().recordings[f"IFD-R2-R2_B_are_you_there-i6{level}"].script for level in ("", "-L4b"))
    assert (variant.turn1, variant.situation) == (base.turn1, base.situation)
    assert variant.turn2[3].part == "trigger"
    assert PRESENCE["turn1"] in question(server, 3)

    with OpenAIServer([reply(PRESENCE), ACCEPT, *(["not JSON"] * 4)]) as server:
        result = run(server, "--pack", "other", role="R2", probe="R2_B")
    assert result.exit_code == 1
    assert not list(Path("other/conversations").iterdir())


def test_a_probe_that_is_read_back_from_a_target_has_it() -> None:
    with OpenAIServer([reply(ORDER, target=None), reply(ORDER), ACCEPT]) as server:
        assert run(server, role="R6", probe="R6_B").exit_code == 0
    assert fresh().recordings["IFD-R6-R6_B_mid_order_change-i6"].script.target == ORDER["target"]
    rows = log("IFD-R6-R6_B_mid_order_change-i6")
    assert rows[0]["reason"] == "target: is missing"


@BOTH
def test_the_ladder_of_temperatures_and_models(name: str) -> None:
    plan = [reply(), reject("The digit is settled."), reply(), reject("Still settled."), reply(), ACCEPT]
    with SERVERS[name](plan) as server:
        result = run(server)
    assert result.exit_code == 0, result.output
    assert asked(server) == [
        ("writer", 0.7),
        ("critic", 0.0),
        ("writer", 0.8),
        ("critic", 0.0),
        ("fallback", 0.9),
        ("critic", 0.0),
    ]
    assert [row["attempt"] for row in log()] == [1, 1, 2, 2, 3, 3]
    assert log()[1]["reason"] == "critic: The digit is settled."


def test_four_tries_and_no_more() -> None:
    with OpenAIServer(["no JSON here"] * 4) as server:
        result = run(server)
    assert result.exit_code == 1
    assert asked(server) == [("writer", 0.7), ("writer", 0.8), ("fallback", 0.9), ("fallback", 1.0)]
    assert f"{KEY}: all 4 tries were rejected; read my-pack/authoring/{KEY}.jsonl" in result.output
    assert not list(Path("my-pack/conversations").iterdir())


def test_what_a_try_was_rejected_for_is_told_to_the_next() -> None:
    plan = ["no JSON here", reply(), reject("Nothing is unclear."), reply(), ACCEPT]
    with OpenAIServer(plan) as server:
        assert run(server).exit_code == 0
    assert "rejected" not in question(server, 1)
    assert "- the reply holds no JSON object" in question(server, 2)
    assert "- critic: Nothing is unclear." in question(server, 4)
    assert "- the reply holds no JSON object" in question(server, 4)


def test_the_prompts_say_what_the_script_must_be() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server)
    ask = question(server, 1)
    assert prompts.BRIEFS["R3_A_address_self_correct"].realise in ask
    assert "1. speech, part lead, 8 to 14 words" in ask
    assert "aged 65-74" in ask or "from the" in ask
    # Our own instances are there to be different from.
    assert all(r.script.turn1 in ask for r in load_pack().recordings.values() if r.audio_key.startswith(KEY[:-1]))
    assert prompts.BRIEFS["R3_A_address_self_correct"].reject in question(server, 2)
    assert ADDRESS["turn2"][1]["speech"] in question(server, 2)


def test_no_prompt_names_the_job_that_the_user_must_not_name() -> None:
    for role in load_pack().roles.values():
        assert role.name.lower() not in prompts.SETTINGS[role.id].lower()


def test_every_probe_of_the_benchmark_has_a_brief() -> None:
    pack = load_pack()
    wanted = {*pack.probes, *(f"{p.id}/L4b" for p in pack.probes.values() if p.l4b)}
    assert set(prompts.BRIEFS) == wanted
    assert set(prompts.SETTINGS) == set(pack.roles)


LONG = " ".join(["and the smoke keeps coming down"] * 5)
OURS = load_pack().recordings[KEY[:-1] + "1"].script


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"situation": "A man', "the reply is not valid JSON: Unterminated string"),
        (f"{reply()}\n{reply()}", "the reply holds more than one JSON object"),
        (f"[{reply()}]", "the reply is a JSON list"),
        (completion("m", None, refusal="I can't help with that."), "the model refused: I can't help with that."),
        (completion("m", reply()[:80], finish_reason="length"), "the reply was cut at 1500 tokens"),
        (reply(fact=None), "fact: is missing"),
        (reply(fact=7), "fact: Input should be a valid string"),
        (reply(fact="It says \x07."), "fact: has the character '\\x07', which no text file holds; leave it out"),
        (reply(mood="calm"), "mood: is not a known field; leave it out"),
        (reply(instance=9), "instance: is set by the data set; leave the field out"),
        (reply(target="four"), "target: is not used by this probe; leave it out"),
        (with_segment(2, speech="or no,"), "turn2[2]: speech needs its part, and silence has none"),
        (with_segment(2, silence=2.0), "turn2: is not built as R3_A_address_self_correct is; make it: lead, trigger"),
        (with_segment(3, speech=f"{LONG}.", part="continuation"), "turn2[3]: has 30 words; write 12 to 20"),
        (reply(turn1="Odell is on the floor of his kitchen and nobody comes."), "turn1: has 11 words; write 26 to 40"),
        (with_segment(1, speech="We're at 417 Larkmoor Street, the yellow duplex there,", part="lead"), "'4'"),
        (
            with_segment(
                3, speech="and I was told the dispatcher would send a truck here tonight.", part="continuation"
            ),
            "turn2[3]: says 'dispatcher'; the user names neither the agent's job nor turn-taking",
        ),
        (reply(turn1=OURS.turn1), f"turn1: is 1.00 like {KEY[:-1]}1 (limit 0.5); write another situation"),
    ],
)
def test_a_bad_reply_is_rejected_with_its_reason_and_the_next_one_is_heard(bad: str | Answer, reason: str) -> None:
    with OpenAIServer([bad, reply(), ACCEPT]) as server:
        result = run(server)
    assert result.exit_code == 0, result.output
    first = log()[0]
    assert (first["attempt"], first["step"], first["outcome"]) == (1, "write", "rejected")
    assert reason in first["reason"]
    assert f"try 1 of 4 (writer): rejected: {first['reason']}" in result.output
    assert asked(server)[1] == ("writer", 0.8)


def test_half_a_character_is_no_traceback() -> None:
    odd = reply(situation="A man \ud83d calls.")
    with OpenAIServer(["\ud83d", odd, ACCEPT]) as server:
        assert run(server).exit_code == 0
    assert fresh().recordings[KEY].script.situation == "A man ? calls."


@pytest.mark.parametrize("wrapped", [f"```json\n{reply()}\n```", f"Here it is:\n{reply()}\nGood luck!"])
def test_json_in_a_fence_or_in_prose_is_heard(wrapped: str) -> None:
    with OpenAIServer([wrapped, ACCEPT]) as server:
        assert run(server).exit_code == 0
    assert log()[0]["raw"] == wrapped


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ("Looks fine to me!", "critic: the verdict cannot be read: the reply holds no JSON object"),
        ('{"reason": "fine"}', "critic: the verdict cannot be read: it has no field accept that is true or false"),
        ('{"accept": "yes", "reason": ""}', "critic: the verdict cannot be read"),
        (completion("m", None, refusal="No."), "critic: the verdict cannot be read: the model refused: No."),
        ('{"accept": false}', "critic: no reason given"),
    ],
)
def test_a_critic_that_is_not_understood_has_not_accepted(verdict: str | Answer, reason: str) -> None:
    with OpenAIServer([reply(), verdict, reply(), ACCEPT]) as server:
        assert run(server).exit_code == 0
    assert log()[1]["reason"].startswith(reason)
    assert len(server.seen) == 4
