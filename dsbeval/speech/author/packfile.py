"""The user's pack folder: made when it is missing, tried out before anything is asked, and added to.

Conventions
-----------
* A new folder gets the rule files, voices and lexicon of our pack and no conversations. Our own pack is never written
  to: it is fixed at 1,038 cases.
* A script is appended to the file of its role as text, so that what is there keeps its order and its comments.
* A change is made in a copy first, and only a copy that loads as a whole pack takes the place of the files. The same
  with a stand-in for the script shows before anything is asked that the answer will have a place.
* Only files inside the folder are written: a link that leads out of it is refused.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import textwrap
from pathlib import Path

from dsbeval.audio import atomic_write
from dsbeval.errors import PackError
from dsbeval.ifeval.pack import DEFAULT_PACK, Pack, Recording, load_pack
from dsbeval.ifeval.schema import ConversationsFile, Probe, ProbesFile, Register, RolesFile, Script, register_for
from dsbeval.ifeval.spelling import LEXICON
from dsbeval.speech.author import AuthorError
from dsbeval.speech.voices import VOICES
from dsbeval.yamlfile import read_yaml

RULES = ("roles.yaml", "probes.yaml", "cells.yaml", "contradictions.yaml")
"""What a pack needs beside its conversations."""


def prepare(root: Path) -> bool:
    """Make a pack folder when there is none; return whether it was made. Raises :class:`AuthorError`."""
    if root.resolve() == DEFAULT_PACK.resolve():
        raise AuthorError(
            f"--pack: {root} is the benchmark's own pack, which stays at 1,038 cases; name a folder of your own"
        )
    if root.exists() and not root.is_dir():
        raise AuthorError(f"--pack: {root} is a file; name a folder")
    there = [name for name in RULES if (root / name).exists()]
    if there:
        return False  # a rule file that is missing is named by the loader
    if root.exists() and any(path for path in root.iterdir() if not path.name.startswith(".")):
        raise AuthorError(
            f"--pack: {root} holds files but no {RULES[0]}; name a pack, or a folder that is new or empty"
        )
    (root / "conversations").mkdir(parents=True, exist_ok=True)
    for name in (*RULES, VOICES, LEXICON):
        if (DEFAULT_PACK / name).exists():
            shutil.copyfile(DEFAULT_PACK / name, root / name)
    return True


def ids(root: Path) -> tuple[list[str], list[str]]:
    """Return the ids of a pack's roles and probes. Raises :class:`PackError`."""
    roles = [role.id for role in read_yaml(root / "roles.yaml", RolesFile).roles]
    return roles, [probe.id for probe in read_yaml(root / "probes.yaml", ProbesFile).probes]


def levels(root: Path, probe: str) -> tuple[str | None, ...]:
    """Return the levels at which a probe needs a script: the conversation, and L4b where it has a turn of its own."""
    found = next(p for p in read_yaml(root / "probes.yaml", ProbesFile).probes if p.id == probe)
    return (None,) if found.l4b is None else (None, "L4b")


def try_out(root: Path, role: str, wanted: list[tuple[str, int]]) -> Pack:
    """Return the pack as it would be with stand-ins for the wanted (probe, instance), before anything is asked.

    Raises :class:`PackError` for whatever is wrong with the pack or in the way of the new scripts.
    """
    rules = {probe.id: probe for probe in read_yaml(root / "probes.yaml", ProbesFile).probes}
    scripts = []
    for probe, instance in wanted:
        for level in levels(root, probe):
            key = audio_key(role, probe, instance, level)
            scripts.append(_stand_in(rules[probe], instance, level, key))
    return _stage(root, role, scripts)[0]


def append(root: Path, role: str, scripts: list[Script]) -> Path:
    """Add scripts to a pack and return the file that they went to.

    Raises :class:`PackError`, and changes nothing then.
    """
    _, path, text = _stage(root, role, scripts)
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def recordings(root: Path, role: str) -> dict[str, Recording]:
    """Return what a pack has for a role, by audio key. Raises :class:`PackError`."""
    out = {}
    for path in sorted((root / "conversations").glob("*.yaml")):
        file = read_yaml(path, ConversationsFile)
        owners = (file.role,) if file.role is not None else tuple(file.roles or ())
        if role not in owners:
            continue
        for script in file.conversations:
            key = audio_key(role if len(owners) == 1 else "M", script.probe, script.instance, script.level)
            out[key] = Recording(key, script, owners, path)
    return out


