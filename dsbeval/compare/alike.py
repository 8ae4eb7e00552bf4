"""Whether two fingerprints may be compared: what must be equal, what may differ and is shown.

Conventions
-----------
* What is measured must be equal: the cases, how they were played, what was detected, by which thresholds it was judged, and by
  whom. A field that is not known here must be equal too.
* What is compared may differ: the agent, its arguments, its checkpoint, its device and process, the seed, and whether its
  recordings were replayed. So may the versions of libraries, except the resampler; and the selection, since only cases of both
  runs are compared.
* The judge may differ where one side has none: then nothing judged is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsbeval.errors import RunError

FREE = (
    "agent", "agent_args", "checkpoint", "device", "process", "seed", "versions", "audio_format", "selection", "replay",
)  # fmt: skip
SHOWN = 4
"""So many differences are named."""
Fields = Mapping[str, Any]


def unlike(base: Fields, new: Fields) -> list[str]:
    """Return each difference that stands against a comparison, as ``field: one, the other``."""
    out: list[str] = []
    for key in sorted({*base, *new} - {*FREE}):
        if key == "dyadic" and not (base.get(key) and new.get(key)):
            continue
        if key == "judge":
            out += _judges(base.get(key) or {}, new.get(key) or {})
        else:
            out += _differences(key, base.get(key), new.get(key))
    resamplers = [side.get("versions", {}).get("resampler") for side in (base, new)]
    return out + list(_differences("versions.resampler", *resamplers))


def _judges(base: Fields, new: Fields) -> list[str]:
    if "none" in (base.get("id"), new.get("id")):
        return []
    return [
        line for field in ("id", "prompts") for line in _differences(f"judge.{field}", base.get(field), new.get(field))
    ]


def shown(base: Fields, new: Fields) -> list[str]:
    """Return each difference that may be, in the same form; the selection is not one."""
    out = [line for key in FREE if key != "selection" for line in _differences(key, base.get(key), new.get(key))]
    judges = [side.get("judge") or {} for side in (base, new)]
    return out + list(_differences("judge", *(judge.get("id") for judge in judges)))


def _differences(name: str, one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            yield from _differences(f"{name}.{key}", one.get(key), other.get(key))
    elif one != other:
        yield f"{name}: {_short(one)}, {_short(other)}"


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text[:12] if len(text) == 64 and text.isalnum() else text


def check_alike(base: Fields, new: Fields, names: tuple[str, str]) -> None:
    """Raise :class:`RunError`, which names the differences, where two fingerprints may not be compared."""
    found = unlike(base, new)
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise RunError(
            f"{names[0]} and {names[1]} cannot be compared: they differ in {'; '.join(found[:SHOWN])}{more} "
            "(--allow-unlike compares them all the same)"
        )
