from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dsbeval.audio import RATE, Signal
from dsbeval.errors import AudioError
from dsbeval.ifeval.pack import Pack
from dsbeval.speech.assemble import audio_root
from dsbeval.speech.engine import Utterance
from dsbeval.speech.store import AudioStore, Request, write_segment
from dsbeval.speech.verify import Spread, VerifyReport, verify
from tests.speech.conftest import silence

KEY = "IFD-R4-C4-i1"
Change = Callable[[Signal], NDArray[np.floating]]


def replace(pack: Pack, name: str, change: Change) -> None:
    """Put other audio in the place of a segment of :data:`KEY`."""
    root = audio_root(pack)
    store = AudioStore(root)
    entry = store.entry(KEY, name)
    audio = change(store.audio(KEY, name).copy())
    request = Request(entry.engine, entry.version, entry.voice, 99, entry.text)
    store.put(KEY, name, write_segment(root, request, entry.text, Utterance(audio.astype(np.float32), entry.words)))
    store.save()


def whats(report: VerifyReport, name: str) -> list[str]:
    return [fault.what for fault in report.faults if (fault.key, fault.name) == (KEY, name)]


def test_built_speech_is_right_and_its_edges_are_measured(rendered: Pack) -> None:
    report = verify(rendered)
    assert report.ok, [str(fault) for fault in report.faults]
    assert report.recordings == 2
    assert report.segments == 8
    assert report.other_decoder == 0
    assert report.onset_ms.n == report.offset_ms.n == 7  # two first turns, two runs of C4, three chunks of C2
    assert -60 < report.onset_ms.median < 60
    assert 0 < report.offset_ms.median < 150
    assert report.conversation_s.n == 2
    assert 0 < report.peak.high < 1


def test_a_missing_or_damaged_file_is_a_fault_and_the_rest_is_still_checked(built_pack: Pack) -> None:
    store = AudioStore(audio_root(built_pack))
    (audio_root(built_pack) / store.entry(KEY, "s1").file).unlink()
    (audio_root(built_pack) / store.entry(KEY, "s4").file).write_bytes(b"OggS")
    report = verify(built_pack)
    assert "no such file" in whats(report, "s1")[0]
    assert "damaged" in whats(report, "s4")[0]
    assert {fault.key for fault in report.faults} == {KEY}
    assert report.level_dbfs.n == report.segments - 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda audio: np.concatenate([silence(0.2), audio]), "silence of 2[0-9]{2} ms at an end, 30 ms are allowed"),
        (lambda audio: np.concatenate([audio, silence(0.2)]), "silence of 2[0-9]{2} ms at an end, 30 ms are allowed"),
        (lambda audio: 0.02 * audio, r"level -[0-9.]+ dBFS is outside -32 to -10; try another take"),
        (lambda audio: np.clip(40 * audio, -1, 1), r"peak \d\.\d+ clips; build it again"),
        (lambda audio: np.tile(audio, 5), r"lasts [0-9.]+ s, its target is 5 s; reword it"),
        (
            lambda audio: 0.1 * np.sin(2 * np.pi * 900 * np.arange(audio.size) / RATE),
            r"the VAD hears speech in \d+% of it; try another take",
        ),
    ],
    ids=["late", "long", "quiet", "clipped", "duration", "tone"],
)
def test_each_gate_names_the_segment_and_the_mend(built_pack: Pack, change: Change, message: str) -> None:
    replace(built_pack, "s1", change)
    report = verify(built_pack, only=KEY)
    assert any(re.search(message, what) for what in whats(report, "s1")), report.faults


def test_an_edge_that_the_vad_hears_elsewhere_is_a_fault(built_pack: Pack) -> None:
    replace(built_pack, "s4", lambda audio: np.concatenate([0.3 * np.ones(240), np.zeros(RATE // 2), audio]))
    report = verify(built_pack, only=KEY)
    assert any("the VAD hears its onset +" in what for what in whats(report, "s4")), report.faults


def test_other_last_bits_are_told_apart_from_damage(built_pack: Pack) -> None:
    path = audio_root(built_pack) / "manifest.json"
    entry = AudioStore(audio_root(built_pack)).entry(KEY, "s1")
    path.write_text(path.read_text().replace(entry.sha256, "0" * 64))
    report = verify(built_pack, only=KEY)
    assert report.other_decoder == 1
    assert report.ok


def test_a_recogniser_counts_by_voice_and_role(rendered: Pack) -> None:
    # the recogniser is the edge of the world: here one that hears every segment as the same words
    report = verify(rendered, only=KEY, recogniser=lambda _audio: "does that sound right")
    assert len(report.heard) == 4
    assert {heard.role for heard in report.heard} == {"R4"}
    assert all(0 <= heard.errors <= max(heard.words, 4) for heard in report.heard)
    assert max(heard.errors for heard in report.heard) > 10


def test_no_audio_at_all_is_an_error(small_pack: Pack) -> None:
    with pytest.raises(AudioError, match="the pack has no audio yet"):
        verify(small_pack)


def test_a_spread_of_nothing_is_zero() -> None:
    assert Spread.of([]) == Spread(0, 0, 0, 0, 0, 0, 0)
    assert Spread.of([3.0, 1.0]).median == 2.0
