"""A run as a user starts it: options, outcomes, determinism, faults, resuming."""

from __future__ import annotations

import json
import os
import re
import shutil
import textwrap
from pathlib import Path

import pytest

from tests.inner import IFEVAL, ROOT, run

pytest_plugins = ["pytester"]

SOME = ("--levels=L0", "--roles=R1,R2", "--probes=C1,C3,C4")


def adapter(pytester: pytest.Pytester, body: str) -> str:
    """Write an adapter whose ``step`` (and whatever else) is ``body``; return its spec."""
    source = """
    import os
    import numpy as np
    from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session

    OPENED = []

    class Mine(Agent):
        @property
        def capabilities(self):
            return Capabilities(Interaction.FRAME_SYNCHRONOUS)
        def open(self, prompt, seed):
            OPENED.append(seed)
            return MySession()

    class MySession(Session):
    """
    path = pytester.path / "mine.py"
    path.write_text(textwrap.dedent(source) + textwrap.indent(textwrap.dedent(body), "    "))
    return f"{path}:Mine"


def no_traceback(text: str) -> bool:
    return "Traceback" not in text and 'File "' not in text


# Determinism


def test_equal_seeds_give_equal_bytes_and_rows_at_any_n_and_in_any_order(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        backwards="def pytest_collection_modifyitems(items):\n    items.reverse()\n",
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), str(ROOT)]))
    runs = []
    for index, (hash_seed, extra) in enumerate([("1", ()), ("random", ("-n2",)), ("random", ("-p", "backwards"))]):
        monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
        runs.append(run(pytester, "--model=oracle", *SOME, *extra, run_dir=pytester.path / str(index)))
    first = runs[0]
    names = sorted(path.name for path in (first.run_dir / "recordings").iterdir())
    assert len(names) == 12
    for other in runs[1:]:
        assert sorted(path.name for path in (other.run_dir / "recordings").iterdir()) == names
        for name in names:
            one, two = (r.run_dir / "recordings" / name for r in (first, other))
            assert one.read_bytes() == two.read_bytes(), name
        assert sorted(map(json.dumps, other.rows())) == sorted(map(json.dumps, first.rows()))
        assert other.summary["fingerprint"] == first.summary["fingerprint"]


def test_flac_recordings_hold_the_same_samples(pytester: pytest.Pytester) -> None:
    wav = run(pytester, "--model=oracle", "--levels=L0", "--limit=1", run_dir=pytester.path / "wav")
    flac = run(
        pytester, "--model=oracle", "--levels=L0", "--limit=1", "--audio-format=flac", run_dir=pytester.path / "flac"
    )
    assert flac.rows() == wav.rows()
    assert [p.suffix for p in sorted((flac.run_dir / "recordings").iterdir())] == [".json", ".flac"]


# Faults of an agent are errors, one line each, and the rest goes on


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def step(self, heard): return Emission(heard.astype('float64'))", "audio is float64; return float32"),
        ("def step(self, heard): return Emission(np.stack([heard, heard]))", "shape (2, 480); return one channel"),
        (
            "def step(self, heard): return Emission(heard, rate=16000)",
            "at 16000 Hz but capabilities.output_rate is 24000",
        ),
        ("def step(self, heard): return heard", "step returned a ndarray; return dsbeval.agent.Emission"),
        ("def step(self, heard): return Emission(heard * np.float32('nan'))", "NaN or infinite value at sample 0"),
        ("def step(self, heard): raise RuntimeError('device\\nlost')", "RuntimeError: device lost at mine.py:"),
    ],
)
def test_a_broken_contract_is_an_error_in_one_line(pytester: pytest.Pytester, body: str, message: str) -> None:
    inner = run(pytester, f"--model={adapter(pytester, body)}", "--levels=L0", "--limit=1")
    assert inner.counts["error"] == 1
    assert inner.counts["failed"] == 0
    [row] = inner.rows()
    assert message in row["message"]
    assert "\n" not in row["message"]
    assert message.split(";")[0] in inner.out
    assert no_traceback(inner.out)


