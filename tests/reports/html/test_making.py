"""What makes the report: at the end of a run, by command, again and again, and out of what."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dsbeval.audio import RATE, atomic_write
from dsbeval.cli import main
from dsbeval.results import RunFolder
from reports.html.peaks import PEAKS_PER_S, peaks
from reports.html.site import Run, write_report
from tests.inner import run
from tests.reports.html.conftest import CASES, FEW, Made, make
from tests.reports.html.runs import fingerprint

pytest_plugins = ["pytester"]


def test_a_run_ends_with_its_report(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=silent", "--levels=L2", "--roles=R1", "--limit=2", "--report=linked")
    page = inner.run_dir / "report" / "index.html"
    assert inner.out.splitlines()[-2].endswith(f"report: {page}") or f"report: {page}" in inner.out
    assert page.exists()
    shown = (page.parent / "data" / "r0-case-0.js").read_text()
    assert '"audio":"audio/r0/IFD-R1-C1-i1-L2.stereo.wav"' in shown
    audio = page.parent / "audio" / "r0" / "IFD-R1-C1-i1-L2.stereo.wav"
    assert audio.samefile(inner.run_dir / "recordings" / audio.name)  # no space on this disk
    assert (page.parent / "tables" / "counts.csv").exists()
    assert inner.summary["counts"]["cases"] == 2


def test_a_report_that_cannot_be_written_fails_no_run(pytester: pytest.Pytester) -> None:
    blocked = pytester.path / "run" / "report"
    inner = run(pytester, "--model=silent", "--levels=L2", "--roles=R1", "--probes=C1", "--limit=1", "--report=linked",
                "-p", "tests.reports.html.blocking", run_dir=blocked.parent)  # fmt: skip
    assert inner.status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    assert "report: not made: " in inner.out


def test_the_command_makes_a_folder_that_can_go_anywhere(moved: Made) -> None:
    done = CliRunner().invoke(main, ["report", str(moved.folder.root)])
    assert done.exit_code == 0, done.output
    report = moved.folder.report
    assert done.output == f"report: {report / 'index.html'}\n"
    clips = sorted((report / "audio" / "r0").glob("*.opus"))
    assert [clip.stem for clip in clips] == sorted(FEW)
    for clip in clips:
        made, original = sf.info(clip), sf.info(moved.folder.recordings / f"{clip.stem}.stereo.wav")
        assert (made.channels, made.frames) == (2, original.frames)
        assert clip.stat().st_size < original.frames * 4 / 8
    assert json.loads((report / "summary.json").read_text()) == json.loads(json.dumps(moved.summary))


def test_recordings_are_linked_anew_and_what_no_page_plays_is_swept(moved: Made, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(moved.folder.root, folder.root, ignore=shutil.ignore_patterns("report"))
    out = folder.report

    def audio() -> list[str]:
        return sorted(path.name for path in (out / "audio" / "r0").iterdir())

    made = make(folder, "linked")
    assert audio() == [f"{name}.stereo.wav" for name in sorted(FEW)]
    first = folder.recordings / f"{FEW[0]}.stereo.wav"
    with atomic_write(first) as file:  # recorded again: another file of that name
        file.write(first.read_bytes())
    make(folder, "linked")
    assert (out / "audio" / "r0" / first.name).samefile(first)
    make(folder, "portable")
    assert audio() == [f"{name}.opus" for name in sorted(FEW)]
    make(folder, "linked")  # clips that are there already are played
    assert audio() == [f"{name}.opus" for name in sorted(FEW)]
    make(folder, "none")
    assert audio() == []
    assert made.page.exists()


def test_a_disk_without_links_gets_copies(moved: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    make(moved.folder, "linked", tmp_path)
    for name in FEW:
        copied = tmp_path / "audio" / "r0" / f"{name}.stereo.wav"
        assert copied.read_bytes() == (moved.folder.recordings / copied.name).read_bytes()


def test_clips_are_made_once_and_again_when_a_recording_is_newer(moved: Made, tmp_path: Path) -> None:
    def stamps() -> dict[str, int]:
        write_report([moved.run], tmp_path, audio="portable")
        return {clip.name: clip.stat().st_mtime_ns for clip in tmp_path.glob("audio/r0/*.opus")}

    first = stamps()
    recording = moved.folder.recordings / f"{FEW[0]}.stereo.wav"
    kept = recording.stat()
    os.utime(recording, ns=(kept.st_atime_ns, max(first.values()) + 10**9))
    second = stamps()
    os.utime(recording, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert [name for name in first if first[name] != second[name]] == [f"{FEW[0]}.opus"]


def test_equal_runs_have_equal_reports(turn_based: Made, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        write_report([turn_based.run], folder, audio="none")
    files = sorted(path.relative_to(folders[0]) for path in folders[0].rglob("*") if path.is_file())
    assert len(files) > 20
    for file in files:
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes(), file


def test_markdown_is_printed_and_nothing_made(turn_based: Made, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", fingerprint("turn_based"), [CASES[0]])
    folder.append(turn_based.rows[CASES[0], "floor"])
    done = CliRunner().invoke(main, ["report", str(folder.root), "--markdown"])
    assert done.exit_code == 0
    assert done.output.startswith("### dsbeval: turn\\_based\n")
    assert not folder.report.exists()


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert done.output == f"dsbeval: {tmp_path}: not a run folder (no run.json); give the folder that a run printed\n"


def test_figures_with_earlier_runs_in_them_are_not_lost(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", fingerprint("moshi"), [])
    folder.write_summary({"dyadic": {"with_runs": [{"run": "cascade-1"}]}})
    done = CliRunner().invoke(main, ["report", str(folder.root)])
    assert done.exit_code == 2
    assert "its figures have cascade-1 in them; name each with --with-run DIR" in done.output


@settings(deadline=None, max_examples=30)
@given(arrays(np.int16, st.integers(0, 5000), elements=st.integers(-32768, 32767)))
def test_peaks_are_the_loudest_sample_of_each_fiftieth_of_a_second(channel: np.ndarray) -> None:
    found = np.frombuffer(base64.b64decode(peaks(channel, RATE)), np.uint8)
    step = RATE // PEAKS_PER_S
    assert found.size == -(-channel.size // step)
    top = int(np.abs(channel.astype(int)).max(initial=0))
    for k, peak in enumerate(found):
        loudest = int(np.abs(channel[k * step : (k + 1) * step].astype(int)).max())
        assert abs(int(peak) - loudest * 255 / max(top, 1)) <= 0.5 + 1e-9


def test_the_speech_of_a_row_without_it_is_detected_again(turn_based: Made, tmp_path: Path) -> None:
    name = CASES[3]
    row = json.loads(json.dumps(turn_based.rows[name, "floor"]))
    exact = row["measurements"]["samples"].pop("speech")
    folder = RunFolder.create(tmp_path / "run", fingerprint("turn_based"), [name])
    for suffix in ("rec.json", "stereo.wav"):
        os.link(turn_based.folder.recordings / f"{name}.{suffix}", folder.recordings / f"{name}.{suffix}")
    folder.append(row)
    write_report([Run.read(folder, "run")], folder.report, audio="none")
    text = (folder.report / "data" / "r0-case-0.js").read_text()
    page = json.loads(text[text.index(",") + 1 : -3])[name]
    assert page["speech"]["agent"] == [[round(s / RATE, 3), round(e / RATE, 3)] for s, e in exact]
