"""The picture of one case: both channels on one time axis, with speech, window, threshold and text.

Made from the run folder alone. Colours are the colour-blind-safe ones of Okabe and Ito.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsbeval.audio import RATE, Signal
from dsbeval.ifeval.score import score_recording
from dsbeval.recording import Recording, read_recording
from dsbeval.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USER, AGENT, WINDOW, LIMIT = "#0072B2", "#D55E00", "#F0E442", "#000000"


def draw_case(recordings: Path, case: str, path: Path) -> None:
    """Draw the timeline of a recorded case into ``path`` (png or svg)."""
    recording = read_recording(recordings, case)
    draw(recording, score_recording(recording)[1], path)


def draw(recording: Recording, row: Row, path: Path) -> None:
    """Draw a recording with its row of the floor into ``path``."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 4.2), sharex=True, layout="constrained")
    user = [(s["start"] / RATE, s["end"] / RATE) for s in recording.meta["user"] if s["type"] == "speech"]
    agent = [(start / RATE, end / RATE) for start, end in row["measurements"]["samples"]["speech"]]
    _channel(top, recording.user, user, USER, "user")
    _channel(bottom, recording.model, agent, AGENT, "agent")
    window = recording.meta["window"]
    limit = _limit(row)
    for axes in (top, bottom):
        axes.axvspan(
            window["start"] / RATE, window["end"] / RATE, color=WINDOW, alpha=0.35, lw=0, label="scored window"
        )
        if limit is not None:
            axes.axvline(window["start"] / RATE + limit, color=LIMIT, lw=1, ls="--", label="limit")
        axes.set_ylim(-1.15, 1.15)
        axes.set_yticks([])
    _words(bottom, [(token.sample / RATE, token.text.strip()) for token in recording.text])
    bottom.set_xlabel("seconds")
    bottom.set_xlim(0, recording.length / RATE)
    figure.suptitle(f"{row['id']}: {row['outcome']}\n{row['message']}", fontsize=9, ha="left", x=0.01, wrap=True)
    top.legend(loc="upper left", fontsize=7, framealpha=0.9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _limit(row: dict[str, Any]) -> float | None:
    thresholds = row["thresholds"]
    if "max_wait_s" in thresholds:
        return float(thresholds["max_wait_s"])
    return float(thresholds["max_latency_ms"]) / 1000 if "max_latency_ms" in thresholds else None


def _channel(axes: Axes, audio: Signal, spans: list[tuple[float, float]], colour: str, name: str) -> None:
    """Draw a channel as its peaks, and its speech spans as a bar below."""
    step = max(1, audio.size // 2200)
    blocks = audio[: audio.size // step * step].reshape(-1, step)
    times = np.arange(len(blocks)) * step / RATE
    scale = 0.85 / max(float(np.abs(audio).max()), 1e-3)  # each channel fills its strip: this is a picture of time
    axes.fill_between(times, scale * blocks.min(axis=1), scale * blocks.max(axis=1), color=colour, lw=0)
    axes.broken_barh([(a, b - a) for a, b in spans], (-1.1, 0.12), color=colour)
    axes.set_ylabel(name)


def _words(axes: Axes, words: list[tuple[float, str]]) -> None:
    line: list[tuple[float, str]] = []
    for at, word in words:
        if line and at - line[-1][0] < 2.5:
            line[-1] = (line[-1][0], f"{line[-1][1]} {word}")
        else:
            line.append((at, word))
    for index, (at, text) in enumerate(line):
        shown = text if len(text) <= 46 else text[:43] + "..."
        axes.text(at, 0.98 - 0.2 * (index % 2), shown, fontsize=7, va="top")
