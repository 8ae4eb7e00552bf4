from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dsbeval.errors import PackError
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.speech.engine import split_voice
from dsbeval.speech.hibari import HibariEngine
from dsbeval.speech.kokoro import KokoroEngine, _vocabulary
from dsbeval.speech.phonemes import spoken_words
from dsbeval.speech.voices import Cast

ENTRY = "  - {id: a, sex: male, accent: British, age: older, engines: {kokoro: bm_lewis}}\n"


@pytest.fixture(scope="module")
def cast() -> Cast:
    return Cast(DEFAULT_PACK)


def test_our_cast_is_large_and_mixed(cast: Cast) -> None:
    assert len(cast.voices) >= 20
    assert min(Counter(voice.sex for voice in cast.voices).values()) >= 10
    assert {voice.accent for voice in cast.voices} == {"American", "British"}
    assert {voice.age for voice in cast.voices} == {"young", "middle", "older"}
    assert len({voice.engines["kokoro"] for voice in cast.voices}) == len(cast.voices)


def test_every_speaker_has_a_voice_in_both_engines_of_its_accent(cast: Cast) -> None:
    for voice in cast.voices:
        names, _ = split_voice(voice.engines["kokoro"], KokoroEngine.voices)
        for name in names:
            assert name[0] == {"American": "a", "British": "b"}[voice.accent]
            assert name[1] == {"female": "f", "male": "m"}[voice.sex]
        split_voice(voice.engines["hibari"], HibariEngine.voices)


def test_a_conversation_has_one_voice_for_ever(cast: Cast) -> None:
    # sha256("IFD-R1-C2-i1") mod 26; a change here re-casts the published audio
    assert [cast.voice(key).id for key in ("IFD-R1-C2-i1", "IFD-M-C1-i1")] == ["us-f-sky", "us-m-echo"]
    used = Counter(cast.voice(key).id for key in load_pack().recordings)
    assert set(used) == {voice.id for voice in cast.voices}


def test_every_pronunciation_is_of_a_spoken_word_in_the_models_alphabet(cast: Cast) -> None:
    vocabulary = _vocabulary()
    scripts = [recording.script for recording in load_pack().recordings.values()]
    texts = [script.turn1 for script in scripts] + [s.speech for script in scripts for s in script.turn2 if s.speech]
    for voice in (cast.voices[0], next(v for v in cast.voices if v.accent == "British")):
        marked = [cast.spoken(text, voice) for text in texts]
        assert any("](/" in text for text in marked)
        for text, written in zip(marked, texts, strict=True):
            words = spoken_words(text, british=voice.accent == "British")
            assert [word.text for word in words] == written.split()
            unknown = {c for word in words for c in word.phonemes if c not in vocabulary}
            assert not unknown, (text, unknown)


def test_a_pronunciation_keeps_case_punctuation_and_other_words(tmp_path: Path) -> None:
    (tmp_path / "voices.yaml").write_text(
        f"voices:\n{ENTRY}pronunciations:\n  sean: {{phonemes: ʃˈɔn, british: ʃˈɔːn}}\n  Sean's: {{phonemes: ʃˈɔnz}}\n"
    )
    cast = Cast(tmp_path)
    british = cast.voices[0]
    american = british.model_copy(update={"accent": "American"})
    assert cast.spoken("Sean, Seana and Sean's.", british) == "[Sean](/ʃˈɔːn/), Seana and [Sean's](/ʃˈɔnz/)."
    assert cast.spoken("Sean.", american) == "[Sean](/ʃˈɔn/)."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"voices:\n{ENTRY}{ENTRY}", "voice 'a' appears twice; ids are unique"),
        ("voices: []\n", "voices: list should have at least 1 item"),
        (f"voices:\n{ENTRY}takes: {{IFD-R1-C2-i1/t1: -1}}\n", "takes.IFD-R1-C2-i1/t1: input should be greater"),
        (f"voices:\n{ENTRY.replace('older', 'old')}", "a: age: input should be 'young', 'middle' or 'older'"),
    ],
)
def test_a_wrong_file_names_the_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "voices.yaml").write_text(content)
    with pytest.raises(PackError) as caught:
        Cast(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'voices.yaml'}: ")
    assert message in str(caught.value)
