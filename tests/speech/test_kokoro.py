from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dsbeval.errors import DsbevalError
from dsbeval.speech.kokoro import FOLDER_VARIABLE, MODEL_FILE, KokoroEngine

FOLDER = os.environ.get(FOLDER_VARIABLE)


def test_without_its_folder_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(DsbevalError, match=r"set DSBEVAL_KOKORO_DIR to their folder \(docs/speech.md says how\)$"):
        KokoroEngine()


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(DsbevalError, match=rf"{MODEL_FILE}: no such file; docs/speech.md says how to fill the folder$"):
        KokoroEngine(tmp_path)


def test_another_model_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).write_bytes(b"not the model")
    with pytest.raises(DsbevalError, match=r"SHA-256 begins [0-9a-f]{12}, 6e742170d309 is needed"):
        KokoroEngine(tmp_path)


@pytest.mark.skipif(not FOLDER, reason=f"{FOLDER_VARIABLE} does not name the model's folder")
def test_it_speaks_with_word_times_and_takes() -> None:
    engine = KokoroEngine()
    text = "Right, the blue one."
    first, again, other = (engine.synthesize(text, "bm_george@0.95", seed) for seed in (0, 0, 1))
    assert np.array_equal(first.audio, again.audio)
    assert first.audio.shape != other.audio.shape or not np.array_equal(first.audio, other.audio)
    assert [word.word for word in first.words] == text.split()
    assert all(word.start < word.end <= first.audio.size for word in first.words)
