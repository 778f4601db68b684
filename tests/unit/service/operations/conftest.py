"""A service in memory, with an organization and a project in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.examples import Clock
from tests.memory_store import open_memory
from tests.unit.service.asking import Asking


@pytest.fixture
def ask() -> Iterator[Asking]:
    """Return what calls it."""
    clock = Clock()
    with closing(open_memory(now=clock)) as service:
        asking = Asking(service, clock)
        asking.prepare()
        yield asking
