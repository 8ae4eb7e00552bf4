"""The persona items of a run: real inner pytest runs, the offline judge, and the real SDK against a local server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.inner import run
from tests.judge.support import pas_reply
from tests.servers import Answer, OpenAIServer, Seen

pytest_plugins = ["pytester"]

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("DSBEVAL_JUDGE_API_KEY", KEY)


def rows(run_dir: Path, item: str) -> list[dict[str, object]]:
    from dsbeval.results import RunFolder

    return [row for row in RunFolder.open(run_dir).rows() if row["item"] == item]


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_a_case_is_recorded_once_for_both_of_its_items(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(
        counting="""
        import os
        from adapters.controls import TurnBased

        class Counting(TurnBased):
            def open(self, prompt, seed):
                with open("opened", "a") as file:
                    file.write("x")
                return super().open(prompt, seed)
        """
    )
    spec = f"--model={pytester.path / 'counting.py'}:Counting"
    inner = run(pytester, spec, "--levels=L4a", "--limit=4", "--judge=offline", *workers)
    assert (pytester.path / "opened").read_text() == "x" * 4
    assert [len(rows(inner.run_dir, item)) for item in ("floor", "persona")] == [4, 4]
    table = inner.summary["judges"]["offline"]
    assert table["offline"] is True
    assert table["counts"]["cases"] == 4
    assert table["counts"]["missing"] == 0
    assert "[offline: a proxy, not comparable with a language model]" in inner.out


def test_offline_rows_are_equal_at_any_n(pytester: pytest.Pytester) -> None:
    args = ("--model=turn_based", "--levels=L2", "--limit=4", "--judge=offline")
    one = run(pytester, *args, run_dir=pytester.path / "one")
    two = run(pytester, *args, "-n2", run_dir=pytester.path / "two")
    assert one.rows() == two.rows()


def test_a_service_judges_and_its_answers_reach_the_summary(pytester: pytest.Pytester, key: None) -> None:
    def answer(seen: Seen) -> Answer | str:
        conflict = "directive-wins" in json.dumps(seen.body)
        return pas_reply(pas=70, l4_category="directive-wins" if conflict else "n/a")

    with OpenAIServer(answer, key=KEY) as server:
        inner = run(
            pytester, "--model=turn_based", "--levels=L2,L4a", "--roles=R1", "--probes=C1", "--limit=4",
            "--judge=openai:some-model", f"--judge-base-url={server.base_url}",
        )  # fmt: skip
    assert len(server.seen) == 4
    [table] = inner.summary["judges"].values()
    assert table["counts"]["passed"] == 4
    assert table["pas"]["overall"]["mean"] == 70
    assert table["asked"]["asked"] == 4
    assert table["asked"]["tokens"]["input"] > 0
    assert "4 questions asked in 4 attempts" in inner.out
    assert "cost unknown (give --price IN,OUT)" in inner.out
    assert all(row["outcome"] == "passed" for row in rows(inner.run_dir, "persona"))
    everything = [path.read_bytes() for path in inner.run_dir.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in data for data in everything)
    assert KEY not in inner.out + inner.err


def test_a_reply_that_cannot_be_used_is_an_error_and_no_score(pytester: pytest.Pytester, key: None) -> None:
    with OpenAIServer(lambda seen: "I would rather not.", key=KEY) as server:
        inner = run(
            pytester, "--model=turn_based", "--levels=L2", "--limit=1",
            "--judge=openai:some-model", f"--judge-base-url={server.base_url}",
        )  # fmt: skip
    [row] = rows(inner.run_dir, "persona")
    assert row["outcome"] == "error"
    assert str(row["message"]).startswith("unjudged")
    [table] = inner.summary["judges"].values()
    assert table["counts"]["unjudged"] == 1
    assert table["pas"]["overall"]["mean"] is None
    assert rows(inner.run_dir, "floor")[0]["outcome"] in ("passed", "failed")


def test_a_missing_key_is_one_line_before_anything_is_recorded(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("DSBEVAL_JUDGE_API_KEY", raising=False)
    inner = run(pytester, "--model=silent", "--limit=1", "--judge=openai:gpt-4o")
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    assert "OPENAI_API_KEY" in inner.err
    assert "Traceback" not in inner.err
    assert not inner.run_dir.exists()


def test_an_agent_without_text_is_skipped_and_a_broken_recording_is_an_error(pytester: pytest.Pytester) -> None:
    babbler = run(
        pytester, "--model=babbler", "--levels=L2", "--limit=1", "--judge=offline", run_dir=pytester.path / "babbler"
    )
    assert [row["outcome"] for row in rows(babbler.run_dir, "persona")] == ["skipped"]
    assert "gives no text" in str(rows(babbler.run_dir, "persona")[0]["message"])
    pytester.makepyfile(
        broken="""
        from adapters.controls import TurnBased

        class Broken(TurnBased):
            def open(self, prompt, seed):
                raise RuntimeError("out of memory")
        """
    )
    spec = f"--model={pytester.path / 'broken.py'}:Broken"
    broken = run(pytester, spec, "--levels=L2", "--limit=1", "--judge=offline", run_dir=pytester.path / "broken")
    [row] = rows(broken.run_dir, "persona")
    assert row["outcome"] == "error"
    assert "was not recorded: out of memory" in str(row["message"])


def test_without_a_judge_there_are_no_persona_items(pytester: pytest.Pytester) -> None:
    inner = run(pytester, "--collect-only", "-q", "--judge=none")
    assert "1038 tests collected" in inner.out
    both = run(pytester, "--collect-only", "-q", "--judge=offline")
    assert "2076 tests collected" in both.out
