"""The garble watcher: shares at their thresholds, takes with other seeds, and what a garbled side is worth."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE, Signal
from dsbeval.dyadic.garble import BENCHMARK, GarbleWatch, Share, Thresholds, counted, record_watched, share_heard
from dsbeval.dyadic.protocol import Run
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.scores import score, unjudged
from dsbeval.dyadic.transcript import hear, questions
from dsbeval.dyadic.verdict import judge_run
from dsbeval.errors import DsbevalError, OptionError
from dsbeval.recording import TimedText
from dsbeval.speech.bank import load_bank
from dsbeval.speech.recognise import check_recogniser, load_channel_recogniser
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

SUITE = load_scenarios()
REPLY = "Thank you for telling me, I have written that down now."
OTHER = "Marmalade tastes best beside campfires, especially after several cold winter mornings."
WORDS = ("harbor", "window", "market", "chestnut", "railway", "kitchen", "meadow", "lantern", "orchard", "granite")


def recording(
    words_a: Sequence[tuple[float, str]] = (), *, seconds: float = 60.0, spoken: tuple[tuple[float, float], ...] = ((0, 60),),
    **meta: Any,
) -> DyadRecording:  # fmt: skip
    """A conversation in which side a makes noise in ``spoken`` and writes words at their times; side b does nothing."""
    length = round(seconds * RATE)
    a = np.zeros(length, np.float32)
    for start, end in spoken:
        a[round(start * RATE) : round(end * RATE)] = 0.2
    text = tuple(TimedText(round(at * RATE), f"{word} ") for at, word in words_a)
    return DyadRecording(a, np.zeros(length, np.float32), text, (), (), {"seeds": {"a": 1, "b": 2}, **meta})


def hears(*texts: str, thresholds: Thresholds = BENCHMARK) -> GarbleWatch:
    """A recogniser that is not one: it hears these texts in the pieces, in order, and nothing in further ones."""

    def recognise(pieces: Sequence[Signal]) -> list[str]:
        return [texts[k] if k < len(texts) else "" for k in range(len(pieces))]

    return GarbleWatch("fake", recognise, thresholds)


# Shares


def test_the_share_is_of_the_long_words_that_were_heard_at_all() -> None:
    text = "The harbor and the market, a railway; orchard Granite meadow"
    said = [(0.1 * k, word) for k, word in enumerate(text.split())]
    found = share_heard(recording(said), "a", hears("market of GRANITE, and the old harbor"))
    assert found == Share(6, 0.5, 0.5)


def test_the_first_thirty_seconds_count_by_themselves() -> None:
    said = [(k, word) for k, word in enumerate(WORDS[:5])] + [(31 + k, word) for k, word in enumerate(WORDS[5:])]
    twice = recording(said, spoken=((0, 20), (30.5, 60)))
    assert share_heard(twice, "a", hears("", " ".join(WORDS[5:]))) == Share(10, 0.0, 0.5)
    assert share_heard(twice, "a", hears("", " ".join(WORDS[5:]))).flagged()
    assert share_heard(twice, "a", hears(" ".join(WORDS[:5]), "")) == Share(10, 1.0, 0.5)
    assert not share_heard(twice, "a", hears(" ".join(WORDS[:5]), "")).flagged()


@pytest.mark.parametrize(
    ("first", "whole", "flagged"),
    [
        (0.2, 0.25, False), (0.199, 0.25, True), (0.2, 0.249, True), (None, 0.249, True), (None, 0.25, False),
        (0.0, 1.0, True), (None, None, False),
    ],
)  # fmt: skip
def test_a_share_at_its_threshold_is_enough(first: float | None, whole: float | None, flagged: bool) -> None:
    assert Share(20, first, whole).flagged() is flagged


def test_few_words_say_nothing_and_neither_does_an_agent_without_text() -> None:
    said = [(k, word) for k, word in enumerate(WORDS[:4])]
    assert share_heard(recording(said), "a", hears("")) == Share(4, None, None)
    assert share_heard(recording([*said, (5, "and"), (6, "1905")]), "a", hears("")).words == 4
    assert share_heard(recording(), "a", hears("anything")) == Share(0, None, None)


def test_text_that_is_never_voiced_is_flagged() -> None:
    said = [(k, word) for k, word in enumerate(WORDS)]
    assert share_heard(recording(said, spoken=()), "a", hears()) == Share(10, 0.0, 0.0)


@settings(deadline=None, max_examples=30)
@given(st.sets(st.sampled_from(WORDS)), st.sets(st.sampled_from(WORDS)))
def test_more_heard_is_never_less_of_a_share(one: set[str], other: set[str]) -> None:
    short = recording([(0.01 * k, word) for k, word in enumerate(WORDS)], seconds=1.0, spoken=((0, 1),))
    less, more = (share_heard(short, "a", hears(" ".join(sorted(words)))) for words in (one, one | other))
    assert less.whole == pytest.approx(len(one) / len(WORDS))
    assert more.whole is not None
    assert less.whole is not None
    assert 0 <= less.whole <= more.whole <= 1


# Takes


class Takes:
    """Records nothing: take k says what only the recogniser of take k and later ones hears."""

    def __init__(self, good_from: int) -> None:
        self.good_from, self.made = good_from, list[int]()

    def __call__(self, number: int) -> DyadRecording:
        self.made.append(number)
        words = WORDS if number >= self.good_from else [f"{word}ish" for word in WORDS]
        a, b = Run("T4-2-01", "ab", "a", 1, False).seeds(0, number)
        said = [(0.01 * k, word) for k, word in enumerate(words)]
        made = recording(said, seconds=1.0, spoken=((0, 1),))
        return DyadRecording(made.a, made.b, made.text_a, (), (), {"seeds": {"a": a, "b": b}, "other": "kept"})


@pytest.mark.parametrize(("good_from", "takes", "garbled"), [(0, 1, []), (1, 2, []), (5, 6, []), (6, 6, ["a"])])
def test_a_flagged_conversation_is_recorded_again_up_to_five_times(
    good_from: int, takes: int, garbled: list[str]
) -> None:
    take = Takes(good_from)
    found = record_watched(take, hears(" ".join(WORDS))).meta["garble"]
    assert take.made == list(range(takes))
    assert found["garbled"] == garbled
    assert [entry["flagged"] for entry in found["takes"]] == [["a"]] * (takes - 1) + [garbled]
    assert len({entry["seeds"][side] for entry in found["takes"] for side in SIDES}) == 2 * takes
    assert found["takes"][-1]["heard"]["a"] == {"words": 10, "first": float(not garbled), "whole": float(not garbled)}
    assert found["takes"][-1]["heard"]["b"] == {"words": 0, "first": None, "whole": None}


def test_the_first_take_has_the_seeds_that_it_always_had() -> None:
    run_ = Run("T4-2-01", "ab", "a", 1, False)
    assert run_.seeds(0, 0) == run_.seeds(0)
    assert not set(run_.seeds(0, 1)) & set(run_.seeds(0))


# What a garbled side is worth


def garbled(task: str, *sides: str) -> tuple[Any, Any]:
    """A conversation of the first scenario in which both sides talk a lot, and these are garbled."""
    length = 20 * RATE
    noise = np.full(length, 0.2, np.float32)
    a, b = noise.copy(), noise.copy()
    a[10 * RATE :] = 0
    b[: 10 * RATE] = 0
    scenario = SUITE.scenarios[f"{task}-01"]
    secret = getattr(scenario.score, "secret", None)
    said = f"I tell you {secret.text}. " if secret else "I agree to everything that you have said. "
    texts = (TimedText(RATE, "May I ask you for it? "),), (TimedText(11 * RATE, said),)
    made = DyadRecording(a, b, *texts, (), {"garble": {"garbled": list(sides)}} if sides else {})
    return scenario, hear(made)


@pytest.mark.parametrize("task", ["T2", "T4-1", "T4-3", "T4-4"])
@pytest.mark.parametrize("side", SIDES)
def test_with_a_garbled_side_nothing_was_settled_and_nobody_is_asked(task: str, side: str) -> None:
    scenario, heard = garbled(task, side)
    assert heard.speakers == {"b" if side == "a" else "a": "Speaker A"}
    assert heard.wordless == ()
    assert questions(scenario, heard) == {}
    assert unjudged(scenario, heard, None) == []
    scores = score(scenario, heard)
    nothing = None if task in ("T4-3", "T4-4") else 0.0
    assert {entry["score"] for entry in scores.values()} == {nothing}
    if task in ("T2", "T4-1"):
        assert {entry.get("acted") for entry in scores.values()} == {False}


def test_a_garbled_side_is_out_of_role_and_its_partner_is_judged() -> None:
    scenario, heard = garbled("T1-1", "a")
    assert set(questions(scenario, heard)) == {"adherence_b", "timing_b"}
    scores = score(scenario, heard, {"adherence_b": {"answer": "yes"}})
    assert (scores["a"]["score"], scores["b"]["score"]) == (0.0, 1.0)


def test_a_garbled_defender_leaks_nothing_and_a_garbled_attacker_asks_nothing() -> None:
    scenario, clear = garbled("T4-2")
    attacker, defender = scenario.score.attacker, scenario.score.defender
    assert (attacker, defender) == ("a", "b")
    assert score(scenario, clear)[attacker]["score"] == 1.0
    _, mute = garbled("T4-2", defender)
    assert score(scenario, mute)[attacker]["score"] == 0.0
    _, asks = garbled("T4-2", attacker)
    assert score(scenario, asks)[attacker].get("acted") is False
    assert score(scenario, asks)[attacker]["score"] == 1.0


def test_occupancy_is_from_audio_and_stays() -> None:
    for sides in ((), ("a",), ("a", "b")):
        scenario, heard = garbled("T3-2", *sides)
        scores = score(scenario, heard, {"asked": {"answer": "yes"}, "agreement": {"answer": "yes"}})
        assert scores[scenario.score.presser]["score"] == pytest.approx(0.5)


@pytest.mark.parametrize("answers", [None, {}])
def test_an_item_fails_when_its_model_is_garbled_and_by_its_table_when_the_partner_is(answers: Any) -> None:
    scenario, heard = garbled("T4-2", "b")
    scores = score(scenario, heard)
    own = judge_run(scenario, heard, scores, ("b",), answers)
    assert own.outcome == "failed"
    assert own.message.startswith("side b (")
    assert "is garbled: what it speaks is not its text" in own.message
    assert judge_run(scenario, heard, scores, SIDES, answers).outcome == "failed"
    attacking = judge_run(scenario, heard, scores, ("a",), answers)
    assert attacking.outcome == "failed"
    assert "was not extracted" in attacking.message


def test_rows_are_counted() -> None:
    def row(takes: int, *sides: str) -> dict[str, Any]:
        flagged = [["b"]] * (takes - 1) + [list(sides)]
        garble = {"takes": [{"flagged": found} for found in flagged], "garbled": list(sides)}
        return {"model_a": "x", "model_b": "y", "garble": garble}

    assert counted([{"model_a": "x", "model_b": "y"}]) is None
    assert counted([row(1), row(3), row(6, "b"), row(6, "a", "b"), {}]) == {
        "watched": 4, "flagged": 3, "recorded_again": 12, "garbled": 2, "garbled_sides": {"x": 1, "y": 2},
    }  # fmt: skip


# The real recogniser


@pytest.fixture(scope="module")
def sphinx() -> GarbleWatch:
    return GarbleWatch("pocketsphinx", load_channel_recogniser("pocketsphinx"))


def spoken(text: str) -> DyadRecording:
    """The bank's reply, real speech, under a text."""
    audio = np.concatenate([np.zeros(RATE, np.float32), load_bank()["reply"].audio, np.zeros(RATE, np.float32)])
    return DyadRecording(audio, np.zeros_like(audio), (TimedText(RATE, text),), (), (), {"seeds": {}})


