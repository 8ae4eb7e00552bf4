"""The command line: score, on a run that a real inner pytest has made."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from click.testing import CliRunner, Result

from dsbeval.cli import main
from tests.inner import run

pytest_plugins = ["pytester"]


def dsbeval(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


@pytest.fixture
def yielding(pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the oracle over three barge-ins: it yields about 0.2 s after the user comes in. Made once, and copied."""
    kept = tmp_path_factory.getbasetemp() / "yielding"
    if not kept.exists():
        inner = run(pytester, "--model=oracle", "--levels=L0", "--roles=R1,R2,R3", "--probes=C3", run_dir=kept)
        assert inner.counts["passed"] == 3
    return Path(shutil.copytree(kept, pytester.path / "run"))


def test_score_gives_the_same_summary_from_the_recordings_alone(yielding: Path) -> None:
    summary = yielding / "report" / "summary.json"
    before = summary.read_bytes()
    summary.unlink()
    for path in (yielding / "results").iterdir():
        path.unlink()
    result = dsbeval("score", str(yielding))
    assert result.exit_code == 0, result.output
    assert summary.read_bytes() == before
    assert re.search(r"YIELD +3/3", result.output)


def test_score_with_another_threshold_leaves_the_run_as_it_was(yielding: Path) -> None:
    before = (yielding / "report" / "summary.json").read_bytes()
    result = dsbeval("score", str(yielding), "--set", "YIELD.max_latency_ms=100")
    assert result.exit_code == 0, result.output
    assert re.search(r"YIELD +0/3", result.output)
    rescored = json.loads((yielding / "report" / "rescored.json").read_text())
    assert rescored["fingerprint"]["thresholds"]["YIELD"] == {"max_latency_ms": 100.0}
    assert (yielding / "report" / "summary.json").read_bytes() == before


def _spoil_rate(path: Path) -> None:
    data, _ = sf.read(path)
    sf.write(path, data, 16_000, subtype="PCM_16")


def _spoil_nan(path: Path) -> None:
    data, rate = sf.read(path, dtype="float32")
    data[1000, 1] = np.nan
    sf.write(path, data, rate, subtype="FLOAT")


def _cut(path: Path) -> None:
    data, rate = sf.read(path)
    sf.write(path, data[: len(data) // 2], rate, subtype="PCM_16")


def _mono(path: Path) -> None:
    data, rate = sf.read(path)
    sf.write(path, data[:, 0], rate, subtype="PCM_16")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_spoil_rate, "sample rate is 16000 Hz; 24000 Hz is needed"),
        (_spoil_nan, "NaN or infinite value at sample 1000"),
        (_cut, "record it again"),
        (_mono, "1 channel(s); 2 needed"),
        (lambda path: path.write_bytes(b"RIFF"), "a readable WAV, FLAC or Ogg Opus file is needed"),
        (lambda path: path.unlink(), "no such file"),
    ],
)
def test_a_damaged_recording_is_one_error_and_the_rest_is_scored(yielding: Path, spoil: object, message: str) -> None:
    path = sorted((yielding / "recordings").glob("*.wav"))[1]
    spoil(path)  # type: ignore[operator]
    result = dsbeval("score", str(yielding))
    assert result.exit_code == 0, result.output
    counts = json.loads((yielding / "report" / "summary.json").read_text())["counts"]
    assert (counts["passed"], counts["failed"], counts["error"]) == (2, 0, 1)
    [line] = [line for line in result.output.splitlines() if message in line]
    assert path.name in line


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["score", "nowhere"], "nowhere: not a run folder"),
        (["score", ".", "--set", "YIELD=3"], "not a run folder"),
    ],
)
def test_a_wrong_call_is_one_line(
    args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = dsbeval(*args)
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.count("\n") == 1


def test_an_unknown_threshold_is_named_with_its_neighbours(yielding: Path) -> None:
    result = dsbeval("score", str(yielding), "--set", "YIELD.max_latency=400")
    assert result.exit_code == 2
    assert "did you mean YIELD.max_latency_ms" in result.output


def test_plot_draws_the_timeline_of_a_case(yielding: Path) -> None:
    result = dsbeval("plot", str(yielding), "IFD-R1-C3-i1-L0")
    assert result.exit_code == 0, result.output
    picture = yielding / "report" / "timelines" / "IFD-R1-C3-i1-L0.png"
    assert result.output.strip() == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    missing = dsbeval("plot", str(yielding), "IFD-R9-C3-i1-L0")
    assert missing.exit_code == 2
    assert "no such recording" in missing.output


def test_a_file_that_cannot_be_written_is_one_line(yielding: Path) -> None:
    (yielding / "file").touch()
    for arguments in (
        ("baseline", str(yielding), "-o", str(yielding / "file" / "baseline.json")),
        ("plot", str(yielding), "IFD-R1-C3-i1-L0", "-o", str(yielding / "file" / "case.png")),
        ("report", str(yielding), "-o", str(yielding / "file" / "report")),
    ):
        result = dsbeval(*arguments)
        assert (result.exit_code, result.output.count("\n")) == (2, 1), result.output
        assert result.output.startswith(f"dsbeval: {yielding / 'file'}")
        assert result.output.endswith((": Not a directory\n", ": File exists\n"))
