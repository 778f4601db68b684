"""The garbage collector, kept away from values that all stay until the run ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make values without the collector walking them, while they are made and ever after.

    It would walk a million of them again and again, and at the end once more: a third of the
    whole time. None of them is part of a cycle, so they still go when nobody needs them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.enable()


def collect_seldom() -> None:
    """Make the collector look seldom, and only at what comes from now on: for a server.

    The values of many calls are alive at once and next to none is part of a cycle, so that
    looking after every few hundred of them took a fifth of the time of a write.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
