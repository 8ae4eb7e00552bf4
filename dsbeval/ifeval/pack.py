"""The pack: roles, probes, cells, contradictions and conversations as data, and their expansion into cases.

A pack is a folder (``cases/ifeval`` is ours)::

    roles.yaml  probes.yaml  cells.yaml  contradictions.yaml  conversations/*.yaml  audio/

Everything is validated on load; an error is one line that names file, entry, field and what is allowed. Loading
reads no audio and imports nothing heavy, because pytest collects from it.

Source: DSB-IFEval (arXiv 2609.03423), sections on roles, probes and conditioning levels.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dsbeval.errors import OptionError, PackError, near
from dsbeval.ifeval.schema import (
    Action,
    CellsFile,
    Contradiction,
    ContradictionsFile,
    ConversationsFile,
    Probe,
    ProbesFile,
    Role,
    RolesFile,
    Script,
    TurnRule,
)
from dsbeval.ifeval.trials import split_trial, trial_id
from dsbeval.yamlfile import read_yaml

DEFAULT_PACK = Path(__file__).resolve().parents[2] / "cases" / "ifeval"

LEVELS = ("L0", "L1", "L2", "L3", "L4a", "L4b")
"""Conditioning levels, in the order of the paper."""

INSTANCES = 5
L4B_CELLS = frozenset(
    {
        ("R1", "C2"),
        ("R1", "R1_A_red_flag_casual"),
        ("R1", "R1_B_dose_error"),
        ("R2", "R2_B_are_you_there"),
        ("R3", "C2"),
        ("R3", "R3_A_address_self_correct"),
    }
)


@dataclass(frozen=True, slots=True)
class Recording:
    """One distinct user-side recording: a script and the key of its audio. Matched roles share it."""

    audio_key: str
    script: Script
    roles: tuple[str, ...]
    source: Path


@dataclass(frozen=True, slots=True)
class Case:
    """One test case: a recording under one system prompt, with the action that its role implies."""

    id: str
    role: str
    probe: str
    instance: int
    level: str
    audio_key: str
    action: Action
    scored_as: Action
    thresholds: tuple[tuple[str, float], ...]
    trial: int = 1

    @property
    def conversation_id(self) -> str:
        """The conversation behind the case: one for all its levels."""
        return f"IFD-{self.role}-{self.probe}-i{self.instance}"

    @property
    def l4_expected(self) -> str | None:
        """The right resolution of a conflict (L4 only): the directive at L4a, the persona at L4b."""
        return {"L4a": "directive-wins", "L4b": "persona-wins"}.get(self.level)

    @property
    def matched(self) -> bool:
        """Whether the user's audio is shared, byte for byte, with other roles."""
        return self.audio_key.startswith("IFD-M-")