def test_an_agent_that_raises_at_the_third_case_spoils_only_that_one(pytester: pytest.Pytester) -> None:
    spec = adapter(
        pytester,
        """
        def step(self, heard):
            if len(OPENED) == 3:
                raise ValueError("no more memory")
            return Emission()
        """,
    )
    inner = run(pytester, f"--model={spec}", "--levels=L0", "--limit=5")
    counts = inner.counts
    assert (counts["cases"], counts["error"], counts["missing"]) == (5, 1, 0)
    assert counts["passed"] + counts["failed"] == 4
    assert [row["outcome"] == "error" for row in inner.rows()] == [False, False, True, False, False]
    assert "no more memory" in inner.out
    assert (inner.run_dir / "errors" / f"{inner.rows()[2]['id']}.txt").read_text().count("mine.py") >= 1


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_that_cannot_be_built_is_one_error_and_the_run_stops(pytester: pytest.Pytester, workers: int) -> None:
    spec = adapter(pytester, "def step(self, heard): return Emission()")
    path = Path(spec.removesuffix(":Mine"))
    path.write_text(
        path.read_text() + "\nclass Heavy(Mine):\n    def __init__(self):\n        raise OSError('no weights')\n"
    )
    inner = run(pytester, f"--model={path}:Heavy", "--levels=L0", *(("-n", str(workers)) if workers else ()))
    assert inner.counts["cases"] == 48
    assert 1 <= inner.counts["error"] <= max(workers, 1)
    assert inner.counts["error"] + inner.counts["missing"] == 48
    assert inner.status == pytest.ExitCode.INTERRUPTED
    assert re.search(r"Interrupted: agent \S+: OSError: no weights at mine.py:\d+ !", inner.out)
    assert "no case has a verdict, so there are no rates" in inner.out
    assert {row["message"].rpartition(" at ")[0] for row in inner.rows()} == {
        f"agent {path}:Heavy: OSError: no weights"
    }


def test_a_row_that_cannot_be_written_stops_the_run_and_loses_nothing_else(pytester: pytest.Pytester) -> None:
    """As when the disk is full: the file of the rows is out of the way in mid-run, and the run goes on once it is back."""
    spec = adapter(
        pytester,
        """
        def step(self, heard):
            if len(OPENED) == 3 and os.path.exists("bomb"):
                os.remove("bomb")
                os.rename("run/results/main.jsonl", "rows")
                os.mkdir("run/results/main.jsonl")
            return Emission()
        """,
    )
    (pytester.path / "bomb").touch()
    options = (f"--model={spec}", "--levels=L0", "--limit=6")
    inner = run(pytester, *options)
    rows = inner.run_dir / "results" / "main.jsonl"
    assert inner.status == pytest.ExitCode.INTERRUPTED
    assert f"Interrupted: {rows}: Is a directory; go on with --resume" in inner.out
    assert f"summary: not made: {rows}: Is a directory" in inner.out
    rows.rmdir()
    (pytester.path / "rows").rename(rows)
    assert len(inner.rows()) == 2
    assert run(pytester, *options, "--resume").counts["missing"] == 0


def test_a_worker_that_dies_is_an_error_of_its_case(pytester: pytest.Pytester) -> None:
    spec = adapter(
        pytester,
        """
        def step(self, heard):
            if os.path.exists("bomb"):
                os.remove("bomb")
                os._exit(9)
            return Emission()
        """,
    )
    (pytester.path / "bomb").touch()
    inner = run(pytester, f"--model={spec}", "--levels=L0", "--limit=6", "-n2")
    assert inner.counts["error"] == 1
    assert inner.counts["failed"] + inner.counts["passed"] == 5
    assert inner.counts["missing"] == 0
    assert "worker process died" in inner.out


def test_what_was_not_run_is_counted_as_missing(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=contrarian", *SOME, "-x")
    assert inner.counts == {"cases": 6, "passed": 0, "failed": 1, "error": 0, "skipped": 0, "missing": 5}
    assert len(inner.summary["missing"]) == 5


# Options


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--model=orcale"], "'orcale' is not a known agent; did you mean oracle?"),
        (["--model=gone.py:Mine"], "gone.py: no such file"),
        (["--levels=L7"], "--levels: 'L7' is not in the pack"),
        (["--roles=R11"], "--roles: 'R11' is not in the pack; did you mean R1"),
        (["--probes=R1_Z"], "--probes: 'R1_Z' is not in the pack"),
        (["--limit=0"], "--limit: 0 is not a number of cases"),
        (["--sample=0"], "--sample: 0 is not a number of conversations"),
        (["--model-arg=frame"], "'frame' is not key=value"),
        (["--pack=nowhere", "--levels=L0"], "nowhere: no such folder"),
    ],
)
def test_a_wrong_option_is_one_line_before_anything_runs(
    pytester: pytest.Pytester, args: list[str], message: str
) -> None:
    inner = run(pytester, *args)
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    assert message in inner.err
    assert no_traceback(inner.err + inner.out)
    assert len([line for line in inner.err.splitlines() if line.strip()]) == 1
    assert not inner.run_dir.exists()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_folder_that_cannot_be_made_is_one_line(pytester: pytest.Pytester, workers: int) -> None:
    (pytester.path / "file").touch()
    options = ("--model=silent", "--limit=1", *(("-n", str(workers)) if workers else ()))
    inner = run(pytester, *options, run_dir=pytester.path / "file" / "run")
    assert "Exit: --run-dir: " in inner.out
    assert "Not a directory; name a folder that can be written" in inner.out
    assert "INTERNALERROR" not in inner.out
    assert inner.status == pytest.ExitCode.USAGE_ERROR


