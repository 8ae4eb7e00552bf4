from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from dsbeval.audio import RATE
from dsbeval.errors import OptionError, PackError
from dsbeval.ifeval.pack import Pack
from dsbeval.speech.assemble import audio_root, user_turns
from dsbeval.speech.build import PEAK, BuildReport, build, lines, pack_lines, render, with_headroom
from dsbeval.speech.engine import Engine, Utterance, WordTime
from dsbeval.speech.store import MANIFEST, AudioStore, Request

KEY = "IFD-R4-C4-i1"
OTHER = "IFD-R1-C2-i1"


def state(pack: Pack) -> dict[str, tuple[int, bytes]]:
    """Return time and content of every file of the pack's audio."""
    return {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in audio_root(pack).iterdir()}


def with_turn1(pack: Pack, key: str, text: str) -> Pack:
    recording = pack.recordings[key]
    changed = dataclasses.replace(recording, script=recording.script.model_copy(update={"turn1": text}))
    return dataclasses.replace(pack, recordings={**pack.recordings, key: changed})


def decoded(pack: Pack) -> dict[tuple[str, str], str]:
    store = AudioStore(audio_root(pack))
    return {(key, name): store.entry(key, name).sha256 for key in store.audio_keys() for name in store.names(key)}


def test_a_build_renders_every_line_and_a_second_one_does_nothing(small_pack: Pack) -> None:
    wanted = pack_lines(small_pack)
    report = build(small_pack, "hibari")
    assert (report.made, report.kept, report.removed_files) == (len(wanted), 0, 0)
    before = state(small_pack)
    assert build(small_pack, "hibari") == BuildReport(0, len(wanted), 0, report.off_target)
    assert state(small_pack) == before
    store = AudioStore(audio_root(small_pack))
    for line in wanted:
        entry = store.entry(line.key, line.name)
        assert [word.word for word in entry.words] == line.text.split()
        assert (entry.words[0].start, entry.words[-1].end) == (0, entry.samples)
    assert len({store.entry(line.key, line.name).voice for line in wanted if line.key == KEY}) == 1


def test_what_has_changed_is_rendered_again_and_its_old_file_goes(built_pack: Pack) -> None:
    before = state(built_pack)
    changed = with_turn1(built_pack, KEY, "I came in this morning, and nobody was here.")
    report = build(changed, "hibari")
    assert (report.made, report.removed_files) == (1, 1)
    after = state(changed)
    assert len(set(before) - set(after)) == len(set(after) - set(before)) == 1
    assert all(after[name] == before[name] for name in set(before) & set(after) - {MANIFEST})
    assert user_turns(changed, KEY)[0].segments[0].text == "I came in this morning, and nobody was here."


def test_another_take_or_pronunciation_renders_only_its_segment(built_pack: Pack) -> None:
    before = decoded(built_pack)
    voices = built_pack.root / "voices.yaml"
    cast = yaml.safe_load(voices.read_text())
    voices.write_text(yaml.safe_dump(cast | {"takes": {f"{KEY}/t1": 3}}, sort_keys=False))
    assert build(built_pack, "hibari").made == 1
    after = decoded(built_pack)
    assert {name for name in before if before[name] != after[name]} == {(KEY, "t1")}
    word = built_pack.recordings[OTHER].script.turn1.split()[4].strip(",.")
    says = {**cast["pronunciations"], word: {"phonemes": "wˈʌt"}}
    voices.write_text(yaml.safe_dump(cast | {"takes": {}, "pronunciations": says}, sort_keys=False))
    renewed = build(built_pack, "hibari")
    spoken = [line for line in pack_lines(built_pack) if re.search(rf"\b{word}\b", line.text, re.IGNORECASE)]
    assert renewed.made == len({(line.key, line.name) for line in spoken} | {(KEY, "t1")})


def test_processes_make_the_same_samples_as_one_process(built_pack: Pack, tmp_path: Path) -> None:
    alone = decoded(built_pack)
    for path in audio_root(built_pack).iterdir():
        path.unlink()
    build(built_pack, "hibari", jobs=2)
    assert decoded(built_pack) == alone


