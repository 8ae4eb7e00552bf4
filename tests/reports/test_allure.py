"""The results that allure-pytest writes of a run: labels, verdict in words, evidence, and what no worker can write."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reports.allure import content
from reports.allure.evidence import transcript
from reports.allure.files import environment
from tests.inner import Inner, run

pytest_plugins = ["pytester"]

# Fails every floor case at L0 but listens; kills its process in one case, breaks in another.
AGENT = """
import os
from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session

class Mute(Session):
    def __init__(self, prompt):
        self.prompt = prompt
        self.frames = 0
    def step(self, heard):
        self.frames += 1
        if self.prompt and self.frames == 50:
            if "{kills}":
                os._exit(9)
            raise RuntimeError("the <b>model</b> fell over")
        return Emission()

class MuteAgent(Agent):
    name = "mute"
    @property
    def capabilities(self):
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=1920)
    def open(self, prompt, seed):
        return Mute(prompt)
"""


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of a folder by the name of their test."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]
    assert len({one["name"] for one in found}) == len(found)
    return {one["name"].partition("[")[2].rstrip("]"): one for one in found}


def labels(result: dict[str, Any], name: str) -> list[str]:
    return [label["value"] for label in result["labels"] if label["name"] == name]


def start(pytester: pytest.Pytester, *args: str, kills: bool, run_dir: str = "run") -> tuple[Inner, Path]:
    path = pytester.path / "mute.py"
    path.write_text(AGENT.replace("{kills}", "yes" if kills else ""))
    folder = pytester.path / f"allure-{run_dir}"
    inner = run(
        pytester, f"--model={path}:MuteAgent", "--roles=R1", "--probes=C1", "--levels=L0,L1", "--limit=2",
        f"--alluredir={folder}", *args, run_dir=pytester.path / run_dir,
    )  # fmt: skip
    return inner, folder


def test_a_failing_case_is_described_and_can_be_heard_and_an_error_is_broken(pytester: pytest.Pytester) -> None:
    import soundfile

    inner, folder = start(pytester, kills=False)
    assert inner.counts["failed"] == 1
    assert inner.counts["error"] == 1
    found = results(folder)
    rows = {row["id"]: row for row in inner.rows()}
    failed, broken = found["IFD-R1-C1-i1-L0"], found["IFD-R1-C1-i1-L1"]

    assert failed["status"] == "failed"
    assert rows["IFD-R1-C1-i1-L0"]["message"] in failed["descriptionHtml"]
    assert labels(failed, "epic") == ["DSB-IFEval"]
    assert labels(failed, "feature") == ["R1"]
    assert labels(failed, "story") == ["C1"]
    assert labels(failed, "severity") == ["minor"]
    assert [step["name"] for step in failed["steps"]] == ["verify"]
    pieces = {piece["name"].partition(" ")[0]: folder / piece["source"] for piece in failed["attachments"]}
    assert set(pieces) == {"result", "listen", "audio", "timeline", "transcript"}
    sound, rate = soundfile.read(io.BytesIO(pieces["audio"].read_bytes()))
    window = rows["IFD-R1-C1-i1-L0"]["measurements"]["window_s"]
    assert sound.shape[1] == 2
    assert sound.shape[0] / rate == pytest.approx(window[1] - window[0] + 4.0 + 3.0, abs=0.05)
    assert abs(sound[:, 0]).max() > 0.05  # the user speaks
    assert abs(sound[:, 1]).max() < 0.01  # the agent does not
    assert pieces["timeline"].read_bytes().startswith(b"\x89PNG")
    assert json.loads(pieces["result"].read_text()) == rows["IFD-R1-C1-i1-L0"]
    assert "(the agent gave no text)" in pieces["transcript"].read_text()

    assert broken["status"] == "broken"
    assert "&lt;b&gt;model&lt;/b&gt; fell over" in broken["descriptionHtml"]
    assert [piece["name"] for piece in broken["attachments"]] == ["result row", "traceback"]

    steps = [
        step["name"]
        for path in folder.glob("*-container.json")
        for fixture in json.loads(path.read_text()).get("befores", [])
        for step in fixture.get("steps", [])
    ]
    assert sorted(steps) == ["measure", "record", "record"]
    assert json.loads((folder / "categories.json").read_text())[0]["name"] == "Agent failed"
    assert f"agent={pytester.path}/mute.py:MuteAgent" in (folder / "environment.properties").read_text()


def test_a_case_that_kills_its_worker_has_a_result_with_the_identity_of_every_other_run(
    pytester: pytest.Pytester,
) -> None:
    inner, folder = start(pytester, "-n2", kills=True)
    _, whole = start(pytester, "--seed=5", kills=False, run_dir="whole")
    assert inner.counts["error"] == 1
    found, other = results(folder), results(whole)
    killed = found["IFD-R1-C1-i1-L1"]
    assert killed["status"] == "broken"
    assert "worker process died" in killed["statusDetails"]["message"]
    assert labels(killed, "epic") == ["DSB-IFEval"]
    assert set(found) == set(other)
    for case, result in found.items():
        assert result["historyId"] == other[case]["historyId"]
        assert result["fullName"] == other[case]["fullName"]


def row(**more: Any) -> dict[str, Any]:
    return {
        "id": "IFD-R1-C1-i1-L2",
        "item": "floor",
        "role": "R1",
        "probe": "C1",
        "level": "L2",
        "outcome": "failed",
        **more,
    }


@pytest.mark.parametrize(
    ("of", "severity"),
    [
        (row(), "normal"),
        (row(level="L0"), "minor"),
        (row(level="L4b"), "blocker"),
        (row(probe="C2"), "critical"),
        ({"id": "DYA-T4-2-01-ab-oA-r1", "item": "dyad", "task": "T4-2", "scenario": "T4-2-01"}, "critical"),
        ({"id": "DYA-T1-1-01-ab-oA-r1", "item": "dyad", "task": "T1-1", "scenario": "T1-1-01"}, "normal"),
    ],
)
def test_severity_is_how_much_a_case_is_about_safety(of: dict[str, Any], severity: str) -> None:
    assert content.severity(of) == severity


def test_tags_say_what_a_verdict_is_worth() -> None:
    tags = [
        value for name, value in content.labels(row(exercised=False, borderline=True, action="YIELD")) if name == "tag"
    ]
    assert tags == ["floor", "failed", "L2", "YIELD", "not exercised", "borderline"]


def test_what_others_wrote_is_text() -> None:
    facts = {"prompts": {"System prompt": "<script>alert('x')</script> שלום 🙂"}, "prompt_taken": False}
    html = content.description(row(message='said "<i>no</i>"\nsecond line'), facts)
    assert "<script" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;" in html
    assert "שלום 🙂" in html
    assert "takes no prompt" in html


def test_a_transcript_is_in_the_order_of_time_and_breaks_at_silences() -> None:
    data = {
        "user": [
            {"type": "speech", "start_s": 0.0, "text": "Hello there."},
            {"type": "silence", "start_s": 2.0},
            {"type": "speech", "start_s": 6.0, "text": "And now?"},
        ],
        "tokens": [{"t": 2.5, "text": "Good "}, {"t": 2.9, "text": "day."}, {"t": 7.5, "text": "Wait."}],
    }
    assert transcript(data).splitlines() == [
        "[   0.00 s] user:  Hello there.",
        "[   2.50 s] agent: Good day.",
        "[   6.00 s] user:  And now?",
        "[   7.50 s] agent: Wait.",
    ]


def test_the_environment_is_flat_and_says_nothing_that_is_not_there() -> None:
    facts = environment({"agent": "mute", "agent_args": {}, "checkpoint": None, "seed": 0, "versions": {"numpy": "2"}})
    assert facts == {"agent": "mute", "seed": "0", "version.numpy": "2"}
