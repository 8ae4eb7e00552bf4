"""Every gate refuses what it is there for, and its line names the entry and the mend."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.errors import PackError
from dsbeval.ifeval.cli import pack as pack_command
from dsbeval.ifeval.conversation_gates import RECORDING_GATES, Finding, check_recording, structure
from dsbeval.ifeval.gates import PACK_GATES, check, contradictions, counts, duplicates, durations, spelling
from dsbeval.ifeval.pack import Pack, Recording, load_pack
from dsbeval.ifeval.schema import Segment, register_for
from dsbeval.speech.store import AudioStore, StoredSegment
from tests.ifeval.packs import copy_pack, edit

# gate, file, text in it, what it becomes, entry, field, end of the message: what it is and how to mend it
BROKEN = [
    (
        "user_words", "R1", "Derek drove me over.", "Derek told the Nurse.", "IFD-R1-C1-i5", "turn1",
        "says 'nurse'; the user names neither the agent's job nor turn-taking, reword it",
    ),
    ("user_words", "R3", "first, then the address.", "hold\n      on.", "IFD-R3-C2-i2", "turn1", "says 'hold on'"),
    ("user_words", "R4", "nobody bugs me,", "I speak to nobody,", "IFD-R4-C4-i4", "turn1", "says 'speak'"),
    (
        "isolation", "R1", '"know what I mean?"', '"you know, it comes and it goes?"', "IFD-R1-C4-i5", "turn2[2]",
        "the check has 7 words, more than 6; keep the phrase alone in its segment",
    ),
    (
        "isolation", "R1", '"know what I mean?"', '"know what I mean,"', "IFD-R1-C4-i5", "turn2[2]",
        "the check is not a question; end it with a question mark",
    ),
    (
        "isolation", "R1", "and then lets go,", "and then, see? It goes,", "IFD-R1-C4-i5", "turn2[1]",
        "asks a question beside the check phrase; move it there",
    ),
    (
        "isolation", "R1", "and then lets go,", "and lets go, know what I mean,", "IFD-R1-C4-i5", "turn2[2]",
        "the check is said elsewhere too; say it once, in its own segment",
    ),
    (
        "isolation", "R1", "my right arm and leg went numb partway here,", "my arm went numb. I came partway,",
        "IFD-R1-R1_A_red_flag_casual-i2", "turn2[2]",
        "the trigger holds more than one sentence; keep the phrase alone in its segment",
    ),
    (
        "turn1", "R1", "My husband Derek drove me over.", "My husband Derek drove me over,", "IFD-R1-C1-i5", "turn1",
        "does not end a sentence; end it with a full stop or a question mark",
    ),
    (
        "turn1", "R1", "I think my left wrist", "And then my left wrist", "IFD-R1-C1-i5", "turn1",
        "begins with 'And', which refers to nothing yet; begin with the person or thing itself",
    ),
    (
        "register", "R1", "register: {age: 35-44}", "register: {region: South}", "IFD-R1-C1-i5", "register",
        "is {region: South}; the key's hash chooses {age: 35-44}, write that",
    ),
    (
        "readback", "R6", 'target: "small hot mocha', 'target: "small hot mocha hot', "IFD-R6-R6_B_mid_order_change-i1",
        "target", "has 'hot' 1 time(s) more than turn 2 says it; use only words that are spoken",
    ),
    (
        "readback", "R3", '"Three one seven two', '"Um, three one seven two', "IFD-R3-C2-i1", "turn2",
        "has 'um', which nobody reads back; leave it out",
    ),
    (
        "phone_numbers", "R3", 'zero one three seven."', 'oh two three seven."', "IFD-R3-C2-i1", "turn2[5]",
        "says the number 5550237; say a fictional one, five five five, zero one and two more digits",
    ),
    (
        "phone_numbers", "R3", 'zero one three seven."', 'nineteen forty."',
        "IFD-R3-C2-i1", "turn2[5]", "says the number 555; say a fictional one",
    ),
    (
        "tts_text", "R1", "around six tonight", "around 6 tonight", "IFD-R1-C1-i5", "turn1",
        "has '6'; use ASCII letters and , . ? ! ' - only, and write numbers in words",
    ),
    ("tts_text", "R1", "I think my", "I think\N{EM DASH}my", "IFD-R1-C1-i5", "turn1", r"has '\u2014'; use ASCII"),
    ("tts_text", "R1", "is broken. It", "is broken.. It", "IFD-R1-C1-i5", "turn1", "has a space or a stop too many"),
    ("tts_text", "R1", "My husband Derek", "Dr. Derek", "IFD-R1-C1-i5", "turn1", "has 'Dr'; write it in full"),
    (
        "tts_text", "R1", 'any second."', 'any second"', "IFD-R1-C1-i5", "turn2[3]",
        "ends the turn without a stop; end the sentence",
    ),
    (
        "tts_text", "R1", 'that isn\'t, um,"', 'that isn\'t so."', "IFD-R1-C1-i5", "turn2[1]",
        "ends with a stop although the voice goes on or breaks off; end it with a comma or nothing",
    ),
    (
        "tts_text", "R3", 'and when I"', 'and when I looked."', "IFD-R3-R3_B_caller_trails_off-i1", "turn2[1]",
        "ends with a stop although the voice goes on or breaks off",
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: f"{row[0]}-{row[3][:24]}")
def test_broken_conversation_is_refused(row: tuple[str, ...], tmp_path: Path) -> None:
    gate, role, old, new, entry, field, message = row
    root = copy_pack(tmp_path)
    edit(root, f"conversations/{role}.yaml", old, new)
    pack = load_pack(root)
    (finding,) = [f for recording in pack.recordings.values() for f in check_recording(pack, recording)]
    assert finding.gate == gate
    assert finding.blocking
    assert str(finding).startswith(f"conversations/{role}.yaml: {entry}: {field}: {message}")


def altered(key: str, **changes: Any) -> tuple[Pack, Recording]:
    """Return our pack and one of its conversations with other values, past the loader."""
    pack = load_pack()
    recording = pack.recordings[key]
    return pack, dataclasses.replace(recording, script=recording.script.model_copy(update=changes))


def test_every_gate_on_a_conversation_has_a_case_above_or_below() -> None:
    assert {row[0] for row in BROKEN} | {"structure"} == {gate.__name__ for gate in RECORDING_GATES}


@pytest.mark.parametrize(
    ("key", "changes", "line"),
    [
        (
            "IFD-R1-C1-i5",
            {"turn1": "I hurt my wrist."},
            "turn1: has 4 words; say who, where and why in 10 words or more",
        ),
        (
            "IFD-R1-C1-i5",
            {"turn1": "The AI sent me to this desk at six tonight, I think."},
            "turn1: says 'AI'; the user",
        ),
        ("IFD-R6-R6_B_mid_order_change-i1", {"target": "?"}, "target: has no words; give the words that must be read"),
    ],
)
def test_broken_value_is_refused(key: str, changes: dict[str, str], line: str) -> None:
    found = [str(finding) for finding in check_recording(*altered(key, **changes))]
    assert any(f"{key}: {line}" in each for each in found)


def test_structure_is_refused_past_the_loader_too() -> None:
    lead, check_phrase, silence, _ = load_pack().recordings["IFD-R1-C4-i5"].script.turn2
    ends, rebuilt = map(str, structure(*altered("IFD-R1-C4-i5", turn2=[lead, check_phrase, silence])))
    entry = "conversations/R1.yaml: IFD-R1-C4-i5"
    assert ends == f"{entry}: turn2[3]: is a silence without speech on both sides; add it"
    assert rebuilt == f"{entry}: turn2: is not built as C4 is; make it: lead, check, silence 1.5 s, resume"
    twice = [lead, check_phrase, silence, silence, lead]
    assert len([f for f in structure(*altered("IFD-R1-C4-i5", turn2=twice)) if f.field != "turn2"]) == 2


def test_late_variant_is_held_to_its_own_structure() -> None:
    key = "IFD-R2-R2_B_are_you_there-i1-L4b"
    base = load_pack().recordings["IFD-R2-R2_B_are_you_there-i1"].script.turn2
    (finding,) = structure(*altered(key, turn2=base))
    assert "make it: lead, check, silence 2.0 s, trigger, continuation" in str(finding)


def test_conversation_outside_the_pack_can_be_checked() -> None:
    pack, recording = altered("IFD-R1-C1-i5", instance=6, register_=register_for("IFD-R1-C1-i6"))
    new = dataclasses.replace(recording, audio_key="IFD-R1-C1-i6")
    assert check_recording(pack, new) == []


def with_speech(text: str) -> list[Finding]:
    turn2 = [Segment(speech=text, part="barge")]
    return [f for f in check_recording(*altered("IFD-R3-C3-i1", turn2=turn2)) if f.gate == "phone_numbers"]


WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9))
def test_a_number_is_fictional_or_too_short_to_be_a_telephone_number(digits: list[int]) -> None:
    said = ", ".join(WORDS[digit] for digit in digits)
    number = "".join(map(str, digits))
    real = (len(number) >= 7 or number.startswith("555")) and number[-7:-2] != "55501"
    assert bool(with_speech(f"Call me at {said}, please.")) == real


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["", "three one two, "]), st.sampled_from(["zero", "oh"]))
def test_fictional_numbers_pass_with_and_without_an_area_code(a: int, b: int, area: str, zero: str) -> None:
    assert with_speech(f"Call {area}five five five, {zero} one {WORDS[a]} {WORDS[b]}.") == []


def broken(tmp_path: Path, file: str, old: str, new: str) -> Pack:
    root = copy_pack(tmp_path)
    edit(root, file, old, new)
    return load_pack(root)


def test_near_duplicate_is_refused(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    source = load_pack().recordings["IFD-R1-C3-i1"].script.turn1
    other = "I got a bad cut on my shin skating, like, two hours ago, and I'm pretty sure it needs stitches. My last"
    edit(
        root,
        "conversations/R1.yaml",
        f"{other}\n      tetanus shot was in eighth grade.",
        source.replace("Tuesday", "Friday"),
    )
    (finding,) = duplicates(load_pack(root))
    assert str(finding).startswith("conversations/R1.yaml: IFD-R1-C3-i2: turn1: is 0.")
    assert "like IFD-R1-C3-i1 (limit 0.5); write another situation" in str(finding)


def test_name_used_twice_in_a_cell_is_refused(tmp_path: Path) -> None:
    (finding,) = duplicates(broken(tmp_path, "conversations/R3.yaml", "Brent", "Mateo"))
    assert "'Mateo' is also in IFD-M-C1-i2, of the same cell R3/C1; take another name" in str(finding)
    assert finding.entry == "IFD-R3-C1-i5"


def test_variants_that_are_alike_are_refused(tmp_path: Path) -> None:
    first = load_pack().contradictions["R1", "C1"].variants[0]
    second = load_pack().contradictions["R1", "C1"].variants[1]
    pack = broken(tmp_path, "contradictions.yaml", second, first.replace("however", "no matter how"))
    (finding,) = contradictions(pack)
    assert str(finding).startswith("contradictions.yaml: R1/C1: variants[2]: is ")
    assert "like variants[1]; word one of them anew" in str(finding)


def test_other_base_action_breaks_the_counts(tmp_path: Path) -> None:
    found = list(map(str, counts(broken(tmp_path, "cells.yaml", "R4: {C1: LISTEN", "R4: {C1: YIELD"))))
    assert [line.partition(";")[0] for line in found] == [
        "cells.yaml: LISTEN: cases: 252, published are 273",
        "cells.yaml: YIELD: cases: 147, published are 126",
    ]
    assert all("mend the base actions" in line for line in found)


def test_matched_conversation_that_is_no_longer_shared_breaks_the_counts(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    shared = (root / "conversations/shared.yaml").read_text(encoding="utf-8")
    (root / "conversations/more.yaml").write_text(shared.replace("roles: [R1, R2, R3]", "role: R1"), encoding="utf-8")
    (finding,) = counts(load_pack(root))
    assert str(finding).startswith("conversations: all files: recordings: 237, published are 229; mend")


def test_partial_pack_is_a_note(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    (root / "conversations/R8.yaml").unlink()
    edit(root, "conversations/R1.yaml", "  - probe: C2\n    instance: 5", "  - probe: C2\n    instance: 6")
    (finding,) = counts(load_pack(root))
    assert not finding.blocking
    assert "partial pack, the published counts do not apply: 48 cells, 7 of them" in str(finding)
    assert "first R1/C2" in str(finding)


def test_misspelt_word_is_refused_with_what_was_meant(tmp_path: Path) -> None:
    (finding,) = spelling(broken(tmp_path, "conversations/R1.yaml", "the basement steps", "the basment steps"))
    assert str(finding) == (
        "conversations/R1.yaml: IFD-R1-C1-i5: turn2[1]: 'basment' is not a known word; did you mean 'basement'? "
        "correct it, or add it to lexicon.txt"
    )


def test_name_is_known_by_the_lexicon_alone(tmp_path: Path) -> None:
    found = list(spelling(broken(tmp_path, "lexicon.txt", "Mateo\n", "")))
    assert {(f.entry, f.field) for f in found} == {("IFD-M-C1-i2", "turn1")}
    assert all("Mateo" in str(f) and "add it to lexicon.txt" in str(f) for f in found)


def test_lexicon_line_of_two_words_is_one_line(tmp_path: Path) -> None:
    pack = broken(tmp_path, "lexicon.txt", "Mateo\n", "Mateo Priya\n")
    with pytest.raises(PackError, match=r"lexicon\.txt: line \d+: 'Mateo Priya' is not one word of letters"):
        list(spelling(pack))


def test_missing_word_list_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spellchecker", None)  # as if it were not installed
    (finding,) = spelling(load_pack())
    assert not finding.blocking
    assert str(finding).startswith("pyspellchecker: is not installed, so no spelling was checked; install it")


# Durations, on a manifest that claims audio of given lengths. The gate reads no audio.


def spoken_pack(tmp_path: Path) -> tuple[Pack, AudioStore]:
    """Return a pack every segment of which is stored with its target duration."""
    pack = load_pack(copy_pack(tmp_path))
    store = AudioStore(pack.root / "audio")
    for key, recording in pack.recordings.items():
        store.put(key, "t1", stored(recording.script.turn1, pack.turn1_seconds * RATE))
        slots = pack.probes[recording.script.probe].at(recording.script.level or "").turn2
        for number, (segment, slot) in enumerate(zip(recording.script.turn2, slots, strict=True), start=1):
            if segment.speech is not None and slot.seconds is not None:
                store.put(key, f"s{number}", stored(segment.speech, slot.seconds * RATE))
    return pack, store


def stored(text: str, samples: float) -> StoredSegment:
    return StoredSegment("x.opus", text, "test", "1", "v", 0, round(samples), "", "", ())


def test_segments_at_their_targets_pass(tmp_path: Path) -> None:
    pack, store = spoken_pack(tmp_path)
    store.save()
    assert list(durations(pack)) == []


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (9 * RATE, None),
        (9 * RATE + 1, "lasts 9.00 s, 3.00 to 9.00 s are allowed; shorten the text"),
        (3 * RATE, None),
        (3 * RATE - 1, "lasts 3.00 s, 3.00 to 9.00 s are allowed; lengthen the text"),
    ],
)
def test_duration_limit_is_half_the_target_to_the_sample(tmp_path: Path, samples: int, message: str | None) -> None:
    pack, store = spoken_pack(tmp_path)
    text = pack.recordings["IFD-R1-C1-i5"].script.turn2[0].speech or ""
    store.put("IFD-R1-C1-i5", "s1", stored(text, samples))
    store.save()
    wanted = [] if message is None else [f"conversations/R1.yaml: IFD-R1-C1-i5: turn2[1]: {message}"]
    assert list(map(str, durations(pack))) == wanted


def test_audio_of_another_text_and_missing_audio_are_refused(tmp_path: Path) -> None:
    pack, store = spoken_pack(tmp_path)
    store.put("IFD-R1-C1-i5", "s1", stored("Something else.", 6 * RATE))
    wanted = {key: store.names(key) for key in pack.recordings} | {"IFD-R1-C4-i5": ("t1", "s1", "s2")}
    store.keep(wanted)
    store.save()
    assert sorted(map(str, durations(pack))) == [
        "conversations/R1.yaml: IFD-R1-C1-i5: turn2[1]: is not the text of its audio; run: dsbeval speech build",
        "conversations/R1.yaml: IFD-R1-C4-i5: turn2[4]: has no audio; run: dsbeval speech build",
    ]


def test_conversations_without_any_audio_are_one_note(tmp_path: Path) -> None:
    pack = load_pack(copy_pack(tmp_path))
    (finding,) = durations(pack)
    assert not finding.blocking
    assert "no audio built for 229 of 229 conversations, so their durations were not checked" in str(finding)
    assert str(finding).endswith("run: dsbeval speech build")


# The command


def test_our_pack_passes_every_gate_that_needs_no_audio(tmp_path: Path) -> None:
    assert [str(f) for f in check(load_pack(copy_pack(tmp_path))) if f.blocking] == []


def test_check_prints_the_tables_and_passes(tmp_path: Path) -> None:
    result = CliRunner().invoke(pack_command, ["check", "--pack", str(copy_pack(tmp_path))])
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert lines[0].split() == ["role", "persona", "words", "Jaccard", "shared", "content", "words"]
    assert lines[1].split()[:3] == ["R1", "100", "0.025"]
    assert "LISTEN          13  65   65   65   65   0    273" in lines
    assert "all             48  240  240  240  240  30   1038" in lines
    assert "closest pairs (limit 0.5)" in lines
    assert lines[-1] == f"{len(RECORDING_GATES) + len(PACK_GATES)} gates: 0 findings, 1 notes"


def test_check_groups_findings_by_gate_and_fails(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    edit(root, "conversations/R1.yaml", "Derek drove me over.", "Derek told the nurse.")
    edit(root, "conversations/R1.yaml", "around six tonight", "around 6 tonight")
    result = CliRunner().invoke(pack_command, ["check", "--pack", str(root)])
    assert result.exit_code == 1
    assert "\nuser_words\n  FAIL  conversations/R1.yaml: IFD-R1-C1-i5: turn1: says 'nurse'" in result.output
    assert "\ntts_text\n  FAIL  conversations/R1.yaml: IFD-R1-C1-i5: turn1: has '6'" in result.output
    assert "\ndurations\n  note  " in result.output


def test_pack_that_does_not_load_is_one_line_and_status_2(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    edit(root, "conversations/R1.yaml", "    fact: ", "    facts: ")
    result = CliRunner().invoke(pack_command, ["check", "--pack", str(root)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "R1.yaml: C1/5: fact: is missing" in result.stderr
