"""The rules of the gate, read from a TOML file and checked where they stand.

A file::

    alpha = 0.05
    must_pass = ["R1_A", "IFD-R3-C2-*-L4b"]       # probes or cases that may not fail at all

    [evidence]
    min_conversations = 20
    max_error_rate = 0.02
    min_coverage = 0.98

    [[rule]]
    metric = ["action.*"]                         # names of metrics, or patterns of them
    drop = 10.0                                   # in points (PAS: points of PAS; margins: seconds), to the worse
    weight = 2                                    # share of alpha, among the rules that there is something to judge by
    required = false                              # true: too few conversations are not enough evidence
    worse = "fall"                                # only for a metric that has no better direction of its own

    [[limit]]                                     # holds by itself, whatever the baseline
    metric = "leak"
    max = 0.30
    strict = true                                 # false: only where it is measured, surely beyond, and the baseline was not
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dsbeval.compare.metrics import OF_THE_PACK, catalogue
from dsbeval.errors import OptionError, near

DEFAULT = Path(__file__).with_name("default.toml")

Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Evidence(_Entry):
    """What there must be to judge by."""

    min_conversations: Annotated[int, Field(ge=1)] = 20
    max_error_rate: Share = 0.02
    min_coverage: Share = 0.98


class Rule(_Entry):
    """Metrics that may not get worse by ``drop`` with evidence; they share a part of alpha, by Holm's method."""

    metric: Annotated[list[Name], Field(min_length=1)]
    drop: Annotated[float, Field(ge=0)]
    weight: Annotated[float, Field(gt=0)] = 1.0
    required: bool = False
    worse: Literal["fall", "rise"] | None = None

    @model_validator(mode="after")
    def _known(self) -> Rule:
        known = catalogue()
        for pattern in self.metric:
            named = [name for name in known if fnmatchcase(name, pattern)]
            if not named and not pattern.startswith(OF_THE_PACK):
                raise ValueError(f"metric: {pattern!r} is not a metric; {near(pattern, known)}")
            neither = [name for name in named if not known[name]]
            if neither and self.worse is None:
                raise ValueError(
                    f'worse: {neither[0]} has no better direction of its own; give worse = "fall" or "rise"'
                )
        return self


class Limit(_Entry):
    """A value that a metric of the new run may not go beyond."""

    metric: Name
    min: float | None = None
    max: float | None = None
    strict: bool = True

    @model_validator(mode="after")
    def _one(self) -> Limit:
        if (self.min is None) == (self.max is None):
            raise ValueError("has either min or max")
        if self.metric not in catalogue() and not self.metric.startswith(OF_THE_PACK):
            raise ValueError(f"metric: {self.metric!r} is not a metric; {near(self.metric, catalogue())}")
        return self


class Rules(_Entry):
    """The rules of a gate."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    must_pass: list[Name] = Field(default_factory=list)
    evidence: Evidence = Evidence()
    rule: list[Rule] = Field(default_factory=list)
    limit: list[Limit] = Field(default_factory=list)

    @model_validator(mode="after")
    def _something(self) -> Rules:
        if not (self.rule or self.limit or self.must_pass):
            raise ValueError("has no rule, limit or must_pass; there is nothing to judge")
        return self


_FIELDS: dict[str, type[_Entry]] = {"evidence": Evidence, "rule": Rule, "limit": Limit}
_LISTS = ("metric", "must_pass", "rule", "limit")


def read_rules(path: Path | None = None) -> Rules:
    """Read a file of rules, by default :data:`DEFAULT`. Raises :class:`OptionError` in one line."""
    path = path or DEFAULT
    if path.is_dir():
        raise OptionError(f"--gate: {path} is a folder; write --gate=FILE, or put --gate after the cases")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(
            f"--gate: {path}: no such file; name a TOML file of rules, or none for the defaults"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"--gate: {path}: not a TOML file of rules: {' '.join(str(error).split())}") from None
    try:
        return Rules.model_validate(data)
    except ValidationError as error:
        raise OptionError(f"--gate: {path}: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    """Return the first fault in one line: where it is, what is wrong, and what is to be there."""
    found = error.errors()
    first = next(
        (one for one in found if one["type"] == "extra_forbidden"), found[0]
    )  # misspelt, so another is missing
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    if first["type"] == "missing":
        return f"{where}: is missing"
    if first["type"] == "extra_forbidden":
        top = len(first["loc"]) == 1
        fields = (Rules if top else _FIELDS.get(str(first["loc"][0]), Rules)).model_fields
        return f"{where}: is not a known field; {near(str(first['loc'][-1]), fields)}"
    if first["type"] == "value_error":
        return f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}"
    mend = ""
    if first["type"] == "list_type" and first["loc"][-1] in _LISTS:
        table = first["loc"][-1] in _FIELDS
        mend = f"; write [[{where}]] before its fields" if table else f'; write {first["loc"][-1]} = ["...", "..."]'
    return f"{where}: {first['msg']}, not {first['input']!r}{mend}"
