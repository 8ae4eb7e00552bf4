from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.errors import AudioError, OptionError
from dsbeval.ifeval.pack import Pack, load_pack
from dsbeval.ifeval.schema import Segment
from dsbeval.spans import to_samples
from dsbeval.speech.assemble import JOINT_S, UserTurn, audio_root, open_store, user_turns
from dsbeval.speech.build import lines, pack_lines
from dsbeval.speech.engine import Utterance, WordTime
from dsbeval.speech.store import AudioStore, Request, write_segment
from tests.speech.conftest import voice_like

KEY = "IFD-R4-C4-i1"  # lead, check, silence, resume


def stored(pack: Pack, lengths: dict[str, int]) -> None:
    """Store noise of some length for every segment of :data:`KEY`."""
    root = audio_root(pack)
    store = AudioStore(root)
    for seed, line in enumerate(lines(pack, pack.recordings[KEY])):
        samples = lengths[line.name]
        request = Request("none", "1", "v", seed, line.text)
        words = (WordTime("a", 0, samples // 3), WordTime("b", samples // 2, samples))
        store.put(KEY, line.name, write_segment(root, request, line.text, Utterance(voice_like(samples, seed), words)))
    store.save()


def with_turn2(pack: Pack, root: Path, turn2: list[Segment]) -> Pack:
    """Return a pack whose only recording has another second turn."""
    recording = pack.recordings[KEY]
    script = recording.script.model_copy(update={"turn2": turn2})
    return dataclasses.replace(pack, root=root, recordings={KEY: dataclasses.replace(recording, script=script)})


def test_a_turn_is_its_segments_the_joint_and_exact_silence(small_pack: Pack) -> None:
    stored(small_pack, {"t1": 9000, "s1": 5001, "s2": 3002, "s4": 7003})
    first, second = user_turns(small_pack, KEY)
    store = open_store(audio_root(small_pack))
    assert np.array_equal(first.audio, store.audio(KEY, "t1"))
    assert [(s.kind, s.part, s.span.start, s.span.end) for s in first.segments] == [("speech", "turn1", 0, 9000)]
    joint = to_samples(JOINT_S, RATE)
    pause = to_samples(1.5, RATE)
    assert [(s.kind, s.part, s.span.start, s.span.end) for s in second.segments] == [
        ("speech", "lead", 0, 5001),
        ("speech", "check", 5001 + joint, 8003 + joint),
        ("silence", None, 8003 + joint, 8003 + joint + pause),
        ("speech", "resume", 8003 + joint + pause, 15006 + joint + pause),
    ]
    assert second.audio.size == 15006 + joint + pause
    assert not second.audio[5001 : 5001 + joint].any()
    assert not second.audio[8003 + joint : 8003 + joint + pause].any()
    for name, segment in zip(("s1", "s2", "s4"), [s for s in second.segments if s.kind == "speech"], strict=True):
        assert np.array_equal(second.audio[segment.span.start : segment.span.end], store.audio(KEY, name))
    check = second.segments[1]
    assert [(w.word, w.start, w.end) for w in check.words] == [
        ("a", check.span.start, check.span.start + 1000),
        ("b", check.span.start + 1501, check.span.end),
    ]


_SILENCES = st.floats(0.05, 1.5).map(lambda s: round(s, 3))


@settings(deadline=None, max_examples=40)
@given(
    pieces=st.lists(st.one_of(st.integers(50, 4000), _SILENCES), min_size=0, max_size=6),
    last=st.integers(50, 4000),
    first=st.integers(50, 4000),
)
def test_segments_tile_the_turn_and_only_joints_lie_between(pieces: list[int | float], first: int, last: int) -> None:
    turn2: list[Segment] = []
    lengths: dict[str, int] = {"t1": 600}
    for index, piece in enumerate([first, *pieces, last]):
        if isinstance(piece, float):
            turn2.append(Segment(silence=piece))
        else:
            turn2.append(Segment(speech=f"line {index}", part="lead"))
            lengths[f"s{index + 1}"] = piece
    with tempfile.TemporaryDirectory() as folder:
        pack = with_turn2(load_pack(), Path(folder), turn2)
        root = audio_root(pack)
        store = AudioStore(root)
        texts = {"t1": pack.recordings[KEY].script.turn1} | {f"s{i + 1}": s.speech or "" for i, s in enumerate(turn2)}
        for seed, (name, samples) in enumerate(lengths.items()):
            request = Request("none", "1", "v", seed, name)
            store.put(KEY, name, write_segment(root, request, texts[name], Utterance(voice_like(samples, seed), ())))
        store.save()
        _, turn = user_turns(pack, KEY)
    assert_tiled(turn, turn2, lengths)


def assert_tiled(turn: UserTurn, turn2: list[Segment], lengths: dict[str, int]) -> None:
    assert len(turn.segments) == len(turn2)
    cursor = 0
    before = "silence"
    for index, (placed, asked) in enumerate(zip(turn.segments, turn2, strict=True)):
        if asked.silence is None:
            gap = to_samples(JOINT_S, RATE) if before == "speech" else 0
            wanted = lengths[f"s{index + 1}"]
        else:
            gap, wanted = 0, to_samples(asked.silence, RATE)
            assert not turn.audio[placed.span.start : placed.span.end].any()
        assert placed.kind == ("speech" if asked.silence is None else "silence")
        assert placed.span.start == cursor + gap
        assert placed.span.duration == wanted
        assert not turn.audio[cursor : placed.span.start].any()
        cursor, before = placed.span.end, placed.kind
    assert turn.audio.size == cursor


def test_the_same_key_gives_the_same_bytes_and_nobody_can_change_them(small_pack: Pack) -> None:
    stored(small_pack, {"t1": 900, "s1": 500, "s2": 300, "s4": 700})
    turns = user_turns(small_pack, KEY)
    again = user_turns(small_pack, KEY)
    assert all(np.array_equal(a.audio, b.audio) for a, b in zip(turns, again, strict=True))
    with pytest.raises(ValueError, match="read-only"):
        turns[1].audio[0] = 1.0


def test_a_changed_text_asks_for_a_build(small_pack: Pack) -> None:
    stored(small_pack, {"t1": 900, "s1": 500, "s2": 300, "s4": 700})
    recording = small_pack.recordings[KEY]
    script = recording.script.model_copy(update={"turn1": "Something else entirely."})
    changed = dataclasses.replace(small_pack, recordings={KEY: dataclasses.replace(recording, script=script)})
    with pytest.raises(
        AudioError,
        match=r"IFD-R4-C4-i1 t1: the pack's text has changed since it was spoken; run: dsbeval speech build$",
    ):
        user_turns(changed, KEY)


def test_a_new_manifest_is_seen(small_pack: Pack) -> None:
    stored(small_pack, {"t1": 900, "s1": 500, "s2": 300, "s4": 700})
    assert user_turns(small_pack, KEY)[0].audio.size == 900
    stored(small_pack, {"t1": 901, "s1": 500, "s2": 300, "s4": 700})
    assert user_turns(small_pack, KEY)[0].audio.size == 901


def test_a_pack_without_audio_says_so(small_pack: Pack) -> None:
    with pytest.raises(AudioError, match=r"the pack has no audio yet, run: dsbeval speech build$"):
        user_turns(small_pack, KEY)


def test_an_unknown_key_names_the_near_ones(small_pack: Pack) -> None:
    with pytest.raises(OptionError, match=r"^audio key 'IFD-R4-C4-i9' is not in the pack; did you mean IFD-R4-C4-i1"):
        user_turns(small_pack, "IFD-R4-C4-i9")


def test_our_pack_has_the_audio_of_every_line_it_asks_for() -> None:
    pack = load_pack()
    store = open_store(audio_root(pack))
    wanted = pack_lines(pack)
    assert {(line.key, line.name): line.text for line in wanted} == {
        (key, name): store.entry(key, name).text for key in store.audio_keys() for name in store.names(key)
    }
    assert {store.entry(line.key, line.name).engine for line in wanted} == {"kokoro"}
    on_disk = {path.name for path in audio_root(pack).glob("*.opus")}
    assert on_disk == {store.entry(line.key, line.name).file for line in wanted}