def test_an_argument_that_the_agent_does_not_take_is_named(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--model=silent", "--model-arg=voice=alloy", "--levels=L0", "--limit=1")
    assert "--model-arg voice: agent silent does not take it" in inner.out


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("roles.yaml", "    content_rule:", "    content_ruel:", "R1: content_rule: is missing"),
        ("probes.yaml", "      - {part: resume, seconds: 5.0}\n", "", "silence of 2.5 s with no speech after it"),
        ("conversations/R1.yaml", "part: chunk", "part: chunck", "speech, part: chunk there"),
        (
            "contradictions.yaml",
            "resolved_action: LISTEN",
            "resolved_action: LISTEM",
            "resolved_action: input should be",
        ),
        ("cells.yaml", "C1: TAKE_TURN", "C1: TAKE_TURNS", "cells"),
        ("roles.yaml", "roles:", "roles: [", "not valid YAML"),
    ],
)
def test_a_broken_pack_is_one_line_naming_the_place(
    pytester: pytest.Pytester, file: str, old: str, new: str, message: str
) -> None:
    pack = pytester.path / "pack"
    shutil.copytree(IFEVAL, pack, ignore=shutil.ignore_patterns("audio", "*.py", "__pycache__"))
    path = pack / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    inner = run(pytester, f"--pack={pack}", "--model=silent")
    [line] = [line for line in (inner.out + "\n" + inner.err).splitlines() if message in line]
    assert path.name in line
    assert no_traceback(inner.out + inner.err)
    assert inner.status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


# Resuming and scoring again


def test_a_run_is_resumed_without_recording_again(pytester: pytest.Pytester) -> None:
    first = run(pytester, "--model=oracle", "--levels=L0", "--limit=2")
    before = {path.name: path.stat().st_mtime_ns for path in (first.run_dir / "recordings").iterdir()}
    refused = run(pytester, "--model=oracle", "--levels=L0", "--limit=4")
    assert refused.status == pytest.ExitCode.USAGE_ERROR
    assert "already holds a run; add --resume" in refused.err
    other = run(pytester, "--model=silent", "--levels=L0", "--limit=4", "--resume")
    assert "was made with another agent" in other.out + other.err
    resumed = run(pytester, "--model=oracle", "--levels=L0", "--limit=4", "--resume")
    assert resumed.counts == {"cases": 4, "passed": 4, "failed": 0, "error": 0, "skipped": 0, "missing": 0}
    after = {path.name: path.stat().st_mtime_ns for path in (first.run_dir / "recordings").iterdir()}
    assert {name: after[name] for name in before} == before
    assert len(after) == 8


def test_a_case_that_broke_is_recorded_when_the_run_is_resumed(pytester: pytest.Pytester) -> None:
    spec = adapter(
        pytester,
        """
        def step(self, heard):
            if os.path.exists("down"):
                raise ConnectionError("down")
            return Emission()
        """,
    )
    (pytester.path / "down").touch()
    assert run(pytester, f"--model={spec}", "--levels=L0", "--limit=2").counts["error"] == 2
    (pytester.path / "down").unlink()
    again = run(pytester, f"--model={spec}", "--levels=L0", "--limit=2", "--resume")
    assert again.counts["error"] == 0
    assert again.counts["passed"] + again.counts["failed"] == 2


# Collection


def test_collection_imports_nothing_heavy_and_reads_no_audio(pytester: pytest.Pytester) -> None:
    heavy = ("torch", "onnxruntime", "soundfile", "soxr", "scipy", "hibari", "openai", "anthropic", "pandas")
    pytester.makepyfile(
        sentinel=f"""
        import sys
        def pytest_collection_finish(session):
            print("HEAVY", [name for name in {heavy!r} if name in sys.modules], len(session.items))
        def pytest_sessionfinish(session):
            audio = [a for a in OPENED if a.endswith((".opus", ".wav", ".flac"))]
            print("AUDIO", audio)
        OPENED = []
        sys.addaudithook(lambda event, args: OPENED.append(str(args[0])) if event == "open" else None)
        """
    )
    pytester.syspathinsert()
    inner = run(pytester, "--collect-only", "-q", "-s", "-p", "sentinel")
    assert "HEAVY [] 1038" in inner.out
    assert "AUDIO []" in inner.out
    assert not inner.run_dir.exists()
