"""Whether a run may go on in a folder that another one began, and the fingerprint of both.

Conventions
-----------
* Every field must be equal but ``selection``: what was asked for may be more, or less.
* A benchmark's own field may be there in one of the two only: a folder may get the conversations of two agents later.
* What is said of partners is compared for the partners of both runs; one that the earlier run did not have joins it. The
  fingerprint of the folder then names the partners of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BENCHMARKS = ("dyadic",)
"""Fields of a fingerprint that belong to a benchmark."""
BY_PARTNER = ("partner_checkpoints", "partners")
"""Fields of ``dyadic`` that hold something a partner, by its name; no entry is what the command line alone says."""

Fields = Mapping[str, Any]


def differences(one: Fields, other: Fields) -> list[str]:
    """Return the names of the fields that two fingerprints do not share; ``selection`` may differ."""
    return sorted(key for key in {*one, *other} - {"selection"} if one.get(key) != other.get(key))


def unlike(known: Fields, wanted: Fields) -> list[str]:
    """Return the names of what stands against going on; of a partner, ``partner NAME``."""
    fields = [name for name in differences(known, wanted) if name not in BENCHMARKS]
    for name in BENCHMARKS:
        if name in known and name in wanted:
            fields += _unlike_in(name, known, wanted)
    return fields


def _unlike_in(benchmark: str, known: Fields, wanted: Fields) -> list[str]:
    one, other = known[benchmark], wanted[benchmark]
    own = [{key: value for key, value in side.items() if key not in BY_PARTNER} for side in (one, other)]
    shared = [partner for partner in _partners(known) if partner in _partners(wanted)]
    return ([benchmark] if own[0] != own[1] else []) + [
        f"partner {partner}"
        for partner in shared
        if any(one.get(key, {}).get(partner) != other.get(key, {}).get(partner) for key in BY_PARTNER)
    ]


def joined(known: Fields, wanted: Fields) -> dict[str, Any]:
    """Return the fingerprint of a folder in which the two runs stand, neither of them unlike the other."""
    out = {**known, **wanted}
    for name in BENCHMARKS:
        if name in known and name in wanted:
            both = {key: {**known[name].get(key, {}), **wanted[name].get(key, {})} for key in BY_PARTNER}
            out[name] = {**known[name], **wanted[name], **{key: value for key, value in both.items() if value}}
    if partners := list(dict.fromkeys([*_partners(known), *_partners(wanted)])):
        out["selection"] = {**out["selection"], "partners": partners}
    return out


def _partners(fingerprint: Fields) -> list[str]:
    return list(fingerprint.get("selection", {}).get("partners", []))
