"""The script for a GPU takes its steps: here with tiny weights on the CPU, where nothing but the device is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.gpu_smoke import main

SHORT = ["--tiny", "--cpu", "--frames", "3", "--window", "0.8", "--no-tests"]


def test_every_step_is_taken_and_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*SHORT, "--work", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for model in ("moshi", "personaplex", "f_actor"):
        for step in (
            "random weights are written",
            "loaded from disk",
            "equal seeds give equal bytes",
            "talk in lockstep",
        ):
            assert any(line.startswith(f"ok   {model}: ") and step in line for line in printed.splitlines())
    assert "ms a frame, p95" in printed
    assert printed.endswith("every step passed\n")
    assert not list(tmp_path.iterdir())


def test_a_step_that_fails_is_told_and_the_others_are_taken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draws = iter(range(10_000))
    monkeypatch.setattr("adapters.kyutai.engine.RandomNumbers.__init__", _unseeded(draws))
    assert main([*SHORT, "--models", "moshi", "--work", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "FAIL moshi: equal seeds give equal bytes" in printed
    assert "two sessions with one seed differ" in printed
    assert "FAIL moshi: two instances on one device talk in lockstep" in printed
    assert "ok   moshi: frame time" in printed
    assert "2 steps failed" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cpu"], "the released sizes are for a GPU; add --tiny"),
        ([], "torch sees no CUDA device"),
        (["--models", "moshi,moshy"], "--models: 'moshy' is none of moshi, personaplex, f_actor"),
    ],
)
def test_what_cannot_be_is_said_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def _unseeded(draws: object) -> object:
    from adapters.kyutai.engine import RandomNumbers

    seeded = RandomNumbers.__init__

    def unlike(self: RandomNumbers, device: str, seed: int) -> None:
        seeded(self, device, seed + next(draws))  # type: ignore[call-overload]

    return unlike