@dataclass(frozen=True)
class Pack:
    """A loaded, validated pack."""

    root: Path
    turn1_seconds: float
    roles: dict[str, Role]
    probes: dict[str, Probe]
    cells: dict[tuple[str, str], Action]
    contradictions: dict[tuple[str, str], Contradiction]
    recordings: dict[str, Recording]
    cases: dict[str, Case]

    def case(self, name: str) -> Case | None:
        """Return the case of an id, or the trial of one (``ID~t2``); None where the pack has none."""
        own, trial = split_trial(name)
        found = self.cases.get(own)
        return found if found is None or trial == 1 else replace(found, id=name, trial=trial)

    def prompt(self, case: Case) -> str:
        """Return the system prompt of a case: the only thing that differs between the levels of a conversation."""
        role = self.roles[case.role]
        match case.level:
            case "L0":
                return ""
            case "L1":
                return role.directive
            case "L2":
                return role.persona
            case "L3":
                return f"{role.persona}\n\n{role.directive}"
        contradiction = self.contradictions[case.role, case.probe]
        if case.level == "L4b":
            return f"{role.persona}\n\n{contradiction.l4b}"
        chosen = int(hashlib.sha256(case.conversation_id.encode()).hexdigest(), 16) % len(contradiction.variants)
        return f"{role.persona}\n\n{contradiction.variants[chosen]}"

    def resolved_action(self, case: Case) -> str | None:
        """Return the action that obeying the contradiction of a case would mean (L4a only)."""
        return str(self.contradictions[case.role, case.probe].resolved_action) if case.level == "L4a" else None

    def readback_target(self, case: Case) -> str:
        """Return the words that a read-back must contain; empty where the probe dictates nothing."""
        script = self.recordings[case.audio_key].script
        spoken = self.probes[case.probe].readback
        if spoken is None:
            return ""
        if spoken == "target":
            return script.target or ""
        return " ".join(script.turn2[k - 1].speech or "" for k in spoken)

    @functools.cached_property
    def sha256(self) -> str:
        """Content hash of the pack's data and audio manifest, for the fingerprint of a run."""
        digest = hashlib.sha256()
        for path in sorted(
            [*self.root.glob("*.yaml"), *self.root.glob("conversations/*.yaml"), *self.root.glob("audio/manifest.json")]
        ):
            digest.update(path.relative_to(self.root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def select(
        self,
        *,
        levels: Iterable[str] = (),
        roles: Iterable[str] = (),
        probes: Iterable[str] = (),
        sample: int | None = None,
        limit: int | None = None,
    ) -> list[Case]:
        """Return the cases that match, in the pack's order. A probe is named in full or by its short form (``R1_A``).

        ``sample`` keeps that many conversations with all their levels, spread evenly over the base actions; the same ones
        every time. ``limit`` keeps the first cases of what is left.

        Raises :class:`OptionError` for a name that the pack does not have.
        """
        levels, roles, probes = list(levels), list(roles), list(probes)
        _known("--levels", levels, LEVELS)
        _known("--roles", roles, self.roles)
        short = {_short(name): name for name in self.probes}
        _known("--probes", probes, dict.fromkeys([*self.probes, *short]))
        wanted = {short.get(name, name) for name in probes}
        chosen = [
            case
            for case in self.cases.values()
            if (not levels or case.level in levels)
            and (not roles or case.role in roles)
            and (not wanted or case.probe in wanted)
        ]
        if sample is not None:
            kept = _sample(chosen, sample)
            chosen = [case for case in chosen if case.conversation_id in kept]
        return chosen if limit is None else chosen[:limit]


def each_trial(pack: Pack, cases: Iterable[Case], trials: int) -> list[Case]:
    """Return every trial of cases, those of a case together."""
    names = (trial_id(case.id, k) for case in cases for k in range(1, trials + 1))
    return [found for name in names if (found := pack.case(name)) is not None]


def _sample(cases: list[Case], count: int) -> set[str]:
    """Return ``count`` conversations: an action in turn, those with the most levels first, else by hash of the id."""
    by_action: dict[Action, dict[str, int]] = {}
    for case in cases:
        conversations = by_action.setdefault(case.action, {})
        conversations[case.conversation_id] = conversations.get(case.conversation_id, 0) + 1
    queues = [
        sorted(found, key=lambda name: (-found[name], hashlib.sha256(name.encode()).hexdigest()))
        for _, found in sorted(by_action.items())
    ]
    in_turn = [queue[k] for k in range(max(map(len, queues), default=0)) for queue in queues if k < len(queue)]
    return set(in_turn[:count])


def _short(probe: str) -> str:
    return "_".join(probe.split("_")[:2]) if re.match(r"^R\d+_[A-Z]_", probe) else probe


def _known(option: str, names: list[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise OptionError(f"{option}: {name!r} is not in the pack; {near(name, known)}")


_Named = TypeVar("_Named", Role, Probe)

# Loading


@functools.lru_cache(maxsize=4)
def load_pack(root: Path = DEFAULT_PACK) -> Pack:
    """Read and validate a pack folder. Raises :class:`PackError`."""
    if not root.is_dir():
        raise PackError(
            f"{root}: no such folder; a pack is a folder with roles.yaml, probes.yaml, cells.yaml and conversations/"
        )
    roles = _by_id(root / "roles.yaml", read_yaml(root / "roles.yaml", RolesFile).roles)
    probe_file = read_yaml(root / "probes.yaml", ProbesFile)
    probes = _by_id(root / "probes.yaml", probe_file.probes)
    cells_file = read_yaml(root / "cells.yaml", CellsFile)
    cells = dict(_cells(root / "cells.yaml", cells_file, roles, probes))
    contradictions = _contradictions(root / "contradictions.yaml", cells)
    recordings: dict[str, Recording] = {}
    for path in sorted((root / "conversations").glob("*.yaml")):
        for recording in _recordings(path, roles, probes, cells):
            if recording.audio_key in recordings:
                raise PackError(
                    f"{path}: {recording.audio_key} is also in {recordings[recording.audio_key].source.name}; keep one"
                )
            recordings[recording.audio_key] = recording
    if not recordings:
        raise PackError(f"{root / 'conversations'}: no conversations; add a YAML file a role")
    cases = {case.id: case for case in _expand(root, cells_file, cells, contradictions, recordings)}
    return Pack(root, probe_file.turn1_seconds, roles, probes, cells, contradictions, recordings, cases)


def _by_id(path: Path, entries: list[_Named]) -> dict[str, _Named]:
    out: dict[str, _Named] = {}
    for entry in entries:
        if entry.id in out:
            raise PackError(f"{path}: {entry.id}: the id appears twice; ids are unique")
        out[entry.id] = entry
    return out


def _cells(
    path: Path, file: CellsFile, roles: dict[str, Role], probes: dict[str, Probe]
) -> Iterator[tuple[tuple[str, str], Action]]:
    for role, row in file.cells.items():
        if role not in roles:
            raise PackError(f"{path}: cells.{role}: no such role; {near(role, roles)}")
        for probe, action in row.items():
            if probe not in probes:
                raise PackError(f"{path}: cells.{role}.{probe}: no such probe; {near(probe, probes)}")
            yield (role, probe), action


def _contradictions(path: Path, cells: dict[tuple[str, str], Action]) -> dict[tuple[str, str], Contradiction]:
    out: dict[tuple[str, str], Contradiction] = {}
    for entry in read_yaml(path, ContradictionsFile).contradictions:
        cell = (entry.role, entry.probe)
        name = f"{path}: {entry.role}/{entry.probe}"
        if cell not in cells:
            raise PackError(f"{name}: no such cell; {near('/'.join(cell), ['/'.join(c) for c in cells])}")
        if cell in out:
            raise PackError(f"{name}: the cell appears twice; keep one")
        if entry.resolved_action is cells[cell]:
            raise PackError(
                f"{name}: resolved_action: is {entry.resolved_action}, the base action itself; "
                "a contradiction asks for another"
            )
        if (entry.l4b is not None) != (cell in L4B_CELLS):
            raise PackError(
                f"{name}: l4b: {'is missing' if cell in L4B_CELLS else 'is allowed in the six safety cells only'}"
            )
        out[cell] = entry
    missing = [cell for cell in cells if cell not in out]
    if missing:
        raise PackError(f"{path}: {'/'.join(missing[0])}: is missing ({len(missing)} cells without a contradiction)")
    return out


def _recordings(
    path: Path, roles: dict[str, Role], probes: dict[str, Probe], cells: dict[tuple[str, str], Action]
) -> Iterator[Recording]:
    file = read_yaml(path, ConversationsFile)
    owners = (file.role,) if file.role is not None else tuple(file.roles or ())
    for role in owners:
        if role not in roles:
            raise PackError(f"{path}: role: {role!r} is not a role; {near(role, roles)}")
    for script in file.conversations:
        name = f"{path}: {script.probe}/{script.instance}"
        for role in owners:
            if (role, script.probe) not in cells:
                allowed = [probe for r, probe in cells if r == role]
                raise PackError(f"{name}: probe: {role} has no probe {script.probe!r}; {near(script.probe, allowed)}")
        probe = probes[script.probe]
        if script.level is not None and probe.l4b is None:
            raise PackError(f"{name}: level: {script.probe} has no turn of its own at L4b; remove the field")
        _check_structure(name, script, probe.at(script.level or ""))
        if (script.target is not None) != (probe.readback == "target"):
            problem = "is missing; give the words of the final order"
            raise PackError(f"{name}: target: {problem if script.target is None else 'is not used by this probe'}")
        owner = owners[0] if len(owners) == 1 else "M"
        suffix = f"-{script.level}" if script.level else ""
        yield Recording(f"IFD-{owner}-{script.probe}-i{script.instance}{suffix}", script, owners, path)


def _check_structure(name: str, script: Script, rule: TurnRule) -> None:
    for index, (segment, slot) in enumerate(zip(script.turn2, rule.turn2, strict=False), start=1):
        wanted = f"a silence of {slot.silence} s" if slot.silence is not None else f"speech, part: {slot.part}"
        found = f"a silence of {segment.silence} s" if segment.silence is not None else f"speech, part: {segment.part}"
        if (segment.silence, segment.part) != (slot.silence, slot.part):
            raise PackError(f"{name}: turn2[{index}]: is {found}; {script.probe} has {wanted} there")
    if len(script.turn2) != len(rule.turn2):
        last = script.turn2[-1]
        hint = "; a silence must be followed by speech" if last.silence is not None else ""
        raise PackError(f"{name}: turn2: has {len(script.turn2)} segments; {script.probe} has {len(rule.turn2)}{hint}")


def _expand(
    root: Path,
    file: CellsFile,
    cells: dict[tuple[str, str], Action],
    contradictions: dict[tuple[str, str], Contradiction],
    recordings: dict[str, Recording],
) -> Iterator[Case]:
    instances = {(role, r.script.probe, r.script.instance) for r in recordings.values() for role in r.roles}
    order = {cell: index for index, cell in enumerate(cells)}
    for role, probe, instance in sorted(instances, key=lambda i: (order[i[0], i[1]], i[2])):
        action = cells[role, probe]
        for level in LEVELS:
            if (level == "L0" and instance != 1) or (level == "L4b" and contradictions[role, probe].l4b is None):
                continue
            scored = file.l4b_scored_as.get(probe) if level == "L4b" else None
            thresholds = (
                {"max_latency_ms": scored.max_latency_ms} if scored else file.thresholds.get(action, {}).get(role, {})
            )
            yield Case(
                id=f"IFD-{role}-{probe}-i{instance}-{level}",
                role=role,
                probe=probe,
                instance=instance,
                level=level,
                audio_key=_audio_key(root, recordings, role, probe, instance, level, own=scored is not None),
                action=action,
                scored_as=scored.action if scored else action,
                thresholds=tuple(sorted(thresholds.items())),
            )


def _audio_key(
    root: Path, recordings: dict[str, Recording], role: str, probe: str, instance: int, level: str, *, own: bool
) -> str:
    suffix = f"-{level}" if own else ""
    for owner in (role, "M"):
        key = f"IFD-{owner}-{probe}-i{instance}{suffix}"
        if key in recordings and role in recordings[key].roles:
            return key
    at = f" at {level}" if own else ""
    raise PackError(f"{root / 'conversations'}: {role}/{probe}/{instance}: has no conversation{at}; add one")
