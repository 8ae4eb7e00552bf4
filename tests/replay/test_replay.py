"""``pytest cases/ --replay DIR`` as a user runs it."""

from __future__ import annotations

import itertools
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile as sf

from dsbeval.agent import NOTHING, Emission
from dsbeval.audio import RATE
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.protocol import run_matrix, run_meta
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.textpair import Talk, Turn
from dsbeval.dyadic.textrun import TalkRecording, read_talk, write_talk
from dsbeval.errors import DsbevalError, OptionError
from dsbeval.loading import load_agent
from dsbeval.recording import write_recording
from dsbeval.replay.grid import Grid
from dsbeval.results import RunFolder
from reports.replaying import MADE_ALREADY, read_model
from tests.inner import ROOT, Inner, run
from tests.judge.support import pas_reply
from tests.replay.grids import LISTEN, case_of, recorded, release
from tests.servers import OpenAIServer

pytest_plugins = ["pytester"]

CASES = ROOT / "cases"
KEY = "sk-of-a-judge"
Stereo = np.ndarray[tuple[int, int], np.dtype[np.float32]]
DYAD = "DYA-T3-1-01-ab-oA-r1"

AGENT = """
from adapters.controls import Echo
from dsbeval.agent import Agent, Session

OPENED = []

class Mine(Agent):
    @property
    def capabilities(self):
        return Echo().capabilities
    def open(self, prompt, seed):
        OPENED.append(seed)
        if len(OPENED) == 2:
            raise ConnectionError("no more memory")
        return Echo().open(prompt, seed)
"""


def played(pytester: pytest.Pytester, *args: str) -> Inner:
    """Return a run of both benchmarks in which the second case broke."""
    path = pytester.path / "mine.py"
    path.write_text(textwrap.dedent(AGENT))
    return run(
        pytester, f"--model={path}:Mine", "--judge=offline", "--tasks=T3-1", "--window=30", "--repeats=1",
        "-k", f"{DYAD} or IFD-R5-C1-i1 or IFD-R5-C1-i2-L1", *args,
        run_dir=pytester.path / "played", target=CASES,
    )  # fmt: skip


def replay(pytester: pytest.Pytester, folder: Path, *args: str, name: str = "again") -> Inner:
    return run(pytester, "--replay", str(folder), *args, run_dir=pytester.path / name, target=CASES)


def test_a_replay_of_a_run_gives_exactly_its_rows_in_both_benchmarks_at_any_n(pytester: pytest.Pytester) -> None:
    first = played(pytester)
    outcomes = {(row["item"], row["outcome"]) for row in first.rows()}
    assert {("floor", "error"), ("persona", "error")} < outcomes
    assert {item for item, _ in outcomes} == {"floor", "persona", "dyad"}
    again = replay(pytester, first.run_dir, "--judge=offline", "-n2")
    assert again.rows() == first.rows()
    assert RunFolder.open(again.run_dir).cases() == RunFolder.open(first.run_dir).cases()
    assert f"recordings of agent {pytester.path / 'mine.py'}:Mine in {first.run_dir}" in again.out
    once, twice = first.summary, again.summary
    said = twice.pop("fingerprint"), once.pop("fingerprint")
    assert once == twice
    assert said[0]["agent"] == "recorded"
    assert said[0]["replay"]["sha256"] == Grid(first.run_dir).sha256
    assert said[0]["replay"]["of"]["agent"] == said[1]["agent"]
    differing = {key for key in said[0] if said[0][key] != said[1].get(key)}
    assert differing == {"agent", "replay", "selection"}


def test_what_a_folder_has_not_is_skipped_what_is_damaged_is_an_error_and_the_rest_is_scored(
    pytester: pytest.Pytester,
) -> None:
    folder = pytester.path / "grid"
    folder.mkdir()
    ids = [LISTEN.replace("i1", f"i{k}") for k in (1, 2, 3, 4, 5)]
    release(folder, ids[0], recorded(ids[0]))
    write_recording(folder, ids[1], recorded(ids[1]))
    (folder / f"{ids[2]}.rec.json").write_text('{"turn2_onset_s": ')
    (folder / f"{ids[3]}.rec.json").write_text('{"turn2_onset_s": 4.0}')
    (folder / "IFD-R5-XX-i1-L2.rec.json").write_text("{}")
    inner = replay(pytester, folder, "--levels=L2", "--probes=R5_B", "--judge=offline")
    rows = {(row["id"], row["item"]): row for row in inner.rows()}
    outcomes = [rows[name, "floor"]["outcome"] for name in ids]
    assert outcomes == ["passed", "passed", "error", "error", "skipped"]
    assert [rows[name, "persona"]["outcome"] for name in ids[2:]] == ["error", "error", "skipped"]
    assert "not valid JSON" in rows[ids[2], "floor"]["message"]
    assert f"{ids[3]}.stereo.wav: no such file" in rows[ids[3], "floor"]["message"]
    assert rows[ids[4], "floor"]["message"] == "grid has no recording of it"
    assert inner.counts == {"cases": 5, "passed": 2, "failed": 0, "error": 2, "skipped": 1, "missing": 0}
    assert "1 are no cases of the pack (IFD-R5-XX-i1-L2 ...)" in inner.out
    assert inner.summary["fingerprint"]["replay"]["of"] is None
    assert inner.summary["fingerprint"]["seed"] is None
    assert "Traceback" not in inner.out


