"""What every kind of test may ask for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgres_server import PostgresServer, a_server
from tests.shared import shared_folder
from tests.surroundings import settle_in

settle_in()
shared_folder()  # before processes are started that use it together

# How long one example takes says how busy the machine is. Time is asked about where it matters.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_FOLDERS = count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for one test, with nothing beside it.

    The fixture of pytest looks through the folders of all earlier tests for its number, and so do
    commands that look for manifests beside the folder they are given.
    """
    folder = tmp_path_factory.getbasetemp() / str(next(_FOLDERS)) / "test"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def pytest_sessionfinish() -> None:
    """Save what was measured now: xdist kills a process ten seconds after its last test."""
    if "coverage" in sys.modules:
        from coverage import Coverage

        if measured := Coverage.current():
            measured.save()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start a real server, once for all tests of a process."""
    with a_server() as server:
        yield server
