"""Whether the user of a recording is the user of a pack: what is said, where, and in whose voice.

A score is about a case of a pack: the same user's turn, heard at the same places. A recording that has another user
is refused by name, because its window would be put over the wrong words.

Conventions
-----------
* *Likeness* of two signals is their normalised correlation at lag 0: 1 for the same at any gain, about 0 for two
  recordings of speech. The user of a case is that of the pack where every speech segment has a likeness of at least
  :data:`LIKE`. Band limits, codecs and gain leave more than that; another voice or another word leaves less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal
from dsbeval.errors import RunError
from dsbeval.ifeval.episode import room_seed
from dsbeval.ifeval.pack import Case, Pack
from dsbeval.recording import Channel, Recording
from dsbeval.spans import to_samples
from dsbeval.speech.acoustics import Acoustics, background, in_session
from dsbeval.speech.assemble import UserTurn, user_turns

LIKE = 0.9
REACH_S = 0.1
"""How far from where a release says it is a turn is looked for: its times are rounded, or of the frame."""


def likeness(one: Signal, other: Signal) -> float:
    """Return the normalised correlation of two signals of one length; 0 where one of them is silent."""
    power = float(np.dot(one, one)) * float(np.dot(other, other))
    return float(np.dot(one, other)) / power**0.5 if power > 0 else 0.0


def check_user(recording: Recording, pack: Pack, case: Case) -> None:
    """Raise :class:`RunError` where a recording of this suite has another user than ``case`` has in ``pack``."""
    turns = user_turns(pack, case.audio_key)
    onsets = tuple(_same_turn(recording.meta["user"], turn, number, case.id) for number, turn in enumerate(turns, 1))
    expected = _channel(case, turns, onsets, recording.length, recording.meta.get("acoustics", "clean"))
    for number, (turn, onset) in enumerate(zip(turns, onsets, strict=True), start=1):
        for index, segment in enumerate(turn.segments, start=1):
            if segment.kind == "silence":
                continue
            where = slice(onset + segment.span.start, onset + segment.span.end)
            found = likeness(recording.user[where], expected[where])
            if found < LIKE:
                raise unlike(
                    case.id, f"turn {number}, s{index} is like it by {max(found, 0.0):.2f} of 1", recording, expected
                )


def unlike(case: str, how: str, recording: Recording | None = None, expected: Signal | None = None) -> RunError:
    """Return the error for a user channel that is not the pack's."""
    if recording is not None and expected is not None and likeness(recording.model, expected) >= LIKE:
        return RunError(f"{case}: the user is on channel 1 and the agent on channel 0; swap the channels of the file")
    return RunError(
        f"{case}: the user's audio is not that of this pack ({how}); name the pack that it was recorded with (--pack)"
    )


def locate(user: Signal, turn: UserTurn, near: int) -> tuple[int, float]:
    """Return where a turn begins in a user channel, ``near`` a sample, and the least likeness of its speech segments."""
    from scipy import signal

    reach = to_samples(REACH_S, RATE)
    first = max(0, near - reach)
    heard = user[first : near + reach + turn.audio.size]
    if heard.size < turn.audio.size:
        return near, 0.0
    onset = first + int(np.argmax(signal.correlate(heard, turn.audio, mode="valid", method="fft")))
    spans = [segment.span for segment in turn.segments if segment.kind == "speech"]
    least = min(
        likeness(user[onset + span.start : onset + span.end], turn.audio[span.start : span.end]) for span in spans
    )
    return onset, least


def _same_turn(user: Sequence[Mapping[str, Any]], turn: UserTurn, number: int, case: str) -> int:
    """Return where a turn begins in the session. Raises :class:`RunError` where its segments are not those of the pack."""
    found = [segment for segment in user if segment["turn"] == number]
    for index, segment in enumerate(turn.segments, start=1):
        if index > len(found):
            raise unlike(case, f"turn {number} has {len(found)} segments, not {len(turn.segments)}")
        other, onset = found[index - 1], int(found[0]["start"])
        span = (int(other["start"]) - onset, int(other["end"]) - onset)
        if other["text"] != segment.text:
            raise unlike(case, f"turn {number}, s{index} says {other['text']!r}, not {segment.text!r}")
        if (other["type"], *span) != (segment.kind, segment.span.start, segment.span.end):
            raise unlike(case, f"turn {number}, s{index} lies elsewhere in its turn")
    return int(found[0]["start"])


def _channel(case: Case, turns: Sequence[UserTurn], onsets: Sequence[int], length: int, acoustics: Acoustics) -> Signal:
    """Return the user channel that a case of the pack has, with its turns at these samples."""
    seed = room_seed(case)
    channel = Channel(RATE, background(np.concatenate([turn.audio for turn in turns]), acoustics, seed))
    for turn, onset in zip(turns, onsets, strict=True):
        channel.place(in_session(turn.audio, acoustics, seed), onset)
    return channel.render(length)
