"""Being the one writer for the length of a command."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from reconciler.cli.output import hint
from reconciler.errors import LockHeldError
from reconciler.report.visible import visible
from reconciler.service_client.port import ServiceClient

T = TypeVar("T")

RETRY_SECONDS = 0.5


@contextmanager
def locked(client: ServiceClient, organizations: Collection[str], timeout: float) -> Iterator[None]:
    """Hold the lock of organizations, waiting for it as long as was asked.

    Raises:
        LockHeldError: another run still holds it.
    """
    patiently(lambda: client.acquire(organizations), timeout)
    try:
        yield
    finally:
        client.release()


def patiently(take: Callable[[], T], timeout: float) -> T:
    """Return what can be taken once no other run has it, waiting as long as was asked.

    Raises:
        LockHeldError: another run still has it.
    """
    deadline = time.monotonic() + timeout
    told = False
    while True:
        try:
            return take()
        except LockHeldError as failure:
            if time.monotonic() >= deadline:
                raise
            if not told:
                hint(f"Waiting, at most {timeout:g} s: {visible(failure.problem)}.")
                told = True
            time.sleep(RETRY_SECONDS)
