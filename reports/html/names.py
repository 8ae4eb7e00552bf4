"""What roles and probes are called. A run folder has their ids only; the names are its pack's, if that is the suite's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack


def names_of(fingerprint: Mapping[str, Any]) -> dict[str, str]:
    """Return the names by id; none where the run was made with another pack than the suite's."""
    try:
        pack = load_pack(DEFAULT_PACK)
    except DsbevalError:
        return {}
    if pack.sha256 != fingerprint.get("pack"):
        return {}
    roles, probes = pack.roles.values(), pack.probes.values()
    return {role.id: role.name for role in roles} | {probe.id: probe.name for probe in probes}
