"""Assemble the two user turns of a conversation from stored segments and exact silence.

Conventions
-----------
* Boundaries come from construction: a speech segment is as long as its stored audio, a silence is ``floor(d x 24000)``
  samples of exact zero.
* Two speech segments without a silence between them are joined by :data:`JOINT_S` of exact zero that belongs to
  neither.
* ``segments[k - 1]`` is ``s<k>`` of the pack's notation; spans are samples within the turn. Nothing is normalised:
  every case with this audio key hears the same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from dsbeval.audio import RATE, Signal
from dsbeval.errors import AudioError, OptionError, near
from dsbeval.ifeval.pack import Pack
from dsbeval.spans import Span, to_samples
from dsbeval.speech.engine import WordTime
from dsbeval.speech.store import MANIFEST, AudioStore

JOINT_S = 0.2
TURN1 = "t1"


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """One segment where it lies in its turn. Word times are samples within the turn too."""

    kind: Literal["speech", "silence"]
    part: str | None
    span: Span
    text: str
    words: tuple[WordTime, ...]


@dataclass(frozen=True, eq=False, slots=True)
class UserTurn:
    """What the user says in one turn, on the session clock."""

    audio: Signal
    segments: tuple[PlacedSegment, ...]


def segment_name(index: int) -> str:
    """Return the store's name of the ``index``-th segment of turn 2, counted from 0."""
    return f"s{index + 1}"


def audio_root(pack: Pack) -> Path:
    """Return the folder of a pack's stored speech."""
    return pack.root / "audio"


def open_store(root: Path) -> AudioStore:
    """Open a store once a process, and again when its manifest has changed.

    Raises :class:`AudioError` when there is none.
    """
    try:
        stamp = (root / MANIFEST).stat().st_mtime_ns
    except OSError:
        raise AudioError(
            f"{root / MANIFEST}: no such file; the pack has no audio yet, run: dsbeval speech build"
        ) from None
    return _opened(root, stamp)


@functools.lru_cache(maxsize=4)
def _opened(root: Path, _stamp: int) -> AudioStore:
    return AudioStore(root)


def user_turns(pack: Pack, audio_key: str) -> tuple[UserTurn, UserTurn]:
    """Return turn 1 and turn 2 of a recording.

    Raises :class:`OptionError` for an unknown key and :class:`AudioError` when audio is missing, damaged, or of another
    text than the pack's.
    """
    if audio_key not in pack.recordings:
        raise OptionError(f"audio key {audio_key!r} is not in the pack; {near(audio_key, pack.recordings)}")
    script = pack.recordings[audio_key].script
    store = open_store(audio_root(pack))
    first = _Builder(store, audio_key)
    first.speech(TURN1, "turn1", script.turn1)
    second = _Builder(store, audio_key)
    for index, segment in enumerate(script.turn2):
        if segment.silence is not None:
            second.silence(to_samples(segment.silence, RATE))
        else:
            second.speech(segment_name(index), segment.part, segment.speech or "")
    return first.turn(), second.turn()


class _Builder:
    def __init__(self, store: AudioStore, key: str) -> None:
        self._store, self._key = store, key
        self._pieces: list[Signal] = []
        self._segments: list[PlacedSegment] = []
        self._length = 0

    def _append(self, audio: Signal) -> Span:
        span = Span(self._length, self._length + audio.size)
        self._pieces.append(audio)
        self._length = span.end
        return span

    def silence(self, samples: int) -> None:
        span = self._append(np.zeros(samples, np.float32))
        self._segments.append(PlacedSegment("silence", None, span, "", ()))

    def speech(self, name: str, part: str | None, text: str) -> None:
        entry = self._store.entry(self._key, name)
        if entry.text != text:
            where = f"{self._store.root / MANIFEST}: {self._key} {name}"
            raise AudioError(f"{where}: the pack's text has changed since it was spoken; run: {self._store.mend}")
        if self._segments and self._segments[-1].kind == "speech":
            self._append(np.zeros(to_samples(JOINT_S, RATE), np.float32))
        span = self._append(self._store.audio(self._key, name))
        words = tuple(_shifted(entry.words, span.start))
        self._segments.append(PlacedSegment("speech", part, span, text, words))

    def turn(self) -> UserTurn:
        audio = np.concatenate(self._pieces)
        audio.flags.writeable = False
        return UserTurn(audio, tuple(self._segments))


def _shifted(words: Iterable[WordTime], by: int) -> Iterable[WordTime]:
    return (WordTime(word.word, word.start + by, word.end + by) for word in words)