def audio_key(owner: str, probe: str, instance: int, level: str | None) -> str:
    """Return the id of a recording: of a role, or of ``M`` when roles share it."""
    return f"IFD-{owner}-{probe}-i{instance}{f'-{level}' if level else ''}"


def _stand_in(probe: Probe, instance: int, level: str | None, key: str) -> Script:
    turn2 = [
        {"silence": slot.silence} if slot.silence else {"speech": "stand-in", "part": slot.part}
        for slot in probe.at(level or "").turn2
    ]
    fields = {"probe": probe.id, "instance": instance, "level": level, "register": register_for(key), "turn2": turn2}
    target = "stand-in" if probe.readback == "target" else None
    return Script.model_validate(
        {**fields, "situation": "stand-in", "fact": "stand-in", "turn1": "stand-in", "target": target}
    )


def _stage(root: Path, role: str, scripts: list[Script]) -> tuple[Pack, Path, str]:
    path = _file_of(root, role)
    text = _appended(path, role, scripts)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pack"
        (copy / "conversations").mkdir(parents=True)
        for source in [*root.glob("*.yaml"), *root.glob("conversations/*.yaml")]:
            shutil.copyfile(source, copy / source.relative_to(root))
        (copy / path.relative_to(root)).write_text(text, encoding="utf-8")
        try:
            pack = load_pack.__wrapped__(copy)  # not the cached one: the copy goes away
            stored = read_yaml(copy / path.relative_to(root), ConversationsFile).conversations
        except PackError as error:
            raise PackError(str(error).replace(str(copy), str(root))) from None
    if stored[len(stored) - len(scripts) :] != scripts:
        raise PackError(f"{path}: the file does not take new entries at its end; let conversations be its last field")
    return pack, path, text


def _file_of(root: Path, role: str) -> Path:
    """Return the conversations file of a role, which may not exist yet."""
    folder = root / "conversations"
    path = next(
        (p for p in sorted(folder.glob("*.yaml")) if read_yaml(p, ConversationsFile).role == role),
        folder / f"{role}.yaml",
    )
    if not path.resolve().is_relative_to(root.resolve()):
        raise PackError(f"{path}: leads out of the pack's folder; put the file itself there")
    return path


def _appended(path: Path, role: str, scripts: list[Script]) -> str:
    if not path.exists():
        return f"role: {role}\nconversations:\n" + "".join(_entry(script, "  ") for script in scripts)
    text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    text = re.sub(r"^conversations: *\[ *\] *$", "conversations:", text, flags=re.MULTILINE)
    items = re.findall(r"^( *)- (?:\w+):", text, re.MULTILINE)
    indent = items[0] if items else "  "
    return text + "".join(_entry(script, indent) for script in scripts)


def _entry(script: Script, indent: str) -> str:
    """Return a script as one entry of a conversations file, in the form of our own."""
    lines = [f"- probe: {_scalar(script.probe)}", f"  instance: {script.instance}"]
    if script.level is not None:
        lines.append(f"  level: {script.level}")
    lines += [f"  situation: {_scalar(script.situation)}", f"  register: {_register(script.register_)}"]
    lines += [f"  fact: {_scalar(script.fact)}", "  turn1: >-"]
    lines += [f"    {line}" for line in textwrap.wrap(script.turn1, 96, break_long_words=False, break_on_hyphens=False)]
    lines.append("  turn2:")
    for segment in script.turn2:
        if segment.silence is not None:
            lines.append(f"    - silence: {segment.silence}")
        else:
            lines += [f"    - speech: {_quoted(segment.speech or '')}", f"      part: {segment.part}"]
    if script.target is not None:
        lines.append(f"  target: {_quoted(script.target)}")
    return "".join(f"{indent}{line}\n" for line in lines)


def _scalar(text: str) -> str:
    """Return a text as it is where YAML reads that back as the same text, quoted otherwise."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9 ,.'_-]*[A-Za-z0-9.]", text) and text.lower() not in _WORDS_OF_YAML
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    # What does not print would be lost or folded if it stood there as it is.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


_WORDS_OF_YAML = frozenset({"null", "true", "false", "yes", "no", "on", "off"})


def _register(register: Register) -> str:
    return f"{{age: {register.age}}}" if register.age is not None else f"{{region: {register.region}}}"
