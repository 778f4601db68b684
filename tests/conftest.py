"""What every kind of test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres_server import PostgresServer, a_server
from tests.surroundings import settle_in

settle_in()

# How long one example takes says how busy the machine is. Time is asked about where it matters.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start a real server, once for all tests of a process."""
    with a_server() as server:
        yield server