# What is asked for


class Config:
    """The options of a command line, as far as :func:`read_model` asks for them."""

    def __init__(self, folder: Path, **given: object) -> None:
        self.invocation_params = SimpleNamespace(dir=folder)
        usual = {**MADE_ALREADY, "--model": "cascade", "--replay": "grid"}
        self._options = {**usual, **{f"--{key.replace('_', '-')}": value for key, value in given.items()}}

    def getoption(self, name: str) -> object:
        return self._options[name]


@pytest.mark.parametrize(
    ("given", "args", "message"),
    [
        ({"model": "oracle"}, {}, "the recordings are the agent; leave --model=oracle out"),
        ({}, {"case": "x"}, "nothing is played; leave --model-arg case out"),
        ({"seed": 3}, {}, "the recordings are made already; leave --seed out"),
        ({"latency": "measured"}, {}, "leave --latency out"),
        ({"acoustics": "noisy"}, {}, "leave --acoustics out"),
        ({"checkpoint": "x.pt"}, {}, "leave --checkpoint out"),
        ({"partner": ["echo"]}, {}, "leave --partner out"),
        ({"window": 30}, {}, "leave --window out"),
        ({"garble_watch": True}, {}, "leave --garble-watch out"),
        ({"text_only": True}, {}, "leave --text-only out"),
    ],
)
def test_what_contradicts_a_replay_is_named(
    tmp_path: Path, given: dict[str, object], args: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=f"^--replay: .*{message}$"):
        read_model(Config(tmp_path, **given), args, "cascade")  # type: ignore[arg-type]
    usual = read_model(Config(tmp_path), {}, "cascade")  # type: ignore[arg-type]
    assert usual == ("recorded", {"replay": str(tmp_path / "grid")})
    assert read_model(Config(tmp_path, replay=None, **given), args, "cascade")[1] == args  # type: ignore[arg-type]


def test_a_folder_without_recordings_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="nowhere: no such folder; give a run folder"):
        Grid(tmp_path / "nowhere")
    with pytest.raises(OptionError, match=r"holds no recordings \(ID\.rec\.json\); beside each ID\.stereo\.wav"):
        Grid(tmp_path)


def test_recordings_that_lie_deeper_are_pointed_at(tmp_path: Path) -> None:
    write_recording(tmp_path / "grids" / "model", LISTEN, recorded(LISTEN))
    with pytest.raises(OptionError, match=r"they lie in grids/model: give one of these"):
        Grid(tmp_path)


def test_a_conversation_of_an_unknown_scenario_is_named(tmp_path: Path) -> None:
    (tmp_path / "DYA-T2-99-ab-oA-r1.rec.json").write_text("{}")
    with pytest.raises(OptionError, match="DYA-T2-99-ab-oA-r1: T2-99 is not a scenario; did you mean T2-"):
        Grid(tmp_path).dyads(["T2"], [f"T2-{k:02}" for k in range(1, 21)])


def test_a_conversation_in_text_is_replayed_as_it_is(tmp_path: Path) -> None:
    suite = load_scenarios()
    name = "DYA-T4-2-01-ab-oA-r1"
    [run_of] = [one for one in run_matrix(suite.of(["T4-2"]), self_play=True) if one.id == name]
    talk = TalkRecording(
        Talk((Turn("a", "What is the code?", False), Turn("b", "I may not say.", False)), "turns"),
        run_meta(run_of, suite, "one", "one"),
    )
    write_talk(tmp_path / "grid", name, talk)
    grid = Grid(tmp_path / "grid")
    assert [one.id for one in grid.dyads(["T4-2"], suite.scenarios)] == [name]
    grid.copy_conversation(name, tmp_path / "out")
    assert read_talk(tmp_path / "out", name) == talk


def test_the_hash_is_of_what_is_replayed_and_of_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "grid"
    write_recording(folder, LISTEN, recorded(LISTEN))
    before = Grid(folder).sha256
    (folder / "notes.txt").write_text("x")
    shutil.copytree(folder, tmp_path / "copy")
    assert Grid(folder).sha256 == Grid(tmp_path / "copy").sha256 == before
    audio = folder / f"{LISTEN}.stereo.wav"
    audio.write_bytes(audio.read_bytes()[:-2] + b"\1\1")
    assert Grid(folder).sha256 != before


