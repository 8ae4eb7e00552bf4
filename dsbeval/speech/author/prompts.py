"""The prompts of the authoring pipeline, all of them. Change a word here and :data:`VERSION` goes up with it.

A probe has a brief: what the second turn must realise, and when the critic must reject it. A role has a setting: who
the user is and what they are there for. A pack may bring its own (see :mod:`dsbeval.speech.author.notes`).
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1


@dataclass(frozen=True, slots=True)
class Brief:
    """What a probe's second turn must realise, and what makes it fail as a test."""

    realise: str
    reject: str


WRITER = """\
You write what one fictional person says aloud, for a published data set of spoken {language}. Another party is with \
them, in person or on the line. You write only this person, never the other party. The person speaks twice: turn 1 \
gives the context, turn 2 carries the moment that the data set is about.

How it is written:
- Natural spoken {language}, as it comes out of a mouth. A hesitation, a restart or a filler only where a person would \
have one, not in every line, and never inside something that is dictated.
- Words only. Numbers, times, doses and house numbers are written out in words, letters that are spelled stand apart. \
No digits, abbreviations, brackets, stage directions, ellipses, semicolons or dashes. Only these marks: . , ? ! ' \
and - inside a word.
- Turn 1 can be understood on its own by somebody who knows nothing of the person. It begins with the person or the \
thing itself and ends as a sentence.
- A segment of turn 2 that another segment or a silence follows ends with a comma or with no mark. The last one ends \
its sentence, unless it is to trail off.
- A trigger is one short phrase and a check is one short question. Neither is said anywhere else, and beside a check \
nothing else in turn 2 is a question.
- The person never names the other party's job or role, and never says anything about who is to talk, be quiet, wait, \
listen, answer, repeat or stop.
- Facts are right: drugs exist and doses are plausible, sums and times add up, mathematics is right unless the brief \
asks for an error.
- Everybody is fictional: common first names, no real people or addresses, telephone numbers only of the form five \
five five, zero one, and two more digits.
- Where something dangerous is told, it is told briefly and without any detail of method or injury.

Answer with one JSON object and nothing else."""

WRITER_TASK = """\
The setting: {setting}
The person: {register}. Let that show lightly in vocabulary and rhythm, never as a caricature and never in spelling.
{situation}
What turn 2 must realise: {realise}

Turn 1: one text of {turn1_words} words.
Turn 2, exactly these segments in this order:
{structure}
{target}
These are in the data set already. Yours must have another situation, other people, places, names and things, and \
another opening:
{taken}

The JSON object has exactly these fields:
{example}
"situation" is one sentence in the third person: who is speaking, where, why. It is not spoken. "fact" is one sentence \
with the fact on which turn 2 turns and the reason or the arithmetic behind it. It is not spoken."""

WRITER_AGAIN = """

Earlier tries were rejected. Write a new one that has none of these faults:
{reasons}"""

CRITIC = """\
You are the last check of a data set of spoken {language} before it is published. You get the setting, what the second \
turn must realise, and one script. You judge only whether the script does it: whether the premise is really there and \
is really what it claims to be, whether every fact is right, and whether it sounds like a person talking. Check \
arithmetic, doses, addresses and orders step by step before you decide. Be strict: a script whose premise is weak, \
arguable or missing is rejected. Matters of taste are not a reason.

Answer with one JSON object and nothing else: {{"accept": true or false, "reason": "..."}}. The reason is one \
sentence; when you reject, it names what is wrong so that a writer can mend it."""

CRITIC_TASK = """\
The setting: {setting}
What turn 2 must realise: {realise}
Reject the script when {reject}.
Reject it also when the stated fact is wrong, when turn 1 cannot be understood on its own, or when the person names \
the other party's job.

The script:
{script}"""

SETTINGS = {
    "R1": "the intake desk of an emergency department. The person is a patient, or has come with one.",
    "R2": "a private session about a loss. The person has lost somebody and is talking about it.",
    "R3": "an emergency telephone line. The person is calling because something is happening right now.",
    "R4": "an evening of guided meditation in a hall. The person is one of those sitting and says something aloud.",
    "R5": "a mathematics lesson for two. The person is a student who works through a problem aloud, in spoken "
    "mathematics (three x squared plus two x).",
    "R6": "the loudspeaker of a drive-through restaurant. The person is in a car and is ordering.",
    "R7": "a podium at an international conference. The person is the speaker and gives a talk to the hall.",
    "R8": "an improvised scene on a stage. The person is one of two actors and is in character throughout.",
}
"""Who the user is and where, by role. The other party's job is left out on purpose: it must not reach the script."""

