"""One call of the command: which scripts are wanted, which of them are missing, and where they go."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dsbeval.errors import OptionError, near
from dsbeval.ifeval.pack import Recording, load_pack
from dsbeval.ifeval.schema import Script
from dsbeval.ifeval.spelling import LEXICON, Speller, read_lexicon
from dsbeval.speech.author import AuthorError, ladder, packfile
from dsbeval.speech.author.candidate import Task
from dsbeval.speech.author.notes import read_notes
from dsbeval.speech.author.providers import Provider


@dataclass(frozen=True, slots=True)
class Job:
    """What is wanted, and of whom."""

    root: Path
    work: Path
    role: str
    probe: str
    instances: tuple[int, ...]
    situation: str | None
    models: ladder.Models
    restart: bool = False


def run(job: Job, open_provider: Callable[[], Provider], say: Callable[[str], None]) -> bool:
    """Bring the wanted instances into the pack; return whether all of them are there at the end.

    Whatever can be wrong with the pack, the options, the key or the SDK is raised before anything is asked.
    """
    if packfile.prepare(job.root):
        say(f"{job.root}: made, with the rules of the benchmark's pack and no conversations")
    probe = _resolve(job)
    missing = tuple(_missing(job, probe, say))
    if not missing:
        return True
    pack = packfile.try_out(job.root, job.role, [(probe, instance) for instance in missing])
    notes = read_notes(job.root)
    levels = packfile.levels(job.root, probe)
    first = Task(
        role=job.role,
        probe=probe,
        instance=missing[0],
        level=None,
        pack=pack,
        taken={},
        notes=notes,
        setting=notes.setting(job.root, job.role),
        brief=notes.brief(job.root, probe, None),
        situation=job.situation,
    )
    briefs = {level: notes.brief(job.root, probe, level) for level in levels}
    done = True
    with ExitStack() as stack:
        # Opened when the first question is asked: a script that was accepted before needs neither key nor server.
        provider = functools.cache(lambda: stack.enter_context(open_provider()))
        for instance in missing:
            task = dataclasses.replace(first, instance=instance, taken=_taken(job, probe, instance))
            scripts: list[Script] = []
            for level in levels:
                at_level = dataclasses.replace(
                    task, level=level, brief=briefs[level], base=scripts[0] if scripts else None
                )
                script = ladder.read_state(job.work, at_level.key).script or ladder.climb(
                    at_level, provider(), job.models, job.work, say
                )
                if script is None:
                    log = job.work / f"{at_level.key}.jsonl"
                    say(
                        f"{at_level.key}: all {ladder.TRIES} tries were rejected; read {log}, then run again with "
                        "--restart and perhaps another --model or a --situation"
                    )
                    break
                scripts.append(script)
            if len(scripts) < len(levels):
                done = False
            else:
                say(f"{task.key}: added to {packfile.append(job.root, job.role, scripts)}")
                _say_unknown(job.root, scripts, say)
    return done


def _say_unknown(root: Path, scripts: list[Script], say: Callable[[str], None]) -> None:
    """Name the words that the spell check of the pack will stop at: a person says which of them are names."""
    try:
        speller = _speller(read_lexicon(root))
    except ImportError:
        return  # the check of the pack says that it could not be done
    texts = [t for s in scripts for t in (s.situation, s.fact, s.turn1, *(seg.speech or "" for seg in s.turn2))]
    words = dict.fromkeys(word for text in texts for word in speller.unknown(text))
    if words:
        say(f"  words that no word list has: {', '.join(words)}; put those that are names into {root / LEXICON}")


_speller = functools.cache(Speller)  # a quarter of a second, for every instance of a call


def _resolve(job: Job) -> str:
    """Return the full id of the wanted probe. Raises :class:`OptionError`."""
    roles, probes = packfile.ids(job.root)
    if job.role not in roles:
        raise OptionError(f"--role: {job.role!r} is not in the pack; {near(job.role, roles)}")
    found = [probe for probe in probes if probe == job.probe] or [
        probe for probe in probes if probe.startswith(f"{job.probe}_")
    ]
    if len(found) != 1:
        raise OptionError(f"--probe: {job.probe!r} is not one probe of the pack; {near(job.probe, found or probes)}")
    return found[0]


def _missing(job: Job, probe: str, say: Callable[[str], None]) -> Iterator[int]:
    """Yield the instances that are not in the pack yet."""
    there = packfile.recordings(job.root, job.role)
    for instance in job.instances:
        keys = [packfile.audio_key(job.role, probe, instance, level) for level in packfile.levels(job.root, probe)]
        states = [ladder.read_state(job.work, key) for key in keys]
        if keys[0] not in there:
            finished = all(state.script is not None for state in states)
            for key, state in zip(keys, states, strict=True):
                if job.restart and (finished or state.script is None):
                    ladder.forget(job.work, key)
            yield instance
        elif all(state.script is not None for state in states) and not job.restart:
            say(f"{keys[0]}: is finished, nothing was asked")
        else:
            raise AuthorError(
                f"{there[keys[0]].source}: {keys[0]} is there already; choose another --instance, or remove it there"
            )


def _taken(job: Job, probe: str, instance: int) -> dict[str, Recording]:
    """Return what the cell has, in the benchmark's pack and in this one: a new instance differs from both."""
    ours = {key: recording for key, recording in load_pack().recordings.items() if job.role in recording.roles}
    every = {**ours, **packfile.recordings(job.root, job.role)}
    return {
        key: recording
        for key, recording in every.items()
        if recording.script.probe == probe and recording.script.instance != instance
    }
