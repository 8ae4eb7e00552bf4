r"""The prompts of the judges: plain text files beside this one, filled in here.

A prompt is ``system.md`` and the file of its kind, in which ``{{name}}`` stands for a part of the question. Every part is
put between a pair of marks that hold a tag::

    [[transcript 3f0c9a51be77]]
    ...
    [[/transcript 3f0c9a51be77]]

Conventions
-----------
* The tag is a hash of all the parts. A text cannot hold a hash of itself that its author knows, so nothing in a part can
  close it or open another; should the tag occur all the same, the next one is taken.
* Parts are filled in in one pass, so marks and braces in a part stay what they are: text.
* Control characters and lone surrogates are replaced, line ends are made ``\n``; nothing else is changed and nothing is cut.
* A change to a file in this folder is a new :data:`VERSION`; judgements keep the version and the hash of their prompt.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsbeval.judge.contract import Kind, Question

VERSION = "1"
FOLDER = Path(__file__).resolve().parent

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is sent."""

    system: str
    user: str


def render(question: Question) -> Prompt:
    """Return the prompt of a question. The same question gives the same prompt, byte for byte."""
    parts = {name: clean(text) for name, text in question.parts.items()}
    tag = free_tag(parts)
    blocks = {name: f"[[{name} {tag}]]\n{text}\n[[/{name} {tag}]]" for name, text in parts.items()}
    template = _template(question.kind.value)
    if question.kind is Kind.PAS:
        template += "\n" + _template("pas_conflict" if "instruction" in parts else "pas_no_conflict")
    user = _SLOT.sub(lambda slot: blocks[slot[1]], template)
    return Prompt(_template("system").replace("{{tag}}", tag), user)


def prompt_hash(question: Question) -> str:
    """Return the hash of everything that a judge is asked: the prompt and the schema of the answer."""
    prompt = render(question)
    data = [question.kind.value, prompt.system, prompt.user, question.schema]
    return hashlib.sha256(json.dumps(data, ensure_ascii=True, sort_keys=True).encode()).hexdigest()


def clean(text: str) -> str:
    """Return a text that can be sent and shown: line ends made equal, other control characters replaced."""
    return _CONTROL.sub("\ufffd", _LINE_ENDS.sub("\n", text))


def texts_hash() -> str:
    """Return the hash of the prompt files, by which a change without a new version is seen."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.glob("*.md")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def free_tag(parts: Mapping[str, str], length: int = 12) -> str:
    """Return the first tag made from the parts that occurs in none of them."""
    data = json.dumps(parts, ensure_ascii=True)
    for count in itertools.count():
        tag = hashlib.sha256(f"{count}{data}".encode()).hexdigest()[:length]
        if not any(tag in text for text in parts.values()):
            break
    return tag


@functools.cache
def _template(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")