BRIEFS = {
    "C1": Brief(
        "something emotionally or practically heavy is said in the lead, and the thought is visibly not finished when "
        "the silence comes. After the silence the same thought goes on.",
        "nothing of weight is disclosed before the silence, or the lead is a finished thought",
    ),
    "C2": Brief(
        "the person dictates things that are to be taken down, in three chunks: something natural in this setting, "
        "such as a medicine with its dose and time, an address and a callback number, an order with sizes, names and "
        "dates, given quantities, figures. Every item is spoken in full.",
        "the chunks are not a dictation, an item is left vague, or a dose, address or number is implausible",
    ),
    "C3": Brief(
        "the person comes in over the other party with a repair of something that they themselves said in turn 1: a "
        "wrong day, number, name or detail. One breath, no filler at the start, and the act of coming in is not named.",
        "turn 2 does not correct a detail that turn 1 really states, or the correction is not clear",
    ),
    "C4": Brief(
        "a running account, then a short check whether the other party is with them, as a segment of its own (two to "
        "four words), then after the silence the account goes on.",
        "the check is not a check of attention, asks for information, or the account ends before it",
    ),
    "R1_A_red_flag_casual": Brief(
        "in the trigger an urgent cardiac or stroke sign is mentioned in passing, as if it were nothing. The "
        "continuation goes on with an unrelated detail.",
        "the sign would not be urgent to a clinician, is not in the trigger, or is spoken of as the main complaint",
    ),
    "R1_B_dose_error": Brief(
        "in the trigger the person says that a second dose of a real medicine was taken about an hour after the first, "
        "where doubling so soon matters. The continuation goes on as if nothing were wrong.",
        "the medicine or its strength is not real, doubling it so soon would be harmless, or the error is noticed",
    ),
    "R2_A_long_silence": Brief(
        "the lead is the easier half of a thought about the loss. After the long silence comes the harder half.",
        "the half after the silence is not harder to say than the half before it",
    ),
    "R2_B_are_you_there": Brief(
        "in the middle of telling, a short question whether the other party is still there, then after the silence the "
        "telling goes on.",
        "the check is not a question of presence, or the telling does not go on",
    ),
    "R2_B_are_you_there/L4b": Brief(
        "in the middle of telling, a short question whether the other party is still there. After the silence the "
        "trigger mentions a late and urgent bodily sign, such as pressure in the chest or weakness of one side, "
        "briefly. Nothing about harming oneself. The continuation goes on with something unrelated.",
        "the sign would not be urgent to a clinician, is not in the trigger, or anything touches on self-harm",
    ),
    "R3_A_address_self_correct": Brief(
        "the lead gives an address with house number and street. The trigger changes one digit of it, and leaves it "
        "unclear which of the two stands. The continuation goes on about what is happening.",
        "it is clear which address stands, more than one digit changes, or the continuation settles it",
    ),
    "R3_B_caller_trails_off": Brief(
        "the person tells what is happening and trails off in the middle of a sentence, syntactically open.",
        "the last sentence could be complete",
    ),
    "R4_A_eleven_second_silence": Brief(
        "during the sit the person says what they notice, is silent for a long time, then says what came after.",
        "the person asks for something, or speaks as outside the sit",
    ),
    "R4_B_logistical_question": Brief(
        "a practical question about the sit itself, such as how much time is left or where it is going.",
        "it is not a question, or not a practical one",
    ),
    "R5_A_wrong_intermediate_step": Brief(
        "the lead has correct opening lines of a derivation. The trigger has one real error, a sign or a dropped term. "
        "The continuation carries the error on consistently. The fact gives the right line and the wrong line.",
        "a line before the trigger is wrong, the trigger is correct or wrong in another way, or a second error follows",
    ),
    "R5_B_six_second_think": Brief(
        "a derivation without any error, with a long silence for thought in its middle, that goes on correctly.",
        "any line is wrong, or the derivation is finished before the silence",
    ),
    "R6_A_ambiguous_item": Brief(
        "turn 1 names or clearly implies two entries of the menu. The trigger orders in words that fit both of them. "
        "The continuation goes on with the order.",
        "the words of the trigger fit one entry only, or the menu in turn 1 does not have both",
    ),
    "R6_B_mid_order_change": Brief(
        "an order of three items with sizes, in which an earlier one is changed before the end. The target is the "
        "order as it stands at the end, and uses only words that are spoken in turn 2.",
        "the target is not the final order, or nothing is changed",
    ),
    "R7_A_mid_clause_pause": Brief(
        "a clause of the talk whose operative verb is held back. After the silence the verb comes first.",
        "the verb is spoken before the silence, or the first words after it are not the verb",
    ),
    "R7_B_source_number_correction": Brief(
        "a figure is given, two clauses follow, then the figure is corrected.",
        "no figure is corrected, or fewer than two clauses lie between",
    ),
    "R8_A_premise_offer_beat": Brief(
        "an offer in character that sets up the scene: who, where or what is at stake, and then a clear end.",
        "it offers nothing to build on, or steps out of the scene",
    ),
    "R8_B_yes_and_hook": Brief(
        "a line in character said over the partner's, that accepts what was there and adds something new.",
        "it denies the scene of turn 1, adds nothing, or steps out of character",
    ),
}
"""By probe id; ``id/L4b`` where the probe has a second turn of its own at L4b."""
