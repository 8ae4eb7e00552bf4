"""Recordings in the layout of the official release, scored here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsbeval.audio import RATE
from dsbeval.errors import DsbevalError
from dsbeval.ifeval.score import score_recording
from dsbeval.recording import Recording, read_recording, write_recording
from dsbeval.replay.grid import Grid
from tests.replay.grids import BARGE_IN, LISTEN, READBACK, case_of, other_voice, recorded, release, scripts


def replayed(folder: Path, case_id: str) -> Recording:
    return Grid(folder).case(*case_of(case_id))


@pytest.mark.parametrize(("case_id", "agent"), [(LISTEN, "contrarian"), (READBACK, "oracle"), (BARGE_IN, "contrarian")])
def test_a_recording_with_the_packs_user_has_the_row_that_it_has_as_our_own(
    tmp_path: Path, case_id: str, agent: str
) -> None:
    own = recorded(case_id, agent)
    release(tmp_path, case_id, own, seed=own.meta["seed"])
    found = replayed(tmp_path, case_id)
    assert score_recording(found)[1] == score_recording(own)[1]
    assert found.meta["user"] == own.meta["user"]
    assert (found.meta["user_audio"], found.meta["prompt_assumed"]) == ("pack", True)
    # What it was made into lies on disk like any other recording.
    write_recording(tmp_path / "out", case_id, found)
    assert score_recording(read_recording(tmp_path / "out", case_id))[1] == score_recording(own)[1]


def test_where_turn_2_begins_is_found_to_the_sample_though_its_time_is_rounded(tmp_path: Path) -> None:
    own = recorded(LISTEN)
    release(tmp_path, LISTEN, own, turn2_onset_s=round(own.meta["turn2_onset_s"], 1) + 0.04)
    assert replayed(tmp_path, LISTEN).meta["window"] == own.meta["window"]


@pytest.mark.parametrize("rate", [8_000])
def test_another_rate_is_brought_to_the_session_clock_and_said(tmp_path: Path, rate: int) -> None:
    own = recorded(LISTEN)
    release(tmp_path, LISTEN, own, rate=rate)
    found = replayed(tmp_path, LISTEN)
    assert found.meta["resampled_from"] == rate
    assert abs(found.meta["window"]["start"] - own.meta["window"]["start"]) <= RATE // 1000
    assert score_recording(found)[0].passed


def test_text_with_times_keeps_them_and_text_without_counts_from_the_window_on(tmp_path: Path) -> None:
    own = recorded(READBACK)
    words = [{"word": f"w{k}", "start": k / 2} for k in range(4)]
    release(tmp_path, READBACK, own, words=words, transcript=None)
    found = replayed(tmp_path, READBACK)
    assert [(token.sample, token.text) for token in found.text] == [(k * RATE // 2, f" w{k}") for k in range(4)]
    assert "text_times" not in found.meta
    release(tmp_path, READBACK, own)
    found = replayed(tmp_path, READBACK)
    assert [token.sample for token in found.text] == [found.meta["window"]["start"]]
    assert found.meta["text_times"] is False


def test_a_recording_that_says_nothing_of_words_is_not_one_in_which_nothing_was_said(tmp_path: Path) -> None:
    release(tmp_path, LISTEN, recorded(LISTEN), transcript=None)
    assert replayed(tmp_path, LISTEN).meta["capabilities"] == {"text": False}


def test_what_is_not_understood_is_kept(tmp_path: Path) -> None:
    release(tmp_path, LISTEN, recorded(LISTEN), engine="x", nested={"a": [1]})
    assert replayed(tmp_path, LISTEN).meta["release"] == {"engine": "x", "nested": {"a": [1]}}


# A release's own user


@pytest.mark.parametrize("case_id", [LISTEN, READBACK])
@pytest.mark.parametrize("above", [False, True])
def test_another_user_is_placed_by_the_scripts_of_the_release(tmp_path: Path, case_id: str, above: bool) -> None:
    own = recorded(case_id)
    folder = tmp_path / "grid"
    folder.mkdir()
    scripts(tmp_path if above else folder, own, readback_target=own.meta["readback_target"])
    release(folder, case_id, own, user=other_voice(own))
    found = replayed(folder, case_id)
    assert found.meta["user_audio"] == "scripts.jsonl"
    assert found.meta["window"] == own.meta["window"]
    assert found.meta["readback_target"] == own.meta["readback_target"]
    assert score_recording(found)[0].passed
    spoken = [s["text"] for s in found.meta["user"]]
    assert spoken == [s["text"] for s in own.meta["user"]]


def test_another_user_without_scripts_is_named(tmp_path: Path) -> None:
    own = recorded(LISTEN)
    release(tmp_path, LISTEN, own, user=other_voice(own))
    with pytest.raises(
        DsbevalError, match=r"the user's audio is not that of this pack .*--pack.*scripts\.jsonl beside"
    ):
        replayed(tmp_path, LISTEN)


def test_a_release_of_other_wording_is_not_taken_for_the_pack_by_its_silences(tmp_path: Path) -> None:
    """One other word is another user: here only the first segment of turn 2 differs."""
    own = recorded(LISTEN)
    first = next(s for s in own.meta["user"] if s["turn"] == 2)
    user = own.user.copy()
    user[first["start"] : first["end"]] = user[first["start"] : first["end"]][::-1]
    release(tmp_path, LISTEN, own, user=user)
    with pytest.raises(DsbevalError, match="not that of this pack"):
        replayed(tmp_path, LISTEN)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e["segments"].pop(), r"has 2 segments in turn 2; the probe has 3"),
        (
            lambda e: e["segments"][1].update(duration_s=5.0),
            r"segment 2 is silence of 5 s; the probe has a silence of 6 s",
        ),
        (lambda e: e["segments"][0].update(type="silence"), r"segment 1 is silence .* the probe has speech \(lead\)"),
        (
            lambda e: e["segments"][0].update(duration_s=9.0),
            r"does not have the speech and the silences of scripts\.jsonl",
        ),
        (lambda e: e["segments"][0].pop("duration_s"), r"'duration_s' is missing"),
    ],
)
def test_scripts_that_do_not_fit_are_named_and_nothing_is_guessed(tmp_path: Path, change: object, message: str) -> None:
    own = recorded(LISTEN)
    entry = scripts(tmp_path, own)
    change(entry)  # type: ignore[operator]
    (tmp_path / "scripts.jsonl").write_text(json.dumps(entry) + "\n")
    release(tmp_path, LISTEN, own, user=other_voice(own))
    with pytest.raises(DsbevalError, match=message):
        replayed(tmp_path, LISTEN)


def test_a_read_back_without_its_target_is_named(tmp_path: Path) -> None:
    own = recorded(READBACK)
    scripts(tmp_path, own)
    release(tmp_path, READBACK, own, user=other_voice(own))
    with pytest.raises(DsbevalError, match="has no readback_target"):
        replayed(tmp_path, READBACK)
    listed = {"test_case_id": READBACK, "verifier": {"params": {"readback_target": "two coffees"}}}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(listed) + "\n")
    assert replayed(tmp_path, READBACK).meta["readback_target"] == "two coffees"


def test_a_manifest_that_expects_another_action_is_named(tmp_path: Path) -> None:
    release(tmp_path, LISTEN, recorded(LISTEN))
    (tmp_path / "manifest.jsonl").write_text(
        json.dumps({"test_case_id": LISTEN, "expected_action": "TAKE_TURN"}) + "\n"
    )
    with pytest.raises(DsbevalError, match=r"manifest\.jsonl expects TAKE_TURN, this pack LISTEN"):
        replayed(tmp_path, LISTEN)


@pytest.mark.parametrize(
    ("rec", "message"),
    [
        ({"turn2_onset_s": None}, r"turn2_onset_s: is None; seconds"),
        ({"turn2_onset_s": "soon"}, r"turn2_onset_s: is 'soon'; seconds"),
        ({"turn2_onset_s": 3.0}, r"the user's audio is not that of this pack"),
        ({"turn2_onset_s": 900.0}, r"the user's audio is not that of this pack"),
    ],
)
def test_a_rec_json_that_is_wrong_is_one_line(tmp_path: Path, rec: dict[str, Any], message: str) -> None:
    release(tmp_path, LISTEN, recorded(LISTEN), **rec)
    with pytest.raises(DsbevalError, match=message):
        replayed(tmp_path, LISTEN)


def test_one_channel_is_refused_by_name(tmp_path: Path) -> None:
    own = recorded(LISTEN)
    release(tmp_path, LISTEN, own)
    from dsbeval.audio import write_audio

    write_audio(tmp_path / f"{LISTEN}.stereo.wav", own.user)
    with pytest.raises(DsbevalError, match=r"stereo\.wav: 1 channel\(s\); 2 needed"):
        replayed(tmp_path, LISTEN)


# Our own layout


def test_a_recording_of_ours_with_another_user_is_named(tmp_path: Path) -> None:
    own = recorded(LISTEN)
    write_recording(tmp_path, LISTEN, replace(own, user=other_voice(own)))
    with pytest.raises(DsbevalError, match=r"not that of this pack \(turn 1, s1 is like it by 0\.\d\d of 1\)"):
        replayed(tmp_path, LISTEN)
    write_recording(tmp_path, LISTEN, replace(own, user=own.model, model=own.user))
    with pytest.raises(DsbevalError, match="the user is on channel 1"):
        replayed(tmp_path, LISTEN)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", "Something else.", r"turn 2, s1 says 'Something else\.', not '"),
        ("end", 0, "turn 2, s1 lies elsewhere"),
        ("turn", 3, r"turn 2, s1 says .*"),
    ],
)
def test_a_recording_of_ours_that_was_made_with_another_script_is_named(
    tmp_path: Path, field: str, value: object, message: str
) -> None:
    own = recorded(LISTEN)
    user = [dict(s) for s in own.meta["user"]]
    next(s for s in user if s["turn"] == 2)[field] = value
    write_recording(tmp_path, LISTEN, replace(own, meta={**own.meta, "user": user}))
    with pytest.raises(DsbevalError, match=f"not that of this pack .{message}"):
        replayed(tmp_path, LISTEN)


@pytest.mark.parametrize("kind", ["telephone", "noisy"])
def test_a_recording_under_an_acoustic_condition_has_the_packs_user(tmp_path: Path, kind: str) -> None:
    from dsbeval.ifeval.episode import record_case
    from dsbeval.loading import load_agent

    pack, case = case_of(LISTEN)
    own = record_case(load_agent("silent"), pack, case, acoustics=kind)  # type: ignore[arg-type]
    write_recording(tmp_path, LISTEN, own)
    assert score_recording(replayed(tmp_path, LISTEN))[1] == score_recording(own)[1]


def test_a_recording_of_ours_at_another_rate_keeps_its_times(tmp_path: Path) -> None:
    from dsbeval.audio import resample, to_pcm16, write_audio

    own = recorded(LISTEN)
    write_recording(tmp_path, LISTEN, own)
    stereo = np.stack([resample(channel, RATE, 16_000) for channel in (own.user, own.model)], axis=1)
    write_audio(tmp_path / f"{LISTEN}.stereo.wav", to_pcm16(stereo), 16_000)
    found = replayed(tmp_path, LISTEN)
    assert (found.length, found.meta["resampled_from"]) == (own.length, 16_000)
    assert found.meta["window"] == own.meta["window"]
    write_audio(tmp_path / f"{LISTEN}.stereo.wav", to_pcm16(stereo[: 16_000 * 3]), 16_000)
    with pytest.raises(DsbevalError, match=r"but rec\.json says"):
        replayed(tmp_path, LISTEN)
