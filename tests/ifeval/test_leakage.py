"""The two leakage gates: what counts as a content word, and where the limits lie."""

from __future__ import annotations

import dataclasses
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.ifeval.gates import persona as persona_gate
from dsbeval.ifeval.leakage import IMPERATIVES, content_words, jaccard, leakage, phrases_in, stopwords
from dsbeval.ifeval.pack import load_pack
from dsbeval.ifeval.schema import Role

TEXT = st.text(alphabet=string.ascii_letters + " '’,.", max_size=80)


def role(persona: str, directive: str = "Go.") -> Role:
    return Role(id="R1", name="guide", persona=persona, directive=directive, content_rule="Be kind.")


def findings(persona: str, directive: str = "Go.") -> list[str]:
    pack = dataclasses.replace(load_pack(), roles={"R1": role(persona, directive)})
    return [str(finding) for finding in persona_gate(pack)]


def padded(*words: str, to: int = 60) -> str:
    """Return the words followed by function words, which are not content, up to a length."""
    return " ".join([*words, *["the"] * (to - len(words))])


def test_content_words_by_hand() -> None:
    text = "Don't WAIT for the user's 'second' sentence; a user’s, 2 or x, wait!"
    assert content_words(text) == {"wait", "user’s", "second", "sentence"}


def test_stopwords_are_clean() -> None:
    assert all(word == word.strip().lower() for word in stopwords())
    assert {"don’t", "the", "of"} <= stopwords()


@settings(deadline=None, max_examples=100)
@given(TEXT)
def test_content_words_do_not_depend_on_case_or_the_kind_of_apostrophe(text: str) -> None:
    words = content_words(text)
    assert words == content_words(text.upper()) == content_words(text.replace("’", "'"))
    assert not words & stopwords()
    assert all(len(word) > 1 for word in words)


@settings(deadline=None, max_examples=100)
@given(st.frozensets(st.integers(0, 9)), st.frozensets(st.integers(0, 9)))
def test_jaccard_is_a_symmetric_share(a: frozenset[int], b: frozenset[int]) -> None:
    assert 0 <= jaccard(a, b) == jaccard(b, a) <= 1
    assert (jaccard(a, b) == 1) == (a == b != frozenset())


@pytest.mark.parametrize("phrase", IMPERATIVES)
def test_every_imperative_is_found_in_any_case_and_across_a_line_break(phrase: str) -> None:
    broken = phrase.upper().replace(" ", "\n   ")
    assert phrase in phrases_in(f"You never ({broken}), dear.", IMPERATIVES)


@pytest.mark.parametrize("text", ["a waiter", "the speakers", "he waits", "unyielding", "jump into it", "readback"])
def test_parts_of_words_are_not_imperatives(text: str) -> None:
    assert phrases_in(text, IMPERATIVES) == []


def test_persona_that_states_a_rule_is_rejected_with_the_mend() -> None:
    (line,) = findings(padded("You", "let", "them", "finish"))
    assert line.startswith("roles.yaml: R1: persona: says 'let them finish', a floor rule")
    assert "imply it" in line


def test_overlap_is_rejected_at_the_limit_and_not_below() -> None:
    shared, mine = ["rain", "roof", "lamp"], ["oak", "elm", "ash", "fir", "yew", "bay", "box"]
    theirs = ["red", "blue", "pink", "gold", "gray", "teal", "plum", "rust", "navy", "lime"]
    assert leakage(role(padded(*shared, *mine), " ".join(shared + theirs))).jaccard == 3 / 20
    (line,) = findings(padded(*shared, *mine), " ".join(shared + theirs))
    assert "shares lamp, rain, roof with the directive (Jaccard 0.150, must be below 0.15)" in line
    assert "put other words in one of them" in line
    assert findings(padded(*shared, *mine), " ".join([*shared, *theirs, "mauve"])) == []


@pytest.mark.parametrize(("words", "mend"), [(59, "extend it to 60 to 120"), (121, "shorten it to 60 to 120")])
def test_length_is_rejected_just_outside_the_limits(words: int, mend: str) -> None:
    (line,) = findings(padded(to=words))
    assert line.startswith(f"roles.yaml: R1: persona: has {words} words; {mend}")


@pytest.mark.parametrize("words", [60, 120])
def test_length_at_the_limits_passes(words: int) -> None:
    assert findings(padded(to=words)) == []


def test_our_personas_pass_and_leak_less_than_the_published_ones() -> None:
    pack = load_pack()
    rows = [leakage(each) for each in pack.roles.values()]
    assert list(persona_gate(pack)) == []
    assert len(rows) == 8
    assert sum(row.jaccard for row in rows) / len(rows) < 0.053  # the mean of the original texts


def test_no_phrases_are_found_when_none_are_sought() -> None:
    assert phrases_in("Any text at all.", []) == []
