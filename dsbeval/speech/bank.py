"""The bank of speech that the calibration agents speak with: real speech, because the VAD must hear it.

========== =====================================================================================
entry      what it is, as the VAD of the benchmark hears it
========== =====================================================================================
ack        a very short acknowledgement: exactly one span, under 0.6 s
reply      a sentence of about 2.5 s: one span
answer     a sentence of 6 to 8 s without a pause: one span
monologue  at least 20 s without a pause: one span
========== =====================================================================================

The texts are in ``adapters/bank/bank.yaml``; ``dsbeval speech bank`` renders them. Lines of one entry are trimmed and
joined without a gap.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from dsbeval.errors import AudioError
from dsbeval.speech.engine import Engine, Utterance, WordTime
from dsbeval.speech.store import MANIFEST, AudioStore, Request, write_segment
from dsbeval.speech.trim import trim
from dsbeval.yamlfile import Entry, read_yaml

BANK = Path(__file__).resolve().parents[2] / "adapters" / "bank"
KEY = "bank"
MEND = "dsbeval speech bank"


class BankEntry(Entry):
    """One utterance of the bank: its lines are spoken one by one and joined without a gap."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    voice: str
    seed: int = 0
    lines: Annotated[list[str], Field(min_length=1)]


class BankFile(Entry):
    """The file ``bank.yaml``."""

    engine: str
    entries: Annotated[list[BankEntry], Field(min_length=1)]


def load_bank(root: Path = BANK) -> dict[str, Utterance]:
    """Return every utterance of the bank by name.

    Raises :class:`AudioError` when the bank has not been built or is damaged.
    """
    store = AudioStore(root, MEND)
    if not store.names(KEY):
        raise AudioError(f"{root / MANIFEST}: no bank of speech there; run: {MEND}")
    return {name: store.utterance(KEY, name) for name in store.names(KEY)}


def build_bank(engine: Engine, root: Path = BANK) -> list[str]:
    """Render what is missing from the bank; return the names that were rendered."""
    file = read_yaml(root / "bank.yaml", BankFile)
    store = AudioStore(root, MEND)
    made: list[str] = []
    for entry in file.entries:
        text = " ".join(entry.lines)
        request = Request(engine.name, engine.version, entry.voice, entry.seed, "\n".join(entry.lines))
        found = store.find(KEY, entry.id)
        if found is not None and found.file == request.file and (root / found.file).exists():
            continue
        spoken = _joined([trim(engine.synthesize(line, entry.voice, entry.seed)) for line in entry.lines])
        store.put(KEY, entry.id, write_segment(root, request, text, spoken))
        made.append(entry.id)
    if made or set(store.names(KEY)) != {entry.id for entry in file.entries}:
        store.engines[engine.name] = dict(engine.facts)
        store.keep({KEY: tuple(entry.id for entry in file.entries)})
        store.save()
    return made


def _joined(parts: list[Utterance]) -> Utterance:
    words: list[WordTime] = []
    offset = 0
    for part in parts:
        words += (WordTime(w.word, w.start + offset, w.end + offset) for w in part.words)
        offset += part.audio.size
    return Utterance(np.concatenate([part.audio for part in parts]), tuple(words))
