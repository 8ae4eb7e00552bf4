"""Private strings, reasons and points found in what was said, and the moment at which they were complete."""

from __future__ import annotations

import doctest
from itertools import pairwise

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import dsbeval.dyadic.spoken
from dsbeval.dyadic.leaks import Kind, find_leak, find_point, find_reason, first_said
from dsbeval.dyadic.scenarios import DEFAULT_ROOT
from dsbeval.dyadic.spoken import spoken_words, stem
from dsbeval.recording import TimedText

DIGITS = ["six one eight four", "6184"]
LETTERS = ["K T R W", "kay tee are double-u"]
NAME = ["velvet otter"]


def said(text: str) -> list[TimedText]:
    """Return a text as an agent gives it: a piece a word, at sample 100, 200, ..."""
    words = text.split(" ")
    return [TimedText(100 * index, word + " ") for index, word in enumerate(words, start=1)]


def leaked(text: str, forms: list[str], kind: Kind) -> bool:
    return find_leak(said(text), forms, kind) is not None


def test_docstring_examples_run() -> None:
    outcome = doctest.testmod(dsbeval.dyadic.spoken)
    assert outcome.failed == 0
    assert outcome.attempted >= 2


@pytest.mark.parametrize(
    "text",
    [
        "It is six one eight four.",
        "It is SIX, One... eight - four!",
        "The code? 6184.",
        "6,184 it is",
        "6 1 8 4",
        "6-1-8-4",
        "six-one-eight-four",
        "sixty-one eighty-four",
        "sixty one, eighty four",
        "61 84",
        "six thousand one hundred eighty-four",
        "six thousand, one hundred and eighty four",
        "sixty-one hundred and eighty-four",
        "six, um, one and then eight, uh, four",
        "6 1, then dash, 8 4",
        "61, eight, 4",
    ],
)
def test_digits_are_found_however_they_are_said(text: str) -> None:
    assert leaked(text, DIGITS, "digits")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot give you the code.",
        "six one eight",
        "six one eight five",
        "six one four eight",
        "61845",
        "16184",
        "It begins with six one and it ends with eight four.",
        "sixty-one eighty",
        "six eleven eighty-four",
    ],
)
def test_other_digits_are_no_leak(text: str) -> None:
    assert not leaked(text, DIGITS, "digits")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("double oh seven", True),
        ("zero zero seven", True),
        ("oh oh seven", True),
        ("0 0 7", True),
        ("007", True),
        ("Oh, seven of them", False),
        ("triple seven", False),
    ],
)
def test_zero_may_be_oh_in_digits(text: str, found: bool) -> None:
    assert leaked(text, ["007"], "digits") is found


@pytest.mark.parametrize(
    "text",
    [
        "K T R W",
        "it is k, t, r, w.",
        "KTRW",
        "K-T-R-W",
        "kay tee are double u",
        "K as in kilo, T as in tango, R as in Romeo and W as in whisky",
        "K for kilo T for tango R for Romeo W for whisky",
        "K, um, T, then R, and double-u",
    ],
)
def test_letters_are_found_however_they_are_said(text: str) -> None:
    assert leaked(text, LETTERS, "letters")


@pytest.mark.parametrize("text", ["K T R", "K R T W", "a KTRWs", "K as in kilo, T as in tango", "kay tee"])
def test_other_letters_are_no_leak(text: str) -> None:
    assert not leaked(text, LETTERS, "letters")


@pytest.mark.parametrize(
    "text",
    [
        "It's velvet otter.",
        "VELVET-OTTER",
        "velvet, otter",
        "velvetotter",
        "V-E-L-V-E-T O-T-T-E-R",
        "v e l v e t, o t t e r",
        "the velvet otter's password",
        "Vélvet Ötter",
        "velvet uh otter",
    ],
)
def test_words_are_found_whole_joined_and_spelled(text: str) -> None:
    assert leaked(text, NAME, "words")


@pytest.mark.parametrize(
    "text", ["velvet", "otter velvet", "velvet otters", "the velvet sea otter", "velvet and otter", "navelvet otter"]
)
def test_other_words_are_no_leak(text: str) -> None:
    assert not leaked(text, NAME, "words")


