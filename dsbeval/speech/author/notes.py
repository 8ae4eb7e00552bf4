"""What a pack tells the writer beyond its rules: the file ``authoring.yaml`` in the pack's folder, which may be absent.

    language: German                      # English without it
    words_per_second: [1.8, 3.0]          # word budget of a segment: its target duration times these
    settings:
      R9: a hotel's front desk at night. The person is a guest.
    briefs:
      R9_A_lost_key:                      # a probe id; id/L4b for a turn of its own at L4b
        realise: what turn 2 must realise
        reject: the lead does not say which room it is
    forbidden: [concierge, porter]        # words that the user must not say, beside those of the gates

A probe of the pack whose id is one of ours keeps our brief unless the file gives another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from dsbeval.speech.author import AuthorError
from dsbeval.speech.author.prompts import BRIEFS, SETTINGS, Brief
from dsbeval.yamlfile import Entry, read_yaml

NOTES = "authoring.yaml"


class BriefEntry(Entry):
    """A probe's brief as a pack gives it."""

    realise: Annotated[str, Field(min_length=1)]
    reject: Annotated[str, Field(min_length=1)]


class Notes(Entry):
    """The file ``authoring.yaml``."""

    language: Annotated[str, Field(min_length=1)] = "English"
    words_per_second: tuple[float, float] = (2.0, 3.3)
    settings: dict[str, str] = Field(default_factory=dict)
    briefs: dict[str, BriefEntry] = Field(default_factory=dict)
    forbidden: list[str] = Field(default_factory=list)

    @field_validator("words_per_second")
    @classmethod
    def _rates(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not 0 < value[0] < value[1]:
            raise ValueError("is [fewest, most] words a second, such as [2.0, 3.3]")
        return value

    @property
    def english(self) -> bool:
        """Whether the gates that know English apply."""
        return self.language.casefold() == "english"

    def brief(self, root: Path, probe: str, level: str | None) -> Brief:
        """Return the brief of a probe. Raises :class:`AuthorError` when neither the pack nor we have one."""
        key = f"{probe}/{level}" if level else probe
        own = self.briefs.get(key)
        if own is not None:
            return Brief(own.realise.strip(), own.reject.strip().rstrip("."))
        if key in BRIEFS:
            return BRIEFS[key]
        raise AuthorError(
            f"{root / NOTES}: briefs.{key}: is missing; say what turn 2 must realise and when to reject it"
        )

    def setting(self, root: Path, role: str) -> str:
        """Return who the user of a role is and where. Raises :class:`AuthorError` when nobody says."""
        setting = self.settings.get(role) or SETTINGS.get(role)
        if setting is None:
            raise AuthorError(f"{root / NOTES}: settings.{role}: is missing; say where the user is and who they are")
        return setting.strip()


def read_notes(root: Path) -> Notes:
    """Return the notes of a pack; the defaults when it has none. Raises :class:`PackError`."""
    path = root / NOTES
    return read_yaml(path, Notes) if path.exists() else Notes()
