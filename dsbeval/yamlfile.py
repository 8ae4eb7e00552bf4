"""YAML read into validated models; an error names file, entry, field and what is allowed, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from dsbeval.errors import DsbevalError, PackError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster: collection needs it


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, which takes the last of two equal keys; here they are an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} appears twice", node.start_mark)
        found: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return found


_MERGE = "tag:yaml.org,2002:merge"


class Entry(BaseModel):
    """Base of everything read from YAML: frozen, and a field that is not known is an error, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


M = TypeVar("M", bound=Entry)

_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field (misspelt?)",
}


def read_yaml(path: Path, model: type[M]) -> M:
    """Read ``path`` into ``model``; raise :class:`PackError` with one line for the first thing that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PackError(f"{path}: no such file; a pack needs it") from None
    except OSError as error:
        raise PackError(f"{path}: cannot be read ({error.strerror}); a YAML file is needed") from None
    except UnicodeDecodeError as error:
        raise PackError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise PackError(f"{path}: {where}not valid YAML: {error.problem}; mend it there") from None
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a date that is none, such as 2026-13-45
        raise PackError(f"{path}: not valid YAML: {' '.join(str(error).split())}; mend or quote it") from None
    return validated(path, data, model)


def validated(path: Path, data: Any, model: type[M], error: type[DsbevalError] = PackError) -> M:
    """Return what was read from ``path`` as ``model``; raise ``error`` with one line for the first thing that is wrong."""
    if not isinstance(data, dict):
        raise error(f"{path}: must be a mapping with the fields {', '.join(model.model_fields)}")
    try:
        return model.model_validate(data)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        more = len(wrong.errors()) - 1
        tail = f" (and {more} more)" if more else ""
        line = f"{path}: {_place(data, first['loc'])}{_problem(first)}{tail}"
        raise error(" ".join(line.split())) from None


def _place(data: Any, loc: tuple[int | str, ...]) -> str:
    """Name the entry by what identifies it (id, or role/probe/instance) and the field by its dotted path."""
    entry: list[str] = []
    field: list[str] = []
    node = data
    for key in loc:
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            node = None
        names = [str(node[n]) for n in ("id", "role", "probe", "instance") if isinstance(node, dict) and n in node]
        if isinstance(key, int) and names:
            entry, field = ["/".join(names)], []
        else:
            field.append(f"[{key + 1}]" if isinstance(key, int) else f".{key}")
    return "".join(f"{part}: " for part in (*entry, "".join(field).lstrip(".")) if part)


def _problem(error: Any) -> str:
    known = _MESSAGES.get(error["type"])
    if known:
        return known
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = repr(error.get("input"))
    short = shown if len(shown) <= 60 else shown[:57] + "..."
    return message if error["type"] == "value_error" else f"{message[0].lower()}{message[1:]} (found {short})"