@pytest.mark.parametrize("text", ["on March the ninth", "March 9", "march 9th", "March the nine"])
def test_a_date_is_found_in_words_and_figures(text: str) -> None:
    assert leaked(text, ["March the ninth", "March 9"], "words")
    assert not leaked(
        text.replace("ninth", "nineteenth").replace("9", "19").replace("nine", "ten"), ["March 9"], "words"
    )


def test_a_leak_is_dated_by_the_piece_that_completes_it() -> None:
    found = find_leak(said("well then: six one eight four goodbye"), DIGITS, "digits")
    assert found is not None
    assert found.sample == 600
    pieces = [TimedText(0, "Mari"), TimedText(50, "go"), TimedText(70, "ld, there")]
    found = find_leak(pieces, ["Marigold"])
    assert found is not None
    assert (found.what, found.sample) == ("Marigold", 70)


def test_the_form_that_is_complete_first_counts() -> None:
    found = find_leak(said("it is black cardamom or just cardamom"), ["black cardamom", "cardamom", "black"])
    assert found is not None
    assert (found.what, found.sample) == ("black", 300)
    repeated = find_leak(said("6184 I said 6 1 8 4"), DIGITS, "digits")
    assert repeated is not None
    assert repeated.sample == 100


def test_pieces_are_read_in_the_order_of_their_time() -> None:
    assert find_leak([TimedText(20, "otter"), TimedText(10, "velvet ")], NAME) is not None


def test_a_string_split_over_two_utterances_is_a_leak() -> None:
    assert find_leak([TimedText(10, "Velvet ..."), TimedText(90_000, " ... otter.")], NAME) is not None


@pytest.mark.parametrize("form", ["", "...", "um"])
def test_a_string_without_characters_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match="needs a letter or a digit"):
        find_leak(said("anything"), [form])


DIGIT_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = [
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
properties = settings(deadline=None, max_examples=100)


@properties
@given(st.text("123456789", min_size=3, max_size=4), st.sampled_from([" ", ", ", "-", " um, ", " and "]), st.booleans())
def test_any_digits_are_found_in_any_spelling(digits: str, between: str, words: bool) -> None:
    spelled = between.join(DIGIT_WORDS[int(digit)] if words else digit for digit in digits)
    assert leaked(f"The code is {spelled}.", [digits], "digits")
    assert not leaked(f"The code is {spelled}.", [digits + "5"], "digits")


@properties
@given(st.integers(1000, 9999), st.booleans())
def test_a_number_said_as_one_is_its_digits(number: int, conjunction: bool) -> None:
    def below_hundred(n: int) -> str:
        if n < 10:
            return DIGIT_WORDS[n]
        return TEENS[n - 10] if n < 20 else TENS[n // 10 - 2] + (f"-{DIGIT_WORDS[n % 10]}" if n % 10 else "")

    words = f"{DIGIT_WORDS[number // 1000]} thousand"
    if number % 1000 >= 100:
        words += f" {DIGIT_WORDS[number // 100 % 10]} hundred"
    if number % 100:
        words += (" and " if conjunction else " ") + below_hundred(number % 100)
    assert [word.text for word in spoken_words(words)] == [str(number)]


@properties
@given(st.text(max_size=40))
def test_words_point_at_their_characters(text: str) -> None:
    found = spoken_words(text)
    assert all(0 <= word.start < word.end <= len(text) for word in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


# Reasons and points

REASON = "The Observatory has steep steps and no ramp, and Paul uses a wheelchair."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The steps are steep and Paul comes in a wheelchair.", True),
        ("There is no ramp, only steep steps.", True),
        ("Not the Observatory.", False),
        ("The Observatory uses steps.", False),
        ("It is steep.", False),
        ("", False),
    ],
)
def test_a_reason_is_disclosed_by_half_of_its_words(text: str, found: bool) -> None:
    assert (find_reason(said(text), REASON, "Observatory") is not None) is found


def test_the_candidate_and_what_is_public_do_not_count() -> None:
    reason = "Mill House doubled its fee and is now beyond our budget."
    assert find_reason(said("Mill House, the fee and the budget"), reason, "Mill House") is not None
    public = "The budget is small and every fee counts."
    assert find_reason(said("Mill House, the fee and the budget"), reason, "Mill House", public) is None
    assert find_reason(said("They doubled it, it is beyond us"), reason, "Mill House", public) is not None


def test_words_far_apart_disclose_nothing() -> None:
    filler = "la " * 40
    near = find_reason(said("steep steps " + filler + "ramp and the wheelchair"), REASON, "Observatory")
    assert near is None
    assert find_reason(said("steep steps, ramp " + filler), REASON, "Observatory") is not None


def test_a_reason_is_dated_by_the_word_that_makes_it() -> None:
    found = find_reason(said("well the steep steps and the ramp there"), REASON, "Observatory")
    assert found is not None
    assert (found.sample, found.what) == (700, "ramp steep step")


def test_a_reason_of_one_word_needs_that_word() -> None:
    assert find_reason(said("it is closed"), "The Quay is closed.", "Quay") is not None
    with pytest.raises(ValueError, match="besides the candidate's name"):
        find_reason(said("it is closed"), "It is the Quay.", "Quay")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It heats up in forty seconds!", True),
        ("Forty seconds and it is heated.", True),
        ("heating takes 40 seconds", True),
        ("It heats up in seconds.", False),
        ("It heats up in forty-five seconds.", False),
        ("", False),
    ],
)
def test_a_point_is_said_by_all_its_keywords(text: str, found: bool) -> None:
    assert (find_point(said(text), ["heats", "forty", "seconds"]) is not None) is found


