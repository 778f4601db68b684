"""How long a comment may be; light to load, for the options of the command line."""

from __future__ import annotations

LIMIT = 60_000
"""GitHub refuses comments past 65,536 characters."""

LEAST = 2_000
"""The summary alone is never longer than this."""