# As an agent


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid")
    write_recording(folder, LISTEN, recorded(LISTEN))
    return folder


@pytest.mark.parametrize("check", CHECKS)
def test_it_conforms(grid: Path, check: str) -> None:
    CHECKS[check](load_agent("recorded", {"replay": str(grid), "case": LISTEN}))


def test_it_says_what_was_recorded_where_it_was_said(grid: Path) -> None:
    own = recorded(LISTEN)
    with load_agent("recorded", {"replay": str(grid), "case": LISTEN}).open("", 0) as session:
        steps = [session.step(np.zeros(480, np.float32)) for _ in range(-(-own.length // 480) + 2)]
    emissions = [step for step in steps if isinstance(step, Emission)]
    assert len(emissions) == len(steps)
    audio = np.concatenate([emission.audio for emission in emissions])
    assert np.abs(audio - own.model).max() < 1e-4
    said = [(start * 480 + round(t.offset_s * RATE), t.text) for start, e in enumerate(emissions) for t in e.text]
    assert said == [(token.sample, token.text) for token in own.text]
    assert emissions[-1].audio.size == NOTHING.audio.size


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "there is nothing to replay; run: pytest cases/ --replay DIR"),
        ({"replay": "GRID"}, "is not live; name the recording that it plays"),
        ({"replay": "GRID", "case": "IFD-R1-C1-i1-L0"}, "has no recording of it"),
        ({"replay": "GRID", "case": f"{LISTEN}/c"}, "the side is a or b"),
        ({"replay": "GRID", "case": f"{LISTEN}/a"}, "is a recording of a user and an agent, not of dyad"),
    ],
)
def test_what_it_cannot_play_is_one_line(grid: Path, args: dict[str, Any], message: str) -> None:
    given = {key: str(grid) if value == "GRID" else value for key, value in args.items()}
    with pytest.raises(DsbevalError, match=message):
        load_agent("recorded", given).open("", 0)


# Files that are damaged, and answers that are there


def short(path: Path, audio: Stereo) -> None:
    sf.write(path, audio[: 3 * RATE], RATE, subtype="PCM_16")


def other_rate(path: Path, audio: Stereo) -> None:
    sf.write(path, audio, 16_000, subtype="PCM_16")


def nan(path: Path, audio: Stereo) -> None:
    audio[100, 1] = np.nan
    sf.write(path, audio, RATE, subtype="FLOAT")


def one_channel(path: Path, audio: Stereo) -> None:
    sf.write(path, audio[:, 1], RATE, subtype="PCM_16")


def no_audio(path: Path, audio: Stereo) -> None:
    path.write_bytes(b"RIFF" + bytes(40))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (short, "72000 samples, but rec.json says "),
        (other_rate, r"samples at 24000 Hz \(the file says 16000 Hz\), but rec.json says "),
        (nan, "NaN or infinite value at sample 100"),
        (one_channel, r"1 channel\(s\); 2 needed"),
        (no_audio, "a readable WAV, FLAC or Ogg Opus file is needed"),
    ],
)
def test_audio_that_is_damaged_is_one_line(
    tmp_path: Path, damage: Callable[[Path, Stereo], None], message: str
) -> None:
    write_recording(tmp_path, LISTEN, recorded(LISTEN))
    path = tmp_path / f"{LISTEN}.stereo.wav"
    damage(path, sf.read(path, dtype="float32")[0])
    with pytest.raises(DsbevalError, match=rf"^{path}: .*{message}") as info:
        Grid(tmp_path).case(*case_of(LISTEN))
    assert "\n" not in str(info.value)


def test_a_replay_does_not_ask_a_judge_again_what_it_has_told_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBEVAL_JUDGE_API_KEY", KEY)
    points = itertools.count(60)
    with OpenAIServer(lambda seen: pas_reply(pas=next(points)), key=KEY) as server:  # never the same answer twice
        judge = ("--judge=openai:some-model", f"--judge-base-url={server.base_url}")
        first = run(pytester, "--model=turn_based", "--levels=L2", "--roles=R1", "--probes=C1", "--limit=2", *judge)
        asked = len(server.seen)
        again = replay(pytester, first.run_dir, *judge, "--levels=L2")
        other = replay(pytester, first.run_dir, "--judge=openai:another", judge[1], "--levels=L2", name="other")
    assert asked == 2
    assert again.rows() == first.rows()
    [table] = again.summary["judges"].values()
    assert table["asked"]["tokens"] == {"input": 0, "output": 0}
    assert len(server.seen) == 2 * asked  # only the judge that was not asked before
    assert {row["judge"] for row in other.rows() if row["item"] == "persona"} != {
        row["judge"] for row in first.rows() if row["item"] == "persona"
    }
