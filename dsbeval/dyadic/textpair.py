"""The same scenarios between two text models: what the roles are worth without a channel to share.

Conventions
-----------
* 240 words of both sides together stand in place of the minute, and there are at most 20 turns. A turn that would go past
  the last word is cut there, as speech is cut at the end of the window.
* The sides take turns, the opener first. Each model sees its own prompt, its own words as the assistant's and the other's
  as the user's. The opener's instruction is the last part of its prompt, as in the dyads; since a chat needs something to answer,
  it is also sent as the first user message.
* An answer without words is a turn of silence, and says nothing to the other but :data:`SILENCE`. Two in a row end the
  conversation.
* Time is counted in words: 240 words are 60 s, so word n is said at n / 4 s. The transcript and every measure of text then have
  the shape that they have for speech; nothing about time is measured.
* Who answers is a callable, so a test, a local model or a service will do (:mod:`dsbeval.dyadic.textchat`).

Source: DyaFDB, analyses (text pairing on T1-1, T2, T3-2, T4-2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from dsbeval.audio import RATE
from dsbeval.dyadic.rows import Side
from dsbeval.dyadic.segments import Segment
from dsbeval.errors import AgentError
from dsbeval.recording import TimedText
from dsbeval.spans import Span, to_samples

WORDS = 240
TURNS = 20
WORDS_A_SECOND = 4
SILENCE = "(says nothing)"

MANNER = (
    "This is a spoken conversation. Reply with what you say and nothing else: one to three short sentences, without stage "
    "directions, lists or symbols."
)
"""Sent after the prompt, in every scenario the same."""

TASKS = ("T1-1", "T2", "T3-2", "T4-2")
"""The tasks of the published text pairing."""


class Message(TypedDict):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


Chat = Callable[[Sequence[Message]], str]
"""Takes the messages so far and returns the answer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said in its turn; the words are those before the budget's end."""

    side: Side
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Talk:
    """A finished conversation in text. ``ended`` says by what: words, turns or silence."""

    turns: tuple[Turn, ...]
    ended: Literal["words", "turns", "silence"]

    @property
    def words(self) -> int:
        """Words of both sides."""
        return sum(len(turn.text.split()) for turn in self.turns)

    @property
    def length(self) -> int:
        """Samples of the session clock that the words stand for."""
        return _sample(self.words)

    def segments(self, side: Side) -> tuple[Segment, ...]:
        """Return the turns of a side as segments, a turn of silence left out."""
        out: list[Segment] = []
        before = 0
        for turn in self.turns:
            after = before + len(turn.text.split())
            if turn.side == side and after > before:
                out.append(Segment(Span(_sample(before), _sample(after)), turn.text))
            before = after
        return tuple(out)

    def text(self, side: Side) -> tuple[TimedText, ...]:
        """Return the words of a side, each at its time, as a recording holds them."""
        out: list[TimedText] = []
        before = 0
        for turn in self.turns:
            words = turn.text.split()
            if turn.side == side:
                out.extend(TimedText(_sample(before + index), f"{word} ") for index, word in enumerate(words))
            before += len(words)
        return tuple(out)


def _sample(words: int) -> int:
    return to_samples(words / WORDS_A_SECOND, RATE)


def converse(
    chats: dict[Side, Chat],
    prompts: dict[Side, str],
    opener: Side,
    instruction: str,
    *,
    words: int = WORDS,
    turns: int = TURNS,
) -> Talk:
    """Let two text models talk.

    Parameters
    ----------
    chats : dict
        Who answers for side a and for side b.
    prompts : dict
        The role prompt of each side; the opener's ends with the instruction already, as the scenarios give it.
    opener : "a" or "b"
    instruction : str
        The fixed instruction to speak first.
    words, turns : int
        The budget of both sides together.

    Raises
    ------
    AgentError
        When a chat fails, naming the side: an error of the conversation, never a score.
    """
    if words < 1 or turns < 1:
        raise ValueError(f"a conversation needs a word and a turn, not words={words}, turns={turns}")
    if not prompts[opener].rstrip().endswith(instruction.strip()):
        raise ValueError(f"the prompt of the opener ({opener}) does not end with the opener's instruction")
    done: list[Turn] = []
    left = words
    side = opener
    while len(done) < turns:
        said = _ask(chats[side], _messages(done, side, prompts[side], instruction if side == opener else ""), side)
        spoken = said.split()
        done.append(Turn(side, " ".join(spoken[:left]), cut=len(spoken) > left))
        left -= min(left, len(spoken))
        if left == 0:
            return Talk(tuple(done), "words")
        if len(done) > 1 and not done[-1].text and not done[-2].text:
            return Talk(tuple(done), "silence")
        side = "b" if side == "a" else "a"
    return Talk(tuple(done), "turns")


def _messages(done: Sequence[Turn], side: Side, prompt: str, instruction: str) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": f"{prompt}\n\n{MANNER}"}]
    if instruction:
        messages.append({"role": "user", "content": instruction})
    for turn in done:
        role: Literal["user", "assistant"] = "assistant" if turn.side == side else "user"
        messages.append({"role": role, "content": turn.text or SILENCE})
    return messages


def _ask(chat: Chat, messages: Sequence[Message], side: Side) -> str:
    try:
        return chat(messages)
    except AgentError as error:
        raise AgentError(f"side {side}: {error}") from None
