"""How many random cases the tests of laws try: ``make laws`` tries ten times as many."""

from __future__ import annotations

import os

_TIMES = int(os.environ.get("TIMES", "1"))

IS_USUAL = _TIMES == 1
"""Whether this is no run of ``make laws``, which also tries cases on more ways to a service."""


def cases(count: int) -> int:
    """Return how many cases to try where a usual run tries this many."""
    return count * _TIMES
