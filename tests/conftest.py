"""What every kind of test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer, a_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start a real server, once for all tests of a process."""
    with a_server() as server:
        yield server
