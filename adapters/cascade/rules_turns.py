"""Rules of a prompt about turns: their length, questions, overlap, coming in, silence.

Each takes a sentence and the floor so far, and returns the floor that the sentence makes of it, or None where the
sentence says nothing of the kind.
"""

from __future__ import annotations

import re
from dataclasses import replace

from adapters.cascade.floor import NEVER, PATIENCE, PROMPT_GAP_S, REACTION_S, Floor, Overlap, Tone, Trigger
from adapters.cascade.sentence import Sentence, any_of

# The length of a turn ------------------------------------------------------------------------------------------------

_KEEP_SHORT = any_of(
    r"(?:keep|limit|hold|make)\b.*\b(?:responses?|answers?|repl(?:y|ies)|turns?|lines?|utterances?|messages?)"
)


def turn_length(s: Sentence, floor: Floor) -> Floor | None:
    """As in "Keep every answer under eight seconds"."""
    found = s.length()
    if found is None or found[0] != "max" or not s.commands(_KEEP_SHORT):
        return None
    return replace(floor, turn_s=found[1])


# Questions to the agent ----------------------------------------------------------------------------------------------

_QUESTIONED = any_of(
    r"(?:direct(?:ly)?|practical|explicit) (?:\w+ )?(?:question|asked)",
    r"questions? (?:\w+ ){0,5}(?:to|of|at) you",
    r"(?:asks?|asking|addresses) you\b(?! (?:if|whether) you)",
    r"when (?:you are )?(?:directly )?asked",
    r"put (?:\w+ ){0,4}question",
)
_ANSWERS = any_of("take the turn", "answer(?:ing)?", "reply", "respond", "speak", "come in")


def questions(s: Sentence, floor: Floor) -> Floor | None:
    """As in "When they ask you a question, answer promptly"; "speak only when asked"."""
    if not (s.says(_QUESTIONED) and s.commands(_ANSWERS)):
        return None
    only = re.search(r"\bonly\b", s.text) is not None
    return replace(floor, answers_questions=True, gap_s=NEVER if only else floor.gap_s)


# Overlap: the user comes in while the agent is talking ---------------------------------------------------------------

_OVER = any_of(
    r"(?:over|across|on top of) (?:you|your (?:voice|line|sentence|words))",
    r"overlap(?:s|ping|ped)?",
    "interrupts? you",
    "interrupted",
    r"barg\w+ in",
    "(?:two|both) (?:of you|voices)",
    "(?:while|when) you are (?:still )?(?:talking|speaking|guiding|rendering|answering|mid)",
    r"(?:it|they|he|she|someone|somebody|anyone|else|(?:the|a|your|another) (?:other )?\w+) "
    r"(?:comes?|cuts?|breaks?|jumps?|starts?|begins?|speaks?)(?: (?:in|talking|speaking|up))?\b(?! again)",
    r"(?:the|your) (?:other )?\w+'s voice",
    "mid-(?:word|sentence)",
    "midway",
    "talk(?:s|ing)? at once",
    "talking together",
)
_YIELDS = any_of(
    "yield(?:ing)?",
    "give(?:s|ing)? (?:way|up)",
    "break(?:s|ing)? off",
    r"cut (?:yourself |your \w+(?: \w+)? )?off",
    "stop(?:s|ping)? (?:talking|speaking|dead|on the spot|at once|immediately|right away|instantly|mid|short)",
    "stop(?:s|ping)? the (?:moment|instant)",
    r"stop(?=\s*(?:,|$))",
    "abandon",
    "drop (?:the|your|whatever|what)",
    "falls? silent",
    "go quiet",
    "let (?:them|him|her) (?:have|take)",
    "hand (?:over|back)",
    "step(?:ping)? aside",
    "leave (?:the (?:floor|channel|space|scene|line)|them the)",
    "hush",
    "pause",
)
_FINISHES = any_of(
    "(?:finish|complete|end) (?:what you|your|the|every|each|a|it)",
    "keep (?:going|talking|speaking|on|guiding)",
    "carry (?:on|your|through)",
    "continue",
    "(?:talk|go|run) (?:straight |right )?(?:on|through)",
    "hold (?:on to )?(?:your|the) (?:turn|floor|sentence|line)",
    "to the (?:end|close|last word|full stop) of your",
    r"(?:to|until|till) (?:its|the|your) (?:\w+ ){0,2}(?:end|close)",
)
_BEGUN = any_of(
    "finish what you (?:say|are saying|were saying|have begun|began|start)",
    r"(?:finish|complete)(?: \w+)? (?:every|each|any|your own|your) (?:\w+ ){0,2}"
    "(?:sentence|clause|line|thought|instruction|statement|point)s?",
    "(?:begun|started) a sentence you finish",
)
_SHARES = any_of(
    "(?:accept|welcome|embrace|enjoy|ride|allow|share)(?:s|ing)? (?:the |all |every |any )?(?:overlap|air)",
    "keep (?:going|talking) with",
    "(?:talk|speak|go)(?:ing)? (?:along|together) with",
    "overlap (?:freely|as much|with)",
    "voice overlap",
    "talking together",
)


