"""Every event store there is, new and empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.service.eventstore.port import EventStore
from tests.contract.event_store.stores import a_memory_store, a_postgres_store, a_sqlite_store
from tests.examples import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> Iterator[EventStore]:
    """Open one empty store of each kind."""
    if request.param == "postgres":
        opening = a_postgres_store(request.getfixturevalue("postgres"), clock)
    else:
        opening = {"memory": a_memory_store, "sqlite": a_sqlite_store}[request.param](
            tmp_path, clock
        )
    with opening as opened:
        yield opened
