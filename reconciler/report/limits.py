"""Limits of a report; quick to load, for the options of the command line."""

from __future__ import annotations

LIMIT = 60_000
"""GitHub refuses comments past 65,536 characters."""

LEAST = 2_000
"""The summary alone is never longer than this."""

WHOLE = 50
"""Plain creates, or objects that were made, that a folded report shows; the others are counted."""