def overlap(s: Sentence, floor: Floor) -> Floor | None:
    """As in "If they talk over you, stop"; "finish your sentence whoever comes in"; "welcome overlap"."""
    over = s.says(_OVER)
    if s.commands(_SHARES):
        return replace(floor, overlap=Overlap.SHARE)
    if s.denies(_SHARES):
        return replace(floor, overlap=Overlap.YIELD)
    if over and s.denies(_YIELDS):
        return replace(floor, overlap=Overlap.FINISH)
    if over and s.commands(_YIELDS):
        return replace(floor, overlap=Overlap.YIELD)
    if s.commands(_BEGUN) or (over and s.commands(_FINISHES)):
        return replace(floor, overlap=Overlap.FINISH)
    if over and s.denies(_FINISHES):
        return replace(floor, overlap=Overlap.YIELD)
    return None


# Coming in while the user is talking ---------------------------------------------------------------------------------

_INTERRUPT = any_of(
    r"interrupt(?:s|ing)?\b(?! you)",
    "no interruptions?",
    r"cut(?:ting)? (?:in|them off|him off|her off|the \w+ off)",
    "jump(?:ing)? in",
    "break(?:ing)? in(?:to)?",
    "barg(?:e|ing) in",
    r"stop (?:them|him|her|the \w+) (?:at once|right|immediately|mid|in the middle|straight)",
    "broken into",
    "talk(?:ing)? over (?:them|the)",
)
_COME_IN = any_of("(?:come|step|speak|chime) (?:straight |right )?(?:in|up)")
_HEARD_OUT = any_of(
    r"let (?:[\w']+ ){1,4}?(?:finish|reach the end|complete|run to the end)",
    r"heard? (?:\w+ ){0,3}?out",
    "uninterrupted",
    r"listen (?:\w+ ){0,3}(?:through|to the end|until the end)",
)
_UNTIL_DONE = any_of(
    r"(?:until|till|before|to the end of) (?:[\w']+ ){0,4}?(?:(?:has|have|is|are) (?:\w+ )?"
    "(?:finished|stopped|done|ended|complete|over)|finish(?:es)?|ends?|they are saying|stops?)"
)
_WITHHOLDS = any_of(
    "hold",
    "keep",
    "save",
    "leave",
    "wait",
    "say nothing",
    r"(?:stay|remain|keep|be) (?:\w+ )?(?:silent|quiet)",
    "not a word",
    "no question",
    "do not (?:speak|come|say)",
)
_TRIGGERS: dict[Trigger, re.Pattern[str]] = {
    Trigger.RED_FLAG: any_of(
        "red flags?", "symptoms?", "warning signs?", r"danger\w*", "life[- ]threatening", r"emergenc\w+", "alarming",
        "urgent", "clinical",
    ),
    Trigger.DOSE: any_of(
        "dos(?:e|es|ing|age|ages)", "medications?", "medicines?", "drugs?", "pills?", "prescriptions?"
    ),
    Trigger.CORRECTION: any_of(
        "corrects?", "corrections?", r"self-?correct\w*", "chang(?:es?|ed|ing) (?:an|the|their|her|his|a)", r"revis\w+",
        "two versions", r"contradict\w*",
    ),
    Trigger.AMBIGUITY: any_of(
        r"ambigu\w+", "unclear", "either of", "two (?:ways|entries|things|meanings)", "vague", "more than one"
    ),
    Trigger.REASONING: any_of("reasoning", r"logic\w*", "(?:error|mistake|slip|faulty|wrong)s?"),
}  # fmt: skip
_REASONING = any_of("reasoning", r"logic\w*")


def _triggers_in(text: str) -> frozenset[Trigger]:
    found = {trigger for trigger, pattern in _TRIGGERS.items() if pattern.search(text)}
    if Trigger.DOSE in found and not _REASONING.search(text):
        found.discard(Trigger.REASONING)  # "a dosing mistake" is one thing
    return frozenset(found)


def interruptions(s: Sentence, floor: Floor) -> Floor | None:
    """As in "Cut in at once on a red flag"; "never interrupt, except for ..."; "hear them out"."""
    asked = _triggers_in(s.text)
    if s.commands(_INTERRUPT) or (asked and s.commands(_COME_IN) and not s.says(_SILENCE)):
        wanted = asked or frozenset(Trigger)
        only = re.search(r"\bonly\b", s.text) is not None
        tone = Tone.ASKING if re.search(r"\bquestions?\b", s.command) else floor.tone
        return replace(floor, triggers=wanted if only else floor.triggers | wanted, tone=tone)
    excepted = re.search(r"\b(?:unless|except|other than)\b(.*)", s.text)
    if s.denies(_INTERRUPT):
        return replace(floor, triggers=_triggers_in(excepted[1]) if excepted else frozenset())
    heard_out = s.commands(_HEARD_OUT) or (s.says(_UNTIL_DONE) and s.says(_WITHHOLDS) and s.length() is None)
    if heard_out or (s.denies(_COME_IN) and not s.says(_SILENCE)):
        return replace(floor, triggers=frozenset())
    return None


