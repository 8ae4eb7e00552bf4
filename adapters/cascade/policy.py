"""The policy: when the agent takes, holds and yields the floor.

It knows its floor parameters and what it hears, and nothing else.

In the order in which they are tried, a frame at a time:

1. Speaking, and the user comes in: stop at once, or at the end of the sentence, or go on, as the floor says.
2. A trigger in the words: come in while the user is talking.
3. A check ("you know?", "are you still there?"): a listening sound in the pause after it.
4. A listening sound now and then: in a short pause, or, where silence belongs to the user, on the speech after one.
5. Told to speak first, and nobody has spoken: begin.
6. The user has been silent for the gap: take the turn.

Conventions
-----------
* A reply that the user cuts within :data:`GIVEN_S` was not given: what it answered stays open.
* The first turn of the user is answered after :data:`OPENING_GAP_S` at most, whatever the gap, since a conversation has
  to begin.
* Its own listening sound restarts the gap.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from adapters.cascade.cues import asks_presence, is_check, is_dictation, is_hanging, is_question
from adapters.cascade.floor import PLAIN_GAP_S, Floor, Overlap, Trigger
from adapters.cascade.hearing import Heard, Hearing
from adapters.cascade.triggers import find_triggers
from adapters.cascade.words import Kind, Moment, Writer

BEGIN_S = 0.3
OPENING_GAP_S = 1.0
DICTATION_GAP_S = 1.5
HANGING_S = 0.6
GIVEN_S = 1.0
BREATH_S = 0.5
SHORTEST_SPEECH_S = 0.25
CHECK_PAUSE_S = (0.2, 1.2)
SOUND_PAUSE_S = (0.3, 0.7)
SOUND_AFTER_S = 2.5
TRIGGER_REST_S = 4.0
HALF_FRAME_S = 0.04

_HISTORY = 20


class Stop(StrEnum):
    """How to stop speaking."""

    NOW = "now"
    SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class Say:
    """Speak this. A listening sound is not longer than ``longest_s``, and neither is a turn."""

    kind: Kind
    text: str
    longest_s: float | None


class Policy:
    """The decisions of one session."""

    def __init__(self, floor: Floor, prompt: str, writer: Writer, hearing: Hearing, chance: random.Random) -> None:
        self._floor, self._prompt = floor, prompt
        self._writer, self._hearing, self._chance = writer, hearing, chance
        self._history: deque[tuple[str, str]] = deque(maxlen=_HISTORY)
        self._kind: Kind | None = None  # of the speech under way
        self._began_s = 0.0
        self._stopping = False
        self._own_end_s = 0.0
        self._opened = False
        self._answered = self._answered_before = 0  # words
        self._answered_s = 0.0  # end of the user's last answered stretch
        self._answered_s_before = 0.0
        self._seen: frozenset[tuple[Trigger, int]] = frozenset()
        self._trigger_words = 0
        self._trigger_s = -TRIGGER_REST_S
        self._sound_s = 0.0
        self._sound_onset_s = -1.0  # the stretch after which the last check was answered
        self._talked_s = 0.0  # of the user, since the last sound or turn
        self._now_s = 0.0
        self._wait_s = self._next_wait()

    def decide(self, heard: Heard, speaking: bool, said_s: float) -> Say | Stop | None:
        """Return what to do at the end of the frame, given whether the agent is speaking and for how long."""
        if not speaking and self._kind is not None:
            self._kind, self._own_end_s = None, heard.now
        if heard.talking:
            self._talked_s += heard.now - self._now_s
        self._now_s = heard.now
        if self._kind is not None:
            return self._overlap(heard, said_s)
        return (
            self._interruption(heard)
            or self._check(heard)
            or self._sound(heard)
            or self._first_word(heard)
            or self._turn(heard)
        )

    # While speaking ---------------------------------------------------------------------------------------------------

    def _overlap(self, heard: Heard, said_s: float) -> Stop | None:
        if self._stopping or not heard.talking or self._kind in (Kind.BACKCHANNEL, Kind.PRESENCE):
            return None
        if self._kind is Kind.INTERRUPTION and (heard.onset_s <= self._began_s or heard.pause_s < BREATH_S):
            return None  # the user has not come in, the agent has
        if self._floor.overlap is Overlap.SHARE:
            return None
        self._stopping = True
        if self._floor.overlap is Overlap.FINISH:
            return Stop.SENTENCE
        if said_s < GIVEN_S:
            self._answered, self._answered_s = self._answered_before, self._answered_s_before
        return Stop.NOW

    # While the user has the floor ------------------------------------------------------------------------------------

    def _interruption(self, heard: Heard) -> Say | None:
        if not self._floor.triggers or heard.now - self._trigger_s < TRIGGER_REST_S:
            return None
        start = max(self._answered, self._trigger_words)
        found = frozenset(
            (found.trigger, start + found.words)
            for found in find_triggers(self._hearing.text(start), self._floor.triggers)
        )
        stable = found & self._seen  # a hypothesis changes its mind from frame to frame
        self._seen = found
        if not stable or heard.now - heard.end_s > PLAIN_GAP_S:
            return None
        trigger, _ = min(stable, key=lambda pair: (pair[1], pair[0].value))
        self._trigger_words, self._trigger_s, self._seen = heard.words, heard.now, frozenset()
        return self._say(heard, Kind.INTERRUPTION, trigger)

    def _check(self, heard: Heard) -> Say | None:
        silence = heard.now - heard.end_s
        if not self._floor.answers_checks or heard.talking or heard.onset_s == self._sound_onset_s:
            return None
        if not heard.settled or not CHECK_PAUSE_S[0] <= silence <= CHECK_PAUSE_S[1] or not is_check(heard.last):
            return None
        return self._listening(heard, Kind.PRESENCE if asks_presence(heard.last) else Kind.BACKCHANNEL)

    def _sound(self, heard: Heard) -> Say | None:
        if not self._floor.backchannels or heard.now - self._sound_s < self._wait_s or self._talked_s < SOUND_AFTER_S:
            return None
        silence = heard.now - heard.end_s
        if self._floor.keeps_silence:
            fits = heard.talking and 0.2 <= heard.now - heard.onset_s <= 0.6
        else:
            fits = not heard.talking and SOUND_PAUSE_S[0] <= silence <= SOUND_PAUSE_S[1]
        return self._listening(heard, Kind.BACKCHANNEL) if fits else None

    def _listening(self, heard: Heard, kind: Kind) -> Say:
        self._sound_s, self._sound_onset_s, self._wait_s = heard.now, heard.onset_s, self._next_wait()
        self._talked_s = 0.0
        return self._say(heard, kind)

    def _next_wait(self) -> float:
        return 60 / max(self._floor.backchannels_per_minute, 0.1) * self._chance.uniform(0.8, 1.2)

    # Taking the turn -------------------------------------------------------------------------------------------------

    def _first_word(self, heard: Heard) -> Say | None:
        if not self._floor.opens or self._opened or heard.onset_s >= 0 or heard.now < BEGIN_S:
            return None
        self._opened = True
        return self._say(heard, Kind.GREETING)

    def _turn(self, heard: Heard) -> Say | None:
        if heard.talking or heard.end_s <= self._answered_s:
            return None
        text = self._hearing.text(self._answered)
        if not text and heard.end_s - heard.onset_s < SHORTEST_SPEECH_S:
            return None  # a cough
        silence = heard.now - max(heard.end_s, self._own_end_s)
        if silence < self._gap(text, heard.last) - HALF_FRAME_S:
            return None
        if not self._opened:
            kind = Kind.OPENING
        elif not text:
            kind = Kind.UNHEARD
        elif self._floor.read_back and is_dictation(text):
            kind = Kind.READBACK
        else:
            kind = Kind.QUESTION if is_question(heard.last) else Kind.ANSWER
        self._opened = True
        self._talked_s = 0.0
        return self._say(heard, kind)

    def _gap(self, text: str, last: str) -> float:
        """Return the silence after which the turn is taken, given the words that wait for an answer."""
        floor = self._floor
        if not self._opened:
            return min(floor.gap_s, OPENING_GAP_S)
        if floor.answers_questions and is_question(last):
            return min(floor.gap_s, PLAIN_GAP_S)
        if floor.limit_s is not None or floor.keeps_silence:
            return floor.gap_s
        if floor.read_back and is_dictation(text):
            return max(floor.gap_s, DICTATION_GAP_S)
        return floor.gap_s + (HANGING_S if is_hanging(text) else 0.0)

    def _say(self, heard: Heard, kind: Kind, trigger: Trigger | None = None) -> Say:
        text = self._hearing.text(self._answered)
        moment = Moment(kind, text, self._floor, self._prompt, tuple(self._history), trigger)
        words = self._writer.write(moment, self._chance)
        self._kind, self._began_s, self._stopping = kind, heard.now, False
        if kind in (Kind.BACKCHANNEL, Kind.PRESENCE):
            return Say(kind, words, self._floor.backchannel_s)
        if kind is not Kind.INTERRUPTION:  # what is being said when the agent comes in is not answered by it
            if text:
                self._history.append(("user", text))
            self._answered_before, self._answered = self._answered, heard.words
            self._answered_s_before, self._answered_s = self._answered_s, heard.end_s
        self._history.append(("assistant", words))
        return Say(kind, words, self._floor.turn_s)
