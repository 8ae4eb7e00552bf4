"""The scenarios: one shared situation, two private role prompts, and what the scorer needs, as data.

A folder of scenarios (``cases/dyadic`` is ours)::

    openers.yaml            the sentence that ends the opener's prompt
    scenarios/T1-1.yaml     one file an archetype

Everything is validated on load; an error is one line that names file, entry, field and what is allowed. That the
recipes hold (nothing private leaks, T2 needs both sides, ...) is proved by :mod:`dsbeval.dyadic.gates`. Loading reads no
audio and imports nothing heavy, because pytest collects from it.

Source: DyaFDB (arXiv 2610.08125), tasks and scenario recipes.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsbeval.dyadic.rows import MAIN_TASKS, TASKS, Side
from dsbeval.dyadic.schema import FILES, AnyScenario, OpenersFile
from dsbeval.errors import OptionError, PackError, near
from dsbeval.yamlfile import read_yaml

DEFAULT_ROOT = Path(__file__).resolve().parents[2] / "cases" / "dyadic"


@dataclass(frozen=True)
class Suite:
    """All scenarios of a folder, by id, and the sentence that ends the opener's prompt."""

    root: Path
    opener: str
    scenarios: dict[str, AnyScenario]

    def of(self, archetypes: Iterable[str] = MAIN_TASKS, sample: int | None = None) -> list[AnyScenario]:
        """Return the scenarios of the archetypes, in the suite's order. Raises :class:`OptionError` for an unknown one.

        ``sample`` keeps that many, spread evenly over the archetypes; the same ones every time.
        """
        wanted = list(archetypes)
        present = list(dict.fromkeys(scenario.archetype for scenario in self.scenarios.values()))
        for name in wanted:
            if name not in TASKS:
                raise OptionError(f"--tasks: {name!r} is not a task; {near(name, TASKS)}")
            if name not in present:
                raise OptionError(f"--tasks: {name} has no scenarios in {self.root}; there are {', '.join(present)}")
        found = [scenario for scenario in self.scenarios.values() if scenario.archetype in wanted]
        if sample is None:
            return found
        turns = Counter[str]()  # how many scenarios of its archetype stand before one
        place: dict[str, tuple[int, int]] = {}
        for index, scenario in enumerate(found):
            place[scenario.id] = turns[scenario.archetype], index
            turns[scenario.archetype] += 1
        kept = sorted(place, key=place.__getitem__)[:sample]
        return [scenario for scenario in found if scenario.id in kept]

    def prompt(self, scenario: AnyScenario, side: Side, opener: Side) -> str:
        """Return the system prompt of a side: the situation, its role, and for the opener the sentence that says so."""
        parts = [scenario.situation, scenario.sides.of(side).prompt]
        return "\n\n".join([*parts, self.opener] if side == opener else parts)

    @functools.cached_property
    def sha256(self) -> str:
        """Content hash of the data, for the fingerprint of a run."""
        digest = hashlib.sha256()
        for path in sorted([self.root / "openers.yaml", *(self.root / "scenarios").glob("*.yaml")]):
            digest.update(path.relative_to(self.root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()


@functools.lru_cache(maxsize=4)
def load_scenarios(root: Path = DEFAULT_ROOT) -> Suite:
    """Read and validate a folder of scenarios. Raises :class:`PackError`."""
    if not (root / "scenarios").is_dir():
        raise PackError(f"{root}: no folder scenarios/ there; a file scenarios/<archetype>.yaml a task is needed")
    opener = read_yaml(root / "openers.yaml", OpenersFile).opener
    paths = {path.stem: path for path in sorted((root / "scenarios").glob("*.yaml"))}
    for name, path in paths.items():
        if name not in TASKS:
            raise PackError(f"{path}: {name!r} is not a task; {near(name, TASKS)}")
    if not paths:
        raise PackError(f"{root / 'scenarios'}: no scenarios; add a file such as T1-1.yaml")
    scenarios: dict[str, AnyScenario] = {}
    for name in TASKS:
        if name in paths:
            scenarios.update((scenario.id, scenario) for scenario in _read(paths[name]))
    return Suite(root, opener, scenarios)


def _read(path: Path) -> Iterator[AnyScenario]:
    file: Any = read_yaml(path, FILES[path.stem])
    if file.archetype != path.stem:
        raise PackError(f"{path}: archetype: is {file.archetype}, but the file is {path.name}; make them the same")
    seen: set[str] = set()
    for scenario in file.scenarios:
        if scenario.archetype != file.archetype:
            raise PackError(f"{path}: {scenario.id}: id: does not begin with {file.archetype}; number it there")
        if scenario.id in seen:
            raise PackError(f"{path}: {scenario.id}: the id appears twice; ids are unique")
        seen.add(scenario.id)
        yield scenario