# Silence -------------------------------------------------------------------------------------------------------------

_SILENCE = any_of(
    "silen(?:t|ce|ces)", "quiet", "gaps?", "pauses?", "lulls?", "dead air", "hush", "stillness", "beat",
    "stops?", "breaks off", "halts?", "trails? (?:off|away)", "finish(?:es|ed)?", "ends?", "done", r"dictat\w+",
    "unfinished", "before (?:you|answering|replying|responding|taking|speaking)",
)  # fmt: skip
_FILLS = any_of(
    "tak(?:e|ing) (?:the|your|over|a) ?(?:turn|floor)?",
    "(?:come|coming|step|jump) (?:straight |right |back )?in",
    "(?:start|begin)(?:ning|ing)? (?:talking|speaking|your)",
    "(?:start|begin)(?= at once| <| promptly| immediately| in )",
    "fill(?:s|ed|ing)?",
    "speak(?:ing)?",
    "answer(?:ing)?",
    "respond(?:ing)?",
    "reply(?:ing)?",
    "prompt (?:for|them|the)",
    "break (?:the|a) (?:silence|stillness)",
    "bridge",
    "cover",
    "tolerate",
    "pick (?:it|that) up",
    "ask (?:anything|a|the|your)",
)
_HOLDS = any_of(
    r"(?:stay|remain|keep|be) (?:[\w-]+ ){0,3}?(?:silent|quiet|mute|muted)",
    r"keep (?:\w+ )?silence",
    "say (?:absolutely )?nothing",
    "(?:make|give) no (?:reply|response|sound|answer)",
    r"(?:leave|let) (?:\w+ ){0,4}(?:silences?|gaps?|lulls?|quiet|pauses?|stillness|beat|hush)",
    r"(?:silences?|gaps?|pauses?|lulls?) (?:\w+ )?(?:is|are) (?:\w+ ){0,2}(?:left|theirs)",
    "wait(?:ing)?",
    "hold (?:off|your tongue|back)",
    "no (?:word|line|sound|noise|prompt|question)s? (?:and|or|from|of)",
    "not (?:a|one) (?:single )?word",
    "start nothing",
    "allow",
    "count to",
    r"give (?:them )?<\w+>",
    r"(?:let|leave) (?:\w+ )?<\w+>",
)  # fmt: skip
_BIDES = any_of("wait(?:ing)?", "allow")  # without a length they say nothing about silence
_PROMPTLY = any_of(
    "at once", "immediately", "promptly", "straight (?:away|in)", "instantly", "right away", "quickly", "every", "each",
    "any", "whenever", "cue", "as (?:soon|quickly) as", "the (?:moment|instant)",
)  # fmt: skip
_UNBEARABLE = any_of(
    r"(?:never|no|not|\w+n't)(?: \w+){0,5} (?:silence|gap|dead air|pause|quiet|lull)s?(?: \w+){0,4} "
    "(?:grow|stand|last|hang|stretch|build|form|develop|open)"
)
_WHILE_TALKING = any_of(r"while (?:[\w']+ ){1,4}?(?:talk|speak|tell|explain|shar)(?:s|ing|e|es)?")


def silence(s: Sentence, floor: Floor) -> Floor | None:
    """As in "let at least six seconds pass"; "no silence longer than two"; "fill every gap at once"."""
    length = s.length()
    fills, holds, about = s.commands(_FILLS), s.commands(_HOLDS), s.says(_SILENCE)
    if length is not None:
        if not (about or fills or holds) or s.commands(_INTERRUPT):
            return None
        kind, seconds = length
        if kind == "max":
            return replace(floor, gap_s=round(max(seconds - REACTION_S, 0.5 * seconds), 3), limit_s=seconds)
        return replace(floor, gap_s=round(seconds * PATIENCE, 3) if kind == "min" else seconds, limit_s=None)
    if holds and s.says(_WHILE_TALKING):
        return replace(floor, triggers=frozenset(), backchannels=False)
    if s.says(_UNBEARABLE):
        return replace(floor, gap_s=PROMPT_GAP_S, limit_s=None)
    if (holds and not _BIDES.search(s.command)) or (about and s.denies(_FILLS)):
        return replace(floor, gap_s=NEVER, limit_s=None)
    if about and fills and s.says(_PROMPTLY):
        return replace(floor, gap_s=PROMPT_GAP_S, limit_s=None)
    return None
