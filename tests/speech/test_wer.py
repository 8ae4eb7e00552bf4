from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.errors import DsbevalError, OptionError
from dsbeval.speech.normalise import normalise
from dsbeval.speech.recognise import load_recogniser
from dsbeval.speech.wer import Heard, errors, rates, worst


@pytest.mark.parametrize(
    ("spoken", "heard"),
    [
        ("twenty-five milligrams", "25 mg"),
        ("one nine zero five Tolliver Avenue", "1905 Tolliver Ave."),
        ("nineteen oh five", "1905"),
        ("five five five, zero one four two", "555-0142"),
        ("two hundred and fifty micrograms", "250 mcg"),
        ("two thousand one hundred", "2,100"),
        ("three hundred twelve thousand", "312,000"),
        ("a hundred and five", "a 105"),
        ("on the twenty-third of May", "On the 23rd of May"),
        ("at seven thirty", "at 7:30"),
        ("x squared plus two x", "x² + 2x"),
        ("Um, it's, uh, gray, okay?", "It's grey. OK"),
        ("twenty nineteen", "2019"),
        ("six of one and half a dozen", "6 of 1 and half a dozen"),
        ("one, two, and five", "1, 2 and 5"),
        ("forty percent", "40%"),
    ],
)
def test_one_thing_written_two_ways_is_no_error(spoken: str, heard: str) -> None:
    assert normalise(spoken) == normalise(heard)


@pytest.mark.parametrize(
    ("spoken", "heard"),
    [("fifteen", "fifty"), ("nine five", "95 0"), ("he's here", "she is here")],
)
def test_what_differs_stays_different(spoken: str, heard: str) -> None:
    assert normalise(spoken) != normalise(heard)


@pytest.mark.parametrize(
    ("reference", "heard", "count"),
    [
        ("", "", 0),
        ("a b c", "", 3),
        ("", "a b", 2),
        ("a b c", "a x c", 1),
        ("a b c", "a c", 1),
        ("a b c", "a b b c", 1),
        ("the step ladder fell", "the stepladder fell", 0),
        ("the stepladder fell", "the step ladder fell", 0),
        ("stepladder", "step mother", 2),
    ],
)
def test_errors_are_the_least_edits(reference: str, heard: str, count: int) -> None:
    assert errors(reference.split(), heard.split()) == count


_WORDS = st.lists(st.sampled_from(["a", "b", "cc", "ddd"]), max_size=8)


@settings(deadline=None, max_examples=100)
@given(first=_WORDS, second=_WORDS)
def test_errors_are_a_distance(first: list[str], second: list[str]) -> None:
    assert errors(first, first) == 0
    assert errors(first, second) == errors(second, first)
    assert errors(first, second) <= max(len(first), len(second))


def heard(key: str, voice: str, wrong: int, words: int) -> Heard:
    return Heard(key, "t1", voice, "R1", "", "", wrong, words)


def test_a_rate_is_errors_by_words_and_the_worst_come_first() -> None:
    segments = [heard("a", "v", 1, 10), heard("b", "v", 5, 10), heard("c", "w", 1, 2), heard("d", "w", 0, 30)]
    assert [(r.group, r.errors, r.words) for r in rates(segments, lambda h: h.voice)] == [("v", 6, 20), ("w", 1, 32)]
    assert [h.key for h in worst(segments, 2)] == ["b", "c"]
    assert [h.key for h in worst(segments, 9)] == ["b", "c", "a"]


def test_an_unknown_recogniser_is_one_line() -> None:
    with pytest.raises(OptionError, match="--asr: 'whispr' is not a recogniser; give pocketsphinx or faster-whisper:"):
        load_recogniser("whispr")


def test_a_recogniser_that_is_not_installed_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)  # what importing does where it is not installed
    with pytest.raises(DsbevalError, match="the package pocketsphinx is not installed; run: pip install pocketsphinx"):
        load_recogniser("pocketsphinx")
