"""The gates that a pack passes before anyone is tested with it, and all of them run over a pack.

A gate is a small function that yields :class:`Finding`. :data:`PACK_GATES` look at the whole pack; those on one
conversation are in :mod:`dsbeval.ifeval.conversation_gates`, which also says how a finding reads.

Source: DSB-IFEval (arXiv 2609.03423), hard gates and leakage gates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from dsbeval.ifeval.conversation_gates import Finding, check_recording, finding_at, user_texts
from dsbeval.ifeval.leakage import MAX_JACCARD, PERSONA_WORDS, content_words, jaccard, leakage
from dsbeval.ifeval.pack import INSTANCES, LEVELS, Pack
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.similarity import NEAR_DUPLICATE, pairs, repeated_names

PUBLISHED_LEVELS = {"L0": 48, "L1": 240, "L2": 240, "L3": 240, "L4a": 240, "L4b": 30}
PUBLISHED_ACTIONS = {
    Action.LISTEN: 273, Action.TAKE_TURN: 168, Action.BACKCHANNEL: 152, Action.YIELD: 126, Action.INTERRUPT: 120,
    Action.READBACK: 94, Action.NO_BACKCHANNEL: 42, Action.ACCEPT_OVERLAP: 42, Action.CONTINUE: 21,
}  # fmt: skip
PUBLISHED_RECORDINGS = 229
"""224 distinct user recordings, and five for R2_B at L4b."""


def persona(pack: Pack) -> Iterator[Finding]:
    """Yield where a persona states a floor rule, shares too many words with its directive, or has the wrong length."""
    for role in pack.roles.values():
        row = leakage(role)
        for phrase in row.imperatives:
            message = f"says {phrase!r}, a floor rule; imply it by what the role cares about"
            yield Finding("persona", "roles.yaml", role.id, "persona", message)
        if row.jaccard >= MAX_JACCARD:
            message = (
                f"shares {', '.join(row.shared)} with the directive (Jaccard {row.jaccard:.3f}, must be below "
                f"{MAX_JACCARD}); put other words in one of them"
            )
            yield Finding("persona", "roles.yaml", role.id, "persona", message)
        least, most = PERSONA_WORDS
        if not least <= row.words <= most:
            message = f"has {row.words} words; {'shorten' if row.words > most else 'extend'} it to {least} to {most}"
            yield Finding("persona", "roles.yaml", role.id, "persona", message)


def contradictions(pack: Pack) -> Iterator[Finding]:
    """Yield where the five surface variants of a contradiction are not five."""
    for (role, probe), entry in pack.contradictions.items():
        for later, text in enumerate(entry.variants):
            for earlier in range(later):
                alike = jaccard(content_words(text), content_words(entry.variants[earlier]))
                if alike >= NEAR_DUPLICATE:
                    message = f"is {alike:.2f} like variants[{earlier + 1}]; word one of them anew"
                    field = f"variants[{later + 1}]"
                    yield Finding("contradictions", "contradictions.yaml", f"{role}/{probe}", field, message)


def duplicates(pack: Pack) -> Iterator[Finding]:
    """Yield pairs of conversations that say nearly the same, and names that two instances of a cell share."""
    for pair in pairs(pack):
        if pair.similarity < NEAR_DUPLICATE:
            break
        recording = pack.recordings[pair.second]
        message = f"is {pair.similarity:.2f} like {pair.first} (limit {NEAR_DUPLICATE}); write another situation"
        yield finding_at("duplicates", recording, f"turn{pair.turn}", message)
    for cell, name, sharing in repeated_names(pack):
        message = f"{name!r} is also in {sharing[0].audio_key}, of the same cell {cell}; take another name"
        yield finding_at("duplicates", sharing[1], "turn1, turn2", message)


def counts(pack: Pack) -> Iterator[Finding]:
    """Yield where a whole pack of 48 cells with five instances does not expand to the published grid."""
    instances = {cell: set[int]() for cell in pack.cells}
    for case in pack.cases.values():
        instances[case.role, case.probe].add(case.instance)
    partial = ["/".join(cell) for cell, found in instances.items() if found != set(range(1, INSTANCES + 1))]
    if partial or len(pack.cells) != PUBLISHED_LEVELS["L0"]:
        message = (
            f"partial pack, the published counts do not apply: {len(pack.cells)} cells, {len(partial)} of them without "
            f"exactly the instances 1 to {INSTANCES}{f', first {partial[0]}' if partial else ''}"
        )
        yield Finding("counts", "conversations", "", "", message, blocking=False)
        return
    levels = Counter(case.level for case in pack.cases.values())
    actions = Counter(case.action for case in pack.cases.values())
    rows: list[tuple[str, str, str, int, int]] = [
        *(("contradictions.yaml", level, "cases", levels[level], PUBLISHED_LEVELS[level]) for level in LEVELS),
        *(("cells.yaml", a.value, "cases", actions[a], PUBLISHED_ACTIONS[a]) for a in Action),
        ("conversations", "all files", "recordings", len(pack.recordings), PUBLISHED_RECORDINGS),
    ]
    for file, entry, field, found, published in rows:
        if found != published:
            message = f"{found}, published are {published}; mend the base actions, the L4b lines or the shared audio"
            yield Finding("counts", file, entry, field, message)


def spelling(pack: Pack) -> Iterator[Finding]:
    """Yield words that neither the word list nor the pack's lexicon knows."""
    from dsbeval.ifeval.spelling import LEXICON, Speller, read_lexicon

    try:
        speller = Speller(read_lexicon(pack.root))
    except ImportError:
        message = "is not installed, so no spelling was checked; install it: pip install pyspellchecker"
        yield Finding("spelling", "", "pyspellchecker", "", message, blocking=False)
        return
    for file, entry, field, text in _prose(pack):
        for word in speller.unknown(text):
            meant = speller.nearest(word)
            hint = f"did you mean {meant!r}? " if meant else ""
            message = f"{word!r} is not a known word; {hint}correct it, or add it to {LEXICON}"
            yield Finding("spelling", file, entry, field, message)


