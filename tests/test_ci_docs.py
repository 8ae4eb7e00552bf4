"""The recipes of docs/ci.md: they parse, what they call exists, and the CPU job's own lines run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from dsbeval.cli import main
from dsbeval.gate.rules import DEFAULT, read_rules
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.M | re.S)
RECIPES: list[dict[Any, Any]] = [yaml.safe_load(body) for kind, body in BLOCKS if kind == "yaml"]
GITHUB = [recipe for recipe in RECIPES if "jobs" in recipe]
GITLAB = [recipe for recipe in RECIPES if "stages" in recipe]


def scripts() -> Iterator[str]:
    """Yield every script of every recipe."""
    for recipe in GITHUB:
        for job in recipe["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)
    for recipe in GITLAB:
        for job in recipe.values():
            if isinstance(job, dict):
                yield from (*job.get("script", ()), *job.get("after_script", ()))
    yield from (body for kind, body in BLOCKS if kind == "bash")


def commands(program: str) -> Iterator[list[str]]:
    """Yield the words of each call of a program of the environment, up to a redirection or a second command."""
    for script in scripts():
        for line in script.splitlines():
            if f".venv/bin/{program} " in line:
                words = shlex.split(line.partition(f".venv/bin/{program} ")[2])
                end = next((k for k, word in enumerate(words) if word in ("||", "&&", ";", ">", "|")), len(words))
                yield words[:end]


def test_there_are_recipes_of_each_kind_and_each_tier() -> None:
    assert (len(GITHUB), len(GITLAB)) == (2, 1)
    assert [kind for kind, _ in BLOCKS].count("bash") == 2
    assert {word for words in commands("pytest") for word in words if word.startswith("--tier")} == {
        "--tier=smoke", "--tier=core", "--tier=full",
    }  # fmt: skip
    assert "#SBATCH --gpus-per-node" in TEXT


def test_a_github_job_runs_somewhere_and_every_step_does_something() -> None:
    for recipe in GITHUB:
        assert recipe[True]  # "on" is a boolean in YAML 1.1; GitHub reads it as a word
        for job in recipe["jobs"].values():
            assert job["runs-on"]
            assert job["timeout-minutes"] <= 720
            assert all(("run" in step) != ("uses" in step) for step in job["steps"])
            assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)


def test_a_gitlab_job_has_its_stage_and_script() -> None:
    (recipe,) = GITLAB
    jobs = {name: job for name, job in recipe.items() if name not in ("stages", "variables")}
    assert set(jobs) == {"smoke", "core", "night"}
    assert all(job["stage"] in recipe["stages"] and job["script"] and job["rules"] for job in jobs.values())


def test_every_option_of_pytest_is_one(pytester: pytest.Pytester) -> None:
    helped = pytester.run(sys.executable, "-m", "pytest", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"),
                          str(ROOT / "cases"), "--help")  # fmt: skip
    known = set(re.findall(r"--[a-z][\w-]*", "\n".join(helped.outlines))) | {"-n"}
    used = list(commands("pytest"))
    assert len(used) >= 8
    for words in used:
        options = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert options <= known, options - known
        assert (ROOT / words[0]).is_dir()
        assert {word.partition("=")[2] for word in words if word.startswith("--model=")} <= {
            "cascade",
            "moshi",
            "$MODEL",
        }


def test_every_command_of_dsbeval_is_one() -> None:
    used = list(commands("dsbeval"))
    assert {words[0] for words in used} == {"gate", "baseline"}
    for words in used:
        command = main.commands[words[0]]
        known = {name for param in command.params if isinstance(param, click.Option) for name in param.opts}
        assert {word for word in words if word.startswith("-")} <= known


def test_every_script_is_one_that_bash_can_read() -> None:
    for script in scripts():
        read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


def test_the_verdict_is_told_by_the_rules_that_it_was_found_by() -> None:
    """A comment that is made of the finished run must judge as the run was judged."""
    for recipe in (*GITHUB, *GITLAB):
        for job in (recipe.get("jobs") or recipe).values():
            if not isinstance(job, dict):
                continue
            text = "\n".join(
                [
                    *(step.get("run", "") for step in job.get("steps", ())),
                    *job.get("script", ()),
                    *job.get("after_script", ()),
                ]
            )
            for said in re.findall(r"dsbeval gate (.*?)--markdown", text):
                assert {found.replace("=", " ") for found in re.findall(r"--max-errors[= ]\S+", text)} == {
                    found.replace("=", " ") for found in re.findall(r"--max-errors[= ]\S+", said)
                }


def test_the_slurm_job_ends_as_the_gate_did_and_goes_on_after_a_requeue_through_stand_ins(tmp_path: Path) -> None:
    """The job's own lines; pytest and dsbeval, whose options are checked above, stand by and say what they were called with."""
    script = next(body for kind, body in BLOCKS if kind == "bash" and "#SBATCH" in body)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "pytest").write_text(
        '#!/bin/sh\nmkdir -p runs/7; echo "$@" >> called; [ -e runs/7/run.json ] && exit 1\ntouch runs/7/run.json; exit 2\n'
    )
    (tools / "dsbeval").write_text("#!/bin/sh\necho table; exit 1\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "CHECKPOINT": "step", "BASELINE": "b.json"}
    ends = [
        subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, check=False
        ).returncode
        for _ in range(2)
    ]
    assert ends == [2, 1]
    first, again = (tmp_path / "called").read_text().splitlines()
    assert "--resume" not in first
    assert again == first.replace("--run-dir=runs/7", "--run-dir=runs/7 --resume")
    assert (tmp_path / "runs" / "7" / "gate.md").read_text() == "table\n"


