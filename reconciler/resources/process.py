"""The running process: its garbage collector, and places where a test can end it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make values without the collector walking them, while they are made and ever after.

    It would walk a million of them again and again, and at the end once more: a third of the
    whole time. None of them is part of a cycle, so they are still freed when unused.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.enable()


def return_large_memory() -> None:
    """Give memory of 256 KiB and more back to the system as soon as it is free: for a server.

    The C library of GNU keeps blocks of a size once one of them was freed. The event loop has such
    a buffer for each connection over TLS; after many connections, half of them would never go back.
    """
    import ctypes  # servers alone need it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have no such thing
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 256 * 1024)


_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def collect_seldom() -> None:
    """Make the collector look seldom, and only at what comes from now on.

    Next to no value is part of a cycle, so that looking after every few hundred of them took a
    tenth of the time to load the program, and in a server a fifth of the time of a write.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH")


def loader_variables() -> dict[str, str]:
    """Return the variables of the environment by which the libraries of this Python are found.

    A child process that should get nothing else of the environment needs these.
    """
    return {name: os.environ[name] for name in _LOADER if name in os.environ}


# Where a test ends the process as a power cut would.
VARIABLE = "RECONCILER_CRASHPOINT"


def _armed(written: str) -> dict[str, Iterator[int]]:
    name, _, visit = written.partition(":")
    return {name: iter(range(int(visit or "1"), 0, -1))} if name else {}


_visits_left = _armed(os.environ.get(VARIABLE, ""))  # iterators: threads count without a lock


def crashpoint(name: str) -> None:
    """Kill the process here if the environment names this place: ``S4``, or ``S4:3`` (visit 3)."""
    if name in _visits_left and next(_visits_left[name], 0) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