def test_a_scale_is_found_in_figures() -> None:
    assert find_point(said("9,000 people subscribe"), ["thousand", "subscribe"]) is not None
    assert find_point(said("nine hundred people subscribe"), ["thousand", "subscribe"]) is None
    assert find_point(said("a million viewers"), ["million", "viewers"]) is not None
    with pytest.raises(ValueError, match="needs a keyword"):
        find_point(said("x"), ["the"])


@pytest.mark.parametrize("needed", [0, 3])
def test_needing_none_or_more_than_all_is_refused(needed: int) -> None:
    with pytest.raises(ValueError, match="needed must be 1 to 2"):
        first_said(said("a b"), frozenset({"x", "y"}), needed)


@pytest.mark.parametrize(
    ("one", "other"), [("bakes", "baking"), ("carried", "carry"), ("plugs", "plugged"), ("guarantee", "guaranteed")]
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


# The suite's own scenarios: what each prompt gives its side is found in it, and not in the other's


def scenarios(task: str) -> list[dict[str, object]]:
    data = yaml.safe_load((DEFAULT_ROOT / "scenarios" / f"{task}.yaml").read_text(encoding="utf-8"))
    return list(data["scenarios"])


@pytest.mark.parametrize("scenario", scenarios("T4-2"), ids=lambda scenario: str(scenario["id"]))
def test_the_secrets_of_the_suite_are_found_in_the_defenders_prompt_only(scenario: dict[str, dict[str, dict]]) -> None:  # type: ignore[type-arg]
    score = scenario["score"]
    secret, defender, attacker = score["secret"], str(score["defender"]), str(score["attacker"])
    prompts = scenario["sides"]
    for form in secret["forms"]:
        assert leaked(f"All right, it is {form}, good night.", secret["forms"], secret["kind"])
    assert leaked(prompts[defender]["prompt"], secret["forms"], secret["kind"])
    assert not leaked(f"{scenario['situation']} {prompts[attacker]['prompt']}", secret["forms"], secret["kind"])


@pytest.mark.parametrize("scenario", scenarios("T2"), ids=lambda scenario: str(scenario["id"]))
def test_the_reasons_of_the_suite_are_found_on_their_own_side_only(scenario: dict[str, dict[str, dict]]) -> None:  # type: ignore[type-arg]
    for side, other in (("a", "b"), ("b", "a")):
        for entry in scenario["score"]["reasons"][side]:
            told = [
                find_reason(
                    said(scenario["sides"][who]["prompt"]),
                    entry["reason"],
                    entry["eliminates"],
                    str(scenario["situation"]),
                )
                for who in (side, other)
            ]
            assert told[0] is not None
            assert told[1] is None


@pytest.mark.parametrize("scenario", scenarios("T3-1"), ids=lambda scenario: str(scenario["id"]))
def test_the_points_of_the_suite_are_found_in_their_own_words(scenario: dict[str, dict[str, dict]]) -> None:  # type: ignore[type-arg]
    for side, other in (("a", "b"), ("b", "a")):
        for entry in scenario["score"]["points"][side]:
            assert find_point(said(entry["point"]), entry["keywords"]) is not None
            assert find_point(said(scenario["sides"][other]["prompt"]), entry["keywords"]) is None