def test_every_target_of_make_is_one() -> None:
    made = {word for script in scripts() for word in re.findall(r"^make (\w+)", script, re.M)}
    assert made == {"setup"}
    assert re.search(r"^setup:", (ROOT / "Makefile").read_text(), re.M)


def test_the_rules_in_the_docs_are_the_default_ones() -> None:
    told = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    for rule in read_rules(DEFAULT).rule:
        for name in rule.metric:
            assert f'"{name}"' in told
        assert f"drop = {rule.drop:.1f}" in told


def test_the_cpu_job_gives_the_gates_status_and_a_comment_through_a_stand_in_for_gh(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """The very lines of the job, over one case: too few to judge by. ``gh`` is the edge of the world."""
    made = run(pytester, "--model=oracle", "--tier=smoke", "--limit=1", run_dir=tmp_path / "base")
    assert made.status == 0
    steps = {step.get("name"): step for step in GITHUB[0]["jobs"]["smoke"]["steps"]}
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "gh").write_text('#!/bin/sh\necho "$@" > "$TOLD"\n')
    (tools / "gh").chmod(0o755)
    own = str(Path(sys.executable).parent)
    environment = {
        **os.environ, "MODEL": "oracle", "BASELINE": str(tmp_path / "base"), "TOLD": str(tmp_path / "told"),
        "PYTEST_ADDOPTS": "--limit=1 --judge=none -p no:cacheprovider", "PATH": f"{tools}:{own}:{os.environ['PATH']}",
    }  # fmt: skip

    def carry_out(name: str) -> subprocess.CompletedProcess[str]:
        script = steps[name]["run"].replace(".venv/bin/", f"{own}/").replace("${{ github.event.number }}", "17")
        for place in ("runs/ci", "allure-results", "junit.xml", "gate.md"):
            script = script.replace(place, str(tmp_path / place))
        script = script.replace("-n 4", "-n 0")
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    gate = carry_out("gate")
    assert gate.returncode == 2, gate.stdout + gate.stderr
    assert "gate: NOT ENOUGH EVIDENCE: ias.reactive" in gate.stdout
    assert "<testsuites" in (tmp_path / "junit.xml").read_text()
    assert list((tmp_path / "allure-results").glob("*-result.json"))
    comment = carry_out("comment")
    assert comment.returncode == 0, comment.stdout + comment.stderr
    assert (tmp_path / "gate.md").read_text().startswith("**gate: NOT ENOUGH EVIDENCE")
    assert (tmp_path / "told").read_text().split()[:3] == ["pr", "comment", "17"]
