"""The JSON object of a reply, from whatever a model puts around it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.replies import ReplyError, read_object

WANTED = {"accept": False, "reason": 'says "no" {twice}'}
TEXT = json.dumps(WANTED)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"\n  {TEXT}\n\n",
        f"```json\n{TEXT}\n```",
        f"```\n{json.dumps(WANTED, indent=2)}\n```",
        f"Here is what you asked for:\n\n```json\n{TEXT}\n```\nTell me if it should change.",
        f"Certainly! {TEXT} I hope that this helps.",
        f"<think>Is {{this}} the one? Perhaps {{'that'}}.</think>\n{TEXT}",
    ],
    ids=["bare", "space", "fenced", "fence without language", "fenced in prose", "prose", "thought first"],
)
def test_the_object_is_found(reply: str) -> None:
    assert read_object(reply) == WANTED


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "the reply is empty; answer with one JSON object"),
        ("  \n", "the reply is empty; answer with one JSON object"),
        ("I would rather not.", "holds no JSON object"),
        (
            '{"accept": true, "reason": "cut off he',
            "not valid JSON: Unterminated string starting at (line 1, column 28)",
        ),
        ('{"accept": true "reason": ""}', "not valid JSON: Expecting ',' delimiter (line 1, column 17)"),
        ("{'accept': True}", "not valid JSON: Expecting property name"),
        ('[{"accept": true}]', "the reply is a JSON list; answer with one JSON object"),
        ("true", "the reply is a JSON bool"),
        (f"{TEXT}\n{TEXT}", "more than one JSON object"),
        (f"```json\n{TEXT}\n```\nor\n```json\n{TEXT}\n```", "more than one JSON object"),
        ('{"accept": true, "accept": false}', "the key 'accept' appears twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_one_object_is_refused_in_words_for_the_model(reply: str, why: str) -> None:
    with pytest.raises(ReplyError) as error:
        read_object(reply)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(), JSON, max_size=4), before=st.text(alphabet="abc \n.:", max_size=20))
@settings(deadline=None, max_examples=100)
def test_any_object_survives_prose_before_it(value: dict[str, object], before: str) -> None:
    assert read_object(f"{before}{json.dumps(value)}") == value