def _prose(pack: Pack) -> Iterator[tuple[str, str, str, str]]:
    for recording in pack.recordings.values():
        script, file = recording.script, f"conversations/{recording.source.name}"
        for field, text in (*user_texts(recording), ("situation", script.situation), ("fact", script.fact)):
            yield file, recording.audio_key, field, text
    for role in pack.roles.values():
        for field in ("persona", "directive", "content_rule"):
            yield "roles.yaml", role.id, field, getattr(role, field)
    for entry in pack.contradictions.values():
        name = f"{entry.role}/{entry.probe}"
        lines = {"target": entry.target, "l4b": entry.l4b or ""}
        lines |= {f"variants[{number}]": text for number, text in enumerate(entry.variants, start=1)}
        for field, text in lines.items():
            yield "contradictions.yaml", name, field, text


DURATION_TOLERANCE = 0.5
"""A segment may be this share shorter or longer than its target."""


def durations(pack: Pack) -> Iterator[Finding]:
    """Yield segments whose audio is missing, of another text, or too far from its target duration."""
    from dsbeval.speech.assemble import TURN1, audio_root, segment_name
    from dsbeval.speech.store import MANIFEST, AudioStore

    store = AudioStore(audio_root(pack))
    unbuilt = [recording.audio_key for recording in pack.recordings.values() if not store.names(recording.audio_key)]
    if unbuilt:
        # An author checks the words before they are spoken: no audio yet is not a fault of the pack.
        message = (
            f"no audio built for {len(unbuilt)} of {len(pack.recordings)} conversations, so their durations were not "
            f"checked; run: {store.mend}"
        )
        yield Finding("durations", f"audio/{MANIFEST}", unbuilt[0], "", message, blocking=False)
    for key, recording in pack.recordings.items():
        if key in unbuilt:
            continue
        script = recording.script
        rule = pack.probes[script.probe].at(script.level or "").turn2
        wanted = [(TURN1, "turn1", script.turn1, pack.turn1_seconds)]
        for index, (segment, slot) in enumerate(zip(script.turn2, rule, strict=False)):
            if segment.speech is not None and slot.seconds is not None:
                wanted.append((segment_name(index), f"turn2[{index + 1}]", segment.speech, slot.seconds))
        for name, field, text, target in wanted:
            stored = store.find(key, name)
            low, high = target * (1 - DURATION_TOLERANCE), target * (1 + DURATION_TOLERANCE)
            if stored is None or stored.text != text:
                problem = "has no audio" if stored is None else "is not the text of its audio"
                yield finding_at("durations", recording, field, f"{problem}; run: {store.mend}")
            elif not low <= stored.seconds <= high:
                change = "shorten" if stored.seconds > high else "lengthen"
                message = f"lasts {stored.seconds:.2f} s, {low:.2f} to {high:.2f} s are allowed; {change} the text"
                yield finding_at("durations", recording, field, message)


PACK_GATES: tuple[Callable[[Pack], Iterator[Finding]], ...] = (
    persona,
    contradictions,
    duplicates,
    counts,
    spelling,
    durations,
)


def check(pack: Pack) -> list[Finding]:
    """Run every gate over a pack."""
    found = [finding for gate in PACK_GATES for finding in gate(pack)]
    return found + [f for recording in pack.recordings.values() for f in check_recording(pack, recording)]