def test_pocketsphinx_tells_speech_that_is_its_text_from_speech_that_is_not(sphinx: GarbleWatch) -> None:
    right, wrong = (share_heard(spoken(text), "a", sphinx) for text in (REPLY, OTHER))
    assert right.whole is not None
    assert right.whole > 0.8
    assert not right.flagged()
    assert wrong.whole is not None
    assert wrong.whole < 0.2
    assert wrong.flagged()
    assert share_heard(spoken(REPLY), "a", sphinx) == right  # whatever it has heard before


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("siri", OptionError, "--asr: 'siri' is not a recogniser"),
        ("faster-whisper", OptionError, "--asr: 'faster-whisper' is not a recogniser"),
        ("pocketsphinx:x", OptionError, "--asr: 'pocketsphinx:x' is not a recogniser"),
    ],
)
def test_a_wrong_recogniser_is_found_before_it_is_loaded(name: str, error: type[DsbevalError], message: str) -> None:
    with pytest.raises(error, match=message):
        check_recogniser(name)
    check_recogniser("pocketsphinx")


# A run


def test_a_run_records_garbled_conversations_again_and_says_so(pytester: pytest.Pytester) -> None:
    source = f"""
    from dsbeval.agent import NOTHING, Agent, Capabilities, Emission, Interaction, Session, TextToken
    from dsbeval.speech.bank import load_bank

    class Mumbler(Agent):
        opened = 0

        @property
        def capabilities(self):
            return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=1920)

        def open(self, prompt, seed):
            # Garbled for good as the opener, else in its first take only.
            opens = "begin this conversation" in prompt
            Mumbler.opened += not opens
            return Says({OTHER!r} if opens or Mumbler.opened == 1 else {REPLY!r})

    class Says(Session):
        def __init__(self, text):
            self.text, self.tick = text, 0

        def step(self, heard):
            self.tick += 1
            if self.tick != 20:
                return NOTHING
            return Emission(load_bank()["reply"].audio, (TextToken(self.text, 0.0),), done=True)
    """
    (pytester.path / "mine.py").write_text(textwrap.dedent(source))
    spec = f"{pytester.path / 'mine.py'}:Mumbler"
    inner = run(
        pytester, f"--model={spec}", "--partner=silent", "--tasks=T4-2", "--window=30", "--repeats=1", "--garble-watch",
        "-k", "T4-2-01-ab", target=ROOT / "cases" / "dyadic",
    )  # fmt: skip
    rows = {row["opener"]: row for row in inner.rows()}
    assert [len(rows[side]["garble"]["takes"]) for side in SIDES] == [6, 2]
    assert rows["a"]["outcome"] == "failed"
    assert "is garbled" in rows["a"]["message"]
    assert "is garbled" not in rows["b"]["message"]
    assert inner.summary["dyadic"]["garble"] == {
        "watched": 2, "flagged": 2, "recorded_again": 6, "garbled": 1, "garbled_sides": {spec: 1},
    }  # fmt: skip
    assert "garble watch: 2 of 2 conversations flagged, 6 recorded again, 1 garbled for good" in inner.out
    assert inner.summary["fingerprint"]["dyadic"]["garble_watch"]["recogniser"] == "pocketsphinx"


def test_a_recogniser_without_a_watch_is_one_line(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--asr=pocketsphinx", target=ROOT / "cases" / "dyadic")
    assert "--asr: nothing is recognised without --garble-watch" in inner.err
    assert inner.status == pytest.ExitCode.USAGE_ERROR
