"""Which agents there are, by name. Nothing of them is imported."""

from __future__ import annotations

from importlib.metadata import entry_points

GROUP = "dsbeval.agents"


def known_agents() -> dict[str, str]:
    """Return name -> where it comes from, for the agents of this project and those of installed entry points."""
    from adapters import AGENTS

    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**found, **AGENTS}