def test_an_interrupted_build_loses_nothing_that_was_done(small_pack: Pack) -> None:
    def interrupt(done: int, _total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(small_pack, "hibari", progress=interrupt)
    store = AudioStore(audio_root(small_pack))
    kept = [(key, name) for key in store.audio_keys() for name in store.names(key)]
    assert len(kept) == 3
    assert all(store.audio(key, name).size for key, name in kept)
    report = build(small_pack, "hibari")
    assert (report.made, report.kept) == (len(pack_lines(small_pack)) - 3, 3)


def test_a_glob_builds_only_what_matches_and_keeps_the_rest(built_pack: Pack) -> None:
    before = state(built_pack)
    changed = with_turn1(with_turn1(built_pack, KEY, "A new line."), OTHER, "A new line.")
    assert build(changed, "hibari", only="IFD-R4-*").made == 1
    after = state(changed)
    assert len(set(before) - set(after)) == 1
    assert AudioStore(audio_root(changed)).entry(OTHER, "t1").text == built_pack.recordings[OTHER].script.turn1
    with pytest.raises(OptionError, match="--only: 'R4' matches none of 2 recordings; a key looks like IFD-R1-C2-i1"):
        build(changed, "hibari", only="R4")


def test_the_same_words_in_the_same_voice_share_one_file(small_pack: Pack) -> None:
    line = next(line for line in pack_lines(small_pack) if (line.key, line.name) == (KEY, "s2"))
    sharing = with_turn1(small_pack, KEY, line.text)
    build(sharing, "hibari", only=KEY)
    assert_shared(sharing)


def test_a_line_that_becomes_another_one_takes_its_file(built_pack: Pack) -> None:
    line = next(line for line in pack_lines(built_pack) if (line.key, line.name) == (KEY, "s2"))
    before = (audio_root(built_pack) / AudioStore(audio_root(built_pack)).entry(KEY, "s2").file).read_bytes()
    sharing = with_turn1(built_pack, KEY, line.text)
    build(sharing, "hibari")
    assert_shared(sharing)
    assert (audio_root(sharing) / AudioStore(audio_root(sharing)).entry(KEY, "s2").file).read_bytes() == before


def assert_shared(pack: Pack) -> None:
    store = AudioStore(audio_root(pack))
    assert store.entry(KEY, "t1") == store.entry(KEY, "s2")
    assert np.array_equal(store.read(KEY, "t1"), store.read(KEY, "s2"))
    assert build(pack, "hibari", only=KEY).made == 0


def test_a_deleted_file_is_made_again(built_pack: Pack) -> None:
    before = decoded(built_pack)
    (audio_root(built_pack) / AudioStore(audio_root(built_pack)).entry(KEY, "s1").file).unlink()
    assert build(built_pack, "hibari").made == 1
    assert decoded(built_pack) == before


def test_another_version_of_the_engine_changes_nothing_unless_asked(built_pack: Pack) -> None:
    root = audio_root(built_pack)
    store = AudioStore(root)
    for name in store.names(OTHER):  # as if an older release had made them
        entry = store.entry(OTHER, name)
        file = Request("hibari", "0.1", entry.voice, entry.seed, entry.text).file
        (root / entry.file).rename(root / file)
        store.put(OTHER, name, dataclasses.replace(entry, version="0.1", file=file))
    store.save()
    texts = [line.text for line in lines(built_pack, built_pack.recordings[OTHER])]
    marked = [text for text in texts if any(w in text.lower() for w in ("losartan", "rivaroxaban", "atorvastatin"))]
    assert build(built_pack, "hibari", only=OTHER).made == len(marked)  # these are spoken with marks: another request
    assert build(built_pack, "hibari", only=OTHER, again=True).made == len(texts) - len(marked)


def test_a_segment_far_off_its_target_is_reported(small_pack: Pack) -> None:
    changed = with_turn1(small_pack, KEY, "Short.")
    found = build(changed, "hibari", only=KEY).off_target
    assert [(off.line.name, off.line.seconds) for off in found] == [("t1", 12.0)]
    assert found[0].seconds < 1


def test_only_a_loud_take_is_turned_down() -> None:
    loud, usual = (np.array([0.0, peak, -peak / 2], np.float32) for peak in (1.2, 0.6))
    words = (WordTime("a", 0, 3),)
    turned = with_headroom(Utterance(loud, words))
    assert turned.audio == pytest.approx(loud * 0.75)
    assert turned.words == words
    assert np.abs(turned.audio).max() == pytest.approx(PEAK)
    assert with_headroom(Utterance(usual, words)).audio is usual


def test_a_rendered_segment_is_trimmed_and_does_not_clip(hibari: Engine, tmp_path: Path) -> None:
    text = "I think my left wrist is broken, you know? It happened, um, around six-forty at the house, and rivaroxaban."
    raw = hibari.synthesize(text, "m3", 0).audio
    assert np.abs(raw).max() > 1.0  # what makes this text a test
    entry = render(tmp_path, Request("hibari", hibari.version, "m3", 0, text), text)
    store = AudioStore(tmp_path)
    store.put("K", "t1", entry)
    assert entry.samples < raw.size - 0.3 * RATE
    assert np.abs(store.audio("K", "t1")).max() < 0.999


def test_a_voice_without_a_name_in_the_engine_is_one_line(small_pack: Pack) -> None:
    voices = small_pack.root / "voices.yaml"
    voices.write_text("voices:\n  - {id: solo, sex: male, accent: British, age: older, engines: {kokoro: bm_lewis}}\n")
    with pytest.raises(PackError, match=r"voices\.yaml: solo: engines: has no 'hibari' voice; known: kokoro"):
        build(small_pack, "hibari")


def test_no_processes_are_refused(small_pack: Pack) -> None:
    with pytest.raises(OptionError, match="--jobs: 0 is not a number of processes"):
        build(small_pack, "hibari", jobs=0)
