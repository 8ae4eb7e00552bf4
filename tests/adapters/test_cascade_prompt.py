"""What the agent reads out of a system prompt: stated rules in many wordings, their order, and the table of role words."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.cascade.floor import NEVER, PLAIN_GAP_S, Floor, Overlap, Tone, Trigger
from adapters.cascade.prompt import read_prompt
from adapters.cascade.quantities import mark_quantities
from adapters.cascade.role_words import ROLE_WORDS

PERSONA = "You work the front desk of a small hotel by a lake. Guests arrive late, with wet coats and long stories."


def test_an_empty_prompt_is_a_plain_assistant() -> None:
    assert read_prompt("") == Floor()
    assert Floor().gap_s == PLAIN_GAP_S
    assert Floor().overlap is Overlap.YIELD
    assert not Floor().backchannels


def test_a_persona_without_words_of_the_table_changes_nothing() -> None:
    assert read_prompt(PERSONA) == Floor()


@pytest.mark.parametrize(
    ("text", "marked", "values"),
    [
        ("within two seconds", "<max>", (2.0,)),
        ("in under 1.5 seconds", "<max>", (1.5,)),
        ("no later than half a second after", "<max> after", (0.5,)),
        ("three seconds at most", "<max>", (3.0,)),
        ("600 milliseconds or less", "<max>", (0.6,)),
        ("at least six seconds of quiet", "<min> of quiet", (6.0,)),
        ("eight seconds or more", "<min>", (8.0,)),
        ("no less than ten seconds", "<min>", (10.0,)),
        ("longer than a second and a half", "<than>", (1.5,)),
        ("a five-second pause", "a <dur> pause", (5.0,)),
        ("wait 3s and then", "wait <dur> and then", (3.0,)),
        ("two to four seconds", "<dur>", (3.0,)),
        ("twenty-five seconds", "<dur>", (25.0,)),
        ("a minute and a half", "<dur>", (90.0,)),
        ("two point five seconds", "<dur>", (2.5,)),
        ("between two and six a minute", "<rate>", (4.0,)),
        ("once every ten seconds", "<rate>", (6.0,)),
        ("3 times per minute", "<rate>", (3.0,)),
        ("as soon as a sentence ends", "as soon as a sentence ends", ()),
        ("a few times a minute", "a few times a minute", ()),
    ],
)
def test_lengths_and_rates(text: str, marked: str, values: tuple[float, ...]) -> None:
    found = mark_quantities(text)
    assert found.text == marked
    assert found.values == pytest.approx(values)


# (sentence, parameter, value): no sentence is one of the pack's.
STATED: list[tuple[str, str, object]] = [
    # who speaks first
    ("Open the conversation yourself.", "opens", True),
    ("You start this call.", "opens", True),
    ("Speak first, do not wait for the guest.", "opens", True),
    ("Do not speak first.", "opens", False),
    ("Let the caller speak first.", "opens", False),
    ("Wait until they start the conversation.", "opens", False),
    # silence
    ("Leave at least four seconds of silence before you say anything.", "gap_s", 6.0),
    ("Wait for five seconds of quiet before replying.", "gap_s", 5.0),
    ("Once the user stops, wait three seconds, then answer.", "gap_s", 3.0),
    ("Allow a minimum of eight seconds of stillness before taking the floor.", "gap_s", 12.0),
    ("Answer within one second of the user finishing.", "gap_s", 0.7),
    ("Never let a pause run longer than two seconds.", "gap_s", 1.7),
    ("Silences must not exceed 1.5 seconds; after that the turn is yours.", "gap_s", 1.2),
    ("No gap may go past one second before you start talking.", "gap_s", 0.7),
    ("Do not fill silences.", "gap_s", NEVER),
    ("When they go quiet, say nothing.", "gap_s", NEVER),
    ("If the user pauses, stay silent until they go on.", "gap_s", NEVER),
    ("Leave every pause alone.", "gap_s", NEVER),
    ("Never break the silence.", "gap_s", NEVER),
    ("Fill every gap immediately.", "gap_s", 0.5),
    ("Do not hesitate to fill a lull at once.", "gap_s", 0.5),
    ("Don't let dead air build.", "gap_s", 0.5),
    # questions
    ("If someone asks you a question, answer it promptly.", "answers_questions", True),
    ("Speak only when directly asked.", "gap_s", NEVER),
    # listening sounds
    ("Use no backchannels.", "backchannels", False),
    ("Listening sounds are forbidden.", "backchannels", False),
    ("Avoid any mm-hm or uh-huh.", "backchannels", False),
    ("Do not make small noises while they talk.", "backchannels", False),
    ("Backchannel often.", "backchannels", True),
    ("Give a short acknowledgement now and then.", "backchannels", True),
    ("Offer soft listening sounds, three to five per minute.", "backchannels_per_minute", 4.0),
    ("Give brief verbal nods every ten seconds.", "backchannels_per_minute", 6.0),
    ("Keep backchannels shorter than 0.7 seconds.", "backchannel_s", 0.7),
    ("When the user checks that you are listening, answer with one short sound.", "answers_checks", True),
    ("If they ask whether you are still there, stay silent.", "answers_checks", False),
    # saying it back
    ("Read all numbers back.", "read_back", True),
    ("Repeat the booking reference to the guest.", "read_back", True),
    ("Say each name back before you go on.", "read_back", True),
    ("Confirm every detail aloud.", "read_back", True),
    ("Do not repeat what you were told.", "read_back", False),
    ("Never say numbers back.", "read_back", False),
    # coming in
    ("Interrupt at once if the user mentions a red flag.", "triggers", frozenset({Trigger.RED_FLAG})),
    ("Cut in whenever a dose sounds wrong.", "triggers", frozenset({Trigger.DOSE})),
    ("Jump in when the order is ambiguous.", "triggers", frozenset({Trigger.AMBIGUITY})),
    ("Come in immediately when they correct themselves, with a correction question.", "triggers",
     frozenset({Trigger.CORRECTION})),
    ("Interrupt the moment you hear a logical error.", "triggers", frozenset({Trigger.REASONING})),
    ("Interrupt freely.", "triggers", frozenset(Trigger)),
    ("Never interrupt.", "triggers", frozenset()),
    ("Never interrupt, except for an emergency.", "triggers", frozenset({Trigger.RED_FLAG})),
    ("Hear the guest out.", "triggers", frozenset()),
    # overlap
    ("If the user talks over you, stop talking at once.", "overlap", Overlap.YIELD),
    ("When they interrupt you, give way.", "overlap", Overlap.YIELD),
    ("Break off immediately when the guest starts talking over you.", "overlap", Overlap.YIELD),
    ("If the user talks over you, do not stop.", "overlap", Overlap.FINISH),
    ("Finish your sentence even when someone comes in.", "overlap", Overlap.FINISH),
    ("When interrupted, keep going to the end of your sentence.", "overlap", Overlap.FINISH),
    ("Complete every sentence that you start.", "overlap", Overlap.FINISH),
    ("Accept overlap and talk along with them.", "overlap", Overlap.SHARE),
    # length and manner
    ("Keep every answer under six seconds.", "turn_s", 6.0),
    ("Guide them only with questions.", "tone", Tone.ASKING),
    ("Translate what they say and nothing else.", "tone", Tone.RENDER),
]  # fmt: skip

OPPOSITE = Floor(
    gap_s=99.0,
    answers_questions=False,
    backchannels=True,
    backchannels_per_minute=99.0,
    backchannel_s=99.0,
    read_back=True,
    triggers=frozenset(Trigger),
)


@pytest.mark.parametrize(("sentence", "parameter", "value"), STATED, ids=[row[0][:50] for row in STATED])
@pytest.mark.parametrize("before", ["", PERSONA + "\n\n"], ids=["alone", "after a persona"])
def test_a_stated_rule_sets_its_parameter(sentence: str, parameter: str, value: object, before: str) -> None:
    if value is False or value == frozenset() or value is Overlap.YIELD:  # what a plain assistant does anyway
        before += "Backchannel often. Read everything back. Interrupt freely. If they talk over you, keep talking to the end. "
        before += "You begin this conversation. "
        assert getattr(read_prompt(before), parameter) != value
    assert getattr(read_prompt(before + sentence), parameter) == value


@pytest.mark.parametrize(
    "sentence",
    [
        "The stillness of the lake is why people come here.",
        "A gap in the hedge leads down to the water.",
        "The guest before you has been waiting since noon.",
        "You have heard every story twice, and you answer for the whole house.",
        "People talk over breakfast.",
        "The first conversation of the day begins on the stairs.",
    ],
)
def test_a_description_states_no_rule(sentence: str) -> None:
    floor = read_prompt(sentence)
    assert floor.gap_s < 5.0
    assert floor.overlap is Overlap.YIELD
    assert not floor.triggers
    assert not floor.read_back
    assert not floor.opens


@pytest.mark.parametrize(
    ("first", "second", "parameter", "then"),
    [
        ("Never interrupt.", "Interrupt when a dose is wrong.", "triggers", frozenset({Trigger.DOSE})),
        ("Interrupt when a dose is wrong.", "Never interrupt.", "triggers", frozenset()),
        ("Read numbers back.", "Do not repeat any number aloud.", "read_back", False),
        ("Do not repeat any number aloud.", "Read numbers back.", "read_back", True),
        ("Fill every gap at once.", "Leave every silence alone.", "gap_s", NEVER),
        ("Leave every silence alone.", "Fill every gap at once.", "gap_s", 0.5),
        ("Use listening sounds.", "No listening sounds.", "backchannels", False),
        ("No listening sounds.", "Use listening sounds.", "backchannels", True),
        ("Stop at once if they talk over you.", "If they talk over you, keep talking.", "overlap", Overlap.FINISH),
        ("If they talk over you, keep talking.", "Stop at once if they talk over you.", "overlap", Overlap.YIELD),
    ],
)
def test_the_later_of_two_contradictory_rules_wins(first: str, second: str, parameter: str, then: object) -> None:
    assert getattr(read_prompt(f"{PERSONA}\n\n{first}\n\n{second}"), parameter) == then


def test_a_contradiction_changes_only_what_it_is_about() -> None:
    rules = "Read numbers back. Give short backchannels. Wait at least four seconds of silence before you answer."
    before, after = read_prompt(rules), read_prompt(rules + " Override: never repeat numbers aloud.")
    assert before.read_back
    assert not after.read_back
    assert (after.gap_s, after.backchannels) == (before.gap_s, before.backchannels)


@pytest.mark.parametrize(
    ("persona", "parameter", "value"),
    [
        ("A quiet garden, and unhurried people in it.", "gap_s", 4.0),
        ("There is a rush at the counter every noon.", "gap_s", 0.5),
        ("What is typed into the records is what counts.", "read_back", True),
        ("People come for company and warmth.", "backchannels", True),
        ("A symptom can hide in small talk.", "triggers", frozenset({Trigger.RED_FLAG})),
        (
            "One misheard word is a mistake for somebody.",
            "triggers",
            frozenset({Trigger.CORRECTION, Trigger.AMBIGUITY}),
        ),
        ("The audience came for a laugh.", "tone", Tone.PLAYFUL),
    ],
)
def test_role_words_of_a_persona(persona: str, parameter: str, value: object) -> None:
    assert getattr(read_prompt(persona), parameter) == value


def test_a_rule_wins_over_the_words_of_the_persona() -> None:
    assert read_prompt("There is a rush at noon. Wait at least four seconds of silence before you answer.").gap_s == 6.0


def test_the_names_of_jobs_mean_nothing() -> None:
    jobs = ("nurse", "counselor", "dispatcher", "instructor", "tutor", "order taker", "interpreter", "improv partner")
    for job in jobs:
        assert read_prompt(f"You are a {job}.") == Floor(), job


def test_the_documented_table_is_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    for row in ROLE_WORDS:
        line = next((line for line in text.splitlines() if line.startswith(f"| {row.about} |")), "")
        assert row.does in line, row.about
        for word in row.words:
            assert re.split(r"[^a-z ]", word)[0] in line.replace("(", "").replace(")", ""), word


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.sampled_from([row[0] for row in STATED])
        | st.text(max_size=60)
        | st.sampled_from(["<max>", "no", "- ;:", "1e9 s"])
    )
)
def test_any_prompt_gives_a_usable_floor(pieces: list[str]) -> None:
    floor = read_prompt("\n".join(pieces))
    assert floor.gap_s >= 0
    assert not math.isnan(floor.gap_s)
    assert floor.backchannels_per_minute >= 0
    assert floor == read_prompt("\n".join(pieces))
