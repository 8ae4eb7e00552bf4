"""What a scorer sees of a conversation: speech and voiced text of both sides, the transcript, the questions to a judge.

Conventions
-----------
* The transcript holds no name of a model, no pairing and no role: *Speaker A* is whose line comes first
  (:func:`dsbeval.dyadic.segments.transcript`).
* One closed question a measure, and none about a side that said nothing: that is scored without a judge.
* A *garbled* side (:mod:`dsbeval.dyadic.garble`) spoke, but not its text: it said nothing in words, and where a measure is of
  what the two agreed on, nobody is asked.
* What the judge is told of the scenario is what its question is about: the role of the speaker in question, the candidates, the
  options, the action, the goods. The secret of T4-2 is not shown; the sentence that states it is, with a gap.

Source: DyaFDB (arXiv 2610.08125), judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from dsbeval.audio import RATE
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES, Side
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.dyadic.segments import BENCHMARK, EnergySettings, Segment, attach, speech_segments, transcript
from dsbeval.dyadic.textpair import Talk
from dsbeval.judge import dyadic as ask
from dsbeval.judge.contract import Question
from dsbeval.recording import TimedText
from dsbeval.spans import Timeline

GAP = "(left out here)"
OF_BOTH = ("T2", "T4-1", "T4-3", "T4-4")
"""Tasks whose judged measure is what the two settled on."""


@dataclass(frozen=True)
class Heard:
    """A conversation as its listeners have it."""

    medium: Literal["speech", "text"]
    speech: Mapping[Side, Timeline]
    segments: Mapping[Side, tuple[Segment, ...]]
    voiced: Mapping[Side, tuple[TimedText, ...]]
    length: int
    garbled: tuple[Side, ...] = ()
    """Sides whose speech is not their text, by the last take of the garble watcher."""

    @property
    def transcript(self) -> str:
        """The anonymised transcript, a line a segment that has text."""
        return transcript(self.segments["a"], self.segments["b"])[0]

    @property
    def speakers(self) -> dict[Side, str]:
        """Which side is which speaker; a side without a line has none."""
        return cast("dict[Side, str]", transcript(self.segments["a"], self.segments["b"])[1])

    @property
    def wordless(self) -> tuple[Side, ...]:
        """The sides that spoke without any text: what they said is not known, as of an agent that gives no text."""
        speakers = self.speakers
        return tuple(side for side in SIDES if self.speech[side] and side not in speakers and side not in self.garbled)

    @property
    def end_s(self) -> float:
        """Seconds at which observation ended."""
        return round(self.length / RATE, 3)


def hear(recording: DyadRecording, settings: EnergySettings = BENCHMARK) -> Heard:
    """Segment a recording and attach its texts."""
    speech: dict[Side, Timeline] = {side: speech_segments(recording.audio(side), settings) for side in SIDES}
    garbled: tuple[Side, ...] = tuple(recording.meta.get("garble", {}).get("garbled", ()))
    attached = {side: attach(speech[side], () if side in garbled else recording.text(side)) for side in SIDES}
    segments: dict[Side, tuple[Segment, ...]] = {side: attached[side][0] for side in SIDES}
    voiced: dict[Side, tuple[TimedText, ...]] = {side: attached[side][1] for side in SIDES}
    return Heard("speech", speech, segments, voiced, recording.length, garbled)


def hear_talk(talk: Talk) -> Heard:
    """Return a conversation in text in the same form: a turn is a segment, a word a quarter of a second."""
    segments: dict[Side, tuple[Segment, ...]] = {side: talk.segments(side) for side in SIDES}
    speech: dict[Side, Timeline] = {side: Timeline(segment.span for segment in segments[side]) for side in SIDES}
    voiced: dict[Side, tuple[TimedText, ...]] = {side: talk.text(side) for side in SIDES}
    return Heard("text", speech, segments, voiced, talk.length)


def questions(scenario: AnyScenario, heard: Heard, seed: int = 0) -> dict[str, Question]:
    """Return the questions that a conversation of a scenario raises, by the names that :mod:`dsbeval.dyadic.scores` reads.

    ``adherence_a``, ``timing_a`` (and b), ``choice``, ``asked``, ``agreement``, ``option``, ``price``.
    """
    lines, speakers, score = heard.transcript, heard.speakers, scenario.score
    out: dict[str, Question] = {}
    if not lines or (heard.garbled and scenario.archetype in OF_BOTH):
        return out
    match scenario.archetype:
        case "T1-1" | "T1-2":
            for side in (side for side in score.scored if side in speakers):
                role, speaker = role_text(scenario, side), speakers[side]
                out[f"adherence_{side}"] = ask.role_adherence(role, speaker, lines, seed)
                out[f"timing_{side}"] = ask.role_timing(role, speaker, lines, seed)
        case "T2":
            out["choice"] = ask.final_choice(score.candidates, lines, seed)
        case "T3-2":
            presser, avoider = score.presser, other(score.presser)
            deed = score.action.removeprefix("to ")
            if presser in speakers:
                out["asked"] = ask.asked(f"permission to {deed}", speakers[presser], lines, seed)
            if avoider in speakers:
                out["agreement"] = ask.agreement(f"that the other may {deed}", speakers[avoider], lines, seed)
        case "T4-1":
            out["option"] = ask.landed_option([score.options.of(side) for side in SIDES], lines, seed)
        case "T4-2":
            if score.attacker in speakers:
                out["asked"] = ask.asked(secret_text(scenario), speakers[score.attacker], lines, seed)
        case "T4-3":
            out["option"] = ask.landed_option([score.lines.larger.name, score.lines.smaller.name], lines, seed)
        case "T4-4":
            out["price"] = ask.agreed_price(score.item, lines, seed)
    return out


def role_text(scenario: AnyScenario, side: Side) -> str:
    """Return what a judge is told of a role (T1)."""
    part = scenario.sides.of(side)
    off = getattr(scenario.score, "off_role", None)
    told = f"{part.role}. {part.prompt}"
    return f"{told}\nIt would be out of role if: {off}" if off else told


def secret_text(scenario: AnyScenario) -> str:
    """Return what is asked for in T4-2 without saying it: the sentence that states the secret, with a gap."""
    secret, prompt = scenario.score.secret, scenario.sides.of(scenario.score.defender).prompt
    stated = next(sentence for sentence in re.split(r"(?<=[.!?])\s+", prompt) if secret.text in sentence)
    return f"the part that is left out in: {stated.replace(secret.text, GAP)}"
