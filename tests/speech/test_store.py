from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.errors import AudioError
from dsbeval.speech.engine import Utterance, WordTime
from dsbeval.speech.store import MANIFEST, AudioStore, Request, pcm_sha256, write_segment
from tests.speech.conftest import voice_like

REQUEST = Request("hibari", "1", "heart", 0, "a line")


def filled(root: Path, lengths: dict[str, int]) -> AudioStore:
    """Return a store with one segment a name, saved."""
    store = AudioStore(root)
    for seed, (name, samples) in enumerate(lengths.items()):
        request = Request("hibari", "1", "heart", seed, "a line")
        words = (WordTime("a", 0, samples // 2), WordTime("line", samples // 2, samples))
        store.put("K", name, write_segment(root, request, "a line", Utterance(voice_like(samples, seed), words)))
    store.engines["hibari"] = {"version": "1"}
    store.save()
    return store


@settings(deadline=None, max_examples=60)
@given(samples=st.integers(1, 50_000), seed=st.integers(0, 1000))
def test_a_segment_keeps_its_length_to_the_sample(samples: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entry = write_segment(Path(folder), REQUEST, "x", Utterance(voice_like(samples, seed), ()))
        assert entry.samples == samples
        store = AudioStore(Path(folder))
        store.put("K", "t1", entry)
        audio = store.audio("K", "t1")
        assert audio.size == samples
        assert pcm_sha256(audio) == entry.sha256


def test_the_codec_does_not_move_sound_in_time(tmp_path: Path) -> None:
    burst = np.zeros(24_000, np.float32)
    burst[9_000:15_000] = voice_like(6_000)
    store = AudioStore(tmp_path)
    store.put("K", "t1", write_segment(tmp_path, REQUEST, "x", Utterance(burst, ())))
    decoded = store.audio("K", "t1")
    lags = np.correlate(decoded, burst[8_000:16_000], "valid")
    assert abs(int(lags.argmax()) - 8_000) <= 2


def test_what_is_saved_is_what_is_read(tmp_path: Path) -> None:
    written = filled(tmp_path, {"t1": 5001, "s1": 700, "s10": 900, "s2": 800})
    read = AudioStore(tmp_path)
    assert read.audio_keys() == ("K",)
    assert read.names("K") == ("t1", "s1", "s2", "s10")
    for name in read.names("K"):
        assert read.entry("K", name) == written.entry("K", name)
        assert np.array_equal(read.audio("K", name), written.audio("K", name))
        assert read.utterance("K", name).words == written.entry("K", name).words
    before = (tmp_path / MANIFEST).read_bytes()
    read.save()
    assert (tmp_path / MANIFEST).read_bytes() == before


def test_opening_reads_no_audio(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 5000})
    for path in tmp_path.glob("*.opus"):
        path.unlink()
    store = AudioStore(tmp_path)
    assert store.entry("K", "t1").samples == 5000
    with pytest.raises(AudioError, match=r"\.opus: no such file; .*; run: dsbeval speech build$"):
        store.audio("K", "t1")


def test_decoded_audio_cannot_be_changed(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 5000})
    audio = AudioStore(tmp_path).audio("K", "t1")
    with pytest.raises(ValueError, match="read-only"):
        audio[0] = 1.0


def test_a_file_that_differs_from_the_manifest_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 5000, "s1": 4000})
    store = AudioStore(tmp_path)
    first, second = (tmp_path / store.entry("K", name).file for name in ("t1", "s1"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(AudioError) as caught:
        store.audio("K", "t1")
    assert str(caught.value) == (
        f"{first}: damaged, its SHA-256 is not the manifest's; delete the file and run: dsbeval speech build"
    )


def test_a_sample_count_that_differs_from_the_manifest_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 5000})
    path = tmp_path / MANIFEST
    path.write_text(path.read_text().replace('"samples": 5000', '"samples": 4999'))
    with pytest.raises(AudioError, match="5000 samples, the manifest says 4999; delete the file and run"):
        AudioStore(tmp_path).audio("K", "t1")


def test_an_unknown_segment_names_the_mend(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 500})
    with pytest.raises(AudioError, match=r"manifest\.json: no audio for K s7; run: mend me$"):
        AudioStore(tmp_path, "mend me").audio("K", "s7")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 1, "rate": 24000, "engines": {}, "segments": [1]}'])
def test_a_manifest_that_is_none_is_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(AudioError, match=r"not a manifest of stored speech; make it again with: dsbeval speech build$"):
        AudioStore(tmp_path)


def test_another_schema_is_named(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 500})
    path = tmp_path / MANIFEST
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 9'))
    with pytest.raises(AudioError, match="schema 9 at 24000 Hz; schema 1 at 24000 Hz is needed"):
        AudioStore(tmp_path)


def test_a_file_outside_the_store_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, {"t1": 500})
    path = tmp_path / MANIFEST
    data = json.loads(path.read_text())
    data["segments"]["K"]["t1"]["file"] = "../elsewhere.opus"
    path.write_text(json.dumps(data))
    with pytest.raises(AudioError, match="not a manifest of stored speech"):
        AudioStore(tmp_path)


def test_what_is_not_wanted_goes_and_the_rest_stays(tmp_path: Path) -> None:
    store = filled(tmp_path, {"t1": 500, "s1": 600, "s2": 700})
    kept = tmp_path / store.entry("K", "s1").file
    assert store.keep({"K": ("s1", "s9")}) == 2
    assert store.names("K") == ("s1",)
    assert list(tmp_path.glob("*.opus")) == [kept]


def test_every_part_of_a_request_decides_the_file() -> None:
    requests = [
        REQUEST,
        Request("kokoro", "1", "heart", 0, "a line"),
        Request("hibari", "2", "heart", 0, "a line"),
        Request("hibari", "1", "f2", 0, "a line"),
        Request("hibari", "1", "heart", 1, "a line"),
        Request("hibari", "1", "heart", 0, "another line"),
    ]
    assert len({request.file for request in requests}) == len(requests)
    assert REQUEST.file == Request("hibari", "1", "heart", 0, "a line").file
