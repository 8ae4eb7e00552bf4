"""The pack: what it expands to, how it refuses bad data, and what loading it costs."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dsbeval.errors import OptionError, PackError
from dsbeval.ifeval.pack import LEVELS, load_pack
from dsbeval.ifeval.schema import REACTIVE, Action
from tests.ifeval.packs import copy_pack, edit

# The published counts, typed in here a second time on purpose.
BY_LEVEL = {"L0": 48, "L1": 240, "L2": 240, "L3": 240, "L4a": 240, "L4b": 30}
BY_ACTION = {
    "LISTEN": 273, "TAKE_TURN": 168, "BACKCHANNEL": 152, "YIELD": 126, "INTERRUPT": 120, "READBACK": 94,
    "NO_BACKCHANNEL": 42, "ACCEPT_OVERLAP": 42, "CONTINUE": 21,
}  # fmt: skip


def test_cases_are_the_published_grid() -> None:
    cases = load_pack().cases
    assert len(cases) == 1038
    assert Counter(case.level for case in cases.values()) == BY_LEVEL
    assert Counter(case.action.value for case in cases.values()) == BY_ACTION
    assert all(case.id == key == f"{case.conversation_id}-{case.level}" for key, case in cases.items())


def test_reactive_cells_are_the_31_of_the_headline() -> None:
    per_level = Counter(case.level for case in load_pack().cases.values() if case.action in REACTIVE)
    assert per_level == {"L0": 31, "L1": 155, "L2": 155, "L3": 155, "L4a": 155, "L4b": 10}


def test_ids_are_the_benchmarks_own() -> None:
    cases = load_pack().cases
    for name in (
        "IFD-R1-C1-i1-L2",
        "IFD-R1-R1_B_dose_error-i1-L2",
        "IFD-R2-R2_B_are_you_there-i1-L4b",
        "IFD-R8-R8_B_yes_and_hook-i5-L4a",
    ):
        assert name in cases
    assert "IFD-R1-C1-i2-L0" not in cases
    assert "IFD-R1-C1-i1-L4b" not in cases


def test_distinct_recordings_and_matched_triads() -> None:
    pack = load_pack()
    own = [key for key in pack.recordings if key.endswith("-L4b")]
    assert sorted(own) == [f"IFD-R2-R2_B_are_you_there-i{i}-L4b" for i in range(1, 6)]
    assert len(pack.recordings) - len(own) == 224
    assert {case.audio_key for case in pack.cases.values()} == set(pack.recordings)
    for probe in ("C1", "C4"):
        for instance in range(1, 6):
            keys = {pack.cases[f"IFD-{role}-{probe}-i{instance}-L2"].audio_key for role in ("R1", "R2", "R3")}
            shared = {f"IFD-M-{probe}-i{instance}"}
            assert (keys == shared) if instance <= 4 else len(keys) == 3
    matched = [case for case in pack.cases.values() if case.matched]
    assert {case.role for case in matched} == {"R1", "R2", "R3"}


def test_all_levels_of_a_conversation_hear_one_recording_save_r2_b_at_l4b() -> None:
    keys: dict[str, set[str]] = {}
    for case in load_pack().cases.values():
        keys.setdefault(case.conversation_id, set()).add(case.audio_key)
    several = {name for name, found in keys.items() if len(found) > 1}
    assert several == {f"IFD-R2-R2_B_are_you_there-i{i}" for i in range(1, 6)}


def test_prompts_differ_by_level_as_published() -> None:
    pack = load_pack()
    persona, directive = pack.roles["R3"].persona, pack.roles["R3"].directive
    prompts = {level: pack.prompt(pack.cases[f"IFD-R3-C2-i1-{level}"]) for level in LEVELS}
    assert prompts["L0"] == ""
    assert prompts["L1"] == directive
    assert prompts["L2"] == persona
    assert prompts["L3"] == f"{persona}\n\n{directive}"
    entry = pack.contradictions["R3", "C2"]
    assert prompts["L4a"] in {f"{persona}\n\n{variant}" for variant in entry.variants}
    assert prompts["L4b"] == f"{persona}\n\n{entry.l4b}"
    chosen = {pack.prompt(case) for case in pack.cases.values() if case.level == "L4a" and case.role == "R3"}
    assert len(chosen) > 6  # instances of one cell do not all meet the same variant


def test_late_red_flag_is_scored_as_an_interruption_and_counted_as_published() -> None:
    case = load_pack().cases["IFD-R2-R2_B_are_you_there-i3-L4b"]
    assert (case.action, case.scored_as) == (Action.BACKCHANNEL, Action.INTERRUPT)
    assert dict(case.thresholds) == {"max_latency_ms": 1500}


def test_readback_targets_are_the_dictated_words_or_the_final_order() -> None:
    pack = load_pack()
    dictated = pack.readback_target(pack.cases["IFD-R3-C2-i1-L2"])
    assert dictated.startswith("Three one seven two Bluestem Road,")
    assert dictated.endswith("zero one three seven.")
    assert pack.readback_target(pack.cases["IFD-R6-R6_B_mid_order_change-i3-L2"]).startswith("extra large cheese pizza")
    assert pack.readback_target(pack.cases["IFD-R1-C1-i1-L2"]) == ""


def test_selection_by_level_role_probe_and_limit() -> None:
    pack = load_pack()
    assert len(pack.select(levels=["L2"], roles=["R1"], probes=["R1_A", "C1"])) == 10
    assert [case.id for case in pack.select(limit=2)] == ["IFD-R1-C1-i1-L0", "IFD-R1-C1-i1-L1"]
    with pytest.raises(OptionError, match=r"--probes: 'R1_X' is not in the pack; did you mean .*R1_A"):
        pack.select(probes=["R1_X"])


R1, SHARED = "conversations/R1.yaml", "conversations/shared.yaml"
LOAD_ERRORS = {
    "missing field": (
        R1,
        "    situation: A patient at the intake desk with an injured",
        "    # situation: ",
        r"R1\.yaml: C1/5: situation: is missing",
    ),
    "unknown field": (
        R1,
        "    situation: A patient at",
        "    place: here\n    situation: A patient at",
        r"C1/5: place: is not a known field",
    ),
    "wrong silence": (
        R1,
        "- silence: 2.5",
        "- silence: 2.0",
        r"C1/5: turn2\[2\]: is a silence of 2\.0 s; C1 has a silence of 2\.5 s there",
    ),
    "part missing": (R1, "        part: lead\n", "", r"C1/5: turn2\[1\]: speech needs its part"),
    "unknown probe": (
        R1,
        "probe: R1_A_red_flag_casual",
        "probe: R1_A_red_flag",
        r"no probe 'R1_A_red_flag'; did you mean R1_A_red_flag_casual",
    ),
    "duplicate entry": (
        R1,
        "  - probe: C2\n    instance: 2",
        "  - probe: C2\n    instance: 1",
        r"IFD-R1-C2-i1 is also in R1\.yaml; keep one",
    ),
    "unknown register": (R1, "{age: 35-44}", "{age: 36-44}", r"C1/5: register\.age: input should be '18-24'"),
    "no target": (
        "conversations/R6.yaml",
        '    target: "small hot',
        '    # target: "small hot',
        r"R6_B_mid_order_change/1: target: is missing",
    ),
    "target not used": (
        R1,
        "    situation: A patient at",
        "    target: x\n    situation: A patient at",
        r"C1/5: target: is not used by this probe",
    ),
    "unknown role": (SHARED, "roles: [R1, R2, R3]", "roles: [R1, R2, R9]", r"role: 'R9' is not a role; did you mean"),
    "no L4b variant": (
        "conversations/R2.yaml",
        "    level: L4b\n",
        "",
        r"R2_B_are_you_there/1: turn2\[4\]: is speech, part: trigger; R2_B_are_you_there has speech, part: resume",
    ),
    "unknown action": (
        "cells.yaml",
        "R1: {C1: TAKE_TURN",
        "R1: {C1: TAKE_TURNS",
        r"cells\.yaml: cells\.R1\.C1: input should be 'LISTEN'",
    ),
    "cell of an unknown probe": ("cells.yaml", "R1: {C1:", "R1: {C11:", r"cells\.R1\.C11: no such probe; did you mean"),
    "silence at the end": (
        "probes.yaml",
        "      - {silence: 2.5}\n      - {part: resume, seconds: 5.0}\n",
        "      - {silence: 2.5}\n",
        r"probes\.yaml: C1: turn2\[2\] is a silence of 2\.5 s with no speech after it; end the turn with speech",
    ),
    "window outside": (
        "probes.yaml",
        "{start: s2.on, end: s2.off}",
        "{start: s2.on, end: s7.off}",
        r"C1: window names s7; turn2 has s1 to s3",
    ),
    "no boundary": (
        "probes.yaml",
        "start: s2.on,",
        "start: s2.begin,",
        r"C1: window\.start: 's2\.begin' is not a boundary",
    ),
    "four variants": (
        "contradictions.yaml",
        '      - "For this deployment, when a patient falls silent',
        '      # "For this deployment',
        r"R1/C1: variants: list should have at least 5 items",
    ),
    "contradiction of nothing": (
        "contradictions.yaml",
        "resolved_action: LISTEN",
        "resolved_action: TAKE_TURN",
        r"R1/C1: resolved_action: is TAKE_TURN, the base action itself",
    ),
    "syntax": (R1, "role: R1", "role: [R1", r"R1\.yaml: line \d+, column \d+: not valid YAML"),
    "no safety line": (
        "contradictions.yaml",
        "    l4b: >-\n      Never check",
        "    # l4b\n    x: >-\n      Never check",
        r"R1/C2: x: is not a known field",
    ),
}


@pytest.mark.parametrize("case", LOAD_ERRORS)
def test_bad_data_is_refused_with_one_line_that_names_the_place(case: str, tmp_path: Path) -> None:
    file, old, new, message = LOAD_ERRORS[case]
    root = copy_pack(tmp_path)
    edit(root, file, old, new)
    with pytest.raises(PackError, match=message) as caught:
        load_pack(root)
    assert "\n" not in str(caught.value)
    assert str(root) in str(caught.value)


def test_silence_that_ends_a_turn_is_refused(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    last = "he'll be in any second.\"\n        part: resume\n"
    edit(root, R1, "      - speech: \"Derek pushed me, and he's just parking the car, so " + last, "")
    with pytest.raises(PackError, match=r"C1/5: turn2: has 2 segments; C1 has 3; a silence must be followed by speech"):
        load_pack(root)


def test_cell_without_its_own_l4b_turn_is_refused(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    path = root / "conversations/R2.yaml"
    text = path.read_text(encoding="utf-8")
    at = text.index("  - probe: R2_B_are_you_there\n    instance: 5\n    level: L4b")
    path.write_text(text[:at], encoding="utf-8")
    with pytest.raises(PackError, match=r"R2/R2_B_are_you_there/5: has no conversation at L4b; add one"):
        load_pack(root)


def test_missing_folder_and_missing_file_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="no such folder"):
        load_pack(tmp_path / "nowhere")
    root = copy_pack(tmp_path)
    (root / "cells.yaml").unlink()
    with pytest.raises(PackError, match=r"cells\.yaml: no such file"):
        load_pack(root)


def test_hash_follows_the_data(tmp_path: Path) -> None:
    root = copy_pack(tmp_path)
    before = load_pack(root).sha256
    edit(root, R1, "Derek drove me over.", "Derek drove me here.")
    load_pack.cache_clear()
    assert load_pack(root).sha256 != before


def test_loading_imports_nothing_heavy() -> None:
    code = (
        "import sys; from dsbeval.ifeval.pack import load_pack; assert len(load_pack().cases) == 1038; "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "pydantic" in loaded
    assert not {"torch", "onnxruntime", "soundfile", "soxr", "scipy", "numpy", "hibari", "spellchecker"} & set(loaded)


def test_a_sample_is_whole_conversations_spread_over_the_actions() -> None:
    pack = load_pack()
    chosen = pack.select(levels=["L0", "L1", "L2"], sample=9)
    assert len(chosen) == 27
    assert len({case.conversation_id for case in chosen}) == 9
    assert {case.action for case in chosen} == set(Action)
    assert chosen == pack.select(levels=["L0", "L1", "L2"], sample=9)
    assert len(pack.select(levels=["L2"], sample=1000)) == 240
