from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from dsbeval.audio import RATE, Signal
from dsbeval.errors import AudioError
from dsbeval.spans import Timeline
from dsbeval.speech.bank import BANK, BankFile, build_bank, load_bank
from dsbeval.speech.engine import Engine, Utterance
from dsbeval.vad import VAD_RATE, speech_timeline
from dsbeval.yamlfile import read_yaml
from tests.speech.conftest import silence


@pytest.fixture(scope="module")
def bank() -> dict[str, Utterance]:
    return load_bank()


def heard(audio: Signal) -> Timeline:
    """Return what the VAD of the benchmark hears when the utterance comes out of silence and goes into it."""
    return speech_timeline(np.concatenate([silence(1), audio, silence(1)])).shift(-RATE)


def test_the_bank_has_its_four_entries_at_full_clock(bank: dict[str, Utterance]) -> None:
    assert set(bank) == {"ack", "reply", "answer", "monologue"}
    for utterance in bank.values():
        assert utterance.audio.dtype == np.float32
        assert 0.1 < np.abs(utterance.audio).max() < 0.95
        assert utterance.words[0].start == 0
        assert utterance.words[-1].end == utterance.audio.size


@pytest.mark.parametrize(
    ("name", "shortest", "longest"),
    [("ack", 0.2, 0.6), ("reply", 2.0, 3.0), ("answer", 6.0, 8.0), ("monologue", 20.0, 40.0)],
)
def test_the_vad_hears_one_span_of_the_stated_length(
    bank: dict[str, Utterance], name: str, shortest: float, longest: float
) -> None:
    spans = heard(bank[name].audio)
    assert len(spans) == 1
    assert shortest < spans[0].duration / RATE < longest
    assert abs(spans[0].start) < 0.1 * RATE
    assert abs(spans[0].end - bank[name].audio.size) < 0.15 * RATE


def test_the_acknowledgement_is_heard_even_alone(bank: dict[str, Utterance]) -> None:
    spans = speech_timeline(bank["ack"].audio)
    assert len(spans) == 1
    assert spans[0].duration < 0.6 * RATE


def test_the_monologue_stays_one_span_wherever_it_is_cut(bank: dict[str, Utterance]) -> None:
    monologue = bank["monologue"].audio
    for seconds in (3, 7, 11, 16, 21):
        assert len(heard(monologue[: seconds * RATE])) == 1, seconds
        assert len(heard(monologue[seconds * RATE :])) == 1, seconds


def test_the_bank_is_what_its_texts_say(hibari: Engine, tmp_path: Path) -> None:
    for path in BANK.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path / path.name)
    file = read_yaml(BANK / "bank.yaml", BankFile)
    assert file.engine == hibari.name
    assert build_bank(hibari, tmp_path) == []
    (tmp_path / "manifest.json").unlink()
    assert build_bank(hibari, tmp_path) == [entry.id for entry in file.entries]
    again = load_bank(tmp_path)
    for name, utterance in load_bank().items():
        # Another processor computes the network to other last bits: pitch then runs to another phase, and a duration that lies
        # between two frames may be rounded to the other one. What is said, when and how loud stays.
        assert [word.word for word in utterance.words] == [word.word for word in again[name].words]
        times = [np.array([(word.start, word.end) for word in found.words]) for found in (utterance, again[name])]
        assert np.abs(times[0] - times[1]).max() < 0.05 * RATE
        assert abs(level_db(utterance.audio) - level_db(again[name].audio)) < 0.2


def level_db(audio: Signal) -> float:
    return float(10 * np.log10(np.mean(np.square(audio, dtype=np.float64))))


def test_a_changed_line_is_rendered_alone(hibari: Engine, tmp_path: Path) -> None:
    for path in BANK.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path / path.name)
    text = (tmp_path / "bank.yaml").read_text()
    (tmp_path / "bank.yaml").write_text(text.replace('"Right."', '"Sure."'))
    assert build_bank(hibari, tmp_path) == ["ack"]
    assert [word.word for word in load_bank(tmp_path)["ack"].words] == ["Sure."]
    assert len(list(tmp_path.glob("*.opus"))) == 4


def test_a_bank_that_is_not_there_names_the_mend(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match="no bank of speech there; run: dsbeval speech bank"):
        load_bank(tmp_path)


def test_the_vad_works_at_the_rate_that_is_assumed_here() -> None:
    assert VAD_RATE * 3 == RATE * 2
