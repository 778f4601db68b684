"""Being the one writer for the length of a command."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import click

from reconciler.errors import LockHeldError
from reconciler.report.visible import visible
from reconciler.service_client.port import ServiceClient

RETRY_SECONDS = 0.5


@contextmanager
def locked(client: ServiceClient, organizations: Collection[str], timeout: float) -> Iterator[None]:
    """Hold the lock of organizations, waiting for it as long as was asked.

    Raises:
        LockHeldError: somebody else still holds it.
    """
    deadline = time.monotonic() + timeout
    told = False
    while True:
        try:
            client.acquire(organizations)
            break
        except LockHeldError as failure:
            if time.monotonic() >= deadline:
                raise
            if not told:
                click.echo(f"Waiting: {visible(failure.problem)}.", err=True)
                told = True
            time.sleep(RETRY_SECONDS)
    try:
        yield
    finally:
        client.release()
