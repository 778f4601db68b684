"""The service over each store, with an organization and a project in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_postgres, open_sqlite
from tests.examples import Clock
from tests.memory_store import open_memory
from tests.unit.service.asking import Asking


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Asking]:
    """Open one service of each kind of store."""
    clock = Clock()
    if request.param == "memory":
        service = open_memory(now=clock)
    elif request.param == "postgres":
        address = request.getfixturevalue("postgres").new_address()
        key = tmp_path / "seal-key"
        service = open_postgres(address, seal_key_file=key, create=True, now=clock)
    else:
        service = open_sqlite(tmp_path / "identity.db", create=True, now=clock)
    with closing(service):
        asking = Asking(service, clock)
        asking.prepare()
        yield asking
