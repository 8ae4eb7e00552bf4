"""Addresses inside the report: the lists of cases and conversations, with their filters."""

from __future__ import annotations

from urllib.parse import quote

OUTCOMES = ("passed", "failed", "error", "skipped", "missing")
"""What becomes of a case or conversation; *missing* has no row at all."""


def cases_at(**filters: str) -> str:
    """Return the address of the list of cases with a filter."""
    return "#/cases?" + "&".join(f"{key}={quote(value)}" for key, value in filters.items())


def conversations_at(**filters: str) -> str:
    """Return the address of the list of conversations with a filter."""
    return "#/conversations?" + "&".join(f"{key}={quote(value)}" for key, value in filters.items())
